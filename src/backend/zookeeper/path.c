/* path.c: see path.h. */
#include "backend/zookeeper/path.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code point at the text, and its length; the text is valid UTF-8. */
static uint32_t code_point(const char *text, int *length)
{
    const unsigned char *b = (const unsigned char *)text;
    *length = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    uint32_t c = *length == 1 ? b[0] : b[0] & (0x7fu >> *length);
    for (int i = 1; i < *length; i++) {
        if ((b[i] & 0xc0) != 0x80) { /* not valid after all */
            *length = 1;
            return 0xffff;
        }
        c = c << 6 | (b[i] & 0x3f);
    }
    return c;
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
    for (int length; *mutex != '\0'; mutex += length) {
        uint32_t c = code_point(mutex, &length);
        bool escape = c == '%' && hex(mutex[1]) >= 0 && hex(mutex[2]) >= 0;
        for (int i = 0; i < length && end - at > 3; i++) {
            if (dots || escape || is_refused(c))
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
        if (at[0] == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
            out[n] = (char)(hex(at[1]) << 4 | hex(at[2]));
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
