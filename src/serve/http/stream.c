/* stream.c: server-sent events. Whoever publishes copies the bytes into the buffer of each client,
 * under the server's lock, and wakes the server's thread; that gives them to the library as the
 * client takes them. A client without anything to send is suspended in the library. */
#include <simba.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/http/server.h"

#define BLOCK_BYTES ((size_t)32 * 1024) /* handed to the library at a time, and the first buffer */

struct event_stream {
    struct event_stream *next;
    struct http *h;
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    unsigned topic;
    bool is_suspended; /* the server's thread's */
    int64_t quiet_at;  /* then "event: alive" is sent; the same */
    int64_t taken_at;  /* the client took something, or had taken all; the same */

    /* under the server's lock: */
    char *bytes;
    size_t begin, length, size, limit;
    bool is_dropped; /* it was too slow, or the server stops */
};

/* ---- under the lock ------------------------------------------------------------------------ */

/* False: it is too much, or there is no memory. */
static bool append(struct event_stream *s, const void *bytes, size_t length)
{
    if (s->length + length > s->limit)
        return false;
    if (s->begin + s->length + length > s->size) {
        memmove(s->bytes, s->bytes + s->begin, s->length);
        s->begin = 0;
    }
    if (s->length + length > s->size) {
        size_t size = s->size * 2 > s->length + length ? s->size * 2 : s->length + length;
        char *more = realloc(s->bytes, size);
        if (more == NULL)
            return false;
        s->bytes = more;
        s->size = size;
    }
    memcpy(s->bytes + s->begin + s->length, bytes, length);
    s->length += length;
    return true;
}

static void drop(struct event_stream *s)
{
    s->is_dropped = true;
    s->length = 0;
}

unsigned http_publish(struct http *h, unsigned topic, const void *bytes, size_t length)
{
    unsigned count = 0;
    pthread_mutex_lock(&h->lock);
    for (struct event_stream *s = h->streams; s != NULL; s = s->next) {
        if (s->topic != topic || s->is_dropped)
            continue;
        count++;
        if (!append(s, bytes, length))
            drop(s);
    }
    pthread_mutex_unlock(&h->lock);
    if (count > 0)
        (void)!write(h->wake, &(uint64_t){1}, sizeof(uint64_t));
    return count;
}

unsigned http_streams(struct http *h, unsigned topic)
{
    unsigned count = 0;
    pthread_mutex_lock(&h->lock);
    for (const struct event_stream *s = h->streams; s != NULL; s = s->next)
        count += s->topic == topic && !s->is_dropped;
    pthread_mutex_unlock(&h->lock);
    return count;
}

/* ---- on the server's thread ---------------------------------------------------------------- */

/* The library asks for more. */
static ssize_t on_read(void *data, uint64_t position, char *out, size_t room)
{
    struct event_stream *s = data;
    (void)position;
    pthread_mutex_lock(&s->h->lock);
    bool is_dropped = s->is_dropped;
    size_t length = s->length < room ? s->length : room;
    memcpy(out, s->bytes + s->begin, length);
    s->begin += length;
    s->length -= length;
    if (s->length == 0)
        s->begin = 0;
    pthread_mutex_unlock(&s->h->lock);
    if (is_dropped)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    s->taken_at = simba_now();
    if (length > 0)
        s->quiet_at = s->taken_at + HTTP_STREAM_QUIET_MS;
    s->is_suspended = length == 0;
    if (s->is_suspended)
        MHD_suspend_connection(s->mhd);
    return (ssize_t)length;
}

static void on_end(void *data)
{
    struct event_stream *s = data;
    struct http *h = s->h;
    struct event_stream **at = &h->streams;
    pthread_mutex_lock(&h->lock);
    while (*at != NULL && *at != s)
        at = &(*at)->next;
    if (*at == s) {
        *at = s->next;
        h->stream_count--;
    }
    pthread_mutex_unlock(&h->lock);
    s->connection->stream = NULL;
    free(s->bytes);
    free(s);
}

static struct event_stream *make(struct http_request *r, unsigned topic, const void *first,
                                 size_t length)
{
    struct http *h = r->h;
    struct event_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    int64_t now = simba_now();
    *s = (struct event_stream){.h = h,
                               .connection = r->connection,
                               .mhd = r->mhd,
                               .topic = topic,
                               .quiet_at = now + HTTP_STREAM_QUIET_MS,
                               .taken_at = now,
                               .size = length > BLOCK_BYTES ? length : BLOCK_BYTES,
                               .length = length,
                               .limit = h->o.stream_bytes + length};
    s->bytes = malloc(s->size);
    if (s->bytes == NULL) {
        free(s);
        return NULL;
    }
    memcpy(s->bytes, first, length);
    return s;
}

void http_answer_stream(struct http_request *r, unsigned topic, const void *first, size_t length)
{
    static const char full[] = "Too many streams are open; try again later.\n";
    struct http *h = r->h;
    struct event_stream *s = NULL;
    if (r->is_answered)
        return;
    if (h->stream_count < h->o.streams)
        s = make(r, topic, first, length);
    if (s == NULL) {
        http_answer_static(r, MHD_HTTP_SERVICE_UNAVAILABLE, HTTP_TEXT, full, strlen(full));
        return;
    }
    pthread_mutex_lock(&h->lock);
    s->next = h->streams;
    h->streams = s;
    h->stream_count++;
    pthread_mutex_unlock(&h->lock);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, s, on_end);
    if (response == NULL) {
        on_end(s);
        return; /* dispatch() says that there is no answer */
    }
    r->connection->stream = s;
    r->connection->deadline = INT64_MAX;
    request_send(r, MHD_HTTP_OK, HTTP_EVENTS, response); /* on_end() comes also if that fails */
}

bool streams_exist(struct http *h)
{
    return h->stream_count > 0; /* only this thread changes it */
}

/* Does it? It does also to be ended. */
static bool wants_to_write(struct event_stream *s, int64_t now, bool *is_dropped)
{
    static const char alive[] = "event: alive\ndata: {}\n\n"; /* a script can see it */
    pthread_mutex_lock(&s->h->lock);
    if (!s->is_dropped && now >= s->quiet_at && !append(s, alive, strlen(alive)))
        drop(s);
    if (now >= s->quiet_at)
        s->quiet_at = now + HTTP_STREAM_QUIET_MS;
    *is_dropped = s->is_dropped;
    bool is_wanted = s->length > 0 || s->is_dropped;
    pthread_mutex_unlock(&s->h->lock);
    return is_wanted;
}

/* One that has got something to take, and does not take it, is as good as gone. */
void streams_tick(struct http *h, int64_t now)
{
    for (struct event_stream *s = h->streams; s != NULL; s = s->next) {
        bool is_dropped, is_wanted = wants_to_write(s, now, &is_dropped);
        if (s->is_suspended && is_wanted) {
            s->is_suspended = false;
            s->taken_at = now;
            MHD_resume_connection(s->mhd);
        } else if (!s->is_suspended && (is_dropped || now - s->taken_at >= HTTP_ANSWER_MS)) {
            connection_drop(s->connection); /* what is on its way to it is not waited for */
        }
    }
}

void streams_end(struct http *h)
{
    for (struct event_stream *s = h->streams; s != NULL; s = s->next) {
        pthread_mutex_lock(&h->lock);
        drop(s);
        pthread_mutex_unlock(&h->lock);
        if (s->is_suspended)
            MHD_resume_connection(s->mhd);
        s->is_suspended = false;
    }
}
