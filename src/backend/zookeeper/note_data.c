/* note_data.c: see note_data.h. */
#include "backend/zookeeper/note_data.h"

#include <stdio.h>
#include <string.h>

size_t zk_note_format(char out[NOTE_DATA_SIZE], uint64_t token, uint64_t serial, const char *text)
{
    snprintf(out, NOTE_DATA_SIZE, "%llu %llu\n%.*s", (unsigned long long)token,
             (unsigned long long)serial, SIMBA_NOTE_MAX, text);
    return strlen(out);
}

/* Digits up to the sign that ends them; NULL: there are none, or too many. */
static const char *number(const char *at, const char *end, char sign, uint64_t *out)
{
    const char *first = at;
    for (*out = 0; at < end && *at >= '0' && *at <= '9' && at - first < 19; at++)
        *out = *out * 10 + (uint64_t)(*at - '0');
    return at > first && at < end && *at == sign ? at + 1 : NULL;
}

bool zk_note_parse(const char *data, int length, struct note_data *out)
{
    if (data == NULL || length <= 0)
        return false;
    const char *end = data + length, *at = number(data, end, ' ', &out->token);
    if (at != NULL)
        at = number(at, end, '\n', &out->serial);
    if (at == NULL || out->token == 0)
        return false;
    out->text = at;
    out->length = strnlen(at, (size_t)(end - at));
    return out->length <= SIMBA_NOTE_MAX;
}
