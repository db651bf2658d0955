/* owner.c: the id of an owner as its row holds it, and as it is shown.
 *
 * An eviction replaces the first character of owner_id, so that whoever renews by its id cannot
 * any more, and keeps the bytes of that character in ttl_at, as one number. So the true id can
 * be told as long as the row holds the tenure. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "backend/sql/sql.h"

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
    size_t dots = strlen(TEXT_ELLIPSIS);
    return n > dots && strcmp(id + n - dots, TEXT_ELLIPSIS) == 0 ? n - dots : 0;
}

void sql_shown_id(const char *owner, uint32_t first, char out[SIMBA_ID_MAX + 1])
{
    char whole[SIMBA_ID_MAX + 8] = ""; /* enough to see that it is too long */
    size_t n = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (first >> shift != 0)
            whole[n++] = (char)(first >> shift & 0xff);
    }
    snprintf(whole + n, sizeof whole - n, "%s", first != 0 ? after_first(owner) : owner);
    text_shorten(out, SIMBA_ID_MAX + 1, whole, strlen(whole));
}
