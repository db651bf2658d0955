/* link.c: see link.h. */
#include "backend/redis/link.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errno_text.h"
#include "base/rng.h"

#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 1000
#define STEADY_MS 1000 /* a connection that lasted so long is worth an attempt at once */
#define KEEPALIVE_S 15
#define OUT_KEPT (1u << 20) /* a larger buffer is given back when it is empty */

/* One socket. libuv lets go of it some time after its link has, so it is a thing of its own. */
struct conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    struct link *link; /* NULL: given up */
    struct net *net;
    uv_connect_t connect;
    uv_write_t write;
    bool is_writing;
    struct buffer written, rest; /* what the write under way sends; what comes after it */
};

static void attempt(struct link *l);
static void connect_next(struct link *l);

/* What to do, where libuv does not say. */
static const char *words_of(int status)
{
    return errno_is_limit(-status) ? errno_text(-status) : uv_strerror(status);
}
static void on_timer(uv_timer_t *timer);

/* ---- sockets ------------------------------------------------------------------------------- */

static void handle_gone(struct net *net)
{
    assert(net->handles > 0);
    if (--net->handles == 0)
        net->empty(net);
}

void link_wipe(struct buffer *b)
{
    if (b->at != NULL)
        explicit_bzero(b->at, b->size);
}

static void on_conn_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    struct net *net = c->net;
    link_wipe(&c->written); /* a password may have been among it */
    link_wipe(&c->rest);
    buffer_free(&c->written);
    buffer_free(&c->rest);
    free(c);
    handle_gone(net);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_gone(((struct link *)handle->data)->net);
}

static void drop(struct link *l)
{
    if (l->question != NULL)
        resolve_forget(l->question);
    if (l->list != NULL)
        freeaddrinfo(l->list);
    if (l->conn != NULL) {
        l->conn->link = NULL;
        uv_close(&l->conn->io.handle, on_conn_closed);
    }
    tls_end(&l->tls);
    l->question = NULL;
    l->list = l->next_address = NULL;
    l->conn = NULL;
    l->out.used = 0;
    l->out.failed = false;
    l->state = LINK_DOWN;
    uv_timer_stop(&l->timer);
}

static uint64_t pause_of(struct link *l)
{
    if (l->failures == 0) /* it was fine a moment ago */
        return (uint64_t)rng_between(&l->net->dice, 1, 10);
    unsigned doublings = l->failures - 1 < 8 ? l->failures - 1 : 8;
    int64_t length = PAUSE_FIRST_MS << doublings;
    length = length > PAUSE_MAX_MS ? PAUSE_MAX_MS : length;
    return (uint64_t)rng_between(&l->net->dice, length / 2, length);
}

void link_fail(struct link *l, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    l->code = code;
    bool was_fine = l->state == LINK_READY && simba_now() - l->ready_at >= STEADY_MS;
    l->failures = was_fine ? 0 : l->failures + 1;
    drop(l);
    if (l->wanted && l->use->keeps_trying)
        uv_timer_start(&l->timer, on_timer, pause_of(l), 0);
    l->use->down(l);
}

static void start_write(struct conn *c);

static void on_written(uv_write_t *write, int status)
{
    struct conn *c = write->data;
    c->is_writing = false;
    if (c->link == NULL)
        return;
    if (status < 0)
        link_fail(c->link, SIMBA_ESTORE, "the connection broke: %s", uv_strerror(status));
    else if (c->rest.used > 0)
        start_write(c);
}

static void start_write(struct conn *c)
{
    struct buffer sent = c->written;
    c->written = c->rest;
    sent.used = 0;
    c->rest = sent;
    uv_buf_t buf = uv_buf_init(c->written.at, (unsigned)c->written.used);
    c->write.data = c;
    c->is_writing = true;
    int rc = uv_write(&c->write, &c->io.stream, &buf, 1, on_written);
    if (rc < 0) {
        c->is_writing = false;
        link_fail(c->link, SIMBA_ESTORE, "the connection broke: %s", uv_strerror(rc));
    }
}

