/* sql.c: see sql.h. */
#include "backend/sql/sql.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/random.h"

#define POLL_MS 250    /* the default of ?poll= */
#define BEHIND_MS 5000 /* between looks where the server tells */
#define BELL_MS 1000   /* between looks at the bell, if nothing else is to be looked at */
#define SOON_MS 20     /* the first look at something new: many locks are held for a moment only */
#define LEAST_MS 10    /* between looks that have found something */
#define REST_FIRST_MS 50
#define REST_MAX_MS 1000
#define RETRIES 5 /* of a statement that deadlocked */

static void pump(struct sql *s);
static void set_look(struct sql *s, int64_t ms);

void sql_fail(struct sql *s, int code, const char *format, ...)
{
    va_list args;
    s->code = code;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
}

static int64_t jittered(struct sql *s, int64_t ms)
{
    return ms - ms / 8 + (int64_t)(random_next(&s->dice) % (uint64_t)(ms / 4 + 1));
}

/* ---- answers ------------------------------------------------------------------------------- */

static void refuse(struct sql *s, struct simba_request *q, int code, const char *why, bool more)
{
    struct simba_answer a = {.code = code, .age_ms = -1, .text = why, .more = more};
    s->host->answer(s->host, q, &a);
}

static void refuse_list(struct sql *s, struct simba_request *list, int code, const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        refuse(s, list, code, why, next != NULL);
    }
}

static void refuse_job(struct sql *s, struct sql_job *job, int code, const char *why)
{
    for (size_t i = 0; i < job->count; i++) {
        if (job->item[i].request != NULL)
            refuse(s, job->item[i].request, code, why, i + 1 < job->count);
    }
}

static void refuse_all(struct sql *s, int code, const char *why)
{
    struct simba_request *waiting = s->waiting;
    s->waiting = NULL;
    s->waiting_last = &s->waiting;
    for (struct sql_job *job; (job = s->jobs) != NULL;) {
        s->jobs = job->next;
        refuse_job(s, job, code, why);
        free(job->names);
        free(job);
    }
    s->jobs_last = &s->jobs;
    refuse_list(s, waiting, code, why);
}

/* Others of this client who wait for the mutex, or observe it, need no look to hear of it. */
static void changed(struct sql *s, const struct simba_request *q, bool granted)
{
    struct interest *i = (struct interest *)(void *)table_find(&s->interests.all, q->mutex);
    bool observed = s->interests.observes_all || (i != NULL && i->kind == SIMBA_OBSERVES);
    if (observed || (i != NULL && !granted))
        s->host->hint(s->host, q->mutex);
}

static void answer_item(struct sql *s, int op, const struct sql_item *item, bool more)
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
    }
    if (granted || (op == SIMBA_RENEW && a.code == 0))
        interest_ours(&s->interests, q->mutex, simba_now() + lease);
    else if (op == SIMBA_RENEW || op == SIMBA_RELEASE)
        interest_ours(&s->interests, q->mutex, 0);
    if (item->changed && op != SIMBA_RENEW)
        changed(s, q, granted);
    s->host->answer(s->host, q, &a);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int compare_names(const void *key, const void *element)
{
    return strcmp(key, ((const struct sql_item *)element)->mutex);
}

static void found_in_list(struct sql *s, struct sql_job *job, const struct sql_row *row)
{
    struct simba_found f = {row->mutex, row->owner, row->token, row->left_ms, row->age_ms, -1};
    s->host->found(s->host, job->item[0].request, &f);
}

static void found_bell(struct sql *s, const struct sql_row *row)
{
    int news = interest_bell(&s->interests, row->token);
    if (news == 1 && row->owner[0] != '\0')
        s->host->hint(s->host, row->owner);
    else if (news > 0)
        s->host->hint(s->host, NULL);
}

void sql_found(struct sql *s, struct sql_job *job, const struct sql_row *row)
{
    if (job->op == SIMBA_LIST) {
        found_in_list(s, job, row);
    } else if (job->op == SQL_DIGEST) {
        if (interest_digest(&s->interests, row->token))
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
        item->left_ms = row->left_ms;
        item->age_ms = row->age_ms;
        snprintf(item->owner, sizeof item->owner, "%s", row->owner);
    }
}

void sql_told(struct sql *s, const char *mutex)
{
    if (interest_any(&s->interests))
        s->host->hint(s->host, mutex);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void append(struct sql *s, struct sql_job *job)
{
    job->next = NULL;
    *s->jobs_last = job;
    s->jobs_last = &job->next;
}

static void put_first(struct sql *s, struct sql_job *job)
{
    job->next = s->jobs;
    s->jobs = job;
    if (job->next == NULL)
        s->jobs_last = &job->next;
}

static struct sql_job *new_job(int op, size_t count)
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
    struct sql_job *job = new_job(op, count);
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

static void remember_locked(struct sql *s, const char *mutex)
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
        append(s, job);
    }
    return rest;
}

