/* resp.c: see resp.h. */
#include "backend/redis/resp.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (32u << 10)

/* ---- commands ------------------------------------------------------------------------------ */

static bool make_room(struct buffer *b, size_t count)
{
    if (b->failed)
        return false;
    if (count <= b->size - b->used)
        return true;
    size_t size = b->size == 0 ? 4096 : b->size;
    while (size - b->used < count && size <= BUFFER_MAX)
        size *= 2;
    char *at = size > BUFFER_MAX ? NULL : realloc(b->at, size);
    if (at == NULL) {
        b->failed = true;
        return false;
    }
    b->at = at;
    b->size = size;
    return true;
}

void buffer_add(struct buffer *b, const void *bytes, size_t count)
{
    if (count > 0 && make_room(b, count)) {
        memcpy(b->at + b->used, bytes, count);
        b->used += count;
    }
}

void buffer_wipe(struct buffer *b)
{
    if (b->at != NULL)
        explicit_bzero(b->at, b->size);
}

void buffer_free(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){.at = NULL};
}

#define DIGITS_MAX 20

/* The digits of a number, up to `end`; without stdio, which would be most of the time. */
static char *digits(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

/* The type, the number, and the end of the line. */
static void add_head(struct buffer *b, char type, size_t number)
{
    char line[DIGITS_MAX + 3], *end = line + sizeof line;
    end[-1] = '\n';
    end[-2] = '\r';
    char *at = digits(end - 2, number) - 1;
    *at = type;
    buffer_add(b, at, (size_t)(end - at));
}

void resp_begin(struct buffer *b, size_t arguments)
{
    add_head(b, '*', arguments);
}

void resp_bytes(struct buffer *b, const char *bytes, size_t count)
{
    add_head(b, '$', count);
    buffer_add(b, bytes, count);
    buffer_add(b, "\r\n", 2);
}

void resp_argument(struct buffer *b, const char *text)
{
    resp_bytes(b, text, strlen(text));
}

void resp_arguments(struct buffer *b, const char *const *arguments)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    resp_begin(b, count);
    for (size_t i = 0; i < count; i++)
        resp_argument(b, arguments[i]);
}

void resp_number(struct buffer *b, int64_t number)
{
    char text[DIGITS_MAX + 1], *end = text + sizeof text;
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = digits(end, size);
    if (number < 0)
        *--at = '-';
    resp_bytes(b, at, (size_t)(end - at));
}

void resp_pieces(struct buffer *b, const char *const *pieces)
{
    size_t count = 0;
    for (const char *const *p = pieces; *p != NULL; p++)
        count += strlen(*p);
    add_head(b, '$', count);
    for (const char *const *p = pieces; *p != NULL; p++)
        buffer_add(b, *p, strlen(*p));
    buffer_add(b, "\r\n", 2);
}

/* ---- the arena ----------------------------------------------------------------------------- */

struct resp_chunk {
    struct resp_chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static void *take(struct decoder *d, size_t count)
{
    count = (count + 15) & ~(size_t)15;
    if (count > RESP_BYTES_MAX - d->used) {
        d->fault = "a reply is too large";
        return NULL;
    }
    struct resp_chunk *c = d->chunk;
    if (c == NULL || c->size - c->used < count) {
        size_t size = count > CHUNK_BYTES ? count : CHUNK_BYTES;
        c = malloc(sizeof *c + size);
        if (c == NULL) {
            d->fault = "out of memory";
            return NULL;
        }
        *c = (struct resp_chunk){.next = d->chunk, .size = size};
        d->chunk = c;
    }
    void *at = c->bytes + c->used;
    c->used += count;
    d->used += count;
    return at;
}

/* Keeps one chunk of the usual size for the next reply. */
static void rewind_arena(struct decoder *d)
{
    while (d->chunk != NULL && (d->chunk->next != NULL || d->chunk->size > CHUNK_BYTES)) {
        struct resp_chunk *c = d->chunk;
        d->chunk = c->next;
        free(c);
    }
    if (d->chunk != NULL)
        d->chunk->used = 0;
    d->used = 0;
}

/* ---- what hiredis calls -------------------------------------------------------------------- */

/* From 1.0 on hiredis also decodes what only a client that has sent HELLO 3 is to get, and nests
 * without a limit of its own. */
#if HIREDIS_MAJOR >= 1
typedef size_t array_length;
#else
typedef int array_length;
#endif

static void *refuse(const redisReadTask *task, const char *fault)
{
    ((struct decoder *)task->privdata)->fault = fault;
    return NULL;
}

static void *refuse_kind(const redisReadTask *task)
{
    return refuse(task, "a reply is of a kind that was not asked for");
}

static bool is_too_deep(const redisReadTask *task)
{
    int depth = 1;
    while ((task = task->parent) != NULL)
        depth++;
    return depth > RESP_DEPTH_MAX;
}

/* A new value of this kind: in its array, or the first one. */
static struct reply *add_reply(const redisReadTask *task, enum reply_kind kind)
{
    struct reply *r;
    if (is_too_deep(task))
        return refuse(task, "a reply is nested too deep");
    if (task->parent != NULL) {
        struct reply *array = task->parent->obj;
        assert(task->idx >= 0 && (size_t)task->idx < array->elements);
        r = &array->element[task->idx];
    } else {
        r = take(task->privdata, sizeof *r);
    }
    if (r != NULL)
        *r = (struct reply){.kind = kind, .text = ""};
    return r;
}

static void *on_text(const redisReadTask *task, char *text, size_t length)
{
    if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS &&
        task->type != REDIS_REPLY_ERROR)
        return refuse_kind(task);
    struct reply *r = add_reply(task, task->type == REDIS_REPLY_STRING   ? REPLY_STRING
                                      : task->type == REDIS_REPLY_STATUS ? REPLY_STATUS
                                                                         : REPLY_ERROR);
    char *copy = r != NULL ? take(task->privdata, length + 1) : NULL;
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    r->text = copy;
    r->length = length;
    return r;
}

