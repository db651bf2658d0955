/* requests.c: see requests.h. */
#include "backend/sql/requests.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sql/replies.h"
#include "base/table.h"

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

struct sql_job *sql_job_new(int op, size_t count)
{
    struct sql_job *job = calloc(1, sizeof *job + count * sizeof job->item[0]);
    if (job == NULL)
        return NULL;
    job->op = op;
    job->count = count;
    return job;
}

static struct sql_job *job_of(int op, struct simba_request **q, size_t count)
{
    struct sql_job *job = sql_job_new(op, count);
    for (size_t i = 0; job != NULL && i < count; i++) {
        assert(q[i] != NULL);
        job->item[i].request = q[i];
        job->item[i].mutex = q[i]->mutex;
    }
    return job;
}

static int compare_requests(const void *a, const void *b)
{
    return strcmp((*(struct simba_request *const *)a)->mutex,
                  (*(struct simba_request *const *)b)->mutex);
}

static int op_of(const struct simba_request *q)
{
    return q->op == SIMBA_LEAVE ? SIMBA_READ : (int)q->op;
}

/* ---- rows that somebody's transaction holds ------------------------------------------------ */

void sql_requests_remember_locked(struct sql *s, const char *mutex)
{
    s->locked[s->locked_next].mutex = table_hash(mutex);
    s->locked[s->locked_next].until = simba_now() + SQL_LOCKED_MS;
    s->locked_next = (s->locked_next + 1) % SQL_LOCKED_MAX;
}

static bool was_locked(const struct sql *s, const char *mutex, int64_t now)
{
    uint32_t hash = table_hash(mutex);
    for (size_t i = 0; i < SQL_LOCKED_MAX; i++) {
        if (s->locked[i].until > now && s->locked[i].mutex == hash)
            return true;
    }
    return false;
}

/* Takes them out, each for itself: what is under the same roof must not wait for them again. */
static size_t part_locked(struct sql *s, int op, struct simba_request **q, size_t count)
{
    size_t rest = 0;
    int64_t now = simba_now();
    for (size_t i = 0; i < count; i++) {
        struct sql_job *job =
            op != SIMBA_READ && op != SIMBA_LIST && was_locked(s, q[i]->mutex, now)
                ? job_of(op, &q[i], 1)
                : NULL;
        if (job == NULL) {
            q[rest++] = q[i];
            continue;
        }
        job->impatient = true;
        sql_job_append(s, job);
    }
    return rest;
}

static bool same_tenure(const struct simba_request *a, const struct simba_request *b)
{
    return a->token == b->token && strcmp(a->id, b->id) == 0;
}

/* Sorted requests of one kind become jobs; what would be twice in one waits for the next. But of one tenure one
 * renewal is enough: with a server that is too slow they would become more and more. */
static void group(struct sql *s, int op, struct simba_request **q, size_t count)
{
    count = part_locked(s, op, q, count);
    size_t most =
        op == SIMBA_LIST || op == SIMBA_EVICT ? 1 : s->driver->group(s->connection->handle, op);
    while (count > 0) {
        size_t n = 0, rest = 0;
        struct simba_request *last = NULL;
        struct simba_request **left = malloc(count * sizeof *left), **taken = q;
        for (size_t i = 0; left != NULL && i < count; i++) {
            bool twice = last != NULL && strcmp(last->mutex, q[i]->mutex) == 0;
            if (twice && op == SIMBA_RENEW && same_tenure(last, q[i])) {
                q[i]->store = last->store;
                last->store = q[i];
            } else if (n == most || twice) {
                left[rest++] = q[i];
            } else {
                last = q[i];
                taken[n++] = q[i]; /* n <= i */
            }
        }
        struct sql_job *job = n > 0 ? job_of(op, taken, n) : NULL;
        if (job == NULL) {
            for (size_t i = 0; i < (left != NULL ? n : count); i++)
                sql_replies_refuse(s, taken[i], SIMBA_ELIMIT, "out of memory", false);
            for (size_t i = 0; i < rest; i++)
                sql_replies_refuse(s, left[i], SIMBA_ELIMIT, "out of memory", false);
            free(left);
            return;
        }
        sql_job_append(s, job);
        memcpy(q, left, rest * sizeof *left);
        count = rest;
        free(left);
    }
}

