/* path.c: see path.h. */
#include "backend/zookeeper/path.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* At a '%' that two digits follow? */
static bool is_escape(const char *at)
{
    return at[0] == '%' && text_hex_value(at[1]) >= 0 && text_hex_value(at[2]) >= 0;
}

static bool is_refused(uint32_t c)
{
    return c == '/' || c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) ||
           c >= 0xfff0;
}

void zk_path_encode(char out[PATH_NODE_SIZE], const char *mutex)
{
    bool dots = strcmp(mutex, ".") == 0 || strcmp(mutex, "..") == 0;
    char *at = out, *end = out + PATH_NODE_SIZE;
    for (size_t length; *mutex != '\0'; mutex += length) {
        uint32_t c = 0; /* refused, as what is no UTF-8 */
        length = text_utf8(mutex, &c);
        length = length > 0 ? length : 1;
        for (size_t i = 0; i < length && end - at > 3; i++) {
            if (dots || is_escape(mutex) || is_refused(c))
                at += snprintf(at, 4, "%%%02X", (unsigned char)mutex[i]);
            else
                *at++ = mutex[i];
        }
    }
    *at = '\0';
}

bool zk_path_decode(char out[SIMBA_MUTEX_MAX + 1], const char *node)
{
    size_t n = 0;
    char again[PATH_NODE_SIZE];
    for (const char *at = node; *at != '\0'; n++) {
        if (n == SIMBA_MUTEX_MAX)
            return false;
        if (is_escape(at)) {
            out[n] = (char)(text_hex_value(at[1]) << 4 | text_hex_value(at[2]));
            if (out[n] == '\0')
                return false;
            at += 3;
        } else {
            out[n] = *at++;
        }
    }
    out[n] = '\0';
    if (n == 0)
        return false;
    zk_path_encode(again, out);
    return strcmp(again, node) == 0; /* else some mutex is written otherwise */
}

/* Ours are at most SIMBA_ID_MAX bytes of UTF-8; others write what they like. */
void zk_path_show_id(char out[SIMBA_ID_MAX + 1], const char *data, int length)
{
    bool is_empty = data == NULL || length <= 0; /* a latch of Curator's without an id */
    text_shorten(out, SIMBA_ID_MAX + 1, is_empty ? "?" : data, is_empty ? 1 : (size_t)length);
}
