/* owner.c: the id of an owner as its row holds it, and as it is shown.
 *
 * An eviction replaces the first character of owner_id, so that whoever renews by its id cannot any more, and
 * keeps the bytes of that character in ttl_at, as one number. So the true id can be told as long as the row
 * holds the tenure. */
#include "core/text.h"

#include <stdio.h>
#include <string.h>

#include "backend/sql/sql.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define ELLIPSIS_BYTES 3

/* A whole character is replaced, so that what is left is text. */
static const char *after_first(const char *id)
{
    const char *rest = id + (id[0] != '\0');
    while (((unsigned char)*rest & 0xc0) == 0x80)
        rest++;
    return rest;
}

void sql_evicted_id(const char *id, char out[SIMBA_ID_MAX + 1])
{
    snprintf(out, SIMBA_ID_MAX + 1, "%c%s", id[0] == '~' ? '!' : '~', after_first(id));
}

size_t sql_cut_bytes(const char *id)
{
    size_t n = strlen(id);
    bool cut = n > ELLIPSIS_BYTES && strcmp(id + n - ELLIPSIS_BYTES, ELLIPSIS) == 0;
    return cut ? n - ELLIPSIS_BYTES : 0;
}

struct shown {
    char *out;
    size_t length, room_until; /* up to there an ellipsis fits behind it */
    bool full;
};

static void show(struct shown *s, const char *text)
{
    for (size_t n; *text != '\0' && !s->full; text += n) {
        uint32_t point;
        size_t valid = text_utf8(text, &point);
        n = valid > 0 ? valid : 1;
        s->full = s->length + n > SIMBA_ID_MAX;
        if (s->full)
            break;
        memcpy(s->out + s->length, valid > 0 ? text : "?", n);
        s->length += n;
        if (s->length + ELLIPSIS_BYTES <= SIMBA_ID_MAX)
            s->room_until = s->length;
    }
    if (s->full)
        s->length = s->room_until;
    s->out[s->length] = '\0';
}

void sql_shown_id(const char *owner, uint32_t first, char out[SIMBA_ID_MAX + 1])
{
    struct shown s = {.out = out};
    char character[5] = "";
    size_t n = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (first >> shift != 0)
            character[n++] = (char)(first >> shift & 0xff);
    }
    show(&s, character);
    show(&s, first != 0 ? after_first(owner) : owner);
    if (s.full)
        memcpy(out + s.length, ELLIPSIS, ELLIPSIS_BYTES + 1);
}
