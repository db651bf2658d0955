/* fuzz_text.c: whatever comes as a URL, a duration or a name, the parsers say yes or say why not.
 * The first byte chooses which; a password never comes back in a message. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "core/name.h"
#include "core/url.h"

static const char *const common[] = {"ttl", "transition", NULL};

static void try_url(const char *text)
{
    static struct simba_url u;
    char why[128];
    if (url_parse(&u, text, why, sizeof why) != 0) {
        assert(why[0] != '\0');
        assert(strlen(why) < sizeof why);
        return;
    }
    assert(u.scheme[0] != '\0');
    assert(strlen(u.shown) < sizeof u.shown);
    /* What is shown can be parsed again, and has no password but the stars. */
    static struct simba_url again;
    if (url_parse(&again, u.shown, why, sizeof why) == 0 && again.password != NULL)
        assert(u.password == NULL || strcmp(again.password, "***") == 0);
    for (size_t i = 0; i < u.hosts; i++)
        assert(u.host[i].port == URL_PORT_NONE || (u.host[i].port > 0 && u.host[i].port < 65536));
    (void)url_check_options(&u, common, NULL, why, sizeof why);
}

static void try_duration(const char *text)
{
    const char *why = NULL;
    int64_t ms = -1;
    if (duration_parse(text, &ms, &why) == 0)
        assert(ms >= 0);
    else
        assert(why != NULL);
}

static void try_name(const char *text)
{
    const char *why = NULL;
    if (name_check_mutex(text, &why) == 0) {
        assert(strlen(text) > 0 && strlen(text) <= SIMBA_MUTEX_MAX);
        assert(name_check_id(text, &why) == 0);
    } else {
        assert(why != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    assert(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 0)
        try_url(text);
    else if (data[0] % 3 == 1)
        try_duration(text);
    else
        try_name(text);
    free(text);
    return 0;
}