static void *on_array(const redisReadTask *task, array_length elements)
{
    if (task->type != REDIS_REPLY_ARRAY)
        return refuse_kind(task);
    struct reply *r = add_reply(task, REPLY_ARRAY);
    if (r == NULL)
        return NULL;
    /* Before it is multiplied; a negative one is more than any. */
    if ((size_t)elements > RESP_BYTES_MAX / sizeof *r)
        return refuse(task, "a reply has too many elements");
    r->element = take(task->privdata, (size_t)elements * sizeof *r);
    if (r->element == NULL)
        return NULL;
    r->elements = (size_t)elements;
    for (size_t i = 0; i < r->elements; i++)
        r->element[i] = (struct reply){.kind = REPLY_NIL, .text = ""};
    return r;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct reply *r = add_reply(task, REPLY_INTEGER);
    if (r != NULL)
        r->integer = value;
    return r;
}

/* A string or an array that is not there; the nil of its own is another kind. */
static void *on_nil(const redisReadTask *task)
{
    return task->type == REDIS_REPLY_NIL ? refuse_kind(task) : add_reply(task, REPLY_NIL);
}

#if HIREDIS_MAJOR >= 1
static void *on_double(const redisReadTask *task, double value, char *text, size_t length)
{
    (void)value;
    (void)text;
    (void)length;
    return refuse_kind(task);
}

static void *on_bool(const redisReadTask *task, int value)
{
    (void)value;
    return refuse_kind(task);
}
#endif

static void on_free(void *object)
{
    (void)object; /* the arena's */
}

/* ---- the decoder --------------------------------------------------------------------------- */

bool decoder_init(struct decoder *d)
{
    static redisReplyObjectFunctions functions = {
        .createString = on_text,
        .createArray = on_array,
        .createInteger = on_integer,
        .createNil = on_nil,
        .freeObject = on_free,
#if HIREDIS_MAJOR >= 1
        .createDouble = on_double,
        .createBool = on_bool,
#endif
    };
    *d = (struct decoder){.reader = redisReaderCreateWithFunctions(&functions)};
    if (d->reader == NULL)
        return false;
    d->reader->privdata = d;
    d->reader->maxbuf = 0; /* keep the buffer, whatever its size: it has a ceiling */
    return true;
}

void decoder_free(struct decoder *d)
{
    if (d->reader != NULL)
        redisReaderFree(d->reader);
    rewind_arena(d);
    free(d->chunk);
    *d = (struct decoder){.reader = NULL};
}

bool decoder_feed(struct decoder *d, const char *bytes, size_t count)
{
    assert(d->reader != NULL);
    if (d->fault == NULL && d->reader->len - d->reader->pos + count > RESP_BYTES_MAX)
        d->fault = "a reply is too large";
    if (d->fault == NULL && redisReaderFeed(d->reader, bytes, count) != REDIS_OK)
        d->fault = "the stream of replies makes no sense";
    return d->fault == NULL;
}

const struct reply *decoder_next(struct decoder *d)
{
    void *reply = NULL;
    if (d->fault != NULL)
        return NULL;
    if (d->reader->reply == NULL) /* not in the middle of one */
        rewind_arena(d);
    if (redisReaderGetReply(d->reader, &reply) != REDIS_OK) {
        if (d->fault == NULL)
            d->fault = "the stream of replies makes no sense";
        return NULL;
    }
    return reply;
}

/* ---- what replies look like ---------------------------------------------------------------- */

const struct reply *reply_at(const struct reply *r, size_t n)
{
    static const struct reply none = {.kind = REPLY_NIL, .text = ""};
    return r->kind == REPLY_ARRAY && n < r->elements ? &r->element[n] : &none;
}

bool reply_is_text(const struct reply *r)
{
    return (r->kind == REPLY_STRING || r->kind == REPLY_STATUS) && strlen(r->text) == r->length;
}

bool reply_is_error(const struct reply *r, const char *kind)
{
    size_t n = strlen(kind);
    return r->kind == REPLY_ERROR && strncmp(r->text, kind, n) == 0 &&
           (r->text[n] == ' ' || r->text[n] == '\0');
}

bool reply_equals(const struct reply *r, const char *text)
{
    return reply_is_text(r) && strcmp(r->text, text) == 0;
}

bool reply_digits(const struct reply *r, uint64_t *out)
{
    uint64_t value = 0;
    if (!reply_is_text(r) || r->length == 0 || r->length > 19)
        return false;
    for (size_t i = 0; i < r->length; i++) {
        if (r->text[i] < '0' || r->text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(r->text[i] - '0');
    }
    *out = value;
    return true;
}
