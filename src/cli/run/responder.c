/* responder.c: see responder.h. A client is one of a fixed number of slots, with a buffer for its request.
 * While its answer is on the way it is not read from, so that one that sends and takes nothing costs one
 * answer. Whatever is no plain request is refused, and the connection is closed behind that. */
#include "cli/run/responder.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <simba.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/run/request.h"

#define BUFFER_BYTES ((size_t)HTTP_REQUEST_BYTES * 2)
#define HEAD_BYTES 1024

struct client {
    int fd;             /* -1: the slot is free */
    int64_t deadline;   /* dropped then, on simba_now() */
    int64_t changed_at; /* the last request, or the beginning */
    char *out;          /* the answer on its way; NULL: none */
    size_t sent, length;
    bool ends_after; /* this answer is the last … */
    bool is_ending;  /* … and was sent: what still comes is thrown away */
    size_t used;
    char in[BUFFER_BYTES];
};

struct responder {
    const struct cli *c;
    struct listen_address address;
    const struct responder_route *routes;
    void *data;
    const char *hosts;
    pthread_t thread;
    bool is_running;
    atomic_bool is_stopping;
    int wake; /* an eventfd, to stop */
    unsigned limit;
    int descriptor_end;      /* those from here on are not for clients */
    int64_t accept_again_at; /* there are no descriptors; 0: go on */
    struct client clients[HTTP_CONNECTIONS];
};

/* ---- its answer ---------------------------------------------------------------------------- */

static struct response plain(int status, const char *text)
{
    char *body = strdup(text);
    return (struct response){status, HTTP_TEXT, body, body != NULL ? strlen(body) : 0};
}

static struct response not_found(const struct responder *r)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s", HTTP_SAYS_NO_PATH);
    for (const struct responder_route *at = r->routes; at->path != NULL; at++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s", at->path);
    snprintf(text + n, sizeof text - (size_t)n, "\n");
    return plain(404, text);
}

static size_t unsent(const struct responder *r)
{
    size_t sum = 0;
    for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
        sum += r->clients[i].out != NULL ? r->clients[i].length : 0;
    return sum;
}

static struct response respond(const struct responder *r, const struct request_head *q)
{
    const struct responder_route *at = r->routes;
    struct response out = {.body = NULL};
    if (!q->is_head && strcmp(q->method, "GET") != 0)
        return plain(405, HTTP_SAYS_READ_ONLY);
    if (q->has_body)
        return plain(400, HTTP_SAYS_NO_BODY);
    if (!address_allows(&r->address, r->hosts, q->host))
        return plain(403, address_refusal);
    while (at->path != NULL && strcmp(at->path, q->path) != 0)
        at++;
    if (at->path == NULL)
        return not_found(r);
    at->respond(r->data, &out);
    if (out.body == NULL)
        return plain(500, HTTP_SAYS_NOTHING);
    if (out.length > HTTP_SMALL_BYTES && unsent(r) + out.length > HTTP_UNSENT_BYTES) {
        free(out.body);
        return plain(503, HTTP_SAYS_FULL);
    }
    return out;
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {414, "URI Too Long"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {503, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "HTTP Version Not Supported";
}

static void drop(struct client *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    free(p->out);
    p->out = NULL;
}

/* Puts it on its way. The body is freed. */
static void begin_answer(struct client *p, const struct response *a, bool is_head)
{
    char head[HEAD_BYTES], date[40];
    struct tm utc;
    time_t now = time(&now);
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
#define X(name, value, is_default) name ": " value "\r\n"
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d %s\r\nDate: %s\r\n" HTTP_EVERY_ANSWER(
                         X) "%s%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                     a->status, reason_of(a->status), date,
                     a->status == 405 ? "Allow: GET, HEAD\r\n" : "",
                     p->ends_after ? "Connection: close\r\n" : "", a->type, a->length);
#undef X
    size_t head_length = (size_t)n, body = is_head ? 0 : a->length;
    p->out = a->body != NULL ? malloc(head_length + body) : NULL;
    if (p->out != NULL) {
        memcpy(p->out, head, head_length);
        memcpy(p->out + head_length, a->body, body);
    }
    free(a->body);
    p->sent = 0;
    p->length = head_length + body;
    p->deadline = p->changed_at + HTTP_ANSWER_MS;
    if (p->out == NULL) /* no memory */
        drop(p);
}

