/* json.c: JSON that grows in memory. There is one place that writes a string of others, and it escapes
 * all that could be more than a string: for terminals, browsers and parsers alike. */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
        char *at = room <= JSON_BUFFER_MAX && !t->is_fixed ? realloc(t->at, room) : NULL;
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

/* In a line, where an escape is short. */
static char short_escape(uint32_t point)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = point < 0x80 ? strchr(from, (int)point) : NULL;
    return at != NULL ? to[at - from] : '\0';
}

static void add_character(struct json_buffer *t, const char *at, size_t length, uint32_t point)
{
    char escape = t->is_line ? short_escape(point) : '\0';
    bool is_special = !t->is_line && point < 0x80 && strchr("\"\\<>&'", (int)point) != NULL;
    if (escape != '\0')
        json_buffer_addf(t, "\\%c", escape);
    else if (is_special || text_is_hidden(point))
        json_buffer_addf(t, "\\u%04x", point);
    else
        add_bytes(t, at, length);
}

void json_buffer_string(struct json_buffer *t, const char *text)
{
    uint32_t point;
    if (text == NULL) {
        json_buffer_add(t, "null");
        return;
    }
    json_buffer_add(t, "\"");
    for (size_t length; *text != '\0'; text += length > 0 ? length : 1) {
        length = text_utf8(text, &point);
        if (length > 0)
            add_character(t, text, length, point);
        else
            json_buffer_add(t, t->is_line ? "?" : "\\ufffd");
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

struct json_number number_or_null(bool is_known, int64_t value)
{
    return (struct json_number){.is_known = is_known, .value = value};
}

void json_buffer_real(struct json_buffer *t, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    json_buffer_addf(t, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static void buffer_of(struct json_buffer *t, const char *name, struct json_buffer *given)
{
    json_buffer_name(t, name);
    add_bytes(t, given->at, given->length);
    t->failed = t->failed || given->failed;
    free(given->at);
}

static void value_of(struct json_buffer *t, const char *name, char kind, va_list *args)
{
    struct json_number number = {.is_known = true};
    switch (kind) {
    case 's':
        json_buffer_string_of(t, name, va_arg(*args, const char *));
        return;
    case 'b':
        json_buffer_bool_of(t, name, va_arg(*args, int));
        return;
    case 'f':
        json_buffer_name(t, name);
        json_buffer_real(t, va_arg(*args, double));
        return;
    case 'j':
        buffer_of(t, name, va_arg(*args, struct json_buffer *));
        return;
    case 'o':
        number = va_arg(*args, struct json_number);
        break;
    case 'I':
        number.value = va_arg(*args, long long);
        break;
    case 'i':
        number.value = va_arg(*args, int);
        break;
    default:
        number.is_known = false;
    }
    json_buffer_number_of(t, name, number.is_known, number.value);
}

void json_buffer_object_of(struct json_buffer *t, const char *format, va_list args)
{
    va_list rest;
    va_copy(rest, args);
    json_buffer_add(t, "{");
    for (const char *at = format; (at = strchr(at, ':')) != NULL; at++) {
        const char *name = va_arg(rest, const char *);
        value_of(t, name, at[1], &rest);
    }
    json_buffer_add(t, "}");
    va_end(rest);
}

void json_buffer_object(struct json_buffer *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_buffer_object_of(t, format, args);
    va_end(args);
}
