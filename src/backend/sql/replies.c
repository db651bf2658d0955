/* replies.c: what the end of a statement means: rows that it tells, and what follows. The answers to
 * requests are in answers.c. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"

#define RETRIES 5 /* of a statement that deadlocked */
#define TIME_MAX_MS (100LL * 365 * 24 * 3600 * 1000)

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
    struct simba_noted noted = {row->note, row->note_token, row->note_age_ms};
    struct simba_found f = {.mutex = row->mutex,
                            .id = owner,
                            .token = row->token,
                            .left_ms = to_limits(row->left_ms),
                            .age_ms = to_limits(row->age_ms),
                            .waiters = -1,
                            .evicted = row->evicted,
                            .note = row->note != NULL ? &noted : NULL};
    s->host->found(s->host, job->item[0].request, &f);
}

/* The row names the mutex of the last eviction. If there were several, each of ours may be
 * meant, and is hinted by its name: a hint at all is for those who wait. */
static void found_evictions(struct sql *s, const struct sql_row *row)
{
    int news = sql_poller_evictions(&s->poller, row->token);
    if (news == 1 && row->owner[0] != '\0')
        s->host->hint(s->host, row->owner);
    else if (news > 0)
        sql_poller_hint_ours(s);
}

void sql_found(struct sql *s, struct sql_job *job, const struct sql_row *row)
{
    if (job->op == SIMBA_LIST || job->op == SQL_LIST_NOTE) {
        found_in_list(s, job, row);
    } else if (job->op == SQL_DIGEST) {
        if (sql_poller_digest(&s->poller, row->token))
            s->host->hint(s->host, "");
    } else if (job->op == SQL_POLL && row->mutex[0] == '\0') {
        found_evictions(s, row);
    } else if (job->op == SQL_READ_NOTE && row->mutex[0] == '\0') {
        for (size_t i = 0; i < job->count; i++)
            job->item[i].wall_ms = (int64_t)row->token;
    } else {
        struct sql_item *item =
            job->count > 0 ? bsearch(row->mutex, job->item, job->count, sizeof *item, compare_names)
                           : NULL;
        if (item == NULL)
            return;
        if (row->note != NULL) {
            free(item->note);
            item->note = strndup(row->note, SIMBA_NOTE_MAX);
            item->note_token = row->note_token;
            item->note_age_ms = row->note_age_ms > 0 ? row->note_age_ms : 0;
            return;
        }
        item->seen = true;
        item->changed = row->changed;
        item->unmarked = row->unmarked;
        item->marked = row->marked;
        item->token = row->token;
        item->left_ms = to_limits(row->left_ms);
        item->age_ms = to_limits(row->age_ms);
        item->evicted = row->evicted;
        sql_shown_id(row->owner, row->first, item->owner);
    }
}

void sql_notified(struct sql *s, const char *mutex)
{
    sql_pass_doubt(s, mutex);
    if (s->host->interest(s->host, NULL) != SIMBA_NO_INTEREST)
        s->host->hint(s->host, mutex);
}

/* ---- the end of a statement ---------------------------------------------------------------- */

/* What could not be marked has changed meanwhile. */
static void done_mark(struct sql *s, const struct sql_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        if (!job->item[i].seen)
            s->host->hint(s->host, job->item[i].mutex);
    }
}

static void refuse_unseen(struct sql *s, const struct sql_item *item, bool more)
{
    if (s->dialect->same_names_help == NULL)
        sql_fail(s, SIMBA_ELIMIT, "out of memory");
    else
        sql_fail(s, SIMBA_ESCHEMA,
                 "the table has a row whose name differs from '%s' only in case, accents or "
                 "trailing blanks, and takes both for the same: %s",
                 item->mutex, s->dialect->same_names_help);
    sql_answers_refuse(s, item->request, s->code, s->why, more);
}

