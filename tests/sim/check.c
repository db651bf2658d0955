/* check.c: the promises of docs/guarantees.md, looked at after every event. */
#include <inttypes.h>

#include "world.h"

static bool is_rival(const struct world *w, const struct node *n, const struct node *other)
{
    return other < &w->node[w->nodes] && other != n && other->mutex == n->mutex && other->alive &&
           !other->forced && !n->forced;
}

/* C1: nobody else may be told that he owns it. C2: tokens rise from tenure to tenure. */
void check_published(struct world *w, struct node *n, uint64_t token, int64_t deadline)
{
    if (deadline == 0) {
        n->published = 0;
        return;
    }
    if (n->published != token) {
        n->forced = token <= w->forced[n->mutex]; /* the news of its grant came late */
        n->published = token;
        n->last_token = token;
        n->began_local = n->progress_at = world_local(w, n);
        n->lost = false;
        w->tenure_at[n->mutex] = w->now;
        n->began_at = w->now;
        w->tally->tenures++;
        if (token <= w->greatest[n->mutex] && !n->forced)
            world_fail(w, "C2: %c owns with token %" PRIu64 ", there was %" PRIu64 " before",
                       NAME(n), token, w->greatest[n->mutex]);
        if (token > w->greatest[n->mutex])
            w->greatest[n->mutex] = token;
    }
    if (!node_owns(w, n))
        return;
    for (struct node *other = w->node; other < &w->node[w->nodes]; other++) {
        if (is_rival(w, n, other) && node_owns(w, other))
            world_fail(w, "C1: %c and %c both own mutex %u", NAME(n), NAME(other), n->mutex);
    }
}

/* C4: nothing is given back while user code runs, or before at_least is over. */
/* C11: who has resigned or stalled leaves the mutex to others. */
void check_sent(struct world *w, struct node *n, const struct lease_request *request)
{
    bool callback = n->running && n->callback != CALLBACK_CLOSED && n->callback != CALLBACK_STOPPED;
    int64_t local = world_local(w, n);
    if (request->op == SIMBA_RELEASE && (callback || n->user_holds || n->warning_runs))
        world_fail(w, "C4: %c releases while its user code runs", NAME(n));
    if (request->op == SIMBA_RELEASE && request->token == n->last_token && !n->lost &&
        local < n->began_local + n->extra.at_least)
        world_fail(w, "at_least: %c releases %lld ms too early", NAME(n),
                   (long long)((n->began_local + n->extra.at_least - local) / MS));
    if (request->op == SIMBA_CONTEND && local < n->pause_until)
        world_fail(w, "resign: %c contends %lld ms before the end of its pause", NAME(n),
                   (long long)((n->pause_until - local) / MS));
}

/* on_stopped: not before it may be started again. */
void check_submitted(struct world *w, struct node *n, enum handle_callback callback)
{
    if (callback == CALLBACK_STOPPED && n->machine.status != SIMBA_INITIAL)
        world_fail(w, "on_stopped: %c is told, but it is %s", NAME(n),
                   status_name((enum simba_status)n->machine.status));
}

/* From a renewal on there is something new to warn of. */
void check_renewed(struct world *w, struct node *n)
{
    const struct lease *l = &n->machine.lease;
    if (l->state != LEASE_HOLDING || l->hold_until == n->renewed_until)
        return;
    n->renewed_until = l->hold_until;
    n->warned = false;
    n->was_short = l->hold_until - world_local(w, n) < 2 * w->period.attempt;
}

void check_warns(struct world *w, struct node *n)
{
    w->tally->warnings++;
    n->warned = true;
    if (n->warning)
        world_fail(w, "C3: two calls of on_endangered of %c at once", NAME(n));
}

void check_warning_begins(struct world *w, struct node *n)
{
    if (n->running && n->callback == CALLBACK_RELEASED)
        world_fail(w, "C3: on_endangered of %c begins beside on_released", NAME(n));
}

/* C4: a tenure that ended against the owner's will was over, for its user too, before the store
 * gave the mutex away; unless the process was asleep. */
