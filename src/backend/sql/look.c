/* look.c: looking at what is waited for or observed: often at first, then rarely; where the server tells, only to
 * make sure. */
#include "backend/sql/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND_MS 5000 /* between looks where the server tells */
#define BELL_MS 1000   /* between looks at the bell, if nothing else is to be looked at */
#define SOON_MS 20     /* the first look at something new: many locks are held for a moment only */
#define LEAST_MS 10    /* between looks that have found something */

struct collection {
    struct sql_job *job;
    size_t at;
};

static void collect(void *data, const char *mutex)
{
    struct collection *c = data;
    sql_job_name(c->job, c->at++, mutex);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct sql_item *)a)->mutex, ((const struct sql_item *)b)->mutex);
}

/* One statement for all that is watched, and the bell. */
static void poll_rows(struct sql *s, int64_t now, size_t count)
{
    struct collection c = {.job = sql_job_named(SQL_POLL, count + 1)};
    if (c.job == NULL)
        return;
    collect(&c, "");
    sql_interest_each(&s->interests, now, collect, &c);
    assert(c.at == count + 1);
    qsort(c.job->item, c.at, sizeof c.job->item[0], compare_items);
    s->polls = true;
    sql_job_append(s, c.job);
}

static void look(struct sql *s)
{
    int64_t now = simba_now(); /* one for all, or a mutex more is found than was counted */
    size_t count = sql_interest_each(&s->interests, now, NULL, NULL);
    bool told = s->driver->tells != NULL && s->driver->tells(s->link->link);
    if (told && !s->listens) {
        struct sql_job *job = sql_job_new(SQL_LISTEN, 0);
        if (job != NULL)
            sql_job_append(s, job);
        return; /* and look when that is done */
    }
    struct sql_job *observe =
        told && sql_interest_observes(&s->interests) ? sql_job_new(SQL_OBSERVE, 0) : NULL;
    if (observe != NULL)
        sql_job_append(s, observe);
    if (s->poll_ms == 0 && !s->missed)
        return;
    s->missed = false;
    if (count > 0 || (!told && sql_interest_each_ours(&s->interests, now, NULL, NULL) > 0))
        poll_rows(s, now, count);
    struct sql_job *digest = s->interests.observes_all ? sql_job_new(SQL_DIGEST, 0) : NULL;
    if (digest != NULL) {
        s->polls = true;
        sql_job_append(s, digest);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->looking = false;
    if (!sql_interest_any(&s->interests))
        return;
    if (s->link == NULL)
        sql_dial_now(s);
    else if (!s->polls)
        look(s);
    if (s->pause_ms < LEAST_MS)
        s->pause_ms = LEAST_MS;
    if (s->pause_ms > s->poll_ms)
        s->pause_ms = s->poll_ms;
    int64_t every = s->pause_ms;
    if (s->listens)
        every = BEHIND_MS;
    else if (every > 0 && every < BELL_MS && !s->interests.observes_all &&
             sql_interest_each(&s->interests, simba_now(), NULL, NULL) == 0)
        every = BELL_MS;
    if (every > 0 && !s->looking)
        sql_look_in(s, sql_jittered(s, every));
    sql_pump(s);
}

void sql_look_in(struct sql *s, int64_t ms)
{
    if (s->closing)
        return;
    s->looking = true;
    sql_start_timer(&s->look, on_look, ms);
}

/* Whether the next look is further off than the pause: then nothing was to be looked at. */
static bool is_idle(const struct sql *s)
{
    return !s->looking || (int64_t)uv_timer_get_due_in(&s->look) > s->pause_ms + s->pause_ms / 8;
}

static void look_soon(struct sql *s)
{
    s->pause_ms = SOON_MS < s->poll_ms ? SOON_MS : s->poll_ms;
    sql_look_in(s, sql_jittered(s, s->pause_ms));
}

void sql_look_for(struct sql *s, const char *mutex)
{
    if (s->poll_ms > 0 && !s->listens && is_idle(s) && sql_interest_waits(&s->interests, mutex))
        look_soon(s);
}

void sql_watch(void *store, const char *mutex, enum simba_interest interest)
{
    struct sql *s = store;
    if (sql_interest_set(&s->interests, mutex, interest) < 0)
        s->host->log(s->host, SIMBA_LOG_WARN, "out of memory: waiting takes longer");
    bool tells = s->driver->tells != NULL && (s->link == NULL || s->driver->tells(s->link->link));
    if (interest == SIMBA_NO_INTEREST || (s->poll_ms == 0 && !tells))
        return;
    if (tells && (!s->listens || interest == SIMBA_OBSERVES)) {
        sql_look_in(s, 0);
    } else if (s->listens) {
        if (!s->looking)
            sql_look_in(s, sql_jittered(s, BEHIND_MS));
    } else if (s->pause_ms > SOON_MS || is_idle(s)) {
        look_soon(s);
    }
}
