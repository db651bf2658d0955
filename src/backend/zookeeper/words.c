/* words.c: see words.h. The server answers and closes the connection. */
#include "backend/zookeeper/words.h"

#include <string.h>

static void on_closed(uv_handle_t *handle)
{
    struct word *w = handle->data;
    w->open = false;
    w->closed(w);
}

static void end(struct word *w, int error)
{
    if (w->ended)
        return;
    w->ended = true;
    w->error = error;
    uv_close((uv_handle_t *)&w->tcp, on_closed);
}

void zk_word_give_up(struct word *w)
{
    if (w->open)
        end(w, UV_ETIMEDOUT);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct word *w = handle->data;
    (void)wanted;
    size_t left = sizeof w->text - 1 - w->length;
    *room = uv_buf_init(w->text + w->length, (unsigned)left); /* none left: it ends as an error */
}

/* What was said counts, however the connection ends. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
    struct word *w = stream->data;
    (void)room;
    if (n >= 0)
        w->length += (size_t)n;
    else
        end(w, n == UV_EOF || w->length > 0 ? 0 : (int)n);
}

static void on_written(uv_write_t *write, int status)
{
    struct word *w = write->data;
    if (status < 0)
        end(w, status);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct word *w = connect->data;
    uv_buf_t bytes = uv_buf_init((char *)(uintptr_t)w->word, (unsigned)strlen(w->word));
    w->write.data = w;
    if (status == 0)
        status = uv_write(&w->write, (uv_stream_t *)&w->tcp, &bytes, 1, on_written);
    if (status == 0)
        status = uv_read_start((uv_stream_t *)&w->tcp, on_room, on_read);
    if (status < 0)
        end(w, status);
}

bool zk_word_ask(struct word *w, uv_loop_t *loop, const char *word, const struct sockaddr *to,
                 void (*closed)(struct word *w), void *data)
{
    w->word = word;
    w->closed = closed;
    w->data = data;
    w->error = uv_tcp_init(loop, &w->tcp);
    if (w->error != 0) {
        w->ended = true;
        return false;
    }
    w->open = true;
    w->tcp.data = w;
    w->connect.data = w;
    int rc = uv_tcp_connect(&w->connect, &w->tcp, to, on_connected);
    if (rc != 0)
        end(w, rc);
    return true;
}