void check_granted(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->node];
    for (struct node *other = w->node; other < &w->node[w->nodes]; other++) {
        if (!is_rival(w, n, other) || other->stopped_until >= w->now || other->lag_until >= w->now)
            continue;
        if (other->machine.lease.state == LEASE_HOLDING)
            world_fail(w, "C4: the store gives mutex %u to %c, but %c was not told of its end",
                       n->mutex, NAME(n), NAME(other));
    }
}

/* C12: a note is written by the tenure that is on, and its token never falls. */
void check_noted(struct world *w, const struct event *e, uint64_t last)
{
    uint64_t token = e->message.request.token, before = w->store.note[e->message.mutex];
    if (token != last)
        world_fail(w, "C12: %c writes a note with token %" PRIu64 ", and %" PRIu64 " has followed",
                   NAME(&w->node[e->node]), token, last);
    if (token < before)
        world_fail(w, "C12: the note of %" PRIu64 " is replaced by one of %" PRIu64, before, token);
}

/* C12: nobody is told of its tenure before its note is there, or an attempt has failed. */
void check_acquired_note(struct world *w, const struct node *n)
{
    uint64_t token = n->machine.lease.token;
    if (n->extra.has_note && n->noted != token && !n->extra.publish_failed)
        world_fail(w, "C12: %c is told of token %" PRIu64 " before its note is written", NAME(n),
                   token);
}

/* C3: callbacks alternate. C4: a drained tenure is exclusive to its end. */
void check_callback_begins(struct world *w, struct node *n, enum handle_callback callback)
{
    if (callback == CALLBACK_RELEASED && n->warning_runs)
        world_fail(w, "C3: on_released of %c begins beside on_endangered", NAME(n));
    if (n->running)
        world_fail(w, "C3: two callbacks of %c at once", NAME(n));
    if (n->kind == HANDLE_CONTENDER && callback == CALLBACK_ACQUIRED &&
        n->last_callback == CALLBACK_ACQUIRED)
        world_fail(w, "C3: %c is told twice that it acquired", NAME(n));
    if (n->kind == HANDLE_CONTENDER && callback == CALLBACK_RELEASED &&
        n->last_callback != CALLBACK_ACQUIRED)
        world_fail(w, "C3: %c is told of a release without an acquisition", NAME(n));
    if (callback == CALLBACK_STOPPED)
        return; /* it may have been started again, and own */
    if (callback != CALLBACK_CLOSED && node_owns(w, n) != (callback == CALLBACK_ACQUIRED))
        world_fail(w, "C4: is_owner of %c is %s when it is told of its %s", NAME(n),
                   callback == CALLBACK_ACQUIRED ? "false" : "true",
                   callback == CALLBACK_ACQUIRED ? "acquisition" : "release");
    if (callback == CALLBACK_RELEASED && atomic_load(&n->view.deadline) != 0)
        world_fail(w, "C4: %c is told of its release, and only its user's stop hides its deadline",
                   NAME(n));
    n->last_callback = callback;
    if (callback != CALLBACK_ACQUIRED)
        return;
    check_acquired_note(w, n);
    w->tally->handovers++;
    for (struct node *other = w->node; other < &w->node[w->nodes]; other++) {
        const struct lease *l = &other->machine.lease;
        if (is_rival(w, n, other) && (other->running || other->user_holds) &&
            l->state == LEASE_HOLDING && world_local(w, other) < l->hold_until)
            world_fail(w, "C4: %c begins while %c still works", NAME(n), NAME(other));
    }
}

/* C11: an owner that has reported no progress for too long is none, as soon as its loop can see it. */
static void check_progress(struct world *w, struct node *n)
{
    int64_t limit = n->extra.watchdog.limit;
    int64_t silent = world_local(w, n) - n->progress_at;
    if (limit > 0 && n->published != 0 && silent > limit + MS)
        world_fail(w, "progress: %c owns, silent for %lld of %lld ms", NAME(n),
                   (long long)(silent / MS), (long long)(limit / MS));
}

