/* queue.c: see queue.h. */
#include "backend/sql/queue.h"

#include <string.h>

#include "backend/sql/sql.h"

#define HOLD_BACK_MS 100  /* how long a queue lock that does not come keeps us from asking */
#define QUEUE_UNUSED_MS 5 /* a queue lock that nobody of this client makes use of */
/* The owner has no queue lock: it learns from ours that somebody waits, and then can have it. */
#define QUEUE_REFUSED_MS 500
#define QUEUE_AGAIN_MS 700
#define QUEUE_ASK_MS 20   /* after being refused: first, then twice as long each time */
#define HOLDS_MAX 3       /* of one wait: a process that has the queue lock may be stopped */
#define CONTESTED_MS 1000 /* so long those who waited are taken to be still there */
#define CONNECT_AGAIN_MS 10000
#define FAILED_MS 60000 /* Galera refuses such locks for ever; an administrator has ended a query */
#define WAIT_LATE_MS 5000 /* a connection that has not answered so long after its time is dead */
#define CONNECTION_UNUSED_MS 10000
#define UPKEEP_MS 1000

/* ---- helpers ------------------------------------------------------------------------------- */

/* A handle of this client wants it, and none owns it. */
static bool is_wanted(struct sql *s, const char *mutex)
{
    return sql_poller_waits(s, mutex) && !sql_poller_owns(s, mutex);
}

static struct queue_waiter *waiter_of(struct sql *s, const char *mutex)
{
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++) {
        struct queue_waiter *w = &s->queue.waiter[i];
        if (w->state != QUEUE_OFFLINE && strcmp(w->mutex, mutex) == 0)
            return w;
    }
    return NULL;
}

static void enter(struct queue_waiter *w, enum queue_state state)
{
    w->state = state;
    w->since = simba_now();
}

/* ---- a waiter ------------------------------------------------------------------------------ */

static void ask(struct queue_waiter *w, enum queue_state state, int op)
{
    enter(w, state);
    if (!queue_connection_ask(w, op))
        queue_lost(w);
}

static void begin_wait(struct queue_waiter *w)
{
    ask(w, QUEUE_WAITING, SQL_QUEUE_WAIT);
}

static void give_lock_back(struct queue_waiter *w)
{
    ask(w, QUEUE_ENDING, SQL_QUEUE_END);
}

/* Whoever was held back asks now. */
static void let_ask(struct queue_waiter *w)
{
    struct sql *s = w->store;
    if (w->has_held_back && !sql_poller_owns(s, w->mutex))
        s->host->hint(s->host, w->mutex);
    w->has_held_back = false;
}

static void forget_waiter(struct queue_waiter *w)
{
    let_ask(w);
    queue_connection_close(w);
    enum queue_state state = w->state == QUEUE_CONNECTING ? QUEUE_CONNECTING : QUEUE_OFFLINE;
    *w = (struct queue_waiter){.store = w->store, .state = state};
}

void queue_connected(struct queue_waiter *w)
{
    enter(w, QUEUE_IDLE);
    if (w->mutex[0] == '\0')
        forget_waiter(w);
    else
        ask(w, QUEUE_WAITING, SQL_QUEUE_ENTER);
}

void queue_lost(struct queue_waiter *w)
{
    struct sql *s = w->store;
    w->state = QUEUE_OFFLINE;
    forget_waiter(w);
    s->queue.retry_at = simba_now() + CONNECT_AGAIN_MS;
}

/* One that has nothing to do, for this mutex; NULL: none. */
static struct queue_waiter *take_waiter(struct sql *s, const char *mutex)
{
    struct queue_waiter *found = NULL;
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++) {
        struct queue_waiter *w = &s->queue.waiter[i];
        bool is_idle = w->state == QUEUE_IDLE && !w->is_contested;
        if (is_idle || (w->state == QUEUE_OFFLINE && found == NULL))
            found = w;
        if (is_idle)
            break;
    }
    if (found == NULL || sql_queue_is_off(s))
        return NULL;
    if (found->state == QUEUE_OFFLINE &&
        (simba_now() < s->queue.retry_at || !queue_connection_begin(found)))
        return NULL;
    found->owner[0] = '\0';
    found->again_at = 0;
    memcpy(found->mutex, mutex, strlen(mutex) + 1);
    if (found->state == QUEUE_OFFLINE)
        enter(found, QUEUE_CONNECTING);
    queue_set_timer(s, UPKEEP_MS);
    return found;
}

