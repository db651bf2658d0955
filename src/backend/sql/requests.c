/* requests.c: requests become jobs: one statement for many mutexes, in the order of their names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"
#include "base/hash_table.h"

/* ---- jobs ---------------------------------------------------------------------------------- */

void sql_job_append(struct sql *s, struct sql_job *job)
{
    job->next = NULL;
    *s->jobs_last = job;
    s->jobs_last = &job->next;
}

void sql_job_put_first(struct sql *s, struct sql_job *job)
{
    job->next = s->jobs;
    s->jobs = job;
    if (job->next == NULL)
        s->jobs_last = &job->next;
}

struct sql_job *sql_job_take(struct sql *s)
{
    struct sql_job *job = s->jobs;
    if (job == NULL)
        return NULL;
    s->jobs = job->next;
    if (s->jobs == NULL)
        s->jobs_last = &s->jobs;
    return job;
}

struct sql_job *sql_job_new(int op, size_t room)
{
    struct sql_job *job = calloc(1, sizeof *job + room * sizeof job->item[0]);
    if (job != NULL)
        job->op = op;
    return job;
}

void sql_job_add(struct sql_job *job, const char *mutex, struct simba_request *request)
{
    struct sql_item *item = &job->item[job->count++];
    snprintf(item->mutex, sizeof item->mutex, "%s", mutex);
    item->request = request;
}

void sql_job_forget(struct sql_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        free(job->item[i].note);
        struct sql_item again = {.request = job->item[i].request, .release = job->item[i].release};
        memcpy(again.mutex, job->item[i].mutex, sizeof again.mutex);
        job->item[i] = again;
    }
}

void sql_job_free(struct sql_job *job)
{
    for (size_t i = 0; job != NULL && i < job->count; i++)
        free(job->item[i].note);
    free(job);
}

/* ---- rows that somebody's transaction holds ------------------------------------------------ */

void sql_requests_remember_locked(struct sql *s, const char *mutex)
{
    s->locked[s->locked_next].mutex = hash_text(mutex);
    s->locked[s->locked_next].until = simba_now() + SQL_LOCKED_MS;
    s->locked_next = (s->locked_next + 1) % SQL_LOCKED_MAX;
}

static bool was_locked(const struct sql *s, const char *mutex, int64_t now)
{
    uint32_t hash = hash_text(mutex);
    for (size_t i = 0; i < SQL_LOCKED_MAX; i++) {
        if (s->locked[i].until > now && s->locked[i].mutex == hash)
            return true;
    }
    return false;
}

static bool only_reads(int op)
{
    return op == SIMBA_READ || op == SIMBA_LIST || op == SQL_READ_NOTE || op == SQL_LIST_NOTE;
}

/* Takes them out, each for itself: what is under the same roof must not wait for them again. */
static size_t part_locked(struct sql *s, int op, struct simba_request **q, size_t count)
{
    size_t rest = 0;
    int64_t now = simba_now();
    for (size_t i = 0; i < count; i++) {
        bool locked = !only_reads(op) && was_locked(s, q[i]->mutex, now);
        struct sql_job *job = locked ? sql_job_new(op, 1) : NULL;
        if (job == NULL) {
            q[rest++] = q[i];
            continue;
        }
        sql_job_add(job, q[i]->mutex, q[i]);
        job->short_lock_wait = true;
        sql_job_append(s, job);
    }
    return rest;
}

/* ---- requests ------------------------------------------------------------------------------ */

static int op_of(const struct sql *s, const struct simba_request *q)
{
    bool with_note = q->with_note && (q->needs_note || simba_now() >= s->no_notes_until);
    if (q->op == SIMBA_READ && with_note)
        return SQL_READ_NOTE;
    if (q->op == SIMBA_LIST && with_note)
        return SQL_LIST_NOTE;
    return q->op == SIMBA_LEAVE ? SIMBA_READ : (int)q->op;
}

/* What keeps a tenure comes first, then what frees a mutex. */
static int rank(const struct simba_request *q)
{
    static const int order[] = {
        [SIMBA_RENEW] = 0,   [SIMBA_PUBLISH] = 1, [SIMBA_RELEASE] = 2, [SIMBA_EVICT] = 3,
        [SIMBA_CONTEND] = 4, [SIMBA_READ] = 5,    [SIMBA_LEAVE] = 5,   [SIMBA_LIST] = 8};
    return order[q->op] + q->with_note + q->needs_note;
}

static int compare_requests(const void *a, const void *b)
{
    const struct simba_request *p = *(struct simba_request *const *)a;
    const struct simba_request *q = *(struct simba_request *const *)b;
    return rank(p) != rank(q) ? rank(p) - rank(q) : strcmp(p->mutex, q->mutex);
}

static bool same_tenure(const struct simba_request *a, const struct simba_request *b)
{
    return a->token == b->token && strcmp(a->id, b->id) == 0;
}

static size_t most_of(const struct sql *s, int op)
{
    bool one = op == SIMBA_LIST || op == SQL_LIST_NOTE || op == SIMBA_EVICT || op == SIMBA_PUBLISH;
    return one || (!only_reads(op) && s->connection->session.one_by_one) ? 1 : SQL_JOB_MAX;
}

/* Sorted requests of one kind become jobs; what would be twice in one waits for the next. But of
 * one tenure one renewal is enough: with a server that is too slow they would become more and
 * more. */