/* Sorted requests of one kind become jobs; what would be twice in one waits for the next. */
static void group(struct sql *s, int op, struct simba_request **q, size_t count)
{
    count = part_locked(s, op, q, count);
    size_t most = op == SIMBA_LIST || op == SIMBA_EVICT ? 1 : s->driver->group(s->link->link, op);
    while (count > 0) {
        size_t n = 0, rest = 0;
        struct simba_request *last = NULL;
        struct simba_request **left = malloc(count * sizeof *left), **taken = q;
        for (size_t i = 0; left != NULL && i < count; i++) {
            bool twice = last != NULL && strcmp(last->mutex, q[i]->mutex) == 0;
            if (n == most || twice) {
                left[rest++] = q[i];
            } else {
                last = q[i];
                taken[n++] = q[i]; /* n <= i */
            }
        }
        struct sql_job *job = n > 0 ? job_of(op, taken, n) : NULL;
        if (job == NULL) {
            for (size_t i = 0; i < count; i++)
                refuse(s, q[i], SIMBA_ELIMIT, "out of memory", i + 1 < count);
            free(left);
            return;
        }
        append(s, job);
        memcpy(q, left, rest * sizeof *left);
        count = rest;
        free(left);
    }
}

/* All that waits becomes jobs: what keeps a tenure first, then what frees a mutex. */
static void make_jobs(struct sql *s)
{
    static const int order[] = {SIMBA_RENEW,   SIMBA_RELEASE, SIMBA_EVICT,
                                SIMBA_CONTEND, SIMBA_READ,    SIMBA_LIST};
    size_t count = 0;
    struct simba_request *list = s->waiting;
    s->waiting = NULL;
    s->waiting_last = &s->waiting;
    for (struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    struct simba_request **all = malloc((count + 1) * sizeof *all);
    if (all == NULL) {
        refuse_list(s, list, SIMBA_ELIMIT, "out of memory");
        return;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        size_t n = 0;
        for (struct simba_request *q = list; q != NULL; q = q->next) {
            if (op_of(q) == order[i])
                all[n++] = q;
        }
        if (n > 1)
            qsort(all, n, sizeof *all, compare_requests);
        if (n > 0)
            group(s, order[i], all, n);
    }
    free(all);
}

/* Some of the items of a job, as another job. */
static struct sql_job *part_of(const struct sql_job *job, int op, size_t from, size_t to)
{
    struct sql_job *part = new_job(op, to - from);
    for (size_t i = from; part != NULL && i < to; i++) {
        part->item[i - from].request = job->item[i].request;
        part->item[i - from].mutex = job->item[i].mutex;
    }
    return part;
}

/* One row that somebody holds a lock on must not keep a thousand others from being renewed. */
static bool split(struct sql *s, struct sql_job *job)
{
    if (job->count < 2 || job->op == SQL_POLL)
        return false;
    struct sql_job *a = part_of(job, job->op, 0, job->count / 2);
    struct sql_job *b = part_of(job, job->op, job->count / 2, job->count);
    if (a == NULL || b == NULL) {
        free(a);
        free(b);
        return false;
    }
    a->impatient = b->impatient = true;
    put_first(s, b);
    put_first(s, a);
    return true;
}

static struct sql_job *named_job(int op, size_t count)
{
    struct sql_job *job = new_job(op, count);
    if (job == NULL)
        return NULL;
    job->names = malloc(count * (SIMBA_MUTEX_MAX + 1));
    if (job->names != NULL)
        return job;
    free(job);
    return NULL;
}

static void name_item(struct sql_job *job, size_t at, const char *mutex)
{
    char *name = job->names + at * (SIMBA_MUTEX_MAX + 1);
    snprintf(name, SIMBA_MUTEX_MAX + 1, "%s", mutex);
    job->item[at].mutex = name;
}

static void ring(struct sql *s, const struct sql_job *evict)
{
    struct sql_job *job = named_job(SQL_RING, 1);
    if (job == NULL)
        return;
    name_item(job, 0, evict->item[0].mutex);
    put_first(s, job);
}

/* Who was refused waits; and who was granted it may leave others behind that wait. */
static bool wants_mark(const struct sql *s, const struct sql_item *item)
{
    bool told = s->driver->tells != NULL && s->driver->tells(s->link->link);
    bool leaves = item->changed && item->request->others && told;
    return (item->unmarked || leaves) && item->request->op == SIMBA_CONTEND;
}

/* After the answers, which need not wait for it. */
static void mark(struct sql *s, const struct sql_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->count; i++)
        n += wants_mark(s, &job->item[i]);
    struct sql_job *marks = n > 0 ? named_job(SQL_MARK, n) : NULL;
    if (marks == NULL)
        return;
    n = 0;
    for (size_t i = 0; i < job->count; i++) {
        if (wants_mark(s, &job->item[i]))
            name_item(marks, n++, job->item[i].mutex);
    }
    put_first(s, marks);
}

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
    mark(s, job);
    struct sql_job *rest = new_job(SIMBA_READ, job->count);
    for (size_t i = 0; i < job->count; i++) {
        struct sql_item *item = &job->item[i];
        if (item->seen) {
            answer_item(s, job->op, item, i + 1 < job->count);
        } else if (rest == NULL) {
            refuse(s, item->request, SIMBA_ELIMIT, "out of memory", false);
        } else {
            rest->item[n].request = item->request;
            rest->item[n++].mutex = item->mutex;
        }
    }
    if (rest != NULL)
        rest->count = n;
    if (n > 0)
        put_first(s, rest);
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
            answer_item(s, job->op, item, i + 1 < job->count);
        } else {
            sql_fail(s, SIMBA_ESCHEMA,
                     "the table has a row whose name differs from '%s' only in case, accents or "
                     "trailing blanks, and takes both for the same: %s",
                     item->mutex, s->driver->needs_help);
            refuse(s, item->request, s->code, s->why, i + 1 < job->count);
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
        if (item->mutex[0] != '\0' && interest_saw(&s->interests, &look)) {
            s->host->hint(s->host, item->mutex);
            news = true;
        }
    }
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
            ring(s, job);
        answer_item(s, job->op, &job->item[0], false);
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
        set_look(s, 0);
        break;
    case SQL_DIGEST:
    case SQL_RING:
    case SQL_OBSERVE:
        break;
    default:
        if (job->op == SIMBA_READ)
            mark(s, job);
        for (size_t i = 0; i < job->count; i++)
            answer_item(s, job->op, &job->item[i], i + 1 < job->count);
    }
    if (job->op == SQL_POLL || job->op == SQL_DIGEST)
        s->polls = false;
}

