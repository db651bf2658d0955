/* queue.c: see queue.h. */
#include "backend/sql/queue.h"

#include <string.h>

#include "backend/sql/sql.h"

#define SERVED_TIMES 2    /* a handle, before the queue lock goes on */
#define HOLDS_MAX 3       /* of one wait: a process that has the queue lock may be stopped */
#define CONTESTED_MS 1000 /* so long those who waited are taken to be still there */
#define FAILED_MS 60000 /* Galera refuses such locks for ever; an administrator has ended a query */

/* ---- requests ------------------------------------------------------------------------------ */

static bool was_served(const struct queue_waiter *w, uint32_t id)
{
    int times = 0;
    for (size_t i = 0; i < w->served_count; i++)
        times += w->served[i] == id;
    return times >= SERVED_TIMES;
}

/* Whether others come first. */
static bool must_wait(struct queue_waiter *w, const struct simba_request *q)
{
    switch (w->state) {
    case QUEUE_IDLE:
        if (!w->is_contested || w->again_at != 0 || simba_now() - w->since > CONTESTED_MS)
            return false;
        queue_waiter_begin(w);
        return true;
    case QUEUE_WAITING:
        return w->is_contested && simba_now() - w->since <= QUEUE_HOLD_BACK_MS;
    case QUEUE_OURS:
        if (w->is_asked || (w->is_owned && !w->is_leaving))
            return !w->is_owned || w->until > simba_now();
        if (w->served_count < QUEUE_SERVED_MAX && !was_served(w, hash_text(q->id))) {
            w->is_asked = true;
            return false;
        }
        w->expects = true;
        if (w->is_leaving)
            w->served_count = QUEUE_SERVED_MAX; /* it goes when the release is done */
        else
            queue_waiter_end(w);
        return true;
    case QUEUE_ENDING:
        w->expects = true;
        return w->is_contested && simba_now() - w->since <= QUEUE_HOLD_BACK_MS;
    default:
        return false;
    }
}

/* With the owner as we saw it last. A request whose outcome is unknown must be asked about: after
 * a lost connection all are, for as long as they may take to come again. */
bool sql_queue_holds_back(struct sql *s, struct simba_request *q)
{
    int64_t now = simba_now();
    if (!s->dialect->has_queue)
        return false;
    bool is_calm =
        s->connection != NULL && (s->reconnections == 1 || now - s->connection->since > q->ttl_ms);
    struct queue_waiter *w = is_calm ? queue_waiter_of(s, q->mutex) : NULL;
    if (w != NULL && q->op == SIMBA_RELEASE)
        w->is_leaving = w->is_owned;
    if (w == NULL || q->op != SIMBA_CONTEND || !must_wait(w, q))
        return false;
    struct simba_answer a = {.left_ms = QUEUE_HOLD_BACK_MS, .age_ms = -1};
    if (w->owner[0] != '\0' && w->until > now && strcmp(w->owner, q->id) != 0) {
        a.id = w->owner;
        a.token = w->token;
        a.left_ms = w->until - now;
    }
    w->has_held_back = true;
    queue_set_timer(s, QUEUE_HOLD_BACK_MS);
    sql_poller_refused(s, q->mutex);
    s->host->answer(s->host, q, &a);
    return true;
}

/* Not from those who wait: the lock that they wait for goes with a release. */
bool sql_queue_may_pass(struct sql *s, const char *mutex)
{
    const struct queue_waiter *w = queue_waiter_of(s, mutex);
    if (w != NULL && w->state == QUEUE_OURS)
        return w->served_count < QUEUE_SERVED_MAX;
    return (w == NULL || (w->state == QUEUE_IDLE && !w->is_contested)) &&
           !queue_owned_has_lock(s, mutex);
}

static void note_owner(struct queue_waiter *w, const struct sql_item *item)
{
    memcpy(w->owner, item->owner, sizeof w->owner);
    w->token = item->token;
    w->until = simba_now() + item->left_ms;
}

/* ---- what became of them ------------------------------------------------------------------- */

void sql_queue_granted(struct sql *s, const struct sql_item *item)
{
    if (!s->dialect->has_queue || sql_queue_is_off(s))
        return;
    struct queue_waiter *w = queue_waiter_of(s, item->mutex);
    if (w != NULL && w->state == QUEUE_OURS) {
        if (w->served_count < QUEUE_SERVED_MAX)
            w->served[w->served_count++] = hash_text(item->owner);
        w->expects = item->request->others;
        w->is_owned = true;
        w->is_leaving = w->is_asked = w->is_refused = false;
        note_owner(w, item);
        return;
    }
    if (w != NULL && w->state == QUEUE_WAITING && w->is_contested && w->holds++ < HOLDS_MAX)
        w->since = simba_now(); /* then it is another's turn again */
    queue_owned_granted(s, item->mutex);
}