static void send_bytes(struct conn *c, const char *bytes, size_t count)
{
    if (!c->is_writing && count > 0) {
        uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)count);
        int sent = uv_try_write(&c->io.stream, &buf, 1);
        if (sent < 0 && sent != UV_EAGAIN) {
            link_fail(c->link, SIMBA_ESTORE, "the connection broke: %s", uv_strerror(sent));
            return;
        }
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        }
    }
    if (count == 0)
        return;
    buffer_add(&c->rest, bytes, count);
    if (c->rest.failed)
        link_fail(c->link, SIMBA_ELIMIT, "too much is waiting to be sent, or memory is short");
    else if (!c->is_writing)
        start_write(c);
}

static void send_tls(struct link *l)
{
    const char *bytes;
    size_t count = tls_pending(&l->tls, &bytes);
    if (count == 0)
        return;
    struct conn *c = l->conn;
    send_bytes(c, bytes, count);
    if (l->conn == c)
        tls_sent(&l->tls);
}

void link_flush(struct link *l)
{
    if (l->in_replies || l->conn == NULL || l->state < LINK_GREETING || l->out.used == 0)
        return;
    if (l->out.failed) {
        link_fail(l, SIMBA_ELIMIT, "too much is waiting to be sent, or memory is short");
        return;
    }
    struct conn *c = l->conn;
    if (l->tls.ssl == NULL) {
        send_bytes(c, l->out.at, l->out.used);
    } else if (tls_write(&l->tls, l->out.at, l->out.used)) {
        send_tls(l);
    } else {
        link_fail(l, SIMBA_ESTORE, "TLS: the connection broke");
    }
    l->out.used = 0;
    if (l->out.size > OUT_KEPT)
        buffer_free(&l->out);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void take_bytes(struct link *l, const char *bytes, size_t count)
{
    struct conn *c = l->conn;
    const struct reply *r;
    decoder_feed(&l->decoder, bytes, count);
    l->in_replies = true;
    while (l->conn == c && (r = decoder_next(&l->decoder)) != NULL) {
        if (l->state == LINK_READY)
            l->use->reply(l, r);
        else if (l->state == LINK_GREETING)
            greet_take(l, r);
    }
    l->in_replies = false;
    if (l->conn == c && l->decoder.fault != NULL)
        link_fail(l, SIMBA_ESTORE, "the server's answer makes no sense: %s", l->decoder.fault);
    if (l->use->pause != NULL)
        l->use->pause(l);
    link_flush(l);
}

static void take_tls(struct link *l, const char *bytes, size_t count)
{
    struct conn *c = l->conn;
    char why[LINK_TEXT_MAX];
    tls_put(&l->tls, bytes, count);
    if (l->state == LINK_SHAKING) {
        enum tls_state state = tls_shake(&l->tls, why, sizeof why);
        send_tls(l); /* also the alert */
        if (l->conn != c)
            return;
        if (state == TLS_FAILED || state == TLS_ENDED)
            link_fail(l, SIMBA_EDENIED, "%s",
                      state == TLS_ENDED ? "TLS: the server ended the handshake" : why);
        else if (state == TLS_READY)
            greet_begin(l);
    }
    while (l->conn == c && l->state >= LINK_GREETING) {
        size_t got;
        enum tls_state state =
            tls_read(&l->tls, l->net->plain, sizeof l->net->plain, &got, why, sizeof why);
        if (state == TLS_FAILED || state == TLS_ENDED)
            link_fail(l, SIMBA_ESTORE, "%s",
                      state == TLS_ENDED ? "the server closed the connection" : why);
        if (state != TLS_READY || got == 0)
            break;
        take_bytes(l, l->net->plain, got);
    }
    if (l->conn == c)
        send_tls(l);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)size;
    struct conn *c = handle->data;
    *buf = uv_buf_init(c->net->inbox, sizeof c->net->inbox);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct conn *c = stream->data;
    struct link *l = c->link;
    if (l == NULL || count == 0)
        return;
    if (count < 0)
        link_fail(l, SIMBA_ESTORE, "%s",
                  count == UV_EOF ? "the server closed the connection" : uv_strerror((int)count));
    else if (l->tls.ssl != NULL)
        take_tls(l, buf->base, (size_t)count);
    else
        take_bytes(l, buf->base, (size_t)count);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void begin_stream(struct link *l)
{
    struct net *net = l->net;
    struct conn *c = l->conn;
    int rc = uv_read_start(&c->io.stream, on_alloc, on_read);
    if (rc < 0) {
        link_fail(l, SIMBA_ESTORE, "the connection broke: %s", uv_strerror(rc));
        return;
    }
    decoder_free(&l->decoder);
    if (!decoder_init(&l->decoder)) {
        link_fail(l, SIMBA_ELIMIT, "out of memory");
        return;
    }
    if (net->tls == NULL || l->use->is_sentinel) {
        greet_begin(l);
        return;
    }
    char why[LINK_TEXT_MAX];
    l->state = LINK_SHAKING;
    if (!tls_begin(&l->tls, net->tls, l->address.host, net->config->tls_verify)) {
        link_fail(l, SIMBA_ELIMIT, "TLS cannot begin: out of memory, or the host's name");
        return;
    }
    tls_shake(&l->tls, why, sizeof why);
    send_tls(l);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct conn *c = connect->data;
    struct link *l = c->link;
    if (l == NULL)
        return;
    if (status == 0) {
        begin_stream(l);
        return;
    }
    if (l->next_address != NULL) {
        l->conn->link = NULL;
        uv_close(&l->conn->io.handle, on_conn_closed);
        l->conn = NULL;
        connect_next(l);
        return;
    }
    link_fail(l, SIMBA_ESTORE, "cannot connect: %s", words_of(status));
}

static struct conn *new_conn(struct link *l)
{
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        link_fail(l, SIMBA_ELIMIT, "out of memory");
        return NULL;
    }
    c->link = l;
    c->net = l->net;
    c->connect.data = c;
    int rc = l->address.host[0] == '\0' ? uv_pipe_init(l->net->host->loop, &c->io.pipe, 0)
                                        : uv_tcp_init(l->net->host->loop, &c->io.tcp);
    assert(rc == 0);
    c->io.handle.data = c;
    l->net->handles++;
    l->conn = c;
    l->state = LINK_CONNECTING;
    return c;
}