static void group(struct sql *s, int op, struct simba_request **q, size_t count)
{
    size_t most = most_of(s, op), rest;
    for (count = part_locked(s, op, q, count); count > 0; count = rest) {
        struct sql_job *job = sql_job_new(op, count < most ? count : most);
        struct simba_request *last = NULL;
        rest = 0;
        for (size_t i = 0; i < count; i++) {
            bool twice = last != NULL && strcmp(last->mutex, q[i]->mutex) == 0;
            if (job == NULL) {
                sql_answers_refuse(s, q[i], SIMBA_ELIMIT, "out of memory", false);
            } else if (twice && op == SIMBA_RENEW && same_tenure(last, q[i])) {
                q[i]->store = last->store;
                last->store = q[i];
            } else if (twice || job->count == most) {
                q[rest++] = q[i];
            } else {
                last = q[i];
                sql_job_add(job, last->mutex, last);
            }
        }
        if (job != NULL)
            sql_job_append(s, job);
    }
}

/* Among the sorted requests, the one that gets the mutex which the one at a place releases; 0:
 * none. */
static size_t next_owner(struct sql *s, struct simba_request **all, size_t at, size_t count)
{
    const char *mutex = all[at]->mutex;
    if (all[at]->op != SIMBA_RELEASE || was_locked(s, mutex, simba_now()) ||
        !sql_pass_may(s, mutex))
        return 0;
    for (size_t i = at + 1; i < count; i++) {
        if (all[i]->op == SIMBA_CONTEND && strcmp(all[i]->mutex, mutex) == 0)
            return i;
    }
    return 0;
}

/* The only release of a batch and who comes next become a pass; false: that one is not there. */
static bool pass(struct sql *s, struct simba_request **all, size_t at, size_t *count)
{
    size_t next = next_owner(s, all, at, *count);
    struct sql_job *job = next > 0 ? sql_job_new(SQL_PASS, 1) : NULL;
    if (job == NULL)
        return false;
    sql_job_add(job, all[at]->mutex, all[next]);
    job->item[0].release = all[at];
    sql_job_append(s, job);
    memmove(&all[next], &all[next + 1], (--*count - next) * sizeof *all);
    return true;
}

void sql_requests_to_jobs(struct sql *s)
{
    size_t count = 0, n = 0;
    struct simba_request *list = pending_take(&s->waiting);
    for (struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    if (count == 0)
        return;
    struct simba_request **all = malloc(count * sizeof *all);
    if (all == NULL) {
        pending_refuse_list(s->host, list, SIMBA_ELIMIT, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++, list = list->next) {
        all[i] = list;      /* what is refused leaves the list */
        list->store = NULL; /* others that go with it */
    }
    qsort(all, count, sizeof *all, compare_requests);
    for (size_t i = 0; i < count; i += n) {
        n = 1;
        while (i + n < count && rank(all[i + n]) == rank(all[i]))
            n++;
        if (n > 1 || !pass(s, all, i, &count))
            group(s, op_of(s, all[i]), all + i, n);
    }
    free(all);
}

/* ---- jobs that follow others --------------------------------------------------------------- */

/* Some of the items of a job, as another job. */
static struct sql_job *part_of(const struct sql_job *job, size_t from, size_t to)
{
    struct sql_job *part = sql_job_new(job->op, to - from);
    for (size_t i = from; part != NULL && i < to; i++)
        sql_job_add(part, job->item[i].mutex, job->item[i].request);
    return part;
}

/* One row that somebody holds a lock on must not keep a thousand others from being renewed, or
 * marked. */
bool sql_job_split(struct sql *s, const struct sql_job *job)
{
    if (job->count < 2 || job->op == SQL_POLL) /* a poll; there will be another */
        return false;
    struct sql_job *a = part_of(job, 0, job->count / 2);
    struct sql_job *b = part_of(job, job->count / 2, job->count);
    if (a == NULL || b == NULL) {
        free(a);
        free(b);
        return false;
    }
    a->short_lock_wait = b->short_lock_wait = true;
    sql_job_put_first(s, b);
    sql_job_put_first(s, a);
    return true;
}

void sql_job_ring(struct sql *s, const struct sql_job *evict)
{
    struct sql_job *job = sql_job_new(SQL_COUNT_EVICTION, 1);
    if (job == NULL)
        return;
    sql_job_add(job, evict->item[0].mutex, NULL);
    sql_job_put_first(s, job);
}

/* A poll finds one without a mark if that was lost: with the connection, or because the row was
 * locked. */
static bool lacks_mark(struct sql *s, const struct sql_item *item)
{
    bool held = item->owner[0] != '\0' && item->left_ms > 0;
    return item->unmarked && held && sql_poller_waits(s, item->mutex);
}

/* Who was refused waits. What this client has itself needs no mark: that is for other processes. */
static bool wants_mark(struct sql *s, const struct sql_item *item)
{
    if (item->request == NULL)
        return lacks_mark(s, item);
    return item->unmarked && item->request->op == SIMBA_CONTEND && !sql_pass_is_ours(s, item);
}

/* After the answers, which need not wait for it. */
void sql_job_mark(struct sql *s, const struct sql_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->count; i++)
        n += wants_mark(s, &job->item[i]);
    struct sql_job *marks = n > 0 ? sql_job_new(SQL_MARK, n) : NULL;
    if (marks == NULL)
        return;
    for (size_t i = 0; i < job->count; i++) {
        if (wants_mark(s, &job->item[i]))
            sql_job_add(marks, job->item[i].mutex, NULL);
    }
    sql_job_put_first(s, marks);
}
