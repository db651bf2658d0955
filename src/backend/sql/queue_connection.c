/* queue_connection.c: a connection that waits for a queue lock: one statement at a time, which may
 * take long. What it is for: queue.h. */
#include <stdlib.h>

#include "backend/sql/sql.h"

struct queue_connection {
    struct queue_waiter *waiter;
    struct sql *store;
    struct sql_session session;
    uv_poll_t poll;
    int events;
    bool is_armed; /* the kernel watches what we wait for */
    struct sql_job *job;
    struct statement statement;
};

static void on_closed(uv_handle_t *handle)
{
    struct queue_connection *c = handle->data;
    struct sql *s = c->store;
    free(c->job);
    sql_statement_free(&c->statement);
    free(c);
    handles_drop(&s->handles);
}

void queue_connection_close(struct queue_waiter *w)
{
    struct queue_connection *c = w->connection;
    if (c == NULL)
        return;
    w->connection = NULL;
    uv_close((uv_handle_t *)&c->poll, on_closed); /* first, as that of all */
    w->store->dialect->disconnect(c->session.handle);
}

bool queue_connection_is_armed(const struct queue_waiter *w)
{
    return w->connection == NULL ||
           (w->connection->is_armed && w->connection->events == UV_READABLE);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void wait_for(struct queue_connection *c, int events)
{
    if (c->events == events)
        return;
    uv_poll_start(&c->poll, events, on_ready);
    c->events = events;
    c->is_armed = false;
}

/* The statement has ended, if it waits for nothing. */
static void go_on(struct queue_connection *c, int wanted, enum sql_end end)
{
    if (wanted != 0) {
        wait_for(c, wanted);
        return;
    }
    struct queue_waiter *w = c->waiter;
    struct sql_job *job = c->job;
    c->job = NULL;
    wait_for(c, UV_READABLE);
    if (end == SQL_FAILED)
        sql_queue_failed(w->store);
    else if (end != SQL_DONE)
        queue_lost(w);
    else
        queue_answered(w, job->op, &job->item[0]);
    free(job);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct queue_connection *c = poll->data;
    enum sql_end end = SQL_DONE;
    c->is_armed = status >= 0;
    if (status < 0 || c->job == NULL) { /* nothing is said unasked, but for good-bye */
        queue_lost(c->waiter);
        return;
    }
    int wanted = c->store->dialect->go_on(c->store, c->session.handle, c->job, events, &end);
    go_on(c, wanted, end);
}

bool queue_connection_ask(struct queue_waiter *w, int op)
{
    struct queue_connection *c = w->connection;
    enum sql_end end = SQL_DONE;
    c->job = sql_job_new(op, 1);
    if (c->job == NULL)
        return false;
    sql_job_add(c->job, w->mutex, NULL);
    struct sql *s = c->store;
    struct statement shared = s->statement; /* that one may still be on its way */
    s->statement = c->statement;
    int wanted = s->dialect->begin(s, c->session.handle, c->job, &end);
    c->statement = s->statement;
    s->statement = shared;
    go_on(c, wanted, end);
    return true;
}

void queue_connection_made(struct queue_waiter *w, const struct sql_session *session)
{
    struct sql *s = w->store;
    struct queue_connection *c = session != NULL ? calloc(1, sizeof *c) : NULL;
    if (c == NULL || uv_poll_init(s->host->loop, &c->poll, session->fd) != 0) {
        free(c);
        if (session != NULL)
            s->dialect->disconnect(session->handle);
        queue_lost(w);
        return;
    }
    c->waiter = w;
    c->store = s;
    c->session = *session;
    c->poll.data = c;
    handles_add(&s->handles);
    w->connection = c;
    wait_for(c, UV_READABLE);
    queue_connected(w);
}
