/* connection.c: see connection.h. */
#include "backend/redis/connection.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "base/errno_text.h"

#define OUT_KEPT (1u << 20) /* a larger buffer is given back when it is empty */
#define QUEUE_FIRST 256     /* a power of two */
#define ADDRESS_TEXT_MAX 280
#define PLAIN_SENTINEL "; this is a sentinel: sentinel_tls=off, if it speaks no TLS"

static void on_timer(uv_timer_t *timer);

/* ---- commands ------------------------------------------------------------------------------ */

static bool make_room(struct redis_connection *c)
{
    if (c->unanswered < c->queue_size)
        return true;
    size_t size = c->queue_size == 0 ? QUEUE_FIRST : 2 * c->queue_size;
    struct redis_command *queue = calloc(size, sizeof *queue);
    if (queue == NULL)
        return false;
    for (size_t i = 0; i < c->unanswered; i++)
        queue[i] = c->queue[(c->first + i) & (c->queue_size - 1)];
    free(c->queue);
    c->queue = queue;
    c->queue_size = size;
    c->first = 0;
    return true;
}

struct buffer *connection_command(struct redis_connection *c, struct redis_command command)
{
    if (c->state < CONNECTION_HANDSHAKE)
        return NULL;
    if (!make_room(c)) {
        connection_fail(c, SIMBA_ELIMIT, "out of memory");
        return NULL;
    }
    command.sent_at = simba_now();
    c->queue[(c->first + c->unanswered++) & (c->queue_size - 1)] = command;
    if (c->state == CONNECTION_READY && !uv_is_active((const uv_handle_t *)&c->timer))
        handles_start_timer(&c->timer, on_timer, c->net->host->command_timeout_ms);
    return &c->out;
}

const struct redis_command *connection_in_round(const struct redis_connection *c)
{
    const struct redis_command *oldest = c->unanswered > 0 ? &c->queue[c->first] : NULL;
    return oldest != NULL && oldest->round > 0 ? oldest : NULL;
}

void connection_answered(struct redis_connection *c, const struct reply *r)
{
    assert(c->unanswered > 0);
    struct redis_command sent = c->queue[c->first];
    c->first = (c->first + 1) & (c->queue_size - 1);
    c->unanswered--;
    sent.take(c->data, &sent, r);
}

/* ---- failures ------------------------------------------------------------------------------ */

static void drop(struct redis_connection *c)
{
    if (c->question != NULL)
        resolve_forget(c->question);
    if (c->list != NULL)
        freeaddrinfo(c->list);
    if (c->stream != NULL)
        stream_close(c->stream);
    c->question = NULL;
    c->list = c->next_address = NULL;
    c->stream = NULL;
    c->out.used = 0;
    c->out.failed = false;
    c->state = CONNECTION_DOWN;
    uv_timer_stop(&c->timer);
}

static void fail_commands(struct redis_connection *c)
{
    while (c->unanswered > 0)
        connection_answered(c, NULL);
}

