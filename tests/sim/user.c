/* user.c: what users do with their handles, and what their callbacks do. In calm times everybody
 * wants to lead and nobody is slow. */
#include "core/planted.h"
#include "world.h"

static void begin_read(struct world *w, struct node *n)
{
    if (n->reading)
        return;
    w->tally->reads++;
    n->read_clock = world_local(w, n);
    n->read_truth = node_owns(w, n);
    if (!view_begin(&n->view, &n->reader) && !PLANTED(CLOCK_FIRST))
        return;
    n->reading = true;
    int64_t delay = world_fault(w, FAULT_PREEMPT, n) ? world_between(w, 0, 2 * w->period.lease)
                                                     : world_between(w, 0, 1000);
    world_post(w, w->now + delay, EVENT_READ_CLOCK, n, NULL);
}

static void act_contender(struct world *w, struct node *n)
{
    if (n->machine.status == SIMBA_INITIAL) {
        world_trace(w, "%u   start", n->index);
        node_step(w, n, (struct handle_event){.kind = HANDLE_START, .at = world_local(w, n)});
    } else if (n->machine.status != SIMBA_STOPPING && world_fault(w, FAULT_STOP, n)) {
        bool close = world_chance(w, 2000);
        world_trace(w, "%u   %s", n->index, close ? "close" : "stop");
        node_step(w, n, (struct handle_event){.kind = close ? HANDLE_CLOSE : HANDLE_STOP});
    }
}

static void act_locker(struct world *w, struct node *n)
{
    if (n->user_holds) {
        n->user_holds = false;
        n->user_leaves = true;
        world_trace(w, "%u   release", n->index);
        node_step(w, n, (struct handle_event){.kind = HANDLE_RELEASE});
    } else if (!n->user_waits && !n->user_leaves && !w->calm) {
        n->user_waits = true;
        struct handle_event e = {.kind = HANDLE_ACQUIRE, .at = NEVER};
        e.once = world_chance(w, 2000);
        if (!e.once && world_chance(w, 8000))
            e.at = world_local(w, n) + world_between(w, 0, 2 * w->period.lease);
        world_trace(w, "%u   acquire%s", n->index, e.once ? " (try)" : "");
        node_step(w, n, e);
    } else if ((n->user_waits || w->calm) && world_fault(w, FAULT_STOP, n)) {
        world_trace(w, "%u   close", n->index);
        node_step(w, n, (struct handle_event){.kind = HANDLE_CLOSE});
    }
}

void user_act(struct world *w, struct node *n)
{
    if (!n->machine.closing) {
        begin_read(w, n);
        if (n->kind == HANDLE_LOCKER)
            act_locker(w, n);
        else
            act_contender(w, n);
    }
    int64_t most = world_chance(w, 5000) ? 50 * MS : w->period.lease;
    world_post(w, w->now + world_between(w, 0, most), EVENT_USER, n, NULL);
}

void user_verdict(struct world *w, struct node *n, int code)
{
    world_trace(w, "%u   verdict %d", n->index, code);
    if (n->user_waits) {
        n->user_waits = false;
        if (code == 0) {
            check_call_begins(w, n, CALL_ACQUIRED);
            n->user_holds = true;
        }
    } else {
        n->user_leaves = false;
    }
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static int64_t duration(struct world *w, struct node *n)
{
    if (world_fault(w, FAULT_SLOW_CALLBACK, n))
        return world_between(w, 0, w->period.lease);
    return world_between(w, 0, 5 * MS);
}

/* A callback may do anything with its own handle. */
static void reenter(struct world *w, struct node *n)
{
    if (n->kind != HANDLE_CONTENDER || n->machine.closing)
        return;
    if (n->machine.status == SIMBA_RUNNING || n->machine.status == SIMBA_STARTING) {
        bool close = world_chance(w, 3000);
        world_trace(w, "%u   %s in a callback", n->index, close ? "close" : "stop");
        node_step(w, n, (struct handle_event){.kind = close ? HANDLE_CLOSE : HANDLE_STOP});
    }
}

void user_dispatch(struct world *w, struct node *n)
{
    n->skipped = n->call == CALL_ACQUIRED && !PLANTED(STALE_CALLBACK) &&
                 !(node_owns(w, n) && n->view.token == n->call_token);
    if (n->skipped) {
        world_post(w, w->now, EVENT_RETURN, n, NULL);
        return;
    }
    check_call_begins(w, n, n->call);
    n->running = true;
    if (world_fault(w, FAULT_HANG_CALLBACK, n)) {
        n->hanging = true;
        int64_t most = world_chance(w, 5000) ? 4 * w->period.lease : 100000 * MS;
        world_post(w, w->now + world_between(w, 0, most), EVENT_RETURN, n, NULL);
    } else {
        world_post(w, w->now + duration(w, n), EVENT_RETURN, n, NULL);
    }
    if (world_fault(w, FAULT_REENTER, n))
        reenter(w, n);
}

void user_return(struct world *w, struct node *n)
{
    if (n->call == CALL_NONE || !(n->running || n->skipped))
        return; /* it was let go early when the faults ended */
    world_trace(w, "%u   %s %s", n->index,
                n->call == CALL_ACQUIRED   ? "on_acquired"
                : n->call == CALL_RELEASED ? "on_released"
                                           : "on_closed",
                n->skipped ? "is skipped" : "has returned");
    n->call = CALL_NONE;
    n->running = n->hanging = false;
    bool ran = !n->skipped;
    n->skipped = false;
    node_step(w, n, (struct handle_event){.kind = HANDLE_DONE, .ran = ran});
}