/* Who owns what we have not got is read. */
static void done_contend(struct sql *s, const struct sql_job *job)
{
    bool rereads = s->dialect->same_names_help == NULL;
    struct sql_job *rest = rereads ? sql_job_new(SIMBA_READ, job->count) : NULL;
    sql_job_mark(s, job);
    for (size_t i = 0; i < job->count; i++) {
        const struct sql_item *item = &job->item[i];
        if (item->seen)
            sql_answers_contend(s, item, i + 1 < job->count);
        else if (rest != NULL)
            sql_job_add(rest, item->mutex, item->request);
        else
            refuse_unseen(s, item, i + 1 < job->count);
    }
    if (rest != NULL && rest->count > 0)
        sql_job_put_first(s, rest);
    else
        free(rest);
}

/* If the tenure has ended otherwise, by an eviction perhaps, each is asked for itself. */
static void done_pass(struct sql *s, const struct sql_job *job)
{
    const struct sql_item *item = &job->item[0];
    if (item->changed) {
        sql_answers_refuse(s, item->release, 0, NULL, true);
        sql_answers_contend(s, item, false);
        return;
    }
    const int op[] = {SIMBA_CONTEND, SIMBA_RELEASE};
    struct simba_request *request[] = {item->request, item->release};
    for (int i = 0; i < 2; i++) { /* the last becomes the first */
        struct sql_job *one = sql_job_new(op[i], 1);
        if (one == NULL) {
            sql_answers_refuse(s, request[i], SIMBA_ELIMIT, "out of memory", false);
            continue;
        }
        sql_job_add(one, item->mutex, request[i]);
        sql_job_put_first(s, one);
    }
}

static void done_poll(struct sql *s, struct sql_job *job)
{
    bool news = false;
    for (size_t i = 0; i < job->count; i++) {
        const struct sql_item *item = &job->item[i];
        bool held = item->owner[0] != '\0' && item->left_ms > 0;
        if (item->mutex[0] == '\0')
            continue;
        news |= sql_poller_saw(s, item->mutex, held ? item->owner : "", item->token);
        if (held)
            sql_queue_saw_held(s, item);
    }
    sql_job_mark(s, job);
    sql_poller_done(s, news);
}

static void answer_each(struct sql *s, const struct sql_job *job,
                        void (*answer_one)(struct sql *s, const struct sql_item *item, bool more))
{
    for (size_t i = 0; i < job->count; i++)
        answer_one(s, &job->item[i], i + 1 < job->count);
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
        sql_answers_evict(s, &job->item[0]);
        break;
    case SQL_PASS:
        done_pass(s, job);
        break;
    case SQL_POLL:
        done_poll(s, job);
        break;
    case SQL_MARK:
        done_mark(s, job);
        break;
    case SQL_LISTEN:
        s->listens = true;
        s->poller.missed = true; /* what has happened before that was told to nobody */
        sql_poller_poll_in(s, 0);
        break;
    case SQL_QUEUE_TRY:
    case SQL_QUEUE_ROOM:
    case SQL_QUEUE_END:
        sql_queue_done(s, job);
        break;
    case SQL_DIGEST:
    case SQL_COUNT_EVICTION:
    case SQL_OBSERVE:
    case SQL_MAKE_NOTES:
        break;
    case SIMBA_RENEW:
        answer_each(s, job, sql_answers_renew);
        break;
    case SIMBA_RELEASE:
        answer_each(s, job, sql_answers_release);
        break;
    case SIMBA_PUBLISH:
        s->no_notes_until = 0;
        answer_each(s, job, sql_answers_publish);
        break;
    case SQL_READ_NOTE:
        s->no_notes_until = 0;
        sql_job_mark(s, job);
        answer_each(s, job, sql_answers_read);
        break;
    case SIMBA_READ:
        sql_job_mark(s, job);
        answer_each(s, job, sql_answers_read);
        break;
    default:
        assert(job->op == SIMBA_LIST || job->op == SQL_LIST_NOTE);
        answer_each(s, job, sql_answers_read);
    }
}

/* ---- notes --------------------------------------------------------------------------------- */

