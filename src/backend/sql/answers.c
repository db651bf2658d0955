/* answers.c: answers to requests, and rows that a statement has told. */
#include "backend/sql/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_MS (100LL * 365 * 24 * 3600 * 1000)

/* ---- answers ------------------------------------------------------------------------------- */

/* To a request, and those that have gone with it. */
static void answer(struct sql *s, struct simba_request *q, struct simba_answer *a)
{
    for (struct simba_request *next; q != NULL; q = next) {
        next = q->store;
        s->host->answer(s->host, q, a);
    }
}

void sql_refuse(struct sql *s, struct simba_request *q, int code, const char *why, bool more)
{
    struct simba_answer a = {.code = code, .age_ms = -1, .text = why, .more = more};
    answer(s, q, &a);
}

void sql_refuse_list(struct sql *s, struct simba_request *list, int code, const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        sql_refuse(s, list, code, why, next != NULL);
    }
}

void sql_refuse_job(struct sql *s, struct sql_job *job, int code, const char *why)
{
    for (size_t i = 0; i < job->count; i++) {
        if (job->item[i].request != NULL)
            sql_refuse(s, job->item[i].request, code, why, i + 1 < job->count);
    }
}

void sql_refuse_all(struct sql *s, int code, const char *why)
{
    struct simba_request *waiting = s->waiting;
    s->waiting = NULL;
    s->waiting_last = &s->waiting;
    for (struct sql_job *job; (job = s->jobs) != NULL;) {
        s->jobs = job->next;
        sql_refuse_job(s, job, code, why);
        sql_job_free(job);
    }
    s->jobs_last = &s->jobs;
    sql_refuse_list(s, waiting, code, why);
}

/* Others of this client who wait for the mutex, or observe it, need no look to hear of it. */
static void changed(struct sql *s, const struct simba_request *q, bool granted)
{
    struct interest *i = (struct interest *)(void *)table_find(&s->interests.all, q->mutex);
    bool observed = s->interests.observes_all || (i != NULL && i->kind == SIMBA_OBSERVES);
    if (observed || (i != NULL && !granted))
        s->host->hint(s->host, q->mutex);
}

void sql_answer(struct sql *s, int op, const struct sql_item *item, bool more)
{
    struct simba_request *q = item->request;
    struct simba_answer a = {.age_ms = -1, .more = more};
    bool held = item->owner[0] != '\0' && item->left_ms > 0;
    int64_t lease = q->ttl_ms + q->transition_ms;
    bool granted = op == SIMBA_CONTEND && item->changed && held && strcmp(item->owner, q->id) == 0;
    if (op == SIMBA_RENEW || op == SIMBA_RELEASE || op == SIMBA_EVICT)
        a.code = item->changed ? 0 : SIMBA_ELOST;
    if (op == SIMBA_RELEASE || op == SIMBA_EVICT)
        held = false;
    if (held) {
        a.granted = granted;
        a.id = item->owner;
        a.token = item->token;
        a.left_ms = item->left_ms;
        a.age_ms = item->age_ms;
        a.evicted = item->evicted;
    }
    if (granted || (op == SIMBA_RENEW && a.code == 0))
        sql_interest_ours(&s->interests, q->mutex, simba_now() + lease);
    else if (op == SIMBA_RENEW || op == SIMBA_RELEASE)
        sql_interest_ours(&s->interests, q->mutex, 0);
    else if (q->op == SIMBA_CONTEND && held)
        sql_look_for(s, q->mutex);
    if (item->changed && op != SIMBA_RENEW)
        changed(s, q, granted);
    answer(s, q, &a);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int compare_names(const void *key, const void *element)
{
    return strcmp(key, ((const struct sql_item *)element)->mutex);
}

/* Times that a foreign hand has written must not overflow where others compute with them. */
static int64_t to_limits(int64_t ms)
{
    return ms < -TIME_MAX_MS ? -TIME_MAX_MS : ms > TIME_MAX_MS ? TIME_MAX_MS : ms;
}

static void found_in_list(struct sql *s, struct sql_job *job, const struct sql_row *row)
{
    char owner[SIMBA_ID_MAX + 1];
    sql_shown_id(row->owner, row->first, owner);
    struct simba_found f = {
        row->mutex, owner,       row->token, to_limits(row->left_ms), to_limits(row->age_ms),
        -1,         row->evicted};
    s->host->found(s->host, job->item[0].request, &f);
}

static void hint_ours(void *store, const char *mutex)
{
    struct sql *s = store;
    s->host->hint(s->host, mutex);
}

/* It names the last mutex that it was rung for. If it was rung more than once, each of ours may be meant, and is
 * hinted by its name: a hint at all is for those who wait. */
static void found_bell(struct sql *s, const struct sql_row *row)
{
    int news = sql_interest_bell(&s->interests, row->token);
    if (news == 1 && row->owner[0] != '\0')
        s->host->hint(s->host, row->owner);
    else if (news > 0)
        sql_interest_each_ours(&s->interests, simba_now(), hint_ours, s);
}

void sql_found(struct sql *s, struct sql_job *job, const struct sql_row *row)
{
    if (job->op == SIMBA_LIST) {
        found_in_list(s, job, row);
    } else if (job->op == SQL_DIGEST) {
        if (sql_interest_digest(&s->interests, row->token))
            s->host->hint(s->host, "");
    } else if (job->op == SQL_POLL && row->mutex[0] == '\0') {
        found_bell(s, row);
    } else {
        struct sql_item *item =
            job->count > 0 ? bsearch(row->mutex, job->item, job->count, sizeof *item, compare_names)
                           : NULL;
        if (item == NULL)
            return;
        item->seen = true;
        item->changed = row->changed;
        item->unmarked = row->unmarked;
        item->token = row->token;
        item->left_ms = to_limits(row->left_ms);
        item->age_ms = to_limits(row->age_ms);
        item->evicted = row->evicted;
        sql_shown_id(row->owner, row->first, item->owner);
    }
}

void sql_told(struct sql *s, const char *mutex)
{
    if (sql_interest_any(&s->interests))
        s->host->hint(s->host, mutex);
}
