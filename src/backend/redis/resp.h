/* resp.h: Redis' protocol, to bytes and back.
 *
 * Replies are taken apart by hiredis' reader, but into memory of ours: a decoder has an arena
 * that is used again for each reply, so a reply costs no allocation, and all of it has a ceiling
 * (hiredis before 1.0.1 multiplies an element count of the other side's choice). Commands are
 * written straight into the buffer that is sent; hiredis would allocate and format a copy of
 * each. */
#ifndef BACKEND_REDIS_RESP_H
#define BACKEND_REDIS_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESP_BYTES_MAX (8u << 20) /* of a reply; unfinished, or taken apart */
#define RESP_DEPTH_MAX 8          /* arrays in arrays */

/* ---- commands ------------------------------------------------------------------------------ */

#define BUFFER_MAX (256u << 20)

struct buffer {
    char *at;
    size_t used, size;
    bool failed; /* out of memory or over the limit: what it holds is incomplete */
};

void buffer_add(struct buffer *b, const void *bytes, size_t count);
void buffer_wipe(struct buffer *b); /* all that it ever held; leaves `used` alone */
void buffer_free(struct buffer *b);

/* A command is the number of its arguments and then each of them. */
void resp_begin(struct buffer *b, size_t arguments);
void resp_bytes(struct buffer *b, const char *bytes, size_t count);
void resp_argument(struct buffer *b, const char *text);
void resp_number(struct buffer *b, int64_t number);

/* A whole command: resp_command(b, "GET", key). */
#define resp_command(b, ...) resp_arguments(b, (const char *const[]){__VA_ARGS__, NULL})
void resp_arguments(struct buffer *b, const char *const *arguments); /* NULL ends them */

/* An argument put together from pieces, as in simba:{M}:ID. NULL ends the pieces. */
void resp_pieces(struct buffer *b, const char *const *pieces);

/* ---- replies ------------------------------------------------------------------------------- */

enum reply_kind { REPLY_STRING, REPLY_ARRAY, REPLY_INTEGER, REPLY_NIL, REPLY_STATUS, REPLY_ERROR };

struct reply {
    enum reply_kind kind;
    int64_t integer;
    const char *text; /* of strings, statuses and errors; never NULL, with a NUL behind it */
    size_t length;    /* of the text */
    struct reply *element;
    size_t elements;
};

struct resp_chunk;
struct decoder {
    struct redisReader *reader;
    struct resp_chunk *chunk; /* the arena's, the current one first */
    size_t used;              /* bytes of the arena, all in all */
    const char *fault;        /* why it takes nothing more */
};

bool decoder_init(struct decoder *d); /* false: out of memory */
void decoder_free(struct decoder *d);

/* False: the stream makes no sense or is over the limit, and can only be given up; fault says why. */
bool decoder_feed(struct decoder *d, const char *bytes, size_t count);

/* The next whole reply, valid until the next call; NULL: none, or a fault. */
const struct reply *decoder_next(struct decoder *d);

/* ---- what replies look like ---------------------------------------------------------------- */

/* The n-th element; a nil if there is none such, so that a chain of questions needs no checks. */
const struct reply *reply_at(const struct reply *r, size_t n);
bool reply_is_text(const struct reply *r);                    /* a string or status without a NUL */
bool reply_is_error(const struct reply *r, const char *kind); /* its first word */
bool reply_equals(const struct reply *r, const char *text);

/* A number written in digits, as tokens are; false: it is not. */
bool reply_digits(const struct reply *r, uint64_t *out);
#endif
