/* connection.c: one connection, kept up: connecting, statements one after another, their
 * timeouts, its loss. Connecting looks up a name and greets a server, which blocks, so it
 * happens on a thread; it leaves the store alone. */
#include <stdlib.h>

#include "backend/sql/sql.h"

#define ANEW_MS 1000 /* how long a server that takes no writes is believed */

static void on_poll_closed(uv_handle_t *handle)
{
    struct sql_connection *c = handle->data;
    struct sql *s = c->store;
    free(c);
    handles_drop(&s->handles);
}

void sql_connection_close(struct sql *s)
{
    struct sql_connection *c = s->connection;
    if (c == NULL)
        return;
    s->connection = NULL;
    s->listens = false;
    s->no_notes_until = s->make_notes_after = 0;
    sql_queue_reset(s);
    sql_pass_reset(s);
    uv_close((uv_handle_t *)&c->poll, on_poll_closed); /* first: another may get its number */
    s->dialect->disconnect(c->session.handle);
}

/* ---- connecting ---------------------------------------------------------------------------- */

struct attempt {
    struct offload_call call; /* first */
    struct sql *store;        /* the loop's; the thread must not touch it */
    const struct sql_dialect *dialect;
    struct queue_waiter *waiter; /* it is for; NULL: for all */
    struct sql_session session;  /* without a handle: failed */
    int code;
    char why[SQL_WHY_MAX];
};

static void on_rested(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->resting = false;
    if (s->jobs != NULL || s->waiting.first != NULL ||
        s->host->interest(s->host, NULL) != SIMBA_NO_INTEREST)
        sql_connection_begin(s);
}

/* The connection is lost, or could not be made. */
static void rest(struct sql *s)
{
    bool never_let_in = s->code == SIMBA_ETIMEOUT && s->reconnections == 0;
    int64_t now = simba_now();
    int64_t ms = never_let_in
                     ? reconnect_pause_late(&s->reconnect, now, s->host->connect_timeout_ms)
                     : reconnect_pause(&s->reconnect, now);
    s->resting = true;
    handles_start_timer(&s->timeout, on_rested, ms);
    if (!reconnect_is_hopeful(&s->reconnect))
        sql_answers_refuse_all(s, s->code, s->why);
}

static void lost(struct sql *s)
{
    sql_connection_close(s);
    rest(s);
}

static void connected(struct sql *s, const struct sql_session *session)
{
    struct sql_connection *c = calloc(1, sizeof *c);
    if (c == NULL || uv_poll_init(s->host->loop, &c->poll, session->fd) != 0) {
        free(c);
        s->dialect->disconnect(session->handle);
        sql_fail(s, SIMBA_ELIMIT, "out of memory");
        rest(s);
        return;
    }
    c->store = s;
    c->session = *session;
    c->since = simba_now();
    c->poll.data = c;
    handles_add(&s->handles);
    s->connection = c;
    s->events = 0;
    s->poller.is_under_way = false;
    reconnect_ready(&s->reconnect, c->since);
    if (s->reconnections++ > 0)
        s->host->reconnected(s->host);
    if (session->warning != NULL && !s->has_warned) {
        s->host->log(s->host, SIMBA_LOG_WARN, session->warning);
        s->has_warned = true;
    }
    if (s->host->interest(s->host, NULL) != SIMBA_NO_INTEREST)
        sql_poller_poll_in(s, 0);
    sql_connection_pump(s);
}

static void run_attempt(struct offload_call *c)
{
    struct attempt *a = (struct attempt *)(void *)c;
    a->code = SIMBA_ESTORE;
    if (!a->dialect->connect(offload_shared(c), &a->session, &a->code, a->why))
        a->session.handle = NULL;
}

static void done_attempt(struct offload_call *c)
{
    struct attempt *a = (struct attempt *)(void *)c;
    struct sql *s = a->store;
    if (a->waiter != NULL) {
        struct sql_session own = a->session;
        a->session.handle = NULL;
        queue_connection_made(a->waiter, own.handle != NULL ? &own : NULL);
        return;
    }
    s->connecting = false;
    if (s->connection != NULL && (a->session.handle == NULL || s->job != NULL))
        return; /* see begin(): another time */
    if (a->session.handle == NULL) {
        sql_fail(s, a->code, "%s", a->why);
        rest(s);
        return;
    }
    struct sql_session session = a->session;
    a->session.handle = NULL; /* it is the store's now */
    sql_connection_close(s);
    connected(s, &session);
}

static void free_attempt(struct offload_call *c)
{
    struct attempt *a = (struct attempt *)(void *)c;
    if (a->session.handle != NULL)
        a->dialect->disconnect(a->session.handle);
    free(a);
}