/* The statement has ended. True: the connection can be used on. */
static bool ended(struct sql *s, enum sql_end end)
{
    struct sql_job *job = s->job;
    s->job = NULL;
    uv_timer_stop(&s->timeout);
    if (end == SQL_RETRY && ++job->tries <= RETRIES) {
        put_first(s, job);
        return true;
    }
    if (end == SQL_LOCKED && job->count == 1 && job->item[0].request != NULL)
        remember_locked(s, job->item[0].mutex);
    if (end == SQL_DONE) {
        done(s, job);
    } else if (end != SQL_LOCKED || !split(s, job)) {
        if (end == SQL_BROKEN)
            s->polls = false;
        if (job->op >= SQL_POLL && end != SQL_BROKEN)
            s->host->log(s->host, SIMBA_LOG_WARN, s->why);
        if (job->op == SQL_POLL || job->op == SQL_DIGEST)
            s->polls = false;
        refuse_job(s, job, s->code, s->why);
    }
    free(job->names);
    free(job);
    return end != SQL_BROKEN;
}

/* ---- the connection ------------------------------------------------------------------------ */

static void free_store(struct sql *s)
{
    struct simba_host *host = s->host;
    interest_free(&s->interests);
    statement_free(&s->statement);
    free(s);
    host->closed(host);
}

static void drop_handle(struct sql *s)
{
    if (--s->handles == 0)
        free_store(s);
}