/* A request that is not whole, and has no room to become so: which part is too long? */
static void refuse_long(struct client *p)
{
    bool is_line = memchr(p->in, '\n', p->used) == NULL;
    struct response a = plain(is_line ? 414 : 431,
                              is_line ? "The path is too long.\n" : "The headers are too long.\n");
    p->ends_after = true;
    p->changed_at = simba_now();
    begin_answer(p, &a, false);
}

/* Takes the first request of what was read. False: there is none. */
static bool take_request(const struct responder *r, struct client *p)
{
    struct request_head q = {.host = NULL};
    size_t blank = 0;
    while (blank < p->used && strchr("\r\n", p->in[blank]) != NULL && p->in[blank] != '\0')
        blank++; /* empty lines before a request are left out */
    p->used -= blank;
    memmove(p->in, p->in + blank, p->used);
    size_t length = request_length(p->in, p->used);
    if (length == 0)
        return false;
    int wrong = request_parse(p->in, length, &q);
    struct response a =
        wrong != 0 ? plain(wrong, "This is no request of HTTP/1.1.\n") : respond(r, &q);
    p->ends_after = wrong != 0 || !q.keeps || q.has_body;
    p->changed_at = simba_now();
    begin_answer(p, &a, q.is_head);
    p->used -= length;
    memmove(p->in, p->in + length, p->used);
    return true;
}

/* ---- a client ------------------------------------------------------------------------------ */

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void send_answer(struct client *p)
{
    ssize_t n = send(p->fd, p->out + p->sent, p->length - p->sent, MSG_NOSIGNAL);
    if (n < 0 && !would_block())
        drop(p);
    p->sent += n > 0 ? (size_t)n : 0;
    if (p->fd < 0 || p->sent < p->length)
        return;
    free(p->out);
    p->out = NULL;
    p->is_ending = p->ends_after;
    p->deadline = simba_now() + (p->is_ending ? HTTP_REQUEST_MS : HTTP_IDLE_MS);
    if (p->is_ending) /* closing at once, with something unread, would take the answer back */
        shutdown(p->fd, SHUT_WR);
}

static void receive(struct client *p)
{
    if (p->is_ending)
        p->used = 0;
    ssize_t n = recv(p->fd, p->in + p->used, sizeof p->in - p->used, 0);
    if (n == 0 || (n < 0 && !would_block()))
        drop(p);
    p->used += n > 0 ? (size_t)n : 0;
}

/* One step. True: there may be another request in the buffer, and nothing more may come that wakes us. */
static bool serve_client(const struct responder *r, struct client *p)
{
    bool is_answered = p->out == NULL && !p->is_ending && take_request(r, p);
    if (!is_answered && p->out == NULL) {
        receive(p);
        if (p->fd < 0 || p->is_ending)
            return false;
        is_answered = take_request(r, p);
        if (!is_answered && p->used == sizeof p->in)
            refuse_long(p);
    }
    if (p->out != NULL)
        send_answer(p);
    return is_answered && p->out == NULL && !p->is_ending && p->used > 0;
}

/* That of whoever has asked nothing for the longest time, who is dropped. */
static struct client *drop_oldest(struct responder *r)
{
    struct client *oldest = &r->clients[0];
    for (unsigned i = 1; i < r->limit; i++) {
        struct client *at = &r->clients[i];
        if (at->fd >= 0 && (oldest->fd < 0 || at->changed_at < oldest->changed_at))
            oldest = at;
    }
    drop(oldest);
    return oldest;
}

static struct client *make_room(struct responder *r)
{
    for (unsigned i = 0; i < r->limit; i++) {
        if (r->clients[i].fd < 0)
            return &r->clients[i];
    }
    return drop_oldest(r);
}

/* The store comes first: without descriptors it could not be reached again, and a lease would be lost
 * because of clients. The oldest of them goes, so that there is one the next time. */
