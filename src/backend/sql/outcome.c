/* outcome.c: what the end of a statement means: answers, another statement, a look. */
#include "backend/sql/parts.h"

#include <stdlib.h>

#define RETRIES 5 /* of a statement that deadlocked */

/* What could not be marked has changed meanwhile. */
static void done_mark(struct sql *s, const struct sql_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        if (!job->item[i].seen)
            s->host->hint(s->host, job->item[i].mutex);
    }
}

/* Who owns what we have not got. */
static void reread(struct sql *s, struct sql_job *job)
{
    size_t n = 0;
    sql_job_mark(s, job);
    struct sql_job *rest = sql_job_new(SIMBA_READ, job->count);
    for (size_t i = 0; i < job->count; i++) {
        struct sql_item *item = &job->item[i];
        if (item->seen) {
            sql_answer(s, job->op, item, i + 1 < job->count);
        } else if (rest == NULL) {
            sql_refuse(s, item->request, SIMBA_ELIMIT, "out of memory", false);
        } else {
            rest->item[n].request = item->request;
            rest->item[n++].mutex = item->mutex;
        }
    }
    if (rest != NULL)
        rest->count = n;
    if (n > 0)
        sql_job_put_first(s, rest);
    else
        free(rest);
}

static void done_contend(struct sql *s, struct sql_job *job)
{
    if (s->driver->rereads) {
        reread(s, job);
        return;
    }
    for (size_t i = 0; i < job->count; i++) {
        struct sql_item *item = &job->item[i];
        if (item->seen) {
            sql_answer(s, job->op, item, i + 1 < job->count);
        } else {
            sql_fail(s, SIMBA_ESCHEMA,
                     "the table has a row whose name differs from '%s' only in case, accents or "
                     "trailing blanks, and takes both for the same: %s",
                     item->mutex, s->driver->needs_help);
            sql_refuse(s, item->request, s->code, s->why, i + 1 < job->count);
        }
    }
}

/* Looks that find nothing become rarer, up to the time that was asked for. */
static void done_poll(struct sql *s, struct sql_job *job)
{
    bool news = false;
    for (size_t i = 0; i < job->count; i++) {
        const struct sql_item *item = &job->item[i];
        bool held = item->owner[0] != '\0' && item->left_ms > 0;
        struct interest_look look = {item->mutex, held ? item->owner : "", item->token};
        if (item->mutex[0] != '\0' && sql_interest_saw(&s->interests, &look)) {
            s->host->hint(s->host, item->mutex);
            news = true;
        }
    }
    sql_job_mark(s, job);
    s->pause_ms = news ? s->pause_ms / 2 : s->pause_ms * 2;
}

static void done(struct sql *s, struct sql_job *job)
{
    switch (job->op) {
    case SIMBA_CONTEND:
        done_contend(s, job);
        break;
    case SIMBA_EVICT:
        if (job->item[0].changed)
            sql_job_ring(s, job);
        sql_answer(s, job->op, &job->item[0], false);
        break;
    case SQL_POLL:
        done_poll(s, job);
        break;
    case SQL_MARK:
        done_mark(s, job);
        break;
    case SQL_LISTEN:
        s->listens = true;
        s->missed = true; /* what has happened before that was told to nobody */
        sql_look_in(s, 0);
        break;
    case SQL_DIGEST:
    case SQL_RING:
    case SQL_OBSERVE:
        break;
    default:
        if (job->op == SIMBA_READ)
            sql_job_mark(s, job);
        for (size_t i = 0; i < job->count; i++)
            sql_answer(s, job->op, &job->item[i], i + 1 < job->count);
    }
    if (job->op == SQL_POLL || job->op == SQL_DIGEST)
        s->polls = false;
}

/* The statement has ended. True: the connection can be used on. */
bool sql_ended(struct sql *s, enum sql_end end)
{
    struct sql_job *job = s->job;
    s->job = NULL;
    uv_timer_stop(&s->timeout);
    if (end == SQL_RETRY && ++job->tries <= RETRIES) {
        sql_job_forget(job); /* what was told before the commit failed has not happened */
        sql_job_put_first(s, job);
        return true;
    }
    if (end == SQL_LOCKED && job->count == 1 && job->item[0].request != NULL)
        sql_remember_locked(s, job->item[0].mutex);
    if (end == SQL_DONE) {
        done(s, job);
    } else if (end != SQL_LOCKED || !sql_job_split(s, job)) {
        if (end == SQL_BROKEN)
            s->polls = false;
        if (job->op >= SQL_POLL && end != SQL_BROKEN)
            s->host->log(s->host, SIMBA_LOG_WARN, s->why);
        if (job->op == SQL_POLL || job->op == SQL_DIGEST)
            s->polls = false;
        if (job->op == SQL_MARK)
            s->missed = true; /* who waits may be told nothing: the next look leaves marks */
        sql_refuse_job(s, job, s->code, s->why);
    }
    sql_job_free(job);
    return end != SQL_BROKEN;
}
