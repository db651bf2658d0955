/* server.h: what the files of the HTTP server share: http.c (the thread, connections), request.c (from
 * a request to its answer), stream.c (server-sent events). */
#ifndef SERVE_HTTP_SERVER_H
#define SERVE_HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "serve/http/http.h"

struct event_stream;

/* The server's thread owns all of this but what is under the lock. */
struct http_connection {
    struct http_connection *next;
    int fd;
    int64_t deadline;   /* dropped then, on simba_now(); INT64_MAX: a stream, which is not */
    int64_t changed_at; /* the last request, or the beginning */
    bool is_dropped;    /* the library has yet to notice */
    size_t unsent;      /* bytes of the answer that it is to take */
    struct event_stream *stream;
};

struct http {
    const struct cli *c;
    struct listen_address address;
    struct http_options o;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    bool is_running;
    int epoll, wake; /* wake: an eventfd, for other threads */
    atomic_bool is_stopping;
    struct http_connection *connections;
    size_t unsent;           /* of all of them */
    int64_t accept_again_at; /* there are no descriptors; 0: go on */
    int descriptor_end;      /* those from here on are not for clients */

    pthread_mutex_t lock; /* for the rest, and for what streams have to send */
    struct event_stream *streams;
    unsigned stream_count;
};

struct http_request {
    struct http *h;
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    const char *path;
    bool is_answered;
    enum MHD_Result result; /* of MHD_queue_response() */
    struct {
        const char *name; /* in text */
        const char *value;
    } headers[HTTP_HEADERS];
    size_t header_count, text_used;
    char text[1024];
};

/* request.c: what libmicrohttpd calls for each request. */
enum MHD_Result request_take(void *data, struct MHD_Connection *mhd, const char *path,
                             const char *method, const char *version, const char *body,
                             size_t *body_size, void **state);
void request_send(struct http_request *r, int status, const char *type,
                  struct MHD_Response *response);

/* stream.c, on the server's thread: */
void streams_tick(struct http *h, int64_t now); /* wakes those that have something to send */
void streams_end(struct http *h);               /* all of them, before the daemon stops */
bool streams_exist(struct http *h);

void connection_drop(struct http_connection *at);
void connection_set_unsent(struct http *h, struct http_connection *at, size_t bytes);
#endif