static void accept_some(struct responder *r, int socket, int64_t now)
{
    for (int i = 0; i < HTTP_ACCEPTS_PER_TURN; i++) {
        int fd = address_accept(socket);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
            r->accept_again_at = now + HTTP_NO_DESCRIPTORS_MS;
        if (fd >= r->descriptor_end) {
            close(fd);
            drop_oldest(r);
            return;
        }
        if (fd < 0)
            return;
        struct client *p = make_room(r);
        p->fd = fd;
        p->changed_at = now;
        p->deadline = now + HTTP_REQUEST_MS;
        p->is_ending = false;
        p->used = 0;
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static int pause_ms(const struct responder *r, int64_t now)
{
    int64_t next = r->accept_again_at != 0 ? r->accept_again_at : INT64_MAX;
    for (unsigned i = 0; i < r->limit; i++) {
        if (r->clients[i].fd >= 0 && r->clients[i].deadline < next)
            next = r->clients[i].deadline;
    }
    return next == INT64_MAX ? -1 : next > now ? (int)(next - now) : 0;
}

static void *serve(void *arg)
{
    struct responder *r = arg;
    prctl(PR_SET_NAME, "simba-http");
    for (bool is_busy = false; !r->is_stopping;) {
        struct pollfd fds[1 + SOCKETS_MAX + HTTP_CONNECTIONS] = {{r->wake, POLLIN, 0}};
        struct pollfd *sockets = fds + 1, *clients = sockets + r->address.count;
        int64_t now = simba_now();
        if (now >= r->accept_again_at)
            r->accept_again_at = 0;
        for (size_t i = 0; i < r->address.count; i++)
            sockets[i] =
                (struct pollfd){r->accept_again_at == 0 ? r->address.sockets[i] : -1, POLLIN, 0};
        for (unsigned i = 0; i < r->limit; i++)
            clients[i] =
                (struct pollfd){r->clients[i].fd, r->clients[i].out != NULL ? POLLOUT : POLLIN, 0};
        if (poll(fds, 1 + r->address.count + r->limit, is_busy ? 0 : pause_ms(r, now)) < 0)
            continue;
        now = simba_now();
        bool was_busy = is_busy;
        is_busy = false;
        for (unsigned i = 0; i < r->limit; i++) {
            struct client *p = &r->clients[i];
            bool has_rest = was_busy && p->out == NULL && p->used > 0;
            if (p->fd >= 0 && (clients[i].revents != 0 || has_rest))
                is_busy = serve_client(r, p) || is_busy;
            if (p->fd >= 0 && now >= p->deadline)
                drop(p);
        }
        for (size_t i = 0; i < r->address.count; i++) {
            if (sockets[i].revents != 0)
                accept_some(r, r->address.sockets[i], now);
        }
    }
    for (unsigned i = 0; i < r->limit; i++)
        drop(&r->clients[i]);
    return NULL;
}

/* ---- the beginning and the end ------------------------------------------------------------- */

struct step responder_open(const struct cli *c, const char *option, bool by_flag,
                           const char *address, struct responder **out)
{
    struct responder *r = calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL)
        return print_error(c, "cannot listen on '%.200s': out of memory", address);
    struct step step = address_open(&r->address, c, option, by_flag, address);
    if (step.ends) {
        free(r);
        return step;
    }
    r->c = c;
    r->wake = -1;
    r->limit = HTTP_CONNECTIONS;
    for (unsigned i = 0; i < HTTP_CONNECTIONS; i++)
        r->clients[i].fd = -1;
    *out = r;
    return GO_ON;
}

const struct listen_address *responder_address(const struct responder *r)
{
    return &r->address;
}

struct step responder_start(struct responder *r, const struct responder_route *routes, void *data,
                            const char *hosts)
{
    r->routes = routes;
    r->data = data;
    r->hosts = hosts;
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->wake >= 0)
        r->descriptor_end = descriptors_fit(r->wake, &r->limit);
    r->is_running = r->wake >= 0 && thread_start(&r->thread, NULL, serve, r) == 0;
    if (!r->is_running)
        return print_error(r->c, "cannot answer on %s: %s", r->address.text, strerror(errno));
    return GO_ON;
}

void responder_stop(struct responder *r)
{
    if (r == NULL)
        return;
    r->is_stopping = true;
    if (r->is_running) {
        (void)!write(r->wake, &(uint64_t){1}, sizeof(uint64_t));
        pthread_join(r->thread, NULL);
    }
    address_close(&r->address);
    if (r->wake >= 0)
        close(r->wake);
    free(r);
}
