/* json_buffer.c: JSON that grows in memory. There is one place that writes a string of others, and it
 * escapes all that could be more than a string: for terminals, browsers and parsers alike. */
#include "cli/json_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

#define ROOM_FIRST 4096
#define PIECE_MAX 256

static void add_bytes(struct json_buffer *t, const char *bytes, size_t count)
{
    if (t->failed)
        return;
    if (t->length + count > t->room) {
        size_t room = t->room > 0 ? t->room : ROOM_FIRST;
        while (room < t->length + count)
            room *= 2;
        char *at = room <= JSON_BUFFER_MAX ? realloc(t->at, room) : NULL;
        if (at == NULL) {
            t->failed = true;
            return;
        }
        t->at = at;
        t->room = room;
    }
    memcpy(t->at + t->length, bytes, count);
    t->length += count;
}

void json_buffer_add(struct json_buffer *t, const char *raw)
{
    add_bytes(t, raw, strlen(raw));
}

void json_buffer_addf(struct json_buffer *t, const char *format, ...)
{
    char piece[PIECE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof piece)
        t->failed = true;
    else
        add_bytes(t, piece, (size_t)n);
}

void json_buffer_string(struct json_buffer *t, const char *text)
{
    unsigned code;
    if (text == NULL) {
        json_buffer_add(t, "null");
        return;
    }
    json_buffer_add(t, "\"");
    for (size_t length; *text != '\0'; text += length) {
        length = decode_character(text, &code);
        bool is_special = code < 0x80 && strchr("\"\\<>&'", (int)code) != NULL;
        if (is_special || is_unsafe_character(code) || (code == 0xfffd && length == 1))
            json_buffer_addf(t, "\\u%04x", code);
        else
            add_bytes(t, text, length);
    }
    json_buffer_add(t, "\"");
}

void json_buffer_name(struct json_buffer *t, const char *name)
{
    if (t->length > 0 && t->at[t->length - 1] != '{')
        json_buffer_add(t, ",");
    json_buffer_add(t, "\"");
    json_buffer_add(t, name);
    json_buffer_add(t, "\":");
}

void json_buffer_string_of(struct json_buffer *t, const char *name, const char *text)
{
    json_buffer_name(t, name);
    json_buffer_string(t, text);
}

void json_buffer_number_of(struct json_buffer *t, const char *name, bool known, int64_t value)
{
    json_buffer_name(t, name);
    if (known)
        json_buffer_addf(t, "%lld", (long long)value);
    else
        json_buffer_add(t, "null");
}

void json_buffer_token_of(struct json_buffer *t, const char *name, uint64_t token)
{
    json_buffer_name(t, name);
    if (token != 0)
        json_buffer_addf(t, "%llu", (unsigned long long)token);
    else
        json_buffer_add(t, "null");
}

void json_buffer_bool_of(struct json_buffer *t, const char *name, bool value)
{
    json_buffer_name(t, name);
    json_buffer_add(t, value ? "true" : "false");
}