static void connect_next(struct link *l)
{
    const struct addrinfo *to = l->next_address;
    struct conn *c = new_conn(l);
    if (c == NULL)
        return;
    l->next_address = to->ai_next;
    int rc = uv_tcp_connect(&c->connect, &c->io.tcp, to->ai_addr, on_connected);
    if (rc < 0) {
        link_fail(l, SIMBA_ESTORE, "cannot connect: %s", words_of(rc));
        return;
    }
    uv_tcp_nodelay(&c->io.tcp, 1);
    uv_tcp_keepalive(&c->io.tcp, 1, KEEPALIVE_S);
}

/* Begins with another address each time that the first of them did not answer at all. */
static void connect_list(struct link *l, struct addrinfo *list)
{
    unsigned count = 0;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
        count++;
    assert(count > 0);
    l->list = l->next_address = list;
    for (unsigned skip = l->turn % count; skip > 0; skip--)
        l->next_address = l->next_address->ai_next;
    connect_next(l);
}

static void on_resolved(void *data, struct addrinfo *list, int code)
{
    struct link *l = data;
    l->question = NULL;
    if (list == NULL)
        link_fail(l, SIMBA_ESTORE, "host %.200s: %s", l->address.host, resolve_text(code));
    else
        connect_list(l, list);
}

