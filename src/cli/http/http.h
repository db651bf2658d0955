/* http.h: a small HTTP server inside the command: for --listen, and for simba serve. It answers GET
 * and HEAD, and is built on libmicrohttpd, which is loaded by http_listen() and not before.
 *
 * Threads: one thread per server, made by http_start(), does all of it: it accepts, reads, calls the
 *   handlers and writes. A handler must not wait for anything (no [blocks] function but those that
 *   block shortly): while it does, nobody else is answered. Nothing here ever waits for a client,
 *   and no other thread ever waits for this one, but in http_stop().
 * Limits: a server has a fixed number of connections, and each a fixed number of bytes. It raises the
 *   limit of descriptors for them; where it may not, it has fewer. Where all connections are taken, a
 *   new one takes the place of that which has said nothing complete for the longest time. What is not
 *   a complete request in time is dropped, and so is a client that does not take its answer in time.
 *   While the answers that clients have yet to take are too much together, there are only small ones. */
#ifndef CLI_HTTP_HTTP_H
#define CLI_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct cli;

#define HTTP_CONNECTIONS 64       /* unless the options say more */
#define HTTP_CONNECTIONS_MAX 1024 /* options do not say more than this */
#define HTTP_REQUEST_BYTES \
    8192 /* a request line and its headers may have so many; twice as many: 414, 431 */
#define HTTP_REQUEST_MS 5000 /* a client sends its first request within this … */
#define HTTP_IDLE_MS 30000   /* … every other one within this after the last answer … */
#define HTTP_ANSWER_MS 30000 /* … and takes an answer within this; else it is dropped */
#define HTTP_STREAM_BYTES \
    ((size_t)256 * 1024) /* what waits for a client of a stream; beyond it is dropped */
#define HTTP_UNSENT_BYTES \
    ((size_t)32 * 1024 * 1024) /* of answers that clients have yet to take; beyond: 503, … */
#define HTTP_SMALL_BYTES ((size_t)32 * 1024) /* … but for small ones, such as of checks */
#define HTTP_STREAM_QUIET_MS \
    5000 /* then "event: alive" is sent: a dead client, or server, is noticed */
#define HTTP_ADDRESS_MAX 256
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
    unsigned connections; /* 0: HTTP_CONNECTIONS. Each has some HTTP_REQUEST_BYTES * 2 */
    unsigned streams;     /* of these connections, 0: none. Beyond: 503 */
    size_t stream_bytes;  /* 0: HTTP_STREAM_BYTES */
    /* 403 for a Host that is neither an address nor localhost, nor HOST of the address, nor one of these
     * names: a page in a browser cannot read us by a name of its own. Not on a socket file, which no
     * browser reaches. With commas between them; borrowed while it runs; NULL: none. */
    const char *hosts;
    const char *extra_hint; /* for people who ask for a path that is not there; NULL: the paths */
};

/* ---- the server ---------------------------------------------------------------------------- */

/* Takes an address: [HOST]:PORT, where no HOST is 127.0.0.1 and * or [::] is every address of the
 * machine; unix:PATH, a socket. PORT 0: the system chooses. Binds and listens, so that from here on
 * connections wait; to be called after every fork, since a child would keep the address.
 * 0, or an exit code after saying why: EXIT_USAGE for what is no address if by_flag, else
 * EXIT_TROUBLE. `option` names where it comes from, as in "--listen". */
int http_listen(const struct cli *c, const char *option, bool by_flag, const char *address,
                struct http **out);

/* What is wrong with an address, before anything is bound; NULL: nothing. */
const char *http_address_check(const char *address);

/* "http://127.0.0.1:8080", the port as the system has chosen it, also if it is on every address of the
 * machine; "unix:/run/x.sock". */
const char *http_address(const struct http *h);
/* To be said behind it: that there are others, or "". */
const char *http_other_addresses(const struct http *h);

/* Begins to answer, on a thread of its own. The options are copied. The limit of descriptors may be raised:
 * whoever is spawned later is to get the one of before. 0, or an exit code after saying why. */
int http_start(struct http *h, const struct http_options *o);

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

#define HTTP_TEXT "text/plain; charset=utf-8"
#define HTTP_HTML "text/html; charset=utf-8"
#define HTTP_JSON "application/json"
#define HTTP_EVENTS "text/event-stream"

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