static void on_link_closed(uv_handle_t *handle)
{
    struct sql_link *l = handle->data;
    struct sql *s = l->store;
    free(l);
    drop_handle(s);
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

static void dial(struct sql *s)
{
    if (s->link != NULL || s->dialing || s->resting || s->closing)
        return;
    int rc = dial_begin(s->dial);
    if (rc == 0) {
        s->dialing = true;
        return;
    }
    sql_fail(s, rc, "cannot start a thread to connect");
    refuse_all(s, s->code, s->why);
}

static void start_timer(uv_timer_t *t, uv_timer_cb call, int64_t ms)
{
    uv_update_time(t->loop);
    uv_timer_start(t, call, (uint64_t)ms, 0);
}

static void on_rested(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->resting = false;
    if (s->waiting != NULL || interest_any(&s->interests))
        dial(s);
}

static void lost(struct sql *s)
{
    hang_up(s);
    uv_timer_stop(&s->timeout);
    if (s->jobs != NULL || s->waiting != NULL || interest_any(&s->interests))
        dial(s);
}

static void on_timeout(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    sql_fail(s, SIMBA_ESTORE, "the server has not answered in %lld ms",
             (long long)s->host->command_timeout_ms);
    ended(s, SQL_BROKEN);
    lost(s);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void wait_for(struct sql *s, int events)
{
    if (s->events != events)
        uv_poll_start(&s->link->poll, events, on_ready);
    s->events = events;
}

/* Runs jobs until one has to wait for the server, or there is none. */
static void pump(struct sql *s)
{
    while (s->link != NULL && s->job == NULL && !s->closing) {
        enum sql_end end = SQL_DONE;
        if (s->jobs == NULL && s->waiting != NULL)
            make_jobs(s);
        struct sql_job *job = s->jobs;
        if (job == NULL) {
            wait_for(s, UV_READABLE);
            return;
        }
        s->jobs = job->next;
        if (s->jobs == NULL)
            s->jobs_last = &s->jobs;
        s->job = job;
        int events = s->driver->begin(s, s->link->link, job, &end);
        if (events != 0) {
            wait_for(s, events);
            start_timer(&s->timeout, on_timeout, s->host->command_timeout_ms);
        } else if (!ended(s, end)) {
            lost(s);
        }
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct sql *s = ((struct sql_link *)poll->data)->store;
    enum sql_end end = SQL_DONE;
    if (status < 0)
        events = UV_READABLE | UV_WRITABLE;
    if (s->job == NULL) {
        if (!s->driver->idle(s, s->link->link))
            lost(s);
        return;
    }
    int wanted = s->driver->go_on(s, s->link->link, s->job, events, &end);
    if (wanted != 0) {
        wait_for(s, wanted);
    } else if (ended(s, end)) {
        pump(s);
    } else {
        lost(s);
    }
}

static void on_dialed(void *data, void *link, int code, const char *why)
{
    struct sql *s = data;
    struct sql_link *l = link != NULL ? calloc(1, sizeof *l) : NULL;
    s->dialing = false;
    if (l == NULL || uv_poll_init(s->host->loop, &l->poll, s->driver->fd(link)) != 0) {
        sql_fail(s, link != NULL ? SIMBA_ELIMIT : code, "%s",
                 link != NULL ? "out of memory or descriptors" : why);
        if (link != NULL)
            s->driver->disconnect(link);
        free(l);
        int64_t rest = REST_FIRST_MS << (s->failures < 5 ? s->failures : 5);
        s->failures++;
        s->resting = true;
        start_timer(&s->timeout, on_rested, jittered(s, rest < REST_MAX_MS ? rest : REST_MAX_MS));
        refuse_all(s, s->code, s->why);
        return;
    }
    l->store = s;
    l->link = link;
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
    if (interest_any(&s->interests))
        set_look(s, 0);
    pump(s);
}

/* ---- looking ------------------------------------------------------------------------------- */

struct collection {
    struct sql_job *job;
    size_t at;
};

static void collect(void *data, const char *mutex)
{
    struct collection *c = data;
    name_item(c->job, c->at++, mutex);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct sql_item *)a)->mutex, ((const struct sql_item *)b)->mutex);
}

/* One statement for all that is watched, and the bell. */
static void poll_rows(struct sql *s, size_t count)
{
    struct collection c = {.job = named_job(SQL_POLL, count + 1)};
    if (c.job == NULL)
        return;
    collect(&c, "");
    interest_each(&s->interests, simba_now(), collect, &c);
    assert(c.at == count + 1);
    qsort(c.job->item, c.at, sizeof c.job->item[0], compare_items);
    s->polls = true;
    append(s, c.job);
}

static void look(struct sql *s)
{
    size_t count = interest_each(&s->interests, simba_now(), NULL, NULL);
    bool told = s->driver->tells != NULL && s->driver->tells(s->link->link);
    if (told && !s->listens) {
        struct sql_job *job = new_job(SQL_LISTEN, 0);
        if (job != NULL)
            append(s, job);
        return; /* and look when that is done */
    }
    struct sql_job *observe =
        told && interest_observes(&s->interests) ? new_job(SQL_OBSERVE, 0) : NULL;
    if (observe != NULL)
        append(s, observe);
    if (s->poll_ms == 0 && !s->missed)
        return;
    s->missed = false;
    if (count > 0 || (!told && interest_owns(&s->interests, simba_now())))
        poll_rows(s, count);
    struct sql_job *digest = s->interests.observes_all ? new_job(SQL_DIGEST, 0) : NULL;
    if (digest != NULL) {
        s->polls = true;
        append(s, digest);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->looking = false;
    if (!interest_any(&s->interests))
        return;
    if (s->link == NULL)
        dial(s);
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
             interest_each(&s->interests, simba_now(), NULL, NULL) == 0)
        every = BELL_MS;
    if (every > 0 && !s->looking)
        set_look(s, jittered(s, every));
    pump(s);
}