/* All that waits becomes jobs: what keeps a tenure first, then what frees a mutex. */
void sql_requests_to_jobs(struct sql *s)
{
    static const int order[] = {SIMBA_RENEW,   SIMBA_RELEASE, SIMBA_EVICT,
                                SIMBA_CONTEND, SIMBA_READ,    SIMBA_LIST};
    size_t count = 0;
    struct simba_request *list = pending_take(&s->waiting);
    for (struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    struct simba_request **all = malloc((2 * count + 1) * sizeof *all), **same;
    if (all == NULL) {
        pending_refuse_list(s->host, list, SIMBA_ELIMIT, "out of memory");
        return;
    }
    same = all + count;
    for (size_t i = 0; i < count; i++, list = list->next) {
        all[i] = list;      /* what is refused leaves the list */
        list->store = NULL; /* others that go with it */
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        size_t n = 0;
        for (size_t k = 0; k < count; k++) {
            if (all[k] != NULL && op_of(all[k]) == order[i]) {
                same[n++] = all[k];
                all[k] = NULL;
            }
        }
        if (n > 1)
            qsort(same, n, sizeof *same, compare_requests);
        if (n > 0)
            group(s, order[i], same, n);
    }
    free(all);
}

void sql_job_forget(struct sql_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        const struct sql_item *item = &job->item[i];
        job->item[i] = (struct sql_item){.mutex = item->mutex, .request = item->request};
    }
}

struct sql_job *sql_job_named(int op, size_t count)
{
    struct sql_job *job = sql_job_new(op, count);
    if (job == NULL)
        return NULL;
    job->names = malloc(count * (SIMBA_MUTEX_MAX + 1));
    if (job->names != NULL)
        return job;
    free(job);
    return NULL;
}

void sql_job_name(struct sql_job *job, size_t at, const char *mutex)
{
    char *name = job->names + at * (SIMBA_MUTEX_MAX + 1);
    snprintf(name, SIMBA_MUTEX_MAX + 1, "%s", mutex);
    job->item[at].mutex = name;
}

void sql_job_free(struct sql_job *job)
{
    if (job != NULL)
        free(job->names);
    free(job);
}

/* Some of the items of a job, as another job. */
static struct sql_job *part_of(const struct sql_job *job, size_t from, size_t to)
{
    bool named = job->names != NULL;
    struct sql_job *part =
        named ? sql_job_named(job->op, to - from) : sql_job_new(job->op, to - from);
    for (size_t i = from; part != NULL && i < to; i++) {
        part->item[i - from].request = job->item[i].request;
        if (named)
            sql_job_name(part, i - from, job->item[i].mutex);
        else
            part->item[i - from].mutex = job->item[i].mutex;
    }
    return part;
}

/* One row that somebody holds a lock on must not keep a thousand others from being renewed, or marked. */
bool sql_job_split(struct sql *s, struct sql_job *job)
{
    if (job->count < 2 || job->op == SQL_POLL) /* a look; there will be another */
        return false;
    struct sql_job *a = part_of(job, 0, job->count / 2);
    struct sql_job *b = part_of(job, job->count / 2, job->count);
    if (a == NULL || b == NULL) {
        sql_job_free(a);
        sql_job_free(b);
        return false;
    }
    a->impatient = b->impatient = true;
    sql_job_put_first(s, b);
    sql_job_put_first(s, a);
    return true;
}

void sql_job_ring(struct sql *s, const struct sql_job *evict)
{
    struct sql_job *job = sql_job_named(SQL_RING, 1);
    if (job == NULL)
        return;
    sql_job_name(job, 0, evict->item[0].mutex);
    sql_job_put_first(s, job);
}

/* A look finds one without a mark if that was lost: with the connection, or because the row was locked. */
static bool lacks_mark(struct sql *s, const struct sql_item *item)
{
    bool held = item->owner[0] != '\0' && item->left_ms > 0;
    return item->unmarked && held && sql_poller_waits(s, item->mutex);
}

/* Who was refused waits; and who was granted it may leave others behind that wait. */
static bool wants_mark(struct sql *s, const struct sql_item *item)
{
    if (item->request == NULL)
        return lacks_mark(s, item);
    bool told = s->driver->tells != NULL && s->driver->tells(s->connection->handle);
    bool leaves = item->changed && item->request->others && told;
    return (item->unmarked || leaves) && item->request->op == SIMBA_CONTEND;
}

/* After the answers, which need not wait for it. */
void sql_job_mark(struct sql *s, const struct sql_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->count; i++)
        n += wants_mark(s, &job->item[i]);
    struct sql_job *marks = n > 0 ? sql_job_named(SQL_MARK, n) : NULL;
    if (marks == NULL)
        return;
    n = 0;
    for (size_t i = 0; i < job->count; i++) {
        if (wants_mark(s, &job->item[i]))
            sql_job_name(marks, n++, job->item[i].mutex);
    }
    sql_job_put_first(s, marks);
}