void sql_fail_notes(struct sql *s, bool is_missing, const char *text)
{
    if (is_missing)
        sql_fail(s, SIMBA_ESCHEMA,
                 "there is no table simba_note, which notes are kept in" SQL_MAKE_TABLE);
    else
        sql_fail(s, SIMBA_EDENIED,
                 "%.300s; notes are kept in the table simba_note: make it with simba init, and "
                 "grant SELECT, INSERT and UPDATE on it",
                 text);
}

/* The table is made when a note is needed first, to write or to read it, where tables are made at
 * all: who reads one will write one. True: and the job is tried again. */
static bool make_notes(struct sql *s, struct sql_job *job)
{
    const struct sql_session *session = &s->connection->session;
    int64_t now = simba_now();
    bool needed =
        job->op == SIMBA_PUBLISH || (job->op == SQL_READ_NOTE && job->item[0].request->needs_note);
    if (!needed || s->code != SIMBA_ESCHEMA || now < s->make_notes_after ||
        !session->makes_tables || session->inspection->read_only)
        return false;
    struct sql_job *make = sql_job_new(SQL_MAKE_NOTES, 0);
    if (make == NULL)
        return false;
    s->make_notes_after = now + SQL_NOTES_MS;
    sql_job_put_first(s, job);
    sql_job_put_first(s, make);
    return true;
}

/* Who did not ask for the note alone gets the rest. */
static void read_without_notes(struct sql *s, struct sql_job *job)
{
    bool lists = job->op == SQL_LIST_NOTE;
    struct sql_job *rest = sql_job_new(lists ? SIMBA_LIST : SIMBA_READ, job->count);
    s->no_notes_until = simba_now() + SQL_NOTES_MS;
    for (size_t i = 0; i < job->count; i++) {
        struct simba_request *q = job->item[i].request;
        if (rest == NULL || q->needs_note)
            sql_answers_refuse(s, q, s->code, s->why, i + 1 < job->count);
        else
            sql_job_add(rest, job->item[i].mutex, q);
    }
    if (rest != NULL && rest->count > 0)
        sql_job_put_first(s, rest);
    else
        free(rest);
}

/* True: nothing but notes is concerned, and it is dealt with; the job is given. */
static bool failed_for_notes(struct sql *s, struct sql_job *job)
{
    bool no_table = s->code == SIMBA_ESCHEMA || s->code == SIMBA_EDENIED;
    if (no_table && make_notes(s, job))
        return true;
    if (!no_table || (job->op != SQL_READ_NOTE && job->op != SQL_LIST_NOTE))
        return false;
    read_without_notes(s, job);
    sql_job_free(job);
    return true;
}

bool sql_replies_ended(struct sql *s, enum sql_end end)
{
    struct sql_job *job = s->job;
    s->job = NULL;
    uv_timer_stop(&s->timeout);
    if (end == SQL_RETRY && ++job->tries <= RETRIES) {
        sql_job_forget(job); /* what was told before the commit failed has not happened */
        sql_job_put_first(s, job);
        return true;
    }
    if (end == SQL_BROKEN || job->op == SQL_POLL || job->op == SQL_DIGEST)
        s->poller.is_under_way = false;
    if (end == SQL_LOCKED && job->count == 1 && job->item[0].request != NULL)
        sql_answers_refuse_locked(s, job);
    if (end == SQL_FAILED && failed_for_notes(s, job))
        return true;
    if (end == SQL_DONE) {
        done(s, job);
    } else if (end != SQL_LOCKED || !sql_job_split(s, job)) {
        if (job->op >= SQL_QUEUE_TRY && end != SQL_BROKEN)
            sql_queue_failed(s);
        else if (job->op >= SQL_POLL && end != SQL_BROKEN)
            s->host->log(s->host, job->op == SQL_MAKE_NOTES ? SIMBA_LOG_INFO : SIMBA_LOG_WARN,
                         s->why); /* whoever wants the table is told that it is missing */
        if (job->op == SQL_MARK)
            s->poller.missed = true; /* who waits may be told nothing: the next poll leaves marks */
        sql_answers_refuse_job(s, job, s->code, s->why);
    }
    sql_job_free(job);
    return end != SQL_BROKEN;
}
