/* link.c: the connection: dialling, statements one after another, their timeouts, its loss. */
#include "backend/sql/parts.h"

#include <stdlib.h>

#define REST_FIRST_MS 50
#define REST_MAX_MS 1000

static void free_store(struct sql *s)
{
    struct simba_host *host = s->host;
    sql_interest_free(&s->interests);
    sql_statement_free(&s->statement);
    free(s);
    host->closed(host);
}

void sql_drop_handle(struct sql *s)
{
    if (--s->handles == 0)
        free_store(s);
}

static void on_link_closed(uv_handle_t *handle)
{
    struct sql_link *l = handle->data;
    struct sql *s = l->store;
    free(l);
    sql_drop_handle(s);
}

void sql_hang_up(struct sql *s)
{
    struct sql_link *l = s->link;
    s->link = NULL;
    s->listens = false;
    uv_poll_stop(&l->poll);
    s->driver->disconnect(l->link);
    uv_close((uv_handle_t *)&l->poll, on_link_closed);
}

void sql_dial_now(struct sql *s)
{
    if (s->link != NULL || s->dialing || s->resting || s->closing)
        return;
    int rc = sql_dial_begin(s->dial);
    if (rc == 0) {
        s->dialing = true;
        return;
    }
    sql_fail(s, rc, "cannot start a thread to connect");
    sql_refuse_all(s, s->code, s->why);
}

static void on_rested(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->resting = false;
    if (s->waiting != NULL || sql_interest_any(&s->interests))
        sql_dial_now(s);
}

static void lost(struct sql *s)
{
    sql_hang_up(s);
    uv_timer_stop(&s->timeout);
    if (s->jobs != NULL || s->waiting != NULL || sql_interest_any(&s->interests))
        sql_dial_now(s);
}

static void on_timeout(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    sql_fail(s, SIMBA_ESTORE, "the server has not answered in %lld ms",
             (long long)s->host->command_timeout_ms);
    sql_ended(s, SQL_BROKEN);
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

enum simba_lend sql_work(void *store, bool here)
{
    const struct sql *s = store;
    (void)here; /* submit has sent it */
    bool is_steady = s->link != NULL && s->link->settled && s->events == UV_READABLE && !s->closing;
    return is_steady ? SIMBA_LEND_LOOP : SIMBA_LEND_NOTHING;
}

static bool writes(int op)
{
    return op != SIMBA_READ && op != SIMBA_LIST && op != SQL_POLL && op != SQL_DIGEST &&
           op != SQL_LISTEN;
}

/* By another connection, while this one is used on. */
static void look_anew(struct sql *s)
{
    if (!s->dialing && sql_dial_begin(s->dial) == 0)
        s->dialing = true;
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
    if (simba_now() - s->link->since > REST_MAX_MS)
        look_anew(s);
    return 0;
}

/* Runs jobs until one has to wait for the server, or there is none. */
void sql_pump(struct sql *s)
{
    while (s->link != NULL && s->job == NULL && !s->closing) {
        enum sql_end end = SQL_DONE;
        if (s->jobs == NULL && s->waiting != NULL)
            sql_jobs_make(s);
        struct sql_job *job = s->jobs;
        if (job == NULL) {
            wait_for(s, UV_READABLE);
            return;
        }
        s->jobs = job->next;
        if (s->jobs == NULL)
            s->jobs_last = &s->jobs;
        s->job = job;
        int events = begin(s, job, &end);
        if (events != 0) {
            wait_for(s, events);
            sql_start_timer(&s->timeout, on_timeout, s->host->command_timeout_ms);
        } else if (!sql_ended(s, end)) {
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
        if (!s->driver->idle(s, s->link->link))
            lost(s);
        return;
    }
    int wanted = s->driver->go_on(s, s->link->link, s->job, events, &end);
    if (wanted != 0) {
        wait_for(s, wanted);
    } else if (sql_ended(s, end)) {
        sql_pump(s);
    } else {
        lost(s);
    }
}

void sql_on_dialed(void *data, void *link, int code, const char *why)
{
    struct sql *s = data;
    s->dialing = false;
    if (s->link != NULL && (link == NULL || s->job != NULL)) { /* see look_anew(): another time */
        if (link != NULL)
            s->driver->disconnect(link);
        return;
    }
    if (s->link != NULL)
        sql_hang_up(s);
    struct sql_link *l = link != NULL ? calloc(1, sizeof *l) : NULL;
    if (l == NULL || uv_poll_init(s->host->loop, &l->poll, s->driver->fd(link)) != 0) {
        sql_fail(s, link != NULL ? SIMBA_ELIMIT : code, "%s", link != NULL ? "out of memory" : why);
        if (link != NULL)
            s->driver->disconnect(link);
        free(l);
        int64_t rest = REST_FIRST_MS << (s->failures < 5 ? s->failures : 5);
        s->failures++;
        s->resting = true;
        sql_start_timer(&s->timeout, on_rested,
                        sql_jittered(s, rest < REST_MAX_MS ? rest : REST_MAX_MS));
        sql_refuse_all(s, s->code, s->why);
        return;
    }
    l->store = s;
    l->link = link;
    l->since = simba_now();
    l->poll.data = l;
    s->handles++;
    s->link = l;
    s->events = 0;
    s->failures = 0;
    s->polls = false;
    if (s->reconnections++ > 0 && s->host->reconnected != NULL)
        s->host->reconnected(s->host);
    const char *remark = s->driver->remark != NULL ? s->driver->remark(link) : NULL;
    if (remark != NULL && !s->remarked)
        s->host->log(s->host, SIMBA_LOG_WARN, remark);
    s->remarked = s->remarked || remark != NULL;
    if (sql_interest_any(&s->interests))
        sql_look_in(s, 0);
    sql_pump(s);
}
