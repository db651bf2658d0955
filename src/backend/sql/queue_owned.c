/* queue_owned.c: the queue locks of mutexes that we own, held on the connection that all handles
 * share. What they are for: queue.h. */
#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"

#define FIRST_MS 10 /* a tenure that lasts so long may well be waited for */
#define AGAIN_MS 50 /* between questions for the queue lock, where tenures are short */
#define FAILED_MS 500
#define UNUSED_MS 1000

/* A mutex that we own, and no waiter has the queue lock of. */
struct queue_owned {
    struct hash_node by_mutex; /* first */
    int64_t ask_at, used_at;   /* simba_now() */
    bool is_owned, is_asked, has_lock;
    bool is_contested; /* others wait */
    char mutex[];
};

static struct queue_owned *owned_of(const struct sql *s, const char *mutex)
{
    return (struct queue_owned *)(void *)hash_table_find(&s->queue.owned, mutex);
}

void queue_owned_ask(struct sql *s, int op, const char *mutex)
{
    struct sql_job *job = sql_job_new(op, 1);
    if (job == NULL)
        return;
    sql_job_add(job, mutex, NULL);
    job->next = s->queue.jobs;
    s->queue.jobs = job;
}

/* In the order in which they came. */
struct sql_job *sql_queue_take_job(struct sql *s)
{
    struct sql_job **last = &s->queue.jobs;
    bool is_idle = s->jobs == NULL && s->waiting.first == NULL;
    bool takes = *last != NULL && (is_idle || (s->jobs == NULL && s->queue.is_next));
    s->queue.is_next = !takes;
    if (!takes)
        return NULL;
    while ((*last)->next != NULL)
        last = &(*last)->next;
    struct sql_job *job = *last;
    *last = NULL;
    return job;
}

static struct queue_owned *add_owned(struct sql *s, const char *mutex)
{
    size_t size = strlen(mutex) + 1;
    struct queue_owned *o =
        s->queue.owned.count < QUEUE_MUTEXES_MAX ? calloc(1, sizeof *o + size) : NULL;
    if (o == NULL)
        return NULL;
    memcpy(o->mutex, mutex, size);
    o->by_mutex.name = o->mutex;
    o->ask_at = simba_now() + FIRST_MS;
    hash_table_add(&s->queue.owned, &o->by_mutex);
    return o;
}

bool queue_owned_has_lock(const struct sql *s, const char *mutex)
{
    const struct queue_owned *o = owned_of(s, mutex);
    return o != NULL && o->has_lock;
}

/* With its connection the owner has lost the queue lock, but not the mutex. */
void queue_owned_renewed(struct sql *s, const char *mutex)
{
    const struct queue_owned *o = owned_of(s, mutex);
    if (o == NULL || !o->is_owned)
        queue_owned_granted(s, mutex);
}

/* True: there is a question now. */
static bool ask_if_due(struct sql *s, struct queue_owned *o, int64_t now)
{
    if (!o->is_owned || o->is_asked || o->has_lock || now < o->ask_at)
        return false;
    o->is_asked = true;
    queue_owned_ask(s, SQL_QUEUE_TRY, o->mutex);
    return true;
}

void queue_owned_granted(struct sql *s, const char *mutex)
{
    struct queue_owned *o = owned_of(s, mutex);
    if (o == NULL)
        o = add_owned(s, mutex);
    if (o == NULL)
        return;
    o->is_owned = true;
    o->used_at = simba_now();
    if (o->is_contested) /* it is ours again, and others have waited */
        queue_contested(s, mutex);
    o->is_contested = false;
    if (!ask_if_due(s, o, o->used_at))
        queue_set_timer(s, FIRST_MS);
}

static void end(struct sql *s, struct queue_owned *o)
{
    o->is_owned = false;
    if (o->has_lock) {
        queue_owned_ask(s, SQL_QUEUE_END, o->mutex);
        sql_pass_others_first(s, o->mutex, true); /* if there are any: the answer tells */
    }
    o->has_lock = false;
}

void queue_owned_ended(struct sql *s, const char *mutex)
{
    struct queue_owned *o = owned_of(s, mutex);
    if (o != NULL)
        end(s, o);
}

void sql_queue_done(struct sql *s, const struct sql_job *job)
{
    const struct sql_item *item = &job->item[0];
    struct queue_owned *o = owned_of(s, item->mutex);
    bool got = item->token == 1, is_end = job->op == SQL_QUEUE_END;
    if (job->op == SQL_QUEUE_ROOM)
        queue_waiter_heard_room(s, item->mutex, got);
    if (job->op == SQL_QUEUE_ROOM || o == NULL)
        return;
    o->is_contested = is_end ? item->left_ms == 0 : !got;
    if (is_end && !o->is_contested)
        sql_pass_others_first(s, o->mutex, false);
    if (is_end)
        return;
    o->is_asked = false;
    o->has_lock = got;
    o->ask_at = simba_now() + (got ? AGAIN_MS : FAILED_MS);
    if (got && !o->is_owned) /* it has ended meanwhile */
        end(s, o);
}

static int64_t keep(struct sql *s, struct queue_owned *o, int64_t now)
{
    if (!ask_if_due(s, o, now) && o->is_owned && !o->has_lock && !o->is_asked)
        return o->ask_at - now;
    if (o->is_owned || o->has_lock || o->is_asked || now - o->used_at < UNUSED_MS)
        return UNUSED_MS;
    hash_table_remove(&s->queue.owned, &o->by_mutex);
    free(o);
    return INT64_MAX;
}

int64_t queue_owned_keep(struct sql *s, int64_t now)
{
    int64_t next = INT64_MAX;
    for (struct hash_node *n = hash_table_next(&s->queue.owned, NULL), *after; n != NULL;
         n = after) {
        after = hash_table_next(&s->queue.owned, n);
        int64_t in = keep(s, (struct queue_owned *)(void *)n, now);
        next = in < next ? in : next;
    }
    return next;
}

static void free_owned(struct hash_node *n)
{
    free(n);
}

void queue_owned_forget(struct sql *s)
{
    hash_table_empty(&s->queue.owned, free_owned);
    for (struct sql_job *job; (job = s->queue.jobs) != NULL; free(job))
        s->queue.jobs = job->next;
}
