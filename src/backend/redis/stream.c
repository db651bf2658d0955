/* stream.c: see stream.h. */
#include "backend/redis/stream.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/errno_text.h"

#define KEEPALIVE_S 15
#define WHY_MAX 320
#define TOO_MUCH "too much is waiting to be sent, or memory is short"

static void broken(struct redis_stream *s, int code, const char *why)
{
    if (s->data != NULL)
        s->use->broken(s->data, code, why);
}

static void broken_by(struct redis_stream *s, int status)
{
    char why[WHY_MAX];
    snprintf(why, sizeof why, "the connection broke: %s", uv_strerror(status));
    broken(s, errno_is_late(-status) ? SIMBA_ETIMEOUT : SIMBA_ESTORE, why);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void start_write(struct redis_stream *s);

static void on_written(uv_write_t *write, int status)
{
    struct redis_stream *s = write->data;
    s->is_writing = false;
    if (s->data == NULL)
        return;
    if (status < 0)
        broken_by(s, status);
    else if (s->rest.used > 0)
        start_write(s);
}

static void start_write(struct redis_stream *s)
{
    struct buffer sent = s->written;
    s->written = s->rest;
    sent.used = 0;
    s->rest = sent;
    uv_buf_t buf = uv_buf_init(s->written.at, (unsigned)s->written.used);
    s->write.data = s;
    s->is_writing = true;
    int rc = uv_write(&s->write, &s->io.stream, &buf, 1, on_written);
    if (rc < 0) {
        s->is_writing = false;
        broken_by(s, rc);
    }
}

static void send_bytes(struct redis_stream *s, const char *bytes, size_t count)
{
    if (!s->is_writing && count > 0) {
        uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)count);
        int sent = uv_try_write(&s->io.stream, &buf, 1);
        if (sent < 0 && sent != UV_EAGAIN) {
            broken_by(s, sent);
            return;
        }
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        }
    }
    if (count == 0)
        return;
    buffer_add(&s->rest, bytes, count);
    if (s->rest.failed)
        broken(s, SIMBA_ELIMIT, TOO_MUCH);
    else if (!s->is_writing)
        start_write(s);
}

static void send_tls(struct redis_stream *s)
{
    const char *bytes;
    size_t count = tls_pending(&s->tls, &bytes);
    if (count == 0)
        return;
    send_bytes(s, bytes, count);
    if (s->data != NULL)
        tls_sent(&s->tls);
}

void stream_send(struct redis_stream *s, const char *bytes, size_t count)
{
    if (s->tls.ssl == NULL)
        send_bytes(s, bytes, count);
    else if (tls_write(&s->tls, bytes, count))
        send_tls(s);
    else
        broken(s, SIMBA_ESTORE, "TLS: the connection broke");
}

/* ---- reading ------------------------------------------------------------------------------- */

static void shake(struct redis_stream *s)
{
    char why[WHY_MAX];
    enum tls_state state = tls_shake(&s->tls, why, sizeof why);
    send_tls(s); /* also the alert */
    if (s->data == NULL)
        return;
    if (state == TLS_FAILED || state == TLS_ENDED) {
        broken(s, SIMBA_EDENIED,
               state == TLS_ENDED ? "TLS: the server refused the handshake" : why);
    } else if (state == TLS_READY) {
        s->is_open = true;
        s->use->open(s->data);
    }
}

static void take_tls(struct redis_stream *s, const char *bytes, size_t count)
{
    char why[WHY_MAX];
    tls_put(&s->tls, bytes, count);
    if (!s->is_open)
        shake(s);
    while (s->data != NULL && s->is_open) {
        size_t got;
        enum tls_state state =
            tls_read(&s->tls, s->net->plain, sizeof s->net->plain, &got, why, sizeof why);
        if (state == TLS_FAILED || state == TLS_ENDED)
            broken(s, SIMBA_ESTORE, state == TLS_ENDED ? "the server closed the connection" : why);
        if (state != TLS_READY || got == 0)
            break;
        s->use->read(s->data, s->net->plain, got);
    }
    if (s->data != NULL)
        send_tls(s);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)size;
    struct redis_stream *s = handle->data;
    *buf = uv_buf_init(s->net->inbox, sizeof s->net->inbox);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct redis_stream *s = stream->data;
    if (s->data == NULL || count == 0)
        return;
    if (count < 0 && s->tls.ssl != NULL && !s->is_open)
        broken(
            s, SIMBA_ESTORE,
            "the server ended the connection during the TLS handshake: if it speaks no TLS on this "
            "port, write redis: instead of rediss:");
    else if (count == UV_EOF)
        broken(s, SIMBA_ESTORE, "the server closed the connection");
    else if (count < 0)
        broken_by(s, (int)count);
    else if (s->tls.ssl != NULL)
        take_tls(s, buf->base, (size_t)count);
    else
        s->use->read(s->data, buf->base, (size_t)count);
}

/* ---- its life ------------------------------------------------------------------------------ */

static void on_connected(uv_connect_t *connect, int status)
{
    struct redis_stream *s = connect->data;
    if (s->data != NULL)
        s->use->connected(s->data, status);
}

int stream_connect(struct redis_network *net, const struct stream_use *use, void *data,
                   const struct addrinfo *to, const char *path, struct redis_stream **out)
{
    struct redis_stream *s = calloc(1, sizeof *s);
    *out = s;
    if (s == NULL)
        return UV_ENOMEM;
    *s = (struct redis_stream){.use = use, .data = data, .net = net};
    s->connect.data = s;
    int rc = to == NULL ? uv_pipe_init(net->host->loop, &s->io.pipe, 0)
                        : uv_tcp_init(net->host->loop, &s->io.tcp);
    assert(rc == 0);
    s->io.handle.data = s;
    handles_add(&net->handles);
    if (to == NULL) {
        uv_pipe_connect(&s->connect, &s->io.pipe, path, on_connected);
        return 0;
    }
    rc = uv_tcp_connect(&s->connect, &s->io.tcp, to->ai_addr, on_connected);
    if (rc < 0) {
        stream_close(s);
        *out = NULL;
        return rc;
    }
    uv_tcp_nodelay(&s->io.tcp, 1);
    uv_tcp_keepalive(&s->io.tcp, 1, KEEPALIVE_S);
    return 0;
}

void stream_start(struct redis_stream *s, const char *host)
{
    int rc = uv_read_start(&s->io.stream, on_alloc, on_read);
    if (rc < 0) {
        broken_by(s, rc);
    } else if (host == NULL) {
        s->is_open = true;
        s->use->open(s->data);
    } else if (!tls_begin(&s->tls, s->net->tls, host, s->net->config->tls_verify)) {
        broken(s, SIMBA_ELIMIT, "TLS cannot begin: out of memory, or the host's name is no name");
    } else {
        shake(s);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_stream *s = handle->data;
    struct redis_network *net = s->net;
    buffer_wipe(&s->written); /* a password may have been among it */
    buffer_wipe(&s->rest);
    buffer_free(&s->written);
    buffer_free(&s->rest);
    free(s);
    handles_drop(&net->handles);
}

void stream_close(struct redis_stream *s)
{
    s->data = NULL;
    tls_end(&s->tls);
    uv_close(&s->io.handle, on_closed);
}