static void set_look(struct sql *s, int64_t ms)
{
    if (s->closing)
        return;
    s->looking = true;
    start_timer(&s->look, on_look, ms);
}

/* ---- the store ----------------------------------------------------------------------------- */

/* While there is hope requests wait for a connection; else the last failure is the answer. */
void sql_submit(void *store, struct simba_request *batch)
{
    struct sql *s = store;
    if (s->resting) {
        refuse_list(s, batch, s->code, s->why);
        return;
    }
    *s->waiting_last = batch;
    while (*s->waiting_last != NULL)
        s->waiting_last = &(*s->waiting_last)->next;
    dial(s);
    pump(s);
}

void sql_watch(void *store, const char *mutex, enum simba_interest interest)
{
    struct sql *s = store;
    if (interest_set(&s->interests, mutex, interest) < 0)
        s->host->log(s->host, SIMBA_LOG_WARN, "out of memory: waiting takes longer");
    bool tells = s->driver->tells != NULL;
    if (interest == SIMBA_NO_INTEREST || (s->poll_ms == 0 && !tells))
        return;
    if (tells && (!s->listens || interest == SIMBA_OBSERVES)) {
        set_look(s, 0);
    } else if (s->listens) {
        if (!s->looking)
            set_look(s, jittered(s, BEHIND_MS));
    } else if (!s->looking || s->pause_ms > SOON_MS) {
        s->pause_ms = SOON_MS < s->poll_ms ? SOON_MS : s->poll_ms;
        set_look(s, jittered(s, s->pause_ms));
    }
}

void sql_diagnose(void *store, simba_finding_fn *say, void *data)
{
    struct sql *s = store;
    if (s->link == NULL)
        say(data, SIMBA_LOG_WARN, "there is no connection to the server at present");
    else
        s->driver->diagnose(s->link->link, say, data);
    if (s->link != NULL && s->driver->tells == NULL)
        say(data, SIMBA_LOG_INFO,
            "this kind of server cannot push: mutexes that are waited for are looked at, at first "
            "often (?poll=)");
}

static void on_closed(uv_handle_t *handle)
{
    drop_handle(handle->data);
}

static void on_dial_closed(void *data)
{
    drop_handle(data);
}

void sql_close(void *store)
{
    struct sql *s = store;
    static const char why[] = "the client is being closed";
    s->closing = true;
    if (s->job != NULL) {
        sql_fail(s, SIMBA_ECANCELED, "%s", why);
        ended(s, SQL_BROKEN);
    }
    if (s->link != NULL)
        hang_up(s);
    refuse_all(s, SIMBA_ECANCELED, why);
    uv_close((uv_handle_t *)&s->timeout, on_closed);
    uv_close((uv_handle_t *)&s->look, on_closed);
    dial_close(s->dial, on_dial_closed);
}

int sql_open(struct simba_host *host, const struct sql_driver *driver, void *config,
             int64_t poll_ms, void **store, char *why, size_t why_size)
{
    struct sql *s = calloc(1, sizeof *s);
    if (s == NULL || interest_init(&s->interests) < 0)
        goto err;
    s->host = host;
    s->driver = driver;
    s->poll_ms = poll_ms < 0 ? POLL_MS : poll_ms;
    s->jobs_last = &s->jobs;
    s->waiting_last = &s->waiting;
    if (getrandom(&s->dice, sizeof s->dice, 0) < 0)
        s->dice = (uint64_t)simba_now();
    s->dial = dial_open(host->loop, driver, config, on_dialed, s);
    if (s->dial == NULL)
        goto err_after_interests;
    uv_timer_init(host->loop, &s->timeout); /* these cannot fail */
    uv_timer_init(host->loop, &s->look);
    s->timeout.data = s->look.data = s;
    s->handles = 3;
    *store = s;
    return 0;

err_after_interests:
    interest_free(&s->interests);
err:
    free(s);
    driver->free_config(config);
    snprintf(why, why_size, "out of memory or descriptors");
    return SIMBA_ELIMIT;
}
