/* connection.c: see connection.h. Connecting looks up a name and greets a server, which blocks, so it
 * happens on a thread; it leaves the store alone. */
#include "backend/sql/connection.h"

#include <stdlib.h>

#include "backend/sql/replies.h"
#include "backend/sql/requests.h"

#define ANEW_MS 1000 /* how long a server that takes no writes is believed */

static void on_link_closed(uv_handle_t *handle)
{
    struct sql_link *l = handle->data;
    struct sql *s = l->store;
    free(l);
    handles_drop(&s->handles);
}

static void hang_up(struct sql *s)
{
    struct sql_link *l = s->link;
    s->link = NULL;
    s->listens = false;
    uv_poll_stop(&l->poll);
    s->driver->disconnect(l->link);
    uv_close((uv_handle_t *)&l->poll, on_link_closed);
}

void sql_connection_close(struct sql *s)
{
    if (s->link != NULL)
        hang_up(s);
}

/* ---- connecting ------------------------------------------------------------------------------ */

struct dial {
    struct offload_call call; /* first */
    struct sql *store;        /* the loop's; the thread must not touch it */
    const struct sql_driver *driver;
    void *link; /* NULL: failed */
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
    int64_t ms = reconnect_pause(&s->reconnect, simba_now());
    s->resting = true;
    handles_start_timer(&s->timeout, on_rested, ms);
    if (!reconnect_is_hopeful(&s->reconnect))
        sql_replies_refuse_all(s, s->code, s->why);
}

static void lost(struct sql *s)
{
    hang_up(s);
    rest(s);
}

static void begin_link(struct sql *s, struct sql_link *l, void *link)
{
    l->store = s;
    l->link = link;
    l->since = simba_now();
    l->poll.data = l;
    handles_add(&s->handles);
    s->link = l;
    s->events = 0;
    s->poller.is_under_way = false;
    reconnect_ready(&s->reconnect, l->since);
    if (s->reconnections++ > 0)
        s->host->reconnected(s->host);
    const char *remark = s->driver->remark != NULL ? s->driver->remark(link) : NULL;
    if (remark != NULL && !s->remarked)
        s->host->log(s->host, SIMBA_LOG_WARN, remark);
    s->remarked = s->remarked || remark != NULL;
    if (s->host->interest(s->host, NULL) != SIMBA_NO_INTEREST)
        sql_poller_look_in(s, 0);
    sql_connection_pump(s);
}

static void connected(struct sql *s, void *link)
{
    struct sql_link *l = calloc(1, sizeof *l);
    if (l != NULL && uv_poll_init(s->host->loop, &l->poll, s->driver->fd(link)) == 0) {
        begin_link(s, l, link);
        return;
    }
    free(l);
    s->driver->disconnect(link);
    sql_fail(s, SIMBA_ELIMIT, "out of memory");
    rest(s);
}

static void run_dial(struct offload_call *c)
{
    struct dial *d = (struct dial *)(void *)c;
    d->code = SIMBA_ESTORE;
    d->link = d->driver->connect(offload_shared(c), &d->code, d->why);
}

static void done_dial(struct offload_call *c)
{
    struct dial *d = (struct dial *)(void *)c;
    struct sql *s = d->store;
    s->dialing = false;
    if (s->link != NULL && (d->link == NULL || s->job != NULL))
        return; /* see look_anew(): another time */
    if (d->link == NULL) {
        sql_fail(s, d->code, "%s", d->why);
        rest(s);
        return;
    }
    void *link = d->link;
    d->link = NULL;
    sql_connection_close(s);
    connected(s, link);
}

static void free_dial(struct offload_call *c)
{
    struct dial *d = (struct dial *)(void *)c;
    if (d->link != NULL)
        d->driver->disconnect(d->link);
    free(d);
}

static void dial(struct sql *s)
{
    struct dial *d = calloc(1, sizeof *d);
    if (d == NULL)
        return;
    d->call = (struct offload_call){.run = run_dial, .done = done_dial, .free = free_dial};
    d->store = s;
    d->driver = s->driver;
    s->dialing = offload_start(s->offload, &d->call) == 0;
}

void sql_connection_begin(struct sql *s)
{
    if (s->link != NULL || s->dialing || s->resting || s->closing)
        return;
    dial(s);
    if (s->dialing)
        return;
    sql_fail(s, SIMBA_ELIMIT, "cannot start a thread to connect");
    sql_replies_refuse_all(s, s->code, s->why);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void on_timeout(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    sql_fail(s, SIMBA_ESTORE, "the server has not answered in %lld ms",
             (long long)s->host->command_timeout_ms);
    sql_replies_ended(s, SQL_BROKEN);
    lost(s);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void wait_for(struct sql *s, int events)
{
    if (s->events == events)
        return;
    uv_poll_start(&s->link->poll, events, on_ready);
    s->events = events;
    s->link->settled = false;
}

bool sql_lends(void *store)
{
    const struct sql *s = store;
    return s->link != NULL && s->link->settled && s->events == UV_READABLE && !s->closing;
}

static bool writes(int op)
{
    return op != SIMBA_READ && op != SIMBA_LIST && op != SQL_POLL && op != SQL_DIGEST &&
           op != SQL_LISTEN;
}

/* By another connection, while this one is used on. */
static void look_anew(struct sql *s)
{
    if (!s->dialing)
        dial(s);
}

/* A server that cannot be written to is not asked to; but looked at anew after a while, because it may have
 * become a primary, or another server has its address by now. */
static int begin(struct sql *s, struct sql_job *job, enum sql_end *end)
{
    const char *why = s->driver->read_only != NULL && writes(job->op)
                          ? s->driver->read_only(s->link->link)
                          : NULL;
    if (why == NULL)
        return s->driver->begin(s, s->link->link, job, end);
    sql_fail(s, SIMBA_ESTORE, "%s", why);
    *end = SQL_FAILED;
    if (simba_now() - s->link->since > ANEW_MS)
        look_anew(s);
    return 0;
}

void sql_connection_pump(struct sql *s)
{
    while (s->link != NULL && s->job == NULL && !s->closing) {
        enum sql_end end = SQL_DONE;
        if (s->jobs == NULL && s->waiting.first != NULL)
            sql_requests_to_jobs(s);
        struct sql_job *job = s->job = sql_job_take(s);
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

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct sql *s = ((struct sql_link *)poll->data)->store;
    enum sql_end end = SQL_DONE;
    s->link->settled = true;
    if (status < 0) {
        events = UV_READABLE | UV_WRITABLE;
        s->events = 0; /* libuv has stopped to look */
        s->link->settled = false;
    }
    if (s->job == NULL) {
        if (!s->driver->idle(s, s->link->link)) {
            sql_fail(s, SIMBA_ESTORE, "the server has closed the connection");
            lost(s);
        }
        return;
    }
    int wanted = s->driver->go_on(s, s->link->link, s->job, events, &end);
    if (wanted != 0) {
        wait_for(s, wanted);
    } else if (sql_replies_ended(s, end)) {
        sql_connection_pump(s);
    } else {
        lost(s);
    }
}