static void got_lock(struct queue_waiter *w)
{
    struct sql *s = w->store;
    enter(w, QUEUE_OURS);
    w->served_count = 0;
    w->asks = w->holds = 0;
    w->expects = w->is_leaving = w->is_asked = w->is_refused = w->has_held_back = false;
    w->is_owned = sql_poller_owns(s, w->mutex);
    if (w->is_owned)
        return;
    if (!sql_poller_waits(s, w->mutex)) {
        give_lock_back(w);
        return;
    }
    s->host->hint(s->host, w->mutex);
    queue_set_timer(s, QUEUE_UNUSED_MS);
}

void queue_answered(struct queue_waiter *w, int op, const struct sql_item *item)
{
    struct sql *s = w->store;
    bool waits = is_wanted(s, w->mutex);
    if (op == SQL_QUEUE_END) {
        w->is_contested = item->left_ms == 0;
        enter(w, QUEUE_IDLE);
        if (w->is_contested && w->expects && waits)
            begin_wait(w);
        else
            let_ask(w);
    } else if (item->token > 1) {
        queue_lost(w); /* the server has no room for connections that only wait */
    } else if (item->token == 1) {
        got_lock(w);
    } else if (waits) {
        w->is_contested = true;
        begin_wait(w);
    } else {
        enter(w, QUEUE_IDLE);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool was_served(const struct queue_waiter *w, uint32_t id)
{
    for (size_t i = 0; i < w->served_count; i++) {
        if (w->served[i] == id)
            return true;
    }
    return false;
}

/* Whether others come first. */
static bool must_wait(struct queue_waiter *w, const struct simba_request *q)
{
    switch (w->state) {
    case QUEUE_IDLE:
        if (!w->is_contested || w->again_at != 0 || simba_now() - w->since > CONTESTED_MS)
            return false;
        begin_wait(w);
        return true;
    case QUEUE_WAITING:
        return w->is_contested && simba_now() - w->since <= HOLD_BACK_MS;
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
            give_lock_back(w);
        return true;
    case QUEUE_ENDING:
        w->expects = true;
        return w->is_contested && simba_now() - w->since <= HOLD_BACK_MS;
    default:
        return false;
    }
}

/* With the owner as we saw it last. A request whose outcome is unknown must be asked about: after
 * a lost connection all are, for as long as they may take to come again. */
static bool hold_back(struct sql *s, struct simba_request *q)
{
    int64_t now = simba_now();
    bool is_calm =
        s->connection != NULL && (s->reconnections == 1 || now - s->connection->since > q->ttl_ms);
    struct queue_waiter *w = is_calm ? waiter_of(s, q->mutex) : NULL;
    if (w != NULL && q->op == SIMBA_RELEASE)
        w->is_leaving = w->is_owned;
    if (w == NULL || q->op != SIMBA_CONTEND || !must_wait(w, q))
        return false;
    struct simba_answer a = {.left_ms = HOLD_BACK_MS, .age_ms = -1};
    if (w->owner[0] != '\0' && w->until > now && strcmp(w->owner, q->id) != 0) {
        a.id = w->owner;
        a.token = w->token;
        a.left_ms = w->until - now;
    }
    w->has_held_back = true;
    queue_set_timer(s, HOLD_BACK_MS);
    sql_poller_refused(s, q->mutex);
    s->host->answer(s->host, q, &a);
    return true;
}

struct simba_request *sql_queue_hold_back(struct sql *s, struct simba_request *batch)
{
    struct simba_request *rest = NULL, **last = &rest;
    if (!s->driver->has_queue)
        return batch;
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        if (hold_back(s, batch))
            continue;
        *last = batch;
        last = &batch->next;
    }
    *last = NULL;
    return rest;
}

/* Not from those who wait: the lock that they wait for goes with a release. */
bool sql_queue_may_pass(struct sql *s, const char *mutex)
{
    const struct queue_waiter *w = waiter_of(s, mutex);
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
    if (!s->driver->has_queue || sql_queue_is_off(s))
        return;
    struct queue_waiter *w = waiter_of(s, item->mutex);
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

/* With its connection the owner has lost the queue lock, but not the mutex. */
void sql_queue_renewed(struct sql *s, const char *mutex)
{
    if (!s->driver->has_queue || sql_queue_is_off(s))
        return;
    struct queue_waiter *w = waiter_of(s, mutex);
    if (w == NULL || w->state != QUEUE_OURS)
        queue_owned_granted(s, mutex);
}

void sql_queue_ended(struct sql *s, const char *mutex)
{
    if (!s->driver->has_queue)
        return;
    struct queue_waiter *w = waiter_of(s, mutex);
    queue_owned_ended(s, mutex);
    if (w == NULL || w->state != QUEUE_OURS)
        return;
    w->is_owned = w->is_leaving = w->is_asked = w->is_refused = false;
    w->owner[0] = '\0';
    w->since = simba_now();
    if (!w->expects || w->served_count == QUEUE_SERVED_MAX)
        give_lock_back(w);
    else
        queue_set_timer(s, QUEUE_UNUSED_MS);
}

void sql_queue_refused(struct sql *s, const struct sql_item *item)
{
    if (!s->driver->has_queue)
        return;
    struct queue_waiter *w = waiter_of(s, item->mutex);
    if (!sql_poller_owns(s, item->mutex))
        queue_owned_ended(s, item->mutex);
    if (w == NULL && s->poller.poll_ms == 0 && is_wanted(s, item->mutex))
        w = take_waiter(s, item->mutex); /* no poll will say that it takes longer */
    if (w == NULL)
        return;
    note_owner(w, item);
    w->is_owned = w->is_owned && sql_poller_owns(s, item->mutex);
    w->is_asked = false;
    w->is_refused = true;
    if (w->state == QUEUE_IDLE && w->is_contested && w->again_at == 0)
        begin_wait(w);
}

void sql_queue_saw_held(struct sql *s, const struct sql_item *item)
{
    if (!s->driver->has_queue || sql_queue_is_off(s) || !is_wanted(s, item->mutex))
        return;
    struct queue_waiter *w = waiter_of(s, item->mutex);
    if (w == NULL)
        w = take_waiter(s, item->mutex);
    if (w == NULL)
        return;
    note_owner(w, item);
    if (w->state == QUEUE_IDLE && w->again_at == 0)
        begin_wait(w);
}

void sql_queue_left(struct sql *s, const char *mutex)
{
    struct queue_waiter *w = s->driver->has_queue ? waiter_of(s, mutex) : NULL;
    if (s->driver->has_queue)
        queue_owned_ended(s, mutex);
    if (w != NULL && w->state == QUEUE_OURS)
        give_lock_back(w);
}

void queue_contested(struct sql *s, const char *mutex)
{
    struct queue_waiter *w = waiter_of(s, mutex);
    if (w == NULL)
        w = take_waiter(s, mutex);
    if (w != NULL)
        w->is_contested = true;
}

/* ---- upkeep -------------------------------------------------------------------------------- */

/* It has the queue lock and does not own the mutex. Returns in how many ms to look again. */
static int64_t keep_unowned(struct queue_waiter *w, int64_t now)
{
    struct sql *s = w->store;
    int64_t unused = now - w->since, ask = (int64_t)QUEUE_ASK_MS << w->asks;
    bool has_asked = w->is_asked || w->is_refused;
    if (w->is_refused && unused >= ask && unused < QUEUE_REFUSED_MS) {
        w->asks++;
        s->host->hint(s->host, w->mutex);
        return ask;
    }
    if (unused < (has_asked ? QUEUE_REFUSED_MS : QUEUE_UNUSED_MS))
        return has_asked ? QUEUE_ASK_MS : QUEUE_UNUSED_MS - unused;
    w->expects = false;
    w->again_at = has_asked ? now + QUEUE_AGAIN_MS : 0;
    give_lock_back(w);
    return QUEUE_AGAIN_MS;
}

/* It has not, and is not under way to it. */
static int64_t keep_idle(struct queue_waiter *w, int64_t now)
{
    if (now < w->again_at)
        return w->again_at - now;
    if (w->again_at != 0 && is_wanted(w->store, w->mutex))
        begin_wait(w);
    else if (now - w->since >= CONNECTION_UNUSED_MS)
        forget_waiter(w);
    w->again_at = 0;
    return UPKEEP_MS;
}

static int64_t keep_waiter(struct queue_waiter *w, int64_t now)
{
    int64_t unused = now - w->since;
    if (w->is_owned && !sql_poller_owns(w->store, w->mutex))
        w->is_owned = false; /* its lease has run out */
    bool is_dead = w->state == QUEUE_ENDING ? unused > w->store->host->command_timeout_ms
                                            : w->state == QUEUE_WAITING &&
                                                  unused > SQL_QUEUE_WAIT_S * 1000 + WAIT_LATE_MS;
    if (is_dead)
        queue_lost(w);
    else if (w->state == QUEUE_OURS && !w->is_owned)
        return keep_unowned(w, now);
    else if (w->state == QUEUE_IDLE)
        return keep_idle(w, now);
    else if (w->state == QUEUE_WAITING && w->has_held_back && unused <= HOLD_BACK_MS)
        return HOLD_BACK_MS + 1 - unused;
    else if (w->state == QUEUE_WAITING)
        let_ask(w); /* the queue lock does not come: the row is asked */
    return w->state == QUEUE_OFFLINE ? INT64_MAX : UPKEEP_MS;
}

static void on_timer(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    int64_t now = simba_now(), next = INT64_MAX, in;
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++) {
        in = keep_waiter(&s->queue.waiter[i], now);
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
        forget_waiter(&s->queue.waiter[i]);
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