/* on_endangered comes before a tenure expires, unless its owner stood still. */
static void check_warned(struct world *w, struct node *n)
{
    bool halted = w->now - n->halted_at <= w->period.lease + w->period.lease / 20;
    if (n->machine.lease.reason == SIMBA_EXPIRED && n->tells_danger && !n->warned && !halted &&
        !n->was_short && !n->forced && !n->warning && n->published != 0)
        world_fail(w, "on_endangered: %c lost its tenure without it", NAME(n));
}

/* C6: a tenure ends by its deadline only if exchanges with the store were disturbed until shortly
 * before: one attempt and one pause. */
void check_lost(struct world *w, struct node *n)
{
    const struct period *p = &w->period;
    n->lost = true;
    check_warned(w, n);
    if (n->machine.lease.reason == SIMBA_STALLED) {
        w->tally->stalls++;
        n->pause_until = world_local(w, n) + p->lease;
    }
    int64_t needed = p->attempt + p->pause_max + 4 * w->mix.latency_ms * MS;
    int64_t since = n->trouble_until > n->began_at ? n->trouble_until : n->began_at;
    if (n->machine.lease.reason == SIMBA_EXPIRED && !n->forced &&
        w->now - since > needed + needed / 20 + 2 * MS)
        world_fail(w, "C6: %c lost its tenure, undisturbed for %lld ms", NAME(n),
                   (long long)((w->now - since) / MS));
}

/* C8: what nobody wants any more is not kept. */
static bool is_kept(const struct node *n)
{
    const struct lease *l = &n->machine.lease;
    bool wanted = n->user_waits || n->user_holds || n->note != HANDLE_EXPIRE;
    return n->kind == HANDLE_LOCKER && !wanted && l->state == LEASE_HOLDING && l->wanted;
}

/* C9: every machine is idle, waits for its user, or knows when to wake. */
void check_machine(struct world *w, struct node *n)
{
    const struct handle *h = &n->machine;
    bool user = h->callback != CALLBACK_NONE || h->acquired_ran || h->held || handle_warns(h);
    check_progress(w, n);
    if (handle_next_wake(h) == NEVER && !handle_is_idle(h) && !user)
        world_fail(w, "%c sleeps for ever in state %s", NAME(n),
                   lease_state_name((enum lease_state)h->lease.state));
    if (is_kept(n))
        world_fail(w, "C8: %c keeps what its caller does not want any more", NAME(n));
    if (h->lease.state == LEASE_HOLDING && handle_next_wake(h) > h->lease.hold_until)
        world_fail(w, "C5: %c would sleep beyond its deadline", NAME(n));
}

/* C5: a "yes" was true at the instant of its clock. */
void check_read(struct world *w, struct node *n, bool yes)
{
    if (yes && !n->read_truth && !n->forced)
        world_fail(w, "C5: is_owner of %c said yes, but it did not own then", NAME(n));
}

static bool wants(const struct node *n)
{
    return n->alive && n->kind == HANDLE_CONTENDER && n->machine.status == SIMBA_RUNNING &&
           !n->machine.closing && n->callback == CALLBACK_NONE && !n->warning &&
           n->machine.resigned == RESIGNED_NOT;
}

bool check_has_waiter(struct world *w, const struct node *owner)
{
    for (struct node *n = w->node; n < &w->node[w->nodes]; n++) {
        if (n != owner && n->mutex == owner->mutex && wants(n))
            return true;
    }
    return false;
}

/* C7: without faults, a mutex that somebody wants has an owner, or had one since. */
void check_live(struct world *w, unsigned mutex, int64_t since)
{
    const struct node *wanting = NULL;
    if (w->tenure_at[mutex] > since)
        return;
    for (struct node *n = w->node; n < &w->node[w->nodes]; n++) {
        if (n->mutex != mutex || !n->alive)
            continue;
        if (n->published != 0)
            return;
        if (wants(n))
            wanting = n;
    }
    if (wanting != NULL)
        world_fail(w, "C7: nobody owns mutex %u, though %c wants it", mutex, NAME(wanting));
}