void sql_queue_renewed(struct sql *s, const char *mutex)
{
    if (!s->dialect->has_queue || sql_queue_is_off(s))
        return;
    struct queue_waiter *w = queue_waiter_of(s, mutex);
    if (w == NULL || w->state != QUEUE_OURS)
        queue_owned_renewed(s, mutex);
}

void sql_queue_ended(struct sql *s, const char *mutex)
{
    if (!s->dialect->has_queue)
        return;
    struct queue_waiter *w = queue_waiter_of(s, mutex);
    queue_owned_ended(s, mutex);
    if (w == NULL || w->state != QUEUE_OURS)
        return;
    w->is_owned = w->is_leaving = w->is_asked = w->is_refused = false;
    w->owner[0] = '\0';
    w->since = simba_now();
    if (!w->expects || w->served_count == QUEUE_SERVED_MAX)
        queue_waiter_end(w);
    else
        queue_set_timer(s, QUEUE_UNUSED_MS);
}

void sql_queue_refused(struct sql *s, const struct sql_item *item)
{
    if (!s->dialect->has_queue)
        return;
    struct queue_waiter *w = queue_waiter_of(s, item->mutex);
    if (!sql_poller_owns(s, item->mutex))
        queue_owned_ended(s, item->mutex);
    if (w == NULL && s->poller.poll_ms == 0 && queue_waiter_is_wanted(s, item->mutex))
        w = queue_waiter_take(s, item->mutex); /* no poll will say that it takes longer */
    if (w == NULL)
        return;
    note_owner(w, item);
    w->is_owned = w->is_owned && sql_poller_owns(s, item->mutex);
    w->is_asked = false;
    w->is_refused = true;
    if (w->state == QUEUE_IDLE && (w->is_contested || s->poller.poll_ms == 0) && w->again_at == 0)
        queue_waiter_begin(w);
}

void sql_queue_saw_held(struct sql *s, const struct sql_item *item)
{
    if (!s->dialect->has_queue || sql_queue_is_off(s) || s->poller.is_early ||
        !queue_waiter_is_wanted(s, item->mutex))
        return;
    struct queue_waiter *w = queue_waiter_of(s, item->mutex);
    if (w == NULL)
        w = queue_waiter_take(s, item->mutex);
    if (w == NULL)
        return;
    note_owner(w, item);
    if (w->state == QUEUE_IDLE && w->again_at == 0)
        queue_waiter_begin(w);
}

void sql_queue_left(struct sql *s, const char *mutex)
{
    struct queue_waiter *w = s->dialect->has_queue ? queue_waiter_of(s, mutex) : NULL;
    if (s->dialect->has_queue)
        queue_owned_ended(s, mutex);
    if (w != NULL && w->state == QUEUE_OURS)
        queue_waiter_end(w);
}

void queue_contested(struct sql *s, const char *mutex)
{
    struct queue_waiter *w = queue_waiter_of(s, mutex);
    if (w == NULL)
        w = queue_waiter_take(s, mutex);
    if (w != NULL)
        w->is_contested = true;
}

/* ---- upkeep ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    int64_t now = simba_now(), next = INT64_MAX, in;
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++) {
        in = queue_waiter_keep(&s->queue.waiter[i], now);
        next = in < next ? in : next;
    }
    in = queue_owned_keep(s, now);
    next = in < next ? in : next;
    if (next < INT64_MAX)
        queue_set_timer(s, next);
    sql_connection_pump(s);
}

/* In so long at the latest. */
void queue_set_timer(struct sql *s, int64_t ms)
{
    uv_timer_t *t = &s->queue.timer;
    if (s->closing || (uv_is_active((uv_handle_t *)t) && (int64_t)uv_timer_get_due_in(t) <= ms))
        return;
    handles_start_timer(t, on_timer, ms);
}

/* ---- life ---------------------------------------------------------------------------------- */

int sql_queue_open(struct sql *s)
{
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++)
        s->queue.waiter[i].store = s;
    return hash_table_init(&s->queue.owned);
}

void sql_queue_reset(struct sql *s)
{
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++)
        queue_waiter_forget(&s->queue.waiter[i]);
    queue_owned_forget(s);
    s->queue.off_until = 0; /* the next server may be another one */
}

void sql_queue_failed(struct sql *s)
{
    sql_queue_reset(s);
    s->queue.off_until = simba_now() + FAILED_MS;
}

bool sql_queue_is_off(const struct sql *s)
{
    return simba_now() < s->queue.off_until;
}

void sql_queue_close(struct sql *s)
{
    sql_queue_reset(s);
    handles_close(&s->handles, &s->queue.timer);
}

void sql_queue_free(struct sql *s)
{
    hash_table_free(&s->queue.owned);
}

bool sql_queue_is_steady(const struct sql *s)
{
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++) {
        if (!queue_connection_is_armed(&s->queue.waiter[i]))
            return false;
    }
    return true;
}
