/* text.h: short texts in buffers that somebody else owns, and what URLs and names need to know
 * about characters. Without stdio and locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What does not fit is dropped, at the boundary of a UTF-8 character, and so is all that is added
 * later: a text may be short, but it has no gap. There is always a NUL at the end. */
struct text {
    char *at;            /* borrowed */
    size_t size, length; /* of the buffer; of the text, without the NUL */
    bool cut;            /* something was dropped */
};

/* Begins an empty text in the `size` bytes at `at`, one or more. */
void text_init(struct text *t, char *at, size_t size);

void text_add(struct text *t, const char *string);
void text_add_bytes(struct text *t, const char *bytes, size_t count);
void text_add_int(struct text *t, int64_t value);
void text_add_uint(struct text *t, uint64_t value);
void text_add_hex(struct text *t, uint64_t value, size_t digits); /* the lowest 1 to 16 digits */

/* The number of bytes of the UTF-8 character that begins at `at`, which is not the NUL, and its
 * code point; 0 if it is malformed, overlong, a surrogate or above 10FFFF. Never reads beyond the
 * NUL that ends the string. */
size_t text_utf8(const char *at, uint32_t *point);

/* Does it move the cursor, begin a line or a paragraph, or turn the direction of text? */
bool text_is_hidden(uint32_t point);

/* Adds a string that others may have written, for people to read: control characters (C0, DEL,
 * C1), line and paragraph separators and what changes the direction of writing become \xHH or
 * \uHHHH, and so does each byte that is not UTF-8. */
void text_add_escaped(struct text *t, const char *string);

/* Adds a length of time for people to read, rounded down: "0.8s", "5s", "1.5s", "12s", "3m07s",
 * "2h05m", "3d04h". */
void text_add_duration(struct text *t, int64_t ms);

/* The same for what is shown in a column, or again and again: with tenths up to 10 s, as in "5.0s", so
 * that its width stays. */
void text_add_steady_duration(struct text *t, int64_t ms);

/* Of a text that was cut the last whole word is kept, and TEXT_ELLIPSIS says that there was more. */
void text_end(struct text *t);

/* Somebody else's name, to be shown in `size` bytes: each byte that is no UTF-8, and each NUL,
 * becomes "?"; what is too long is cut between two characters and ends with TEXT_ELLIPSIS. */
#define TEXT_ELLIPSIS "\xe2\x80\xa6"
void text_shorten(char *out, size_t size, const char *bytes, size_t count);

/* What keeps a string out of a line of a log or JSON, as the end of a sentence; NULL: nothing. */
const char *text_fault(const char *string);

int text_hex_value(char c); /* of a hexadecimal digit; -1: it is none */

/* Copies count bytes with each %XX replaced by the byte it stands for, and adds a NUL: to count + 1
 * bytes at most. NULL, or what is wrong, as the end of a sentence. */
const char *text_unescape(char *to, const char *from, size_t count);

/* How many bytes to add, drop or change to get from a to b, which has at most TEXT_DISTANCE_MAX. */
#define TEXT_DISTANCE_MAX 64
size_t text_distance(const char *a, const char *b);

/* The name that was meant; NULL: none is near enough to suggest it. */
const char *text_nearest(const char *name, const char *const *names, size_t count);
#endif
