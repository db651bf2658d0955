/* json.h: the one writer of JSON: text that grows in memory. Nobody here reads any. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_BUFFER_MAX ((size_t)256 * 1024 * 1024) /* beyond it, the text has failed */

/* All zero is an empty one. */
struct json_buffer {
    char *at; /* free() it; not ended by a NUL */
    size_t length, room;
    bool is_line;  /* for programs, not for a page: see json_buffer_string() */
    bool is_fixed; /* at and room are somebody else's, and do not grow */
    bool failed;   /* out of memory, or over the limit: it is not to be used */
};

void json_buffer_add(struct json_buffer *t, const char *raw); /* as it is */
__attribute__((format(printf, 2, 3))) void
json_buffer_addf(struct json_buffer *t, const char *format, ...); /* at most 256 bytes */

/* Somebody else's text with quotes around it; NULL is null. What JSON forbids, and what moves a cursor
 * or turns the direction of text, is a \ with something behind it. So is what ends a script element, and
 * what is not UTF-8 is U+FFFD; but in a line the first stays and the second is a ?. */
void json_buffer_string(struct json_buffer *t, const char *text);

/* So many digits that it is read as the same number again, and with a point, so that it is not read as
 * an integer. */
void json_buffer_real(struct json_buffer *t, double value);

/* ,"name":value, without the comma after a brace. */
void json_buffer_name(struct json_buffer *t, const char *name);
void json_buffer_string_of(struct json_buffer *t, const char *name, const char *text);
void json_buffer_number_of(struct json_buffer *t, const char *name, bool known, int64_t value);
void json_buffer_token_of(struct json_buffer *t, const char *name, uint64_t token); /* 0: null */
void json_buffer_bool_of(struct json_buffer *t, const char *name, bool value);

/* A number, or null where it is not known. */
struct json_number {
    bool is_known;
    int64_t value;
};
struct json_number number_or_null(bool is_known, int64_t value);

/* An object, of pairs of names and values. The format has a colon and a letter for each value, as in
 * "{s:s, s:I}": s a text, which may be NULL; i int; I long long; f double; b int as a bool; n null,
 * without a value; o a struct json_number; j a struct json_buffer *, put in as it is and freed. */
void json_buffer_object(struct json_buffer *t, const char *format, ...);
void json_buffer_object_of(struct json_buffer *t, const char *format, va_list args);
#endif