static bool attempt(struct sql *s, struct queue_waiter *w)
{
    struct attempt *a = calloc(1, sizeof *a);
    if (a == NULL)
        return false;
    a->call = (struct offload_call){
        .run = run_attempt, .done = done_attempt, .free = free_attempt, .holds_exit = true};
    a->store = s;
    a->dialect = s->dialect;
    a->waiter = w;
    return offload_start(s->offload, &a->call) == 0;
}

bool queue_connection_begin(struct queue_waiter *w)
{
    return attempt(w->store, w);
}

void sql_connection_begin(struct sql *s)
{
    if (s->connection != NULL || s->connecting || s->resting || s->closing)
        return;
    s->connecting = attempt(s, NULL);
    if (s->connecting)
        return;
    sql_fail(s, SIMBA_ELIMIT, "cannot start a thread to connect");
    sql_answers_refuse_all(s, s->code, s->why);
}

/* ---- statements ---------------------------------------------------------------------------- */

static void on_timeout(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    sql_fail(s, SIMBA_ETIMEOUT, "the server has not answered in %lld ms (option command_timeout)",
             (long long)s->host->command_timeout_ms);
    sql_replies_ended(s, SQL_BROKEN);
    lost(s);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void wait_for(struct sql *s, int events)
{
    if (s->events == events)
        return;
    uv_poll_start(&s->connection->poll, events, on_ready);
    s->events = events;
    s->connection->is_armed = false;
}

enum simba_lend sql_work(void *store, bool here)
{
    struct sql *s = store;
    (void)here; /* what is to be sent goes out without waiting */
    if (s->passes.invites)
        sql_connection_go_on(s);
    bool is_steady = s->connection != NULL && s->connection->is_armed && s->events == UV_READABLE &&
                     !s->closing && sql_queue_is_steady(s);
    return is_steady ? SIMBA_LEND_LOOP : SIMBA_LEND_NOTHING;
}

static bool writes(int op)
{
    return op != SIMBA_READ && op != SIMBA_LIST && op != SQL_READ_NOTE && op != SQL_LIST_NOTE &&
           op != SQL_POLL && op != SQL_DIGEST && op != SQL_LISTEN;
}

/* A server that cannot be written to is not asked to; but looked at anew after a while, by
 * another connection, because it may have become a primary, or another server has its address by
 * now. */
static int begin(struct sql *s, struct sql_job *job, enum sql_end *end)
{
    const struct sql_session *session = &s->connection->session;
    const char *why = writes(job->op) ? sql_inspect_read_only(session->inspection) : NULL;
    if (why == NULL)
        return s->dialect->begin(s, session->handle, job, end);
    sql_fail(s, SIMBA_ESTORE, "%s", why);
    *end = SQL_FAILED;
    if (simba_now() - s->connection->since > ANEW_MS && !s->connecting)
        s->connecting = attempt(s, NULL);
    return 0;
}

void sql_connection_pump(struct sql *s)
{
    while (s->connection != NULL && s->job == NULL && !s->closing) {
        enum sql_end end = SQL_DONE;
        struct sql_job *job = sql_queue_take_job(s);
        if (job == NULL && s->jobs == NULL && s->waiting.first != NULL)
            sql_requests_to_jobs(s);
        if (job == NULL)
            job = sql_job_take(s);
        s->job = job;
        if (job == NULL) {
            wait_for(s, UV_READABLE);
            return;
        }
        int events = begin(s, job, &end);
        if (events != 0) {
            wait_for(s, events);
            handles_start_timer(&s->timeout, on_timeout, s->host->command_timeout_ms);
        } else if (!sql_replies_ended(s, end)) {
            lost(s);
        }
    }
}

void sql_connection_go_on(struct sql *s)
{
    s->passes.invites = false;
    sql_connection_begin(s);
    sql_connection_pump(s);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct sql *s = ((struct sql_connection *)poll->data)->store;
    enum sql_end end = SQL_DONE;
    s->connection->is_armed = true;
    if (status < 0) {
        events = UV_READABLE | UV_WRITABLE;
        s->events = 0; /* libuv does not watch it any more */
        s->connection->is_armed = false;
    }
    if (s->job == NULL) {
        if (!s->dialect->idle(s, s->connection->session.handle)) {
            sql_fail(s, SIMBA_ESTORE, "the server closed the connection");
            lost(s);
        }
        return;
    }
    int wanted = s->dialect->go_on(s, s->connection->session.handle, s->job, events, &end);
    if (wanted != 0) {
        wait_for(s, wanted);
    } else if (sql_replies_ended(s, end)) {
        sql_connection_pump(s);
    } else {
        lost(s);
    }
}
