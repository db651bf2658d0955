/* json_buffer.h: JSON that grows in memory, for answers with very many rows. jansson would build a tree
 * of all of it first. */
#ifndef CLI_JSON_BUFFER_H
#define CLI_JSON_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_BUFFER_MAX ((size_t)256 * 1024 * 1024) /* beyond it, the text has failed */

/* All zero is an empty one. */
struct json_buffer {
    char *at; /* free() it; not ended by a NUL */
    size_t length, room;
    bool failed; /* out of memory, or over the limit: it is not to be used */
};

void json_buffer_add(struct json_buffer *t, const char *raw); /* as it is */
__attribute__((format(printf, 2, 3))) void
json_buffer_addf(struct json_buffer *t, const char *format, ...); /* at most 256 bytes */

/* Somebody else's text with quotes around it; NULL is null. What JSON forbids, what ends a script
 * element, and what moves a cursor or turns the direction of text are \u escapes; what is not UTF-8
 * is U+FFFD. */
void json_buffer_string(struct json_buffer *t, const char *text);

/* ,"name":value, without the comma after a brace. */
void json_buffer_name(struct json_buffer *t, const char *name);
void json_buffer_string_of(struct json_buffer *t, const char *name, const char *text);
void json_buffer_number_of(struct json_buffer *t, const char *name, bool known, int64_t value);
void json_buffer_token_of(struct json_buffer *t, const char *name, uint64_t token); /* 0: null */
void json_buffer_bool_of(struct json_buffer *t, const char *name, bool value);
#endif
