/* id.c: how the ids of contenders look. Callers find the address and draw the random numbers. */
#include "core/id.h"

#include "base/text.h"

#include <assert.h>
#include <simba.h>
#include <string.h>

/* A cut id could be equal to another's, so there is rather none. */
static int finish(struct text *t)
{
    if (!t->cut)
        return 0;
    t->at[0] = '\0';
    return SIMBA_ELIMIT;
}

static struct text begin(char *out, size_t size)
{
    struct text t;
    text_init(&t, out, size > SIMBA_ID_MAX ? SIMBA_ID_MAX + 1 : size);
    return t;
}

int id_host(char *out, size_t size, uint64_t counter, int64_t pid, const char *host,
            const char *address, uint32_t random)
{
    assert(address[0] != '\0');
    struct text t = begin(out, size);
    text_add_uint(&t, counter);
    text_add(&t, ":");
    text_add_int(&t, pid);
    text_add(&t, "@");
    text_add(&t, host);
    text_add(&t, host[0] != '\0' ? "/" : "");
    text_add(&t, address);
    text_add(&t, "-");
    text_add_hex(&t, random, 8);
    return finish(&t);
}

void id_host_name(char out[ID_HOST_MAX + 1], const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    size_t length = strspn(name, allowed);
    if (name[length] != '\0')
        length = 0;
    if (length > ID_HOST_MAX)
        length = ID_HOST_MAX;
    memcpy(out, name, length);
    out[length] = '\0';
}

int id_uuid(char *out, size_t size, const uint8_t random[16])
{
    struct text t = begin(out, size);
    for (size_t i = 0; i < 16; i++) {
        unsigned byte = random[i];
        if (i == 6)
            byte = (byte & 0x0F) | 0x40; /* version 4: random */
        else if (i == 8)
            byte = (byte & 0x3F) | 0x80; /* the variant of RFC 4122 */
        text_add_hex(&t, byte, 2);
    }
    return finish(&t);
}
