/* replies.c: what the end of a statement means: rows that it tells, answers to requests, what
 * follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"

#define RETRIES 5 /* of a statement that deadlocked */
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

void sql_replies_refuse(struct sql *s, struct simba_request *q, int code, const char *why,
                        bool more)
{
    struct simba_answer a = {.code = code, .age_ms = -1, .text = why, .more = more};
    answer(s, q, &a);
}

static void refuse_job(struct sql *s, struct sql_job *job, int code, const char *why)
{
    for (size_t i = 0; i < job->count; i++) {
        if (job->item[i].release != NULL)
            sql_replies_refuse(s, job->item[i].release, code, why, true);
        if (job->item[i].request != NULL)
            sql_replies_refuse(s, job->item[i].request, code, why, i + 1 < job->count);
    }
}

/* Who asks for the mutex of a row that somebody's transaction has is answered: nobody is granted it
 * yet. For what is asked otherwise that is a failure. */
static void refuse_locked(struct sql *s, struct sql_job *job)
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

void sql_replies_refuse_all(struct sql *s, int code, const char *why)
{
    for (struct sql_job *job; (job = sql_job_take(s)) != NULL; sql_job_free(job))
        refuse_job(s, job, code, why);
    pending_fail(&s->waiting, s->host, code, why);
}

/* Others of this client who wait for the mutex, or observe it, need no poll to learn of it. */
static void changed(struct sql *s, const struct simba_request *q, bool granted)
{
    enum simba_interest interest = s->host->interest(s->host, q->mutex);
    if (interest == SIMBA_OBSERVES || (interest == SIMBA_WAITS && !granted))
        s->host->hint(s->host, q->mutex);
}

static void answer_item(struct sql *s, int op, const struct sql_item *item, bool more)
{
    struct simba_request *q = item->request;
    struct simba_answer a = {.age_ms = -1, .more = more};
    bool held = item->owner[0] != '\0' && item->left_ms > 0;
    int64_t lease = q->ttl_ms + q->transition_ms;
    bool granted = op == SIMBA_CONTEND && item->changed && held && strcmp(item->owner, q->id) == 0;
    struct simba_noted noted = {item->note, item->note_token, item->note_age_ms};
    a.wall_ms = item->wall_ms;
    if (item->note != NULL)
        a.note = &noted;
    else if (item->note_token != 0)
        a.code = SIMBA_ELIMIT; /* there was no memory for it */
    if (op == SIMBA_RENEW || op == SIMBA_RELEASE || op == SIMBA_EVICT || op == SIMBA_PUBLISH)
        a.code = item->changed ? 0 : SIMBA_ELOST;
    if (op == SIMBA_RELEASE || op == SIMBA_EVICT || op == SIMBA_PUBLISH)
        held = false;
    if (held) {
        a.granted = granted;
        a.id = item->owner;
        a.token = item->token;
        a.left_ms = item->left_ms;
        a.age_ms = item->age_ms;
        a.evicted = item->evicted;
    }
    if (granted || (op == SIMBA_RENEW && a.code == 0)) {
        sql_poller_ours(s, q->mutex, simba_now() + lease);
    } else if (op == SIMBA_RENEW || op == SIMBA_RELEASE) {
        sql_poller_ours(s, q->mutex, 0);
        sql_queue_ended(s, q->mutex);
        sql_pass_ended(s, item);
        if (a.code != 0 && sql_poller_waits(s, q->mutex))
            s->host->hint(s->host, q->mutex); /* who was refused here has to ask the server now */
    } else if (q->op == SIMBA_CONTEND && held) {
        sql_poller_refused(s, q->mutex);
        sql_queue_refused(s, item);
    }
    if (granted) {
        sql_queue_granted(s, item);
        sql_pass_granted(s, item, item->release != NULL);
    } else if (op == SIMBA_RENEW && a.code == 0) {
        sql_queue_renewed(s, q->mutex);
    }
    if (op == SIMBA_EVICT)
        sql_pass_doubt(s, q->mutex);
    if (item->changed && op != SIMBA_RENEW && op != SIMBA_PUBLISH)
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
    sql_replies_refuse(s, item->request, s->code, s->why, more);
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
            answer_item(s, job->op, item, i + 1 < job->count);
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
        sql_replies_refuse(s, item->release, 0, NULL, true);
        answer_item(s, SIMBA_CONTEND, item, false);
        return;
    }
    const int op[] = {SIMBA_CONTEND, SIMBA_RELEASE};
    struct simba_request *request[] = {item->request, item->release};
    for (int i = 0; i < 2; i++) { /* the last becomes the first */
        struct sql_job *one = sql_job_new(op[i], 1);
        if (one == NULL) {
            sql_replies_refuse(s, request[i], SIMBA_ELIMIT, "out of memory", false);
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

static void done(struct sql *s, struct sql_job *job)
{
    switch (job->op) {
    case SIMBA_CONTEND:
        done_contend(s, job);
        break;
    case SIMBA_EVICT:
        if (job->item[0].changed)
            sql_job_ring(s, job);
        answer_item(s, job->op, &job->item[0], false);
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
    default:
        if (job->op == SIMBA_PUBLISH || job->op == SQL_READ_NOTE)
            s->no_notes_until = 0;
        if (job->op == SIMBA_READ || job->op == SQL_READ_NOTE)
            sql_job_mark(s, job);
        for (size_t i = 0; i < job->count; i++)
            answer_item(s, job->op, &job->item[i], i + 1 < job->count);
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
            sql_replies_refuse(s, q, s->code, s->why, i + 1 < job->count);
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
        refuse_locked(s, job);
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
        refuse_job(s, job, s->code, s->why);
    }
    sql_job_free(job);
    return end != SQL_BROKEN;
}