void connection_fail(struct redis_connection *c, int code, const char *format, ...)
{
    char why[CONNECTION_TEXT_MAX]; /* what is formatted may be the last failure */
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    memcpy(c->why, why, sizeof why);
    c->code = code;
    int64_t pause_ms = reconnect_pause(&c->reconnect, simba_now());
    drop(c);
    if (c->wanted)
        handles_start_timer(&c->timer, on_timer, pause_ms);
    fail_commands(c);
    c->use->down(c->data);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void flush(struct redis_connection *c)
{
    if (c->state < CONNECTION_HANDSHAKE || c->out.used == 0)
        return;
    if (c->out.failed) {
        connection_fail(c, SIMBA_ELIMIT, "too much is waiting to be sent, or memory is short");
        return;
    }
    stream_send(c->stream, c->out.at, c->out.used);
    c->out.used = 0;
    if (c->out.size > OUT_KEPT)
        buffer_free(&c->out);
}

void connection_flush(struct redis_network *net)
{
    for (struct redis_connection *c = net->connections; c != NULL && !net->is_reading; c = c->next)
        flush(c);
}

static void become_ready(struct redis_connection *c)
{
    struct simba_host *host = c->net->host;
    c->state = CONNECTION_READY;
    uv_timer_stop(&c->timer);
    reconnect_ready(&c->reconnect, simba_now());
    c->turn = 0;
    c->code = 0;
    if (c->was_ready && !c->use->is_sentinel && host->reconnected != NULL)
        host->reconnected(host);
    c->was_ready = true;
    c->use->ready(c->data);
}

/* It is no longer the server that was greeted. */
static bool has_changed(const struct redis_connection *c, const struct reply *r)
{
    return c->state == CONNECTION_READY && c->server != NULL &&
           (reply_is_error(r, "READONLY") || reply_is_error(r, "LOADING") ||
            reply_is_error(r, "MASTERDOWN"));
}

static void take_reply(struct redis_connection *c, const struct reply *r)
{
    if (c->state == CONNECTION_READY && c->use->push != NULL) {
        c->use->push(c->data, r);
        return;
    }
    if (c->unanswered == 0) {
        connection_fail(c, SIMBA_ESTORE, "the server sent an answer without a question");
        return;
    }
    connection_answered(c, r);
    if (c->state == CONNECTION_HANDSHAKE && c->unanswered == 0) {
        become_ready(c);
    } else if (has_changed(c, r)) {
        char why[CONNECTION_TEXT_MAX];
        int code = errors_describe(r, why, sizeof why);
        connection_fail(c, code, "%s", why);
    }
}

static bool waits(const struct redis_connection *c)
{
    const struct redis_command *sent = connection_in_round(c);
    return sent != NULL && c->use->waits != NULL && c->use->waits(c->data, sent);
}

void connection_continue(struct redis_connection *c)
{
    const struct redis_stream *stream = c->stream;
    const struct reply *r;
    c->net->is_reading = true;
    while (c->stream == stream && !waits(c) && (r = decoder_next(&c->decoder)) != NULL)
        take_reply(c, r);
    if (c->stream == stream && c->decoder.fault != NULL)
        connection_fail(c, SIMBA_ESTORE, "the server's answer is not in Redis's protocol: %s%s",
                        c->decoder.fault,
                        c->state == CONNECTION_HANDSHAKE ? "; is it a Redis server?" : "");
    c->net->is_reading = false;
    if (c->use->taken != NULL)
        c->use->taken(c->data);
    if (c->use->resume != NULL)
        c->use->resume(c->data);
    connection_flush(c->net);
}

static void on_read(void *data, const char *bytes, size_t count)
{
    struct redis_connection *c = data;
    decoder_feed(&c->decoder, bytes, count);
    connection_continue(c);
}

static bool has_tls(const struct redis_connection *c)
{
    return c->net->tls != NULL && (!c->use->is_sentinel || c->net->config->sentinel_tls);
}

/* Before the first answer it may be a misunderstanding. */
static void on_broken(void *data, int code, const char *why)
{
    struct redis_connection *c = data;
    const char *hint = "";
    if (c->state == CONNECTION_HANDSHAKE && !has_tls(c) &&
        (code == SIMBA_ESTORE || code == SIMBA_ETIMEOUT))
        hint =
            c->use->is_sentinel
                ? " before it answered: does it expect TLS on this port (rediss+sentinel: without "
                  "sentinel_tls=off), or is it no sentinel?"
                : " before it answered: does it expect TLS on this port (rediss:), or is it "
                  "no Redis server?";
    else if (c->state == CONNECTION_TLS && c->use->is_sentinel)
        hint = PLAIN_SENTINEL;
    connection_fail(c, code, "%s%s", why, hint);
}

static void on_open(void *data)
{
    struct redis_connection *c = data;
    c->state = CONNECTION_HANDSHAKE;
    handshake_begin(c);
    flush(c);
    buffer_wipe(&c->out); /* of the password */
    if (c->state == CONNECTION_HANDSHAKE && c->unanswered == 0)
        become_ready(c);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void connect_next(struct redis_connection *c);

static const char *address_text(const struct redis_connection *c, char out[ADDRESS_TEXT_MAX])
{
    if (c->address.host[0] != '\0')
        snprintf(out, ADDRESS_TEXT_MAX, "%s:%d", c->address.host, c->address.port);
    else
        snprintf(out, ADDRESS_TEXT_MAX, "the socket %s", c->address.path);
    return out;
}

static void cannot_connect(struct redis_connection *c, int status)
{
    char to[ADDRESS_TEXT_MAX];
    /* What to do, where libuv does not say. */
    const char *why = errno_is_limit(-status) ? errno_text(-status) : uv_strerror(status);
    if (c->next_address != NULL)
        connect_next(c);
    else
        connection_fail(c, errno_is_late(-status) ? SIMBA_ETIMEOUT : SIMBA_ESTORE,
                        "cannot connect to %s: %s", address_text(c, to), why);
}

static void on_connected(void *data, int status)
{
    struct redis_connection *c = data;
    const struct config *config = c->net->config;
    bool has_name = config->tls_name != NULL && !c->use->is_sentinel;
    if (status != 0) {
        stream_close(c->stream);
        c->stream = NULL;
        cannot_connect(c, status);
        return;
    }
    decoder_free(&c->decoder);
    if (!decoder_init(&c->decoder)) {
        connection_fail(c, SIMBA_ELIMIT, "out of memory");
        return;
    }
    c->state = CONNECTION_TLS;
    stream_start(c->stream, !has_tls(c) ? NULL : has_name ? config->tls_name : c->address.host);
}

static const struct stream_use stream_use = {
    .connected = on_connected,
    .open = on_open,
    .read = on_read,
    .broken = on_broken,
};

static void connect_next(struct redis_connection *c)
{
    const struct addrinfo *to = c->next_address;
    c->state = CONNECTION_CONNECTING;
    c->next_address = to != NULL ? to->ai_next : NULL;
    int rc = stream_connect(c->net, &stream_use, c, to, c->address.path, &c->stream);
    if (rc != 0)
        cannot_connect(c, rc);
}

/* Begins with another address each time that the first of them did not answer at all. */
static void connect_list(struct redis_connection *c, struct addrinfo *list)
{
    unsigned count = 0;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
        count++;
    assert(count > 0);
    c->list = c->next_address = list;
    for (unsigned skip = c->turn % count; skip > 0; skip--)
        c->next_address = c->next_address->ai_next;
    connect_next(c);
}

static void on_resolved(void *data, struct addrinfo *list, int code)
{
    struct redis_connection *c = data;
    c->question = NULL;
    if (list == NULL)
        connection_fail(c, SIMBA_ESTORE, "cannot find host %.200s: %s", c->address.host,
                        resolve_text(code));
    else
        connect_list(c, list);
}

static void resolve(struct redis_connection *c)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", c->address.port);
    if (getaddrinfo(c->address.host, port, &hints, &list) == 0) { /* an address, not a name */
        connect_list(c, list);
        return;
    }
    c->state = CONNECTION_RESOLVING;
    c->question = resolve_ask(c->net->calls, c->address.host, c->address.port, on_resolved, c);
    if (c->question == NULL)
        connection_fail(c, SIMBA_ELIMIT, "cannot start a thread to look up %.200s",
                        c->address.host);
}

void connection_go(struct redis_connection *c, const struct redis_address *address)
{
    assert(c->state == CONNECTION_FINDING);
    c->address = *address;
    handles_start_timer(&c->timer, on_timer, c->net->host->connect_timeout_ms);
    if (address->host[0] != '\0')
        resolve(c);
    else
        connect_next(c); /* a unix socket */
}

static void attempt(struct redis_connection *c)
{
    assert(c->state == CONNECTION_DOWN);
    c->state = CONNECTION_FINDING;
    c->use->find(c->data);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void watch_commands(struct redis_connection *c)
{
    int64_t limit = c->net->host->command_timeout_ms;
    if (c->unanswered == 0)
        return; /* the next command starts it again */
    int64_t left = c->queue[c->first].sent_at + limit - simba_now();
    if (left > 0)
        handles_start_timer(&c->timer, on_timer, left);
    else
        connection_fail(c, SIMBA_ETIMEOUT,
                        waits(c)
                            ? "the server or the sentinels have not answered in %lld ms (option "
                              "command_timeout)"
                            : "the server has not answered in %lld ms (option command_timeout)",
                        (long long)limit);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_connection *c = timer->data;
    static const char *const late[] = {
        [CONNECTION_FINDING] = "no sentinel has answered",
        [CONNECTION_RESOLVING] = "the name service has not answered",
        [CONNECTION_CONNECTING] = "it has not answered (down, or behind a firewall)",
        [CONNECTION_TLS] =
            ("it has not answered the TLS handshake; if it speaks no TLS on this port, "
             "write redis: instead of rediss:"),
        [CONNECTION_HANDSHAKE] = "it has not answered; is it a Redis server, without TLS?",
    };
    char to[ADDRESS_TEXT_MAX];
    if (c->state == CONNECTION_DOWN && c->wanted) {
        attempt(c);
    } else if (c->state == CONNECTION_READY) {
        watch_commands(c);
    } else if (c->state != CONNECTION_DOWN) {
        c->turn += c->state == CONNECTION_CONNECTING;
        connection_fail(c, SIMBA_ETIMEOUT, "cannot connect to %s in %lld ms: %s%s",
                        c->state == CONNECTION_FINDING ? "the master" : address_text(c, to),
                        (long long)c->net->host->connect_timeout_ms, late[c->state],
                        c->state == CONNECTION_TLS && c->use->is_sentinel ? PLAIN_SENTINEL : "");
    }
}

/* ---- from outside -------------------------------------------------------------------------- */

void connection_init(struct redis_connection *c, struct redis_network *net,
                     const struct connection_use *use, void *data)
{
    *c = (struct redis_connection){.net = net, .use = use, .data = data, .next = net->connections};
    net->connections = c;
    reconnect_init(&c->reconnect);
    handles_add_timer(&net->handles, &c->timer, c);
}

bool connection_is_steady(const struct redis_connection *c)
{
    return c->state == CONNECTION_DOWN || (c->state == CONNECTION_READY && !c->stream->is_writing);
}

void connection_open(struct redis_connection *c)
{
    c->wanted = true;
    if (c->state == CONNECTION_DOWN && !uv_is_active((const uv_handle_t *)&c->timer))
        attempt(c);
}

bool connection_is_hopeful(struct redis_connection *c)
{
    connection_open(c);
    return c->state != CONNECTION_DOWN || reconnect_is_hopeful(&c->reconnect);
}

void connection_hurry(struct redis_connection *c)
{
    if (c->state == CONNECTION_DOWN)
        uv_timer_stop(&c->timer);
    connection_open(c);
}

void connection_shut(struct redis_connection *c)
{
    c->wanted = false;
    reconnect_init(&c->reconnect);
    c->was_ready = false;
    c->unanswered = 0;
    drop(c);
}

void connection_close(struct redis_connection *c)
{
    drop(c);
    c->code = SIMBA_ECANCELED;
    snprintf(c->why, sizeof c->why, "the client is being closed");
    fail_commands(c);
    decoder_free(&c->decoder);
    buffer_wipe(&c->out);
    buffer_free(&c->out);
    free(c->queue);
    handles_close(&c->net->handles, &c->timer);
}
