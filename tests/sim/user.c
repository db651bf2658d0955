/* user.c: what users do with their handles, and what their callbacks do. In calm times everybody
 * wants to lead and nobody is slow. */
#include "world.h"

void user_soon(struct world *w, struct node *n, int64_t most)
{
    if (!w->scripted)
        world_post(w, w->now + world_between(w, 0, most), EVENT_USER, n, NULL);
}

void user_ask(struct world *w, struct node *n)
{
    if (n->reading)
        return;
    w->tally->reads++;
    n->read_clock = world_local(w, n);
    n->read_truth = node_owns(w, n);
    if (!view_begin(&n->view, &n->reader)) {
        node_answer(w, n, false);
        return;
    }
    n->reading = true;
    int64_t delay =
        world_between(w, 0, 1000) + world_fault_for(w, FAULT_PREEMPT, n, 2 * w->period.lease);
    world_post(w, w->now + delay, EVENT_READ_CLOCK, n, NULL);
}

/* A stop or a close counts at once, though the loop sees it only later; so does that a locker's
 * caller has gone. */
static void end(struct world *w, struct node *n, enum handle_event_kind note)
{
    view_stop(&n->view);
    n->note = note;
    world_post(w, w->now + world_between(w, 0, 2 * MS), EVENT_NOTE, n, NULL);
    struct view_reading r;
    if (view_begin(&n->view, &r))
        world_fail(w, "C4: %c is owner after its stop", NAME(n));
}

void user_take_note(struct world *w, struct node *n)
{
    struct handle_event e = {.kind = n->note, .at = n->note_pause, .token = n->note_token};
    n->note = HANDLE_EXPIRE;
    if (e.kind == HANDLE_EXPIRE)
        return;
    node_step(w, n, e);
    if (e.kind == HANDLE_RESIGN && n->machine.status == SIMBA_RUNNING)
        view_start(&n->view);
    if (e.kind != HANDLE_RESIGN)
        n->pause_until = 0; /* its user has other plans */
}

void user_resign(struct world *w, struct node *n, int64_t pause)
{
    n->note_pause = pause;
    n->note_token = n->view.token;
    n->pause_until = world_local(w, n) + pause;
    w->tally->resignations++;
    end(w, n, HANDLE_RESIGN);
}

/* True: it did. */
static bool resigns(struct world *w, struct node *n)
{
    if (n->machine.status != SIMBA_RUNNING || !node_owns(w, n) || !world_fault(w, FAULT_RESIGN, n))
        return false;
    int64_t pause = world_chance(w, 3000) ? 0 : world_between(w, 0, w->period.lease);
    world_trace(w, "%c   resign for %lld ms", NAME(n), (long long)(pause / MS));
    user_resign(w, n, pause);
    return true;
}

static void act_contender(struct world *w, struct node *n)
{
    if (n->machine.status == SIMBA_INITIAL) {
        world_trace(w, "%c   start", NAME(n));
        view_start(&n->view);
        node_step(w, n, (struct handle_event){.kind = HANDLE_START, .at = world_local(w, n)});
    } else if (resigns(w, n)) {
        return;
    } else if (n->machine.status != SIMBA_STOPPING && world_fault(w, FAULT_STOP, n)) {
        bool close = world_chance(w, 2000);
        world_trace(w, "%c   %s", NAME(n), close ? "close" : "stop");
        end(w, n, close ? HANDLE_CLOSE : HANDLE_STOP);
    }
}

void user_acquire(struct world *w, struct node *n, int64_t until, bool once)
{
    n->user_waits = true;
    view_start(&n->view);
    node_step(w, n, (struct handle_event){.kind = HANDLE_ACQUIRE, .at = until, .once = once});
}

void user_release(struct world *w, struct node *n)
{
    n->user_holds = false;
    n->user_leaves = true;
    node_step(w, n, (struct handle_event){.kind = HANDLE_RELEASE});
}

/* The caller waits on until the loop has seen it, and may be granted the lock before that. */
static void cancel(struct world *w, struct node *n)
{
    world_trace(w, "%c   cancel", NAME(n));
    n->note = HANDLE_CANCEL;
    world_post(w, w->now + world_between(w, 0, 2 * MS), EVENT_NOTE, n, NULL);
}

