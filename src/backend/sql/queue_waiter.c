/* queue_waiter.c: a connection that waits for a queue lock: its states, and what time does to them.
 * What it is for: queue.h. */
#include <string.h>

#include "backend/sql/sql.h"

/* The owner has no queue lock: it learns from ours that somebody waits, and then can have it. */
#define QUEUE_REFUSED_MS 500
#define QUEUE_AGAIN_MS 700
#define QUEUE_ASK_MS 20  /* after being refused: first, then twice as long each time */
#define QUEUE_SLOW_MS 50 /* a handle wants it, and has not asked in time */
#define CONNECT_AGAIN_MS 10000
#define WAIT_LATE_MS 5000 /* a connection that has not answered so long after its time is dead */
#define CONNECTION_UNUSED_MS 10000
#define UPKEEP_MS 1000
#define ROOM_MS 2000 /* between questions whether there is still room */

/* ---- helpers ------------------------------------------------------------------------------- */

/* A handle of this client wants it, and none owns it. */
bool queue_waiter_is_wanted(struct sql *s, const char *mutex)
{
    return sql_poller_waits(s, mutex) && !sql_poller_owns(s, mutex);
}

struct queue_waiter *queue_waiter_of(struct sql *s, const char *mutex)
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

void queue_waiter_begin(struct queue_waiter *w)
{
    ask(w, QUEUE_WAITING, SQL_QUEUE_WAIT);
}

void queue_waiter_end(struct queue_waiter *w)
{
    ask(w, QUEUE_ENDING, SQL_QUEUE_END);
}

/* Whoever was held back asks now. */
void queue_waiter_let_ask(struct queue_waiter *w)
{
    struct sql *s = w->store;
    if (w->has_held_back && !sql_poller_owns(s, w->mutex))
        s->host->hint(s->host, w->mutex);
    w->has_held_back = false;
}

void queue_waiter_forget(struct queue_waiter *w)
{
    queue_waiter_let_ask(w);
    queue_connection_close(w);
    enum queue_state state = w->state == QUEUE_CONNECTING ? QUEUE_CONNECTING : QUEUE_OFFLINE;
    *w = (struct queue_waiter){.store = w->store, .state = state};
}

void queue_connected(struct queue_waiter *w)
{
    enter(w, QUEUE_IDLE);
    if (w->mutex[0] == '\0')
        queue_waiter_forget(w);
    else
        ask(w, QUEUE_WAITING, SQL_QUEUE_TRY);
}

void queue_lost(struct queue_waiter *w)
{
    struct sql *s = w->store;
    w->state = QUEUE_OFFLINE;
    queue_waiter_forget(w);
    s->queue.retry_at = simba_now() + CONNECT_AGAIN_MS;
}

struct queue_waiter *queue_waiter_take(struct sql *s, const char *mutex)
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
    if (found == NULL || sql_queue_is_off(s) ||
        (found->state == QUEUE_OFFLINE && simba_now() < s->queue.retry_at))
        return NULL;
    found->owner[0] = '\0';
    found->again_at = 0;
    memcpy(found->mutex, mutex, strlen(mutex) + 1);
    if (found->state == QUEUE_OFFLINE) {
        enter(found, QUEUE_ASKING);
        queue_owned_ask(s, SQL_QUEUE_ROOM, mutex);
    }
    queue_set_timer(s, UPKEEP_MS);
    return found;
}

/* For the one that has asked; where there is none, the others go, too. */
void queue_waiter_heard_room(struct sql *s, const char *mutex, bool has_room)
{
    struct queue_waiter *w = queue_waiter_of(s, mutex);
    if (has_room && w != NULL && w->state == QUEUE_ASKING && queue_connection_begin(w))
        enter(w, QUEUE_CONNECTING);
    else if (w != NULL && w->state == QUEUE_ASKING)
        queue_lost(w);
    if (has_room)
        return;
    s->queue.retry_at = simba_now() + CONNECT_AGAIN_MS;
    for (int i = 0; i < QUEUE_WAITERS_MAX; i++)
        queue_waiter_forget(&s->queue.waiter[i]);
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
        queue_waiter_end(w);
        return;
    }
    s->host->hint(s->host, w->mutex);
    queue_set_timer(s, QUEUE_UNUSED_MS);
}

void queue_answered(struct queue_waiter *w, int op, const struct sql_item *item)
{
    struct sql *s = w->store;
    bool waits = queue_waiter_is_wanted(s, w->mutex);
    if (op == SQL_QUEUE_END) {
        w->is_contested = item->left_ms == 0;
        enter(w, QUEUE_IDLE);
        if (w->is_contested && w->expects && waits)
            queue_waiter_begin(w);
        else
            queue_waiter_let_ask(w);
    } else if (item->token == 1) {
        got_lock(w);
    } else if (waits) {
        w->is_contested = true;
        queue_waiter_begin(w);
    } else {
        enter(w, QUEUE_IDLE);
    }
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
    w->again_at = has_asked                             ? now + QUEUE_AGAIN_MS
                  : queue_waiter_is_wanted(s, w->mutex) ? now + QUEUE_SLOW_MS
                                                        : 0;
    queue_waiter_end(w);
    return QUEUE_SLOW_MS;
}

/* It has not, and is not under way to it. */
static int64_t keep_idle(struct queue_waiter *w, int64_t now)
{
    if (now < w->again_at)
        return w->again_at - now;
    if (w->again_at != 0 && queue_waiter_is_wanted(w->store, w->mutex))
        queue_waiter_begin(w);
    else if (now - w->since >= CONNECTION_UNUSED_MS)
        queue_waiter_forget(w);
    w->again_at = 0;
    return UPKEEP_MS;
}

int64_t queue_waiter_keep(struct queue_waiter *w, int64_t now)
{
    struct sql *s = w->store;
    int64_t unused = now - w->since;
    if (w->connection != NULL && now >= s->queue.room_at) {
        s->queue.room_at = now + ROOM_MS;
        queue_owned_ask(s, SQL_QUEUE_ROOM, w->mutex);
    }
    if (w->is_owned && !sql_poller_owns(s, w->mutex))
        w->is_owned = false; /* its lease has run out */
    bool is_short = w->state == QUEUE_ENDING || w->state == QUEUE_ASKING;
    bool is_dead =
        is_short ? unused > s->host->command_timeout_ms
                 : w->state == QUEUE_WAITING && unused > SQL_QUEUE_WAIT_S * 1000 + WAIT_LATE_MS;
    if (is_dead)
        queue_lost(w);
    else if (w->state == QUEUE_OURS && !w->is_owned)
        return keep_unowned(w, now);
    else if (w->state == QUEUE_IDLE)
        return keep_idle(w, now);
    else if (w->state == QUEUE_WAITING && w->has_held_back && unused <= QUEUE_HOLD_BACK_MS)
        return QUEUE_HOLD_BACK_MS + 1 - unused;
    else if (w->state == QUEUE_WAITING)
        queue_waiter_let_ask(w); /* the queue lock does not come: the row is asked */
    return w->state == QUEUE_OFFLINE ? INT64_MAX : UPKEEP_MS;
}
