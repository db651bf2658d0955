/* worker.c: what an owner's work does beside callbacks: it reports progress, stalls, and goes on
 * after its tenure; and on_endangered, which may run at the same time as another callback. */
#include "world.h"

/* ---- reports of progress ------------------------------------------------------------------- */

static void next_report(struct world *w, struct node *n, uint64_t token)
{
    struct message m = {.token = token};
    int64_t pause = n->extra.watchdog.limit / 3;
    world_post(w, w->now + pause - world_between(w, 0, pause / 2), EVENT_REPORT, n, &m);
}

void worker_begin(struct world *w, struct node *n)
{
    if (n->extra.watchdog.limit > 0)
        next_report(w, n, n->callback_token);
}

/* As simba_contender_progress does: who owns that very tenure reads the clock, and then stores. */
void worker_report(struct world *w, struct node *n, uint64_t token)
{
    struct view_reading r;
    if (w->now < n->silent_until) { /* it is stuck, and reports nothing */
        next_report(w, n, token);
        return;
    }
    int64_t local = world_local(w, n);
    bool owns = view_begin(&n->view, &r) && view_is_of(&r, token) && local < r.deadline;
    if (!owns && !world_fault(w, FAULT_OLD_WORKER, n))
        return; /* it hears that it is not owner any more, and ends */
    if (owns && world_fault(w, FAULT_STALL, n))
        n->silent_until = w->now + world_between(w, 0, 4 * w->period.lease);
    if (owns) {
        struct message m = {.token = token, .left = local};
        int64_t delay = world_fault_for(w, FAULT_PREEMPT, n, 2 * w->period.lease);
        world_post(w, w->now + delay, EVENT_REPORTED, n, &m);
    }
    next_report(w, n, token);
}

void worker_reported(struct node *n, uint64_t token, int64_t local)
{
    watchdog_report(&n->reported_at, local);
    if (token == n->published && local > n->progress_at)
        n->progress_at = local;
}

/* ---- on_endangered ------------------------------------------------------------------------- */

void worker_warn(struct world *w, struct node *n)
{
    check_warns(w, n);
    n->warning = true;
    n->warning_runs = false;
    n->warning_token = n->machine.lease.token;
    int64_t delay = world_between(w, 0, 2 * MS) +
                    world_fault_for(w, FAULT_LATE_CALLBACK, n, 2 * w->period.lease);
    world_post(w, w->now + delay, EVENT_WARN, n, NULL);
}

void worker_dispatch_warning(struct world *w, struct node *n)
{
    if (!n->warning || n->warning_runs)
        return;
    n->warning_runs = node_owns(w, n) && n->view.token == n->warning_token;
    if (!n->warning_runs) {
        world_post(w, w->now, EVENT_WARNED, n, NULL);
        return;
    }
    world_trace(w, "%c   on_endangered", NAME(n));
    check_warning_begins(w, n);
    int64_t takes =
        world_between(w, 0, 5 * MS) + world_fault_for(w, FAULT_SLOW_CALLBACK, n, w->period.lease);
    if (world_fault(w, FAULT_HANG_CALLBACK, n))
        takes = world_between(w, 0, 4 * w->period.lease);
    world_post(w, w->now + takes, EVENT_WARNED, n, NULL);
    if (world_fault(w, FAULT_REENTER, n))
        user_reenter(w, n);
}

void worker_warned(struct world *w, struct node *n)
{
    if (!n->warning)
        return; /* it was let go early when the faults ended */
    n->warning = n->warning_runs = false;
    user_take_note(w, n);
    node_step(w, n, (struct handle_event){.kind = HANDLE_WARNED});
}
