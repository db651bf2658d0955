/* answers.c: answers to requests, one function for each operation, and whom else of this client they
 * concern: the poller, the queue, those that mutexes are passed on to. */
#include <string.h>

#include "backend/sql/sql.h"

/* To a request, and those that have gone with it. */
static void answer(struct sql *s, struct simba_request *q, struct simba_answer *a)
{
    for (struct simba_request *next; q != NULL; q = next) {
        next = q->store;
        s->host->answer(s->host, q, a);
    }
}

void sql_answers_refuse(struct sql *s, struct simba_request *q, int code, const char *why,
                        bool more)
{
    struct simba_answer a = {.code = code, .age_ms = -1, .text = why, .more = more};
    answer(s, q, &a);
}

void sql_answers_refuse_job(struct sql *s, struct sql_job *job, int code, const char *why)
{
    for (size_t i = 0; i < job->count; i++) {
        if (job->item[i].release != NULL)
            sql_answers_refuse(s, job->item[i].release, code, why, true);
        if (job->item[i].request != NULL)
            sql_answers_refuse(s, job->item[i].request, code, why, i + 1 < job->count);
    }
}

/* Somebody's transaction has the row. A CONTEND is answered: nobody is granted the mutex yet. Any other
 * request has failed. */
void sql_answers_refuse_locked(struct sql *s, struct sql_job *job)
{
    struct simba_answer a = {.left_ms = SQL_LOCKED_AGAIN_MS, .age_ms = -1, .text = s->why};
    struct sql_item *item = &job->item[0];
    sql_requests_remember_locked(s, item->mutex);
    sql_fail(s, s->code, "the row of '%s' is locked by somebody's transaction: see %s", item->mutex,
             s->dialect->see_locks);
    if (job->op != SIMBA_CONTEND)
        return;
    answer(s, item->request, &a);
    item->request = NULL;
}

void sql_answers_refuse_all(struct sql *s, int code, const char *why)
{
    for (struct sql_job *job; (job = sql_job_take(s)) != NULL; sql_job_free(job))
        sql_answers_refuse_job(s, job, code, why);
    pending_fail(&s->waiting, s->host, code, why);
}

/* Others of this client who wait for the mutex, or observe it, need no poll to learn of it. */
static void changed(struct sql *s, const struct simba_request *q, bool granted)
{
    enum simba_interest interest = s->host->interest(s->host, q->mutex);
    if (interest == SIMBA_OBSERVES || (interest == SIMBA_WAITS && !granted))
        s->host->hint(s->host, q->mutex);
}

/* Nothing about the mutex but whether it was done. */
static struct simba_answer done_or_lost(const struct sql_item *item, bool more)
{
    return (struct simba_answer){
        .code = item->changed ? 0 : SIMBA_ELOST, .age_ms = -1, .more = more};
}

/* False: nobody owns the mutex. */
static bool tell_owner(const struct sql_item *item, struct simba_answer *a)
{
    if (item->owner[0] == '\0' || item->left_ms <= 0)
        return false;
    a->id = item->owner;
    a->token = item->token;
    a->left_ms = item->left_ms;
    a->age_ms = item->age_ms;
    a->evicted = item->evicted;
    return true;
}

static void refused(struct sql *s, const struct sql_item *item)
{
    sql_poller_refused(s, item->request->mutex);
    sql_queue_refused(s, item);
}

void sql_answers_contend(struct sql *s, const struct sql_item *item, bool more)
{
    struct simba_request *q = item->request;
    struct simba_answer a = {.age_ms = -1, .more = more};
    bool held = tell_owner(item, &a);
    a.granted = item->changed && held && strcmp(item->owner, q->id) == 0;
    if (a.granted) {
        sql_poller_ours(s, q->mutex, simba_now() + q->ttl_ms + q->transition_ms);
        sql_queue_granted(s, item);
        sql_pass_granted(s, item, item->release != NULL);
    } else if (held) {
        refused(s, item);
    }
    if (item->changed)
        changed(s, q, a.granted);
    answer(s, q, &a);
}

/* Of a read, or of a contender that has read the row. */
void sql_answers_read(struct sql *s, const struct sql_item *item, bool more)
{
    struct simba_request *q = item->request;
    struct simba_answer a = {.age_ms = -1, .wall_ms = item->wall_ms, .more = more};
    struct simba_noted noted = {item->note, item->note_token, item->note_age_ms};
    if (item->note != NULL)
        a.note = &noted;
    else if (item->note_token != 0)
        a.code = SIMBA_ELIMIT; /* there was no memory for it */
    if (tell_owner(item, &a) && q->op == SIMBA_CONTEND)
        refused(s, item);
    answer(s, q, &a);
}

/* The mutex of the item is not ours any more. */
static void ended(struct sql *s, const struct sql_item *item)
{
    const char *mutex = item->request->mutex;
    sql_poller_ours(s, mutex, 0);
    sql_queue_ended(s, mutex);
    sql_pass_ended(s, item);
    if (!item->changed && sql_poller_waits(s, mutex))
        s->host->hint(s->host, mutex); /* who was refused here has to ask the server now */
}

void sql_answers_renew(struct sql *s, const struct sql_item *item, bool more)
{
    struct simba_request *q = item->request;
    struct simba_answer a = done_or_lost(item, more);
    tell_owner(item, &a);
    if (item->changed) {
        sql_poller_ours(s, q->mutex, simba_now() + q->ttl_ms + q->transition_ms);
        sql_queue_renewed(s, q->mutex);
    } else {
        ended(s, item);
    }
    answer(s, q, &a);
}

void sql_answers_release(struct sql *s, const struct sql_item *item, bool more)
{
    struct simba_answer a = done_or_lost(item, more);
    ended(s, item);
    if (item->changed)
        changed(s, item->request, false);
    answer(s, item->request, &a);
}

void sql_answers_evict(struct sql *s, const struct sql_item *item)
{
    struct simba_answer a = done_or_lost(item, false);
    sql_pass_doubt(s, item->request->mutex);
    if (item->changed)
        changed(s, item->request, false);
    answer(s, item->request, &a);
}

void sql_answers_publish(struct sql *s, const struct sql_item *item, bool more)
{
    struct simba_answer a = done_or_lost(item, more);
    answer(s, item->request, &a);
}
