/* node.c: one client process. What src/runtime does with a machine, in simulated time: it feeds
 * events, publishes, sends, submits callbacks, sets the alarm. */
#include <stdio.h>
#include <string.h>

#include "world.h"

#define LOWEST (-UINT64_C(0x9e3779b97f4a7c15)) /* the state of base/rng.h whose next draw is 0 */

bool node_owns(const struct world *w, const struct node *n)
{
    struct view_reading r;
    return n->alive && view_begin(&n->view, &r) && world_local(w, n) < r.deadline;
}

static void set_alarm(struct world *w, struct node *n)
{
    int64_t local = handle_next_wake(&n->machine);
    int64_t at = local == NEVER ? NEVER : world_true(w, n, local);
    if (at == n->tick_at)
        return;
    n->tick_at = at;
    if (at != NEVER)
        world_post(w, at, EVENT_TICK, n, NULL);
}

static void submit(struct world *w, struct node *n, const struct handle_update *up)
{
    check_submitted(w, n, up->callback);
    n->callback = up->callback;
    n->running = false;
    n->reason = up->reason;
    n->callback_token = n->machine.lease.token;
    int64_t delay = world_between(w, 0, 2 * MS) +
                    world_fault_for(w, FAULT_LATE_CALLBACK, n, 2 * w->period.lease);
    world_post(w, w->now + delay, EVENT_DISPATCH, n, NULL);
}

static void trace_news(struct world *w, const struct node *n, const struct handle_update *up)
{
    const struct lease *l = &n->machine.lease;
    if (up->news == LEASE_BEGAN)
        world_trace(w, "%c   owns with token %llu", NAME(n), (unsigned long long)l->token);
    if (up->news == LEASE_LOST)
        world_trace(w, "%c   lost it: %s", NAME(n), name_of_reason((enum simba_reason)l->reason));
    if (up->news == LEASE_FAILED && up->failure == SIMBA_ETIMEOUT)
        world_trace(w, "%c   waits no longer for an answer", NAME(n));
}

void node_step(struct world *w, struct node *n, struct handle_event event)
{
    struct handle_update up;
    event.now = world_local(w, n);
    event.reported_at = atomic_load(&n->reported_at);
    if (w->scripted)
        n->machine.lease.random = LOWEST;
    handle_step(&n->machine, &event, &up);
    check_renewed(w, n);

    int64_t deadline = lease_deadline(&n->machine.lease);
    view_publish(&n->view, deadline, n->machine.lease.token);
    if (w->tracing)
        trace_news(w, n, &up);
    if (up.news == LEASE_LOST) {
        w->tally->losses++;
        check_lost(w, n);
    }
    check_published(w, n, n->machine.lease.token, deadline);
    if (up.send) {
        check_sent(w, n, &up.request);
        network_send(w, n, &up.request);
    }
    if (up.has_result)
        user_result(w, n, up.code);
    if (up.endangered)
        worker_warn(w, n);
    if (up.callback != CALLBACK_NONE)
        submit(w, n, &up);
    set_alarm(w, n);
    check_machine(w, n);
    world_note(w, (uint64_t)deadline, (uint64_t)up.callback << 8 | (uint64_t)up.send);
}

/* A new process, or a new handle in it. */
static void make_machine(struct world *w, struct node *n)
{
    if (n->chosen != NULL)
        snprintf(n->id, sizeof n->id, "%s", n->chosen);
    else
        snprintf(n->id, sizeof n->id, "%c%u", NAME(n), n->life + 1);
    n->extra = (struct handle_extra){
        .watchdog.limit = n->progress,
        .at_least = n->at_least,
        .tells_danger = n->tells_danger,
        .tells_stopped = n->tells_stopped,
        .has_note = n->has_note,
    };
    handle_init(&n->machine, (enum handle_kind)n->kind, n->drain, &w->period, n->id,
                n->chosen == NULL, w->store.sessions, rng_next(&w->random),
                n->has_extra ? &n->extra : NULL);
    view_publish(&n->view, 0, 0);
    atomic_store(&n->reported_at, 0);
    n->warning = n->warning_runs = n->lost = false;
    n->silent_until = n->pause_until = 0;
    n->last_token = 0;
    n->tick_at = NEVER;
    n->callback = CALLBACK_NONE;
    n->last_callback = CALLBACK_NONE;
    n->running = n->hanging = n->reading = false;
    n->user_waits = n->user_holds = n->user_leaves = false;
    n->note = HANDLE_EXPIRE;
    view_start(&n->view);
    n->published = 0;
    n->forced = false;
    n->node_number = 0;
    n->trouble_until = w->now;
    ticker_reset(n);
}

