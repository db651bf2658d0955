/* http.h: a small HTTP server for simba serve. It answers GET and HEAD, and is built on libmicrohttpd.
 *
 * Threads: one thread per server, made by http_start(), does all of it: it accepts, reads, calls the
 *   handlers and writes. A handler must not wait for anything (no [blocks] function but those that
 *   block shortly): while it does, nobody else is answered. Nothing here ever waits for a client,
 *   and no other thread ever waits for this one, but in http_stop().
 * Limits: those of cli/http_rules.h. */
#ifndef SERVE_HTTP_HTTP_H
#define SERVE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/address.h"
#include "cli/http_rules.h"

struct cli;

#define HTTP_CONNECTIONS_MAX 1024 /* options do not say more than this */
#define HTTP_STREAM_BYTES \
    ((size_t)256 * 1024) /* what waits for a client of a stream; beyond is dropped */
#define HTTP_STREAM_QUIET_MS \
    5000               /* then "event: alive" is sent: a dead client, or server, is noticed */
#define HTTP_HEADERS 8 /* that http_header() adds to one answer */

struct http;         /* a server */
struct http_request; /* one request; borrowed for the handler's call */

/* Answers r, by one of the functions below; data is that of the options. */
typedef void http_handler(void *data, struct http_request *r);

struct http_route {
    const char *path; /* exactly this; or all that begin so, if it ends with * */
    http_handler *handler;
};

struct http_options {
    const struct http_route *routes; /* up to one with path NULL; borrowed while it runs */
    void *data;
    unsigned connections;   /* 0: HTTP_CONNECTIONS. Each has some HTTP_REQUEST_BYTES * 2 */
    unsigned streams;       /* of these connections, 0: none. Beyond: 503 */
    size_t stream_bytes;    /* 0: HTTP_STREAM_BYTES */
    const char *hosts;      /* others: 403, see address_allows(); borrowed while it runs */
    const char *extra_hint; /* for people who ask for a path that is not there; NULL: the paths */
};

/* ---- the server ---------------------------------------------------------------------------- */

/* Takes an address, binds and listens, as address_open() does. */
struct step http_listen(const struct cli *c, const char *option, bool by_flag, const char *address,
                        struct http **out);

const struct listen_address *http_address(const struct http *h);

/* Begins to answer, on a thread of its own. The options are copied. The limit of descriptors may be raised:
 * whoever is spawned later is to get the one of before. */
struct step http_start(struct http *h, const struct http_options *o);

/* Ends the thread and all connections, removes a socket file, frees h. NULL: does nothing. Not from a
 * handler. */
void http_stop(struct http *h);

/* ---- a request ----------------------------------------------------------------------------- */

const char *http_path(const struct http_request *r); /* decoded, without the query */
const char *http_query(const struct http_request *r, const char *name); /* decoded; NULL: none */
const char *http_request_header(const struct http_request *r, const char *name); /* NULL: none */

/* ---- the answer ---------------------------------------------------------------------------- */

/* Before the answer: one more header; both are copied. Of the headers that every answer has, it
 * replaces Cache-Control (no-store) and Content-Security-Policy (default-src 'none'). The others are
 * X-Content-Type-Options, Referrer-Policy and X-Frame-Options. A value with a line end, or more than
 * HTTP_HEADERS, is left out. */
void http_header(struct http_request *r, const char *name, const char *value);

/* Once per request: body is copied; is given up, and free()d; lives as long as the program. HEAD gets
 * the same without the body. */
void http_answer(struct http_request *r, int status, const char *type, const void *body,
                 size_t length);
void http_answer_given(struct http_request *r, int status, const char *type, void *body,
                       size_t length);
void http_answer_static(struct http_request *r, int status, const char *type, const void *body,
                        size_t length);

/* ---- server-sent events -------------------------------------------------------------------- */

/* Begins a stream: `first` is sent (copied; it may be longer than stream_bytes), then all that
 * http_publish() is given for this topic. From this call on nothing is missed: who holds a lock of
 * its own here and around http_publish() has snapshot and changes in order. Streams beyond the limit
 * get 503. HEAD gets the headers only. */
void http_answer_stream(struct http_request *r, unsigned topic, const void *first, size_t length);

/* From any thread, also a handler: bytes as they are, such as "data: {}\n\n", to all streams of this
 * topic. Never waits: a client for which more than stream_bytes wait is dropped; it comes again, and
 * gets a new snapshot. How many streams there are. */
unsigned http_publish(struct http *h, unsigned topic, const void *bytes, size_t length);

unsigned http_streams(struct http *h, unsigned topic); /* how many: is anybody there to be told? */
#endif