static void act_locker(struct world *w, struct node *n)
{
    if (n->user_holds) {
        world_trace(w, "%c   release", NAME(n));
        user_release(w, n);
    } else if (!n->user_waits && !n->user_leaves && !w->calm) {
        bool once = world_chance(w, 2000);
        int64_t until = NEVER;
        if (!once && world_chance(w, 8000))
            until = world_local(w, n) + world_between(w, 0, 2 * w->period.lease);
        world_trace(w, "%c   acquire%s", NAME(n), once ? " (try)" : "");
        user_acquire(w, n, until, once);
    } else if (n->user_waits && world_fault(w, FAULT_LEAVE, n)) {
        if (world_chance(w, 5000)) {
            cancel(w, n);
            return;
        }
        n->user_waits = false;
        end(w, n, HANDLE_ABANDON);
    } else if ((n->user_waits || w->calm) && world_fault(w, FAULT_STOP, n)) {
        world_trace(w, "%c   close", NAME(n));
        node_step(w, n, (struct handle_event){.kind = HANDLE_CLOSE});
    }
}

void user_act(struct world *w, struct node *n)
{
    if (!n->machine.closing && n->note == HANDLE_EXPIRE) {
        user_ask(w, n);
        if (n->kind == HANDLE_LOCKER)
            act_locker(w, n);
        else
            act_contender(w, n);
    }
    user_soon(w, n, world_chance(w, 5000) ? 50 * MS : w->period.lease);
}

void user_result(struct world *w, struct node *n, int code)
{
    world_trace(w, "%c   result %s", NAME(n), name_of_code(code));
    if (n->note == HANDLE_ABANDON)
        return; /* nobody hears it */
    if (n->user_waits) {
        n->user_waits = false;
        if (code == 0) {
            check_callback_begins(w, n, CALLBACK_ACQUIRED);
            n->user_holds = true;
        }
    } else {
        n->user_leaves = false;
    }
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static int64_t duration(struct world *w, struct node *n)
{
    return world_between(w, 0, 5 * MS) +
           world_fault_for(w, FAULT_SLOW_CALLBACK, n, w->period.lease);
}

/* A callback may do anything with its own handle. */
void user_reenter(struct world *w, struct node *n)
{
    if (n->kind != HANDLE_CONTENDER || n->machine.closing || n->note != HANDLE_EXPIRE ||
        resigns(w, n))
        return;
    if (n->machine.status == SIMBA_RUNNING || n->machine.status == SIMBA_STARTING) {
        bool close = world_chance(w, 3000);
        world_trace(w, "%c   %s in a callback", NAME(n), close ? "close" : "stop");
        end(w, n, close ? HANDLE_CLOSE : HANDLE_STOP);
    } else if (n->machine.status == SIMBA_INITIAL) {
        world_trace(w, "%c   start in a callback", NAME(n));
        view_start(&n->view);
        node_step(w, n, (struct handle_event){.kind = HANDLE_START, .at = world_local(w, n)});
    }
}

static void trace_callback(struct world *w, const struct node *n)
{
    if (n->callback == CALLBACK_RELEASED)
        world_trace(w, "%c   on_released: %s", NAME(n), name_of_reason(n->reason));
    else
        world_trace(w, "%c   %s", NAME(n), name_of_callback(n->callback));
}

void user_dispatch(struct world *w, struct node *n)
{
    n->skipped = n->callback == CALLBACK_ACQUIRED &&
                 !(node_owns(w, n) && n->view.token == n->callback_token);
    if (n->skipped) {
        world_post(w, w->now, EVENT_RETURN, n, NULL);
        return;
    }
    trace_callback(w, n);
    check_callback_begins(w, n, n->callback);
    n->running = true;
    n->callback_at = w->now;
    if (n->callback == CALLBACK_ACQUIRED)
        worker_begin(w, n);
    if (world_fault(w, FAULT_HANG_CALLBACK, n)) {
        n->hanging = true;
        int64_t most = world_chance(w, 5000) ? 4 * w->period.lease : 100000 * MS;
        world_post(w, w->now + world_between(w, 0, most), EVENT_RETURN, n, NULL);
    } else {
        world_post(w, w->now + duration(w, n), EVENT_RETURN, n, NULL);
    }
    if (world_fault(w, FAULT_REENTER, n))
        user_reenter(w, n);
}

void user_return(struct world *w, struct node *n)
{
    if (n->callback == CALLBACK_NONE || !(n->running || n->skipped))
        return; /* it was let go early when the faults ended */
    if (n->skipped)
        world_trace(w, "%c   %s is skipped", NAME(n), name_of_callback(n->callback));
    else if (w->now > n->callback_at)
        world_trace(w, "%c   %s returns", NAME(n), name_of_callback(n->callback));
    bool begins = n->callback == CALLBACK_ACQUIRED && !n->skipped;
    n->callback = CALLBACK_NONE;
    n->running = n->hanging = false;
    bool ran = !n->skipped;
    n->skipped = false;
    user_take_note(w, n); /* what was asked for before the callback ended comes before its end */
    node_step(w, n, (struct handle_event){.kind = HANDLE_DONE, .ran = ran});
    if (begins)
        ticker_begin(w, n, n->callback_token);
}