void node_boot(struct world *w, struct node *n)
{
    n->alive = true;
    n->frozen = false;
    n->stopped_until = n->lag_until = 0;
    make_machine(w, n);
    world_trace(w, "%c   is up as %s, a %s of mutex %u", NAME(n), n->id,
                n->kind == HANDLE_LOCKER ? "locker" : "contender", n->mutex);
    user_soon(w, n, 50 * MS);
}

/* The handle was destroyed; its process makes another. */
static void make_another(struct world *w, struct node *n)
{
    n->life++;
    make_machine(w, n);
    user_soon(w, n, 50 * MS);
}

void node_crash(struct world *w, struct node *n)
{
    world_trace(w, "%c   is dead", NAME(n));
    n->alive = false;
    n->life++;
    n->published = 0;
    if (!w->scripted)
        world_post(w, w->now + world_between(w, 0, 2 * w->period.lease), EVENT_REBOOT, n, NULL);
}

static void halt(struct node *n, int64_t until)
{
    if (until > n->halted_at)
        n->halted_at = until;
}

void node_stop_process(struct world *w, struct node *n, int64_t how_long, bool frozen)
{
    if (w->now + how_long <= n->stopped_until)
        return; /* it is already, for longer */
    world_trace(w, "%c   sleeps for %lld ms", NAME(n), (long long)(how_long / MS));
    n->stopped_until = w->now + how_long;
    halt(n, n->stopped_until);
    if (n->stopped_until > n->trouble_until)
        n->trouble_until = n->stopped_until;
    n->frozen = frozen;
    n->tick_at = n->stopped_until; /* the alarm goes off when it wakes */
    world_post(w, n->stopped_until, EVENT_TICK, n, NULL);
}

void node_lag(struct world *w, struct node *n, int64_t how_long)
{
    if (w->now + how_long > n->lag_until)
        n->lag_until = w->now + how_long;
    halt(n, n->lag_until);
    if (n->lag_until > n->trouble_until)
        n->trouble_until = n->lag_until;
}

void node_calm(struct world *w, struct node *n)
{
    n->stopped_until = n->lag_until = n->halted_at = w->now;
    n->silent_until = 0;
    if (n->alive && n->warning_runs)
        world_post(w, w->now, EVENT_WARNED, n, NULL);
    if (w->zookeeper != NULL)
        zookeeper_calm(w, n);
    if (n->alive && n->hanging)
        world_post(w, w->now, EVENT_RETURN, n, NULL);
    if (n->alive) {
        n->tick_at = w->now;
        world_post(w, w->now, EVENT_TICK, n, NULL);
    }
}

void node_answer(struct world *w, struct node *n, bool yes)
{
    n->reading = false;
    check_read(w, n, yes);
    if (w->scripted && yes)
        world_trace(w, "%c   is_owner: yes, token %llu", NAME(n),
                    (unsigned long long)n->reader.token);
    else if (w->scripted)
        world_trace(w, "%c   is_owner: no", NAME(n));
}

static void read_owner(struct world *w, struct node *n, const struct event *e)
{
    int64_t delay =
        world_between(w, 0, 1000) + world_fault_for(w, FAULT_PREEMPT, n, 2 * w->period.lease);
    if (e->kind == EVENT_READ_CLOCK) {
        n->read_clock = world_local(w, n);
        n->read_truth = node_owns(w, n);
        world_post(w, w->now + delay, EVENT_READ_END, n, NULL);
    } else if (!view_end(&n->view, &n->reader) && view_begin(&n->view, &n->reader)) {
        world_post(w, w->now + delay, EVENT_READ_CLOCK, n, NULL);
    } else {
        node_answer(w, n, n->reader.deadline != 0 && n->read_clock < n->reader.deadline);
    }
}