static void resolve(struct link *l)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", l->address.port);
    if (getaddrinfo(l->address.host, port, &hints, &list) == 0) { /* an address, not a name */
        connect_list(l, list);
        return;
    }
    l->state = LINK_RESOLVING;
    l->question = resolve_ask(l->net->resolver, l->address.host, l->address.port, on_resolved, l);
    if (l->question == NULL)
        link_fail(l, SIMBA_ELIMIT, "cannot start a thread to look up %.200s", l->address.host);
}

void link_go(struct link *l, const struct address *address)
{
    assert(l->state == LINK_FINDING);
    l->address = *address;
    uv_timer_start(&l->timer, on_timer, (uint64_t)l->net->host->connect_timeout_ms, 0);
    if (address->host[0] != '\0') {
        resolve(l);
        return;
    }
    struct conn *c = new_conn(l);
    if (c != NULL)
        uv_pipe_connect(&c->connect, &c->io.pipe, address->path, on_connected);
}

static void attempt(struct link *l)
{
    assert(l->state == LINK_DOWN);
    l->state = LINK_FINDING;
    if (l->use->find != NULL)
        l->use->find(l);
    else
        link_go(l, &l->net->config->server);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void watch_commands(struct link *l)
{
    int64_t limit = l->net->host->command_timeout_ms;
    int64_t oldest = l->oldest != NULL ? l->oldest(l) : 0;
    if (oldest == 0)
        return; /* the next command starts it again */
    int64_t left = oldest + limit - simba_now();
    if (left > 0)
        uv_timer_start(&l->timer, on_timer, (uint64_t)left, 0);
    else
        link_fail(l, SIMBA_ESTORE, "no answer in %lld ms", (long long)limit);
}

static void on_timer(uv_timer_t *timer)
{
    struct link *l = timer->data;
    static const char *const doing[] = {
        [LINK_FINDING] = "asking the sentinels",   [LINK_RESOLVING] = "looking up the host",
        [LINK_CONNECTING] = "connecting",          [LINK_SHAKING] = "TLS handshake",
        [LINK_GREETING] = "the server's greeting",
    };
    if (l->state == LINK_DOWN && l->wanted) {
        attempt(l);
    } else if (l->state == LINK_READY) {
        watch_commands(l);
    } else if (l->state != LINK_DOWN) {
        l->turn += l->state == LINK_CONNECTING;
        link_fail(l, SIMBA_ESTORE, "no connection in %lld ms: %s took too long",
                  (long long)l->net->host->connect_timeout_ms, doing[l->state]);
    }
}

void link_watch(struct link *l)
{
    if (l->state == LINK_READY && !uv_is_active((const uv_handle_t *)&l->timer))
        uv_timer_start(&l->timer, on_timer, (uint64_t)l->net->host->command_timeout_ms, 0);
}

/* ---- from outside -------------------------------------------------------------------------- */

void link_init(struct link *l, struct net *net, const struct link_use *use, void *data)
{
    *l = (struct link){.net = net, .use = use, .data = data};
    uv_timer_init(net->host->loop, &l->timer);
    l->timer.data = l;
    net->handles++;
}

bool link_is_steady(const struct link *l)
{
    return l->state == LINK_DOWN || (l->state == LINK_READY && !l->conn->is_writing);
}

void link_open(struct link *l)
{
    l->wanted = true;
    if (l->state == LINK_DOWN && !uv_is_active((const uv_handle_t *)&l->timer))
        attempt(l);
}

bool link_hopes(struct link *l)
{
    link_open(l);
    return l->state != LINK_DOWN || (l->wanted && l->failures == 0);
}

void link_hurry(struct link *l)
{
    l->wanted = true;
    if (l->state == LINK_DOWN) {
        uv_timer_stop(&l->timer);
        attempt(l);
    }
}

void link_shut(struct link *l)
{
    l->wanted = false;
    l->failures = 0;
    l->was_ready = false;
    drop(l);
}

void link_close(struct link *l)
{
    link_shut(l);
    decoder_free(&l->decoder);
    link_wipe(&l->out);
    buffer_free(&l->out);
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}