static void take_reply(struct world *w, struct node *n, const struct message *m)
{
    struct lease_reply reply = {
        .request = m->request,
        .code = m->code,
        .granted = m->granted,
        .owner = m->owner,
        .token = m->token,
        .left = m->left,
    };
    if (w->tracing)
        trace_reply(w, n, m);
    node_step(w, n, (struct handle_event){.kind = HANDLE_REPLY, .reply = &reply});
}

/* True if the process, or its loop, cannot take this event now; then it comes later or is lost. */
static bool is_put_off(struct world *w, struct node *n, const struct event *e)
{
    bool zookeeper =
        w->zookeeper != NULL; /* there replies and hints come from within the process */
    bool message =
        zookeeper ? e->kind == EVENT_AT_CLIENT : e->kind == EVENT_REPLY || e->kind == EVENT_HINT;
    bool loop = message || e->kind == EVENT_TICK || e->kind == EVENT_USER ||
                e->kind == EVENT_NOTE || e->kind == EVENT_RETURN || e->kind == EVENT_REPLY ||
                e->kind == EVENT_HINT || e->kind == EVENT_BEAT || e->kind == EVENT_WARNED;
    int64_t until = n->stopped_until;
    if (loop && n->lag_until > until)
        until = n->lag_until;
    if (until <= w->now)
        return false;
    if (message && n->frozen && n->stopped_until > w->now) {
        if (zookeeper)
            zookeeper_cut(w, n);
        return true;
    }
    if (e->kind == EVENT_TICK)
        n->tick_at = until;
    world_post(w, until, (enum event_kind)e->kind, n, &e->message);
    return true;
}

void node_event(struct world *w, struct node *n, const struct event *e)
{
    if (e->kind == EVENT_REBOOT) {
        if (!n->alive)
            node_boot(w, n);
        return;
    }
    if (!n->alive || (e->life != n->life && e->kind != EVENT_HINT))
        return;
    if (e->kind == EVENT_TICK && e->at != n->tick_at)
        return; /* set anew since */
    if (is_put_off(w, n, e))
        return;
    switch ((enum event_kind)e->kind) {
    case EVENT_REPLY:
        take_reply(w, n, &e->message);
        break;
    case EVENT_HINT:
        if (w->tracing && !handle_is_idle(&n->machine))
            world_trace(w, "%c < a push", NAME(n));
        node_step(w, n, (struct handle_event){.kind = HANDLE_HINT});
        break;
    case EVENT_TICK:
        n->tick_at = NEVER;
        node_step(w, n, (struct handle_event){.kind = HANDLE_EXPIRE});
        break;
    case EVENT_AT_CLIENT:
    case EVENT_BEAT:
        zookeeper_event(w, n, e);
        break;
    case EVENT_TICKER:
    case EVENT_NOTE_REPLY:
        ticker_event(w, n, e);
        break;
    case EVENT_DISPATCH:
        user_dispatch(w, n);
        break;
    case EVENT_RETURN:
        user_return(w, n);
        if (n->machine.closed && handle_is_idle(&n->machine))
            make_another(w, n);
        break;
    case EVENT_NOTE:
        user_take_note(w, n);
        break;
    case EVENT_USER:
        user_act(w, n);
        break;
    case EVENT_REPORT:
        worker_report(w, n, e->message.token);
        break;
    case EVENT_REPORTED:
        worker_reported(n, e->message.token, e->message.left);
        break;
    case EVENT_WARN:
        worker_dispatch_warning(w, n);
        break;
    case EVENT_WARNED:
        worker_warned(w, n);
        break;
    default:
        read_owner(w, n, e);
        break;
    }
}
