/* actor.c: executes what the machine of a handle decides. The only place where the machine is
 * stepped; always with the baton, each time with a fresh reading of the clock.
 *
 * After a step the order is fixed: first what is_owner() says, then who is told about it. */
#include "runtime/actor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "core/failure.h"
#include "runtime/callback.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/observer.h"
#include "runtime/report.h"
#include "runtime/scheduler.h"
#include "runtime/state.h"

/* ---- what a step brings about -------------------------------------------------------------- */

static bool others_wait(const struct actor *a)
{
    struct hash_node *n = hash_table_find(&a->client->actors, a->by_mutex.name);
    while (n != NULL && (n == &a->by_mutex || !actor_waits(actor_of(n))))
        n = hash_table_find_next(n);
    return n != NULL;
}

/* An observer that can be asked for the note. */
static bool observes_one(const struct actor *a)
{
    return a->machine.kind == HANDLE_OBSERVER && a->by_mutex.name[0] != '\0' && a->parent == NULL;
}

static void send_request(struct actor *a, const struct lease_request *sent)
{
    struct simba_client *s = a->client;
    struct request *r = request_new(s);
    if (sent->op == SIMBA_CONTEND || sent->op == SIMBA_RENEW)
        metrics_count(a, sent->op == SIMBA_RENEW ? COUNT_RENEWALS : COUNT_ATTEMPTS);
    if (r == NULL) /* as a request that is never answered: the machine tries again */
        return;
    r->actor = a;
    r->sent = *sent;
    r->to_store.op = a->by_mutex.name[0] != '\0' ? sent->op : SIMBA_LIST;
    r->to_store.mutex = a->by_mutex.name;
    r->to_store.id = actor_id(a);
    r->to_store.token = sent->token;
    if (sent->op == SIMBA_PUBLISH) {
        r->to_store.note = actor_extra(a)->note;
        r->to_store.serial = SERIAL_OF_OPTION;
    }
    r->to_store.with_note = observes_one(a);
    r->to_store.others = sent->op == SIMBA_CONTEND && others_wait(a);
    r->to_store.ttl_ms = actor_period(a)->ttl / NS_PER_MS;
    r->to_store.transition_ms = actor_period(a)->transition / NS_PER_MS;
    a->requests++;
    request_send(r);
}

/* A caller that waits hears of it at the end of the turn, so that it finds the next turn free. */
static void give_result(struct actor *a, int code)
{
    driver_lock(a->client);
    struct call *call = a->abandoned ? NULL : a->call;
    if (!a->abandoned) {
        a->call = NULL;
        a->phase = code == 0 && a->machine.held ? LOCKER_HELD : LOCKER_FREE;
    }
    if (call != NULL)
        call->code = code;
    if (call != NULL && code < 0)
        report_say_why(a, code, call->text, sizeof call->text);
    bool is_async = call != NULL && call->on_done != NULL;
    if (is_async)
        callback_add_result_locked(a, call);
    driver_unlock(a->client);
    if (is_async)
        callback_submit(a);
    if (call == NULL || is_async) /* NULL: it has gone */
        return;
    call->next = a->client->turn.results;
    a->client->turn.results = call;
}

/* Only one of those who wait is told of a push. If that one leaves without an answer, the next
 * must be told; if it is refused or wins, the store pushes again. */
static void keep_queue(struct actor *a, bool waited, const struct handle_update *up)
{
    struct simba_client *s = a->client;
    bool waits = actor_waits(a);
    if (waits && !waited) {
        a->since = ++s->waits;
        a->hinted_at = 0;
    }
    if (up->news == LEASE_BEGAN || (up->news == LEASE_ANSWERED && !a->machine.lease.in_flight))
        a->hinted_at = 0;
    if (waited && !waits && a->hinted_at != 0) {
        a->hinted_at = 0;
        s->host.hint(&s->host, a->by_mutex.name);
    }
}

/* What callers see, and what close counts. */
static void show(struct actor *a)
{
    struct simba_client *s = a->client;
    const struct handle *h = &a->machine;
    driver_lock(s);
    /* What a caller has asked for meanwhile is already visible and comes next. */
    if (atomic_load(&a->status) != h->status && (a->posts & (POST_START | POST_STOP)) == 0) {
        if (h->status == SIMBA_INITIAL && failure_is_ours(h->lease.code))
            a->start_failure = (int16_t)h->lease.code;
        atomic_store(&a->status, h->status);
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
    }
    bool quiet = h->closed && handle_is_idle(h) && a->waiters == 0;
    driver_unlock(s);
    if (quiet != a->quiet) {
        a->quiet = quiet;
        s->quiet += quiet ? 1 : (size_t)-1;
    }
}

static enum simba_interest interest_of_others(const struct actor *a)
{
    enum simba_interest most = SIMBA_NO_INTEREST;
    struct hash_node *n = hash_table_find(&a->client->actors, a->by_mutex.name);
    for (; n != NULL && most != SIMBA_OBSERVES; n = hash_table_find_next(n)) {
        const struct actor *other = actor_of(n);
        if (other != a && other->interest > most)
            most = (enum simba_interest)other->interest;
    }
    return most;
}

/* The store is told once per mutex, whatever the number of handles. */
static void watch(struct actor *a)
{
    struct simba_client *s = a->client;
    enum simba_interest before = (enum simba_interest)a->interest;
    enum simba_interest now = a->machine.lease.state == LEASE_IDLE ? SIMBA_NO_INTEREST
                              : a->machine.kind == HANDLE_OBSERVER ? SIMBA_OBSERVES
                                                                   : SIMBA_WAITS;
    if (now == before || s->backend->watch == NULL)
        return;
    const char *mutex = a->by_mutex.name;
    enum simba_interest others = interest_of_others(a);
    enum simba_interest was = others > before ? others : before, most = others > now ? others : now;
    if (was != most && interest_change(s, mutex, was, most) != 0)
        return; /* it waits longer, and asks for it again with its next step */
    a->interest = (uint8_t)now;
    if (was != most && !s->store_closing)
        s->backend->watch(s->store, mutex[0] != '\0' ? mutex : NULL, most);
}

/* No right to act hangs on it: is_owner() and every step look at the clock. */
static void set_timer(struct actor *a, int64_t now)
{
    timers_set_about(&a->client->timers, &a->timer, now, handle_next_wake(&a->machine));
}

/* simba_run_wait() waits for this. */
static void wake_work(struct actor *a)
{
    if (a->machine.kind != HANDLE_CONTENDER)
        return;
    driver_lock(a->client);
    futex_set(&a->changes, atomic_load(&a->changes) + 1);
    driver_unlock(a->client);
}

static uint32_t callbacks_of(const struct actor *a)
{
    return (uint32_t)(a->machine.callback != CALLBACK_NONE) + (uint32_t)handle_warns(&a->machine);
}

enum simba_reason actor_end_reason(struct actor *a, enum simba_reason reason)
{
    driver_lock(a->client);
    enum simba_reason failed_as = (enum simba_reason)a->failed_as;
    driver_unlock(a->client);
    return reason == SIMBA_RELEASED && failed_as != SIMBA_UNCHANGED ? failed_as : reason;
}

/* ---- a step -------------------------------------------------------------------------------- */

/* How the handle was before it. */
struct before {
    uint64_t token;
    uint32_t callbacks, kept;
    bool owned, waited, starting;
};

static struct before before_step(const struct actor *a)
{
    return (struct before){
        .token = a->machine.lease.token,
        .callbacks = callbacks_of(a),
        .kept = handle_keeps(&a->machine),
        .owned = lease_deadline(&a->machine.lease) != 0,
        .waited = actor_waits(a),
        .starting = a->machine.status == SIMBA_STARTING,
    };
}

/* What an event needs beside what it is about: the time, and progress after it, so that what is
 * reported up to then counts, however long that took. Returns how late we are with what was due. */
static int64_t complete_time(struct actor *a, struct handle_event *event)
{
    const struct actor_extra *x = actor_extra(a);
    int64_t due = handle_next_wake(&a->machine);
    event->now = clock_now();
    if (event->kind == HANDLE_START || event->kind == HANDLE_ACQUIRE) {
        a->since_at = event->now;
        trouble_begin(a);
    }
    if (x != NULL)
        event->reported_at = atomic_load(&x->reported_at);
    return due < event->now ? event->now - due : 0;
}

static void end_tenure(struct actor *a, int64_t now, uint64_t token, enum simba_reason reason)
{
    state_ended(a, reason);
    trace_tenure_end(a, now, reason, token);
    wake_work(a);
}

/* What is_owner() says, and the tenure that has ended or begun. */
static void publish_owner(struct actor *a, const struct before *before, enum lease_news news,
                          int64_t now)
{
    const struct lease *l = &a->machine.lease;
    int64_t deadline = lease_deadline(l);
    bool owns = deadline != 0;
    view_publish(&a->view, deadline, l->token);
    if (before->owned == owns)
        return;
    if (owns)
        trace_tenure(a, now);
    else
        end_tenure(a, now, before->token,
                   news == LEASE_LOST ? (enum simba_reason)l->reason
                                      : actor_end_reason(a, SIMBA_RELEASED));
    atomic_fetch_add(&a->client->metrics.owned, owns ? 1 : UINT64_MAX);
}

/* The trouble is kept before a result says it. */
static void take_news(struct actor *a, const struct handle_update *up, int64_t late)
{
    bool failed = up->news == LEASE_FAILED, refused = up->has_result && up->code == SIMBA_ESTORE;
    report_news(a, up, late);
    if (failed)
        metrics_count(a, COUNT_FAILURES);
    if ((failed && up->failure == SIMBA_ETIMEOUT) || refused)
        trouble_unanswered(a);
}

static void observe(struct actor *a, struct request *r, bool first);
static void hint_next(const struct actor *a);

/* Does what the machine has decided. In this order:
 *   what is_owner() says, before anybody is told of anything
 *   what the store said, and what has happened, to log and trace, before more can come of it
 *   the request, then when to look again: it has left when a caller or a callback goes on
 *   results and callbacks
 *   last what steps a machine again: this one, or another */
static void apply(struct actor *a, const struct before *before, const struct handle_update *up,
                  int64_t now, int64_t late, struct request *r)
{
    bool observes = a->machine.kind == HANDLE_OBSERVER;
    publish_owner(a, before, up->news, now);
    if (r != NULL && !observes && r->sent.op != SIMBA_PUBLISH)
        state_answered(a, r);
    take_news(a, up, late);
    if (up->unpublished != 0)
        report_unpublished(a, up->unpublished, r);
    if (up->published_late)
        report_published_late(a);
    keep_queue(a, before->waited, up);
    if (up->send)
        send_request(a, &up->request);
    set_timer(a, now);
    watch(a);
    show(a);
    if (up->has_result)
        give_result(a, up->code);
    if (up->endangered)
        callback_warn(a, now + up->left);
    if (up->callback != CALLBACK_NONE)
        callback_dispatch(a, up);
    if (r != NULL && observes && up->news == LEASE_ANSWERED)
        observe(a, r, before->starting);
    if (up->send && up->request.op == SIMBA_RELEASE && a->client->backend->hands_over)
        hint_next(a);
}

/* r: the answered request that the event is about; NULL: none. */
static void step(struct actor *a, struct handle_event *event, struct request *r)
{
    struct handle_update up;
    struct before before = before_step(a);
    int64_t late = complete_time(a, event);
    handle_step(&a->machine, event, &up);
    atomic_fetch_add(&a->client->callbacks, callbacks_of(a) - before.callbacks);
    if (actor_extra(a) != NULL)
        atomic_fetch_add(&a->client->kept, handle_keeps(&a->machine) - before.kept);
    apply(a, &before, &up, event->now, late, r);
}

/* Something to tell: what is found first, and every change. */
static void observe(struct actor *a, struct request *r, bool first)
{
    if (observes_one(a))
        observer_keep_note(a, r);
    if (a->by_mutex.name[0] == '\0') {
        observer_listed(a, r->found);
        r->found = NULL;
    } else if (state_answered(a, r) || first) {
        step(a, &(struct handle_event){.kind = HANDLE_CHANGED}, NULL);
    }
    if (first && actor_parent(a) != NULL)
        observer_go_on(actor_parent(a));
}

void actor_free(struct hash_node *node)
{
    struct actor *a = actor_of(node);
    state_free(a);
    if (a->machine.kind == HANDLE_OBSERVER)
        observer_free(a);
    if (a->machine.kind == HANDLE_LOCKER)
        thread_ref_drop(a->locked_by);
    metrics_forget(a);
    free(a->failure);
    free(a);
}

/* Frees the actor if its owner has given it up and nothing can come back to it. The last thing in
 * every entry point but hints, which end nothing. */
static void end_if_gone(struct actor *a)
{
    struct simba_client *s = a->client;
    show(a);
    if (!a->quiet || a->requests > 0)
        return;
    driver_lock(s);
    bool gone = a->closing && !a->in_inbox;
    if (gone)
        s->actors_count--;
    driver_unlock(s);
    if (!gone)
        return;
    s->quiet--;
    timers_set(&s->timers, &a->timer, NEVER);
    hash_table_remove(&s->actors, &a->by_mutex);
    actor_free(&a->by_mutex);
}

/* ---- events -------------------------------------------------------------------------------- */

/* The client closes. A lock that the closing thread holds itself, or one that has ended, ends with
 * the client; one that another thread works under is waited for. Asked only now, because a grant may
 * have come since the post was left. */
static void close_locked(struct actor *a, struct handle_event *event)
{
    struct simba_client *s = a->client;
    if (a->machine.kind != HANDLE_LOCKER || a->phase != LOCKER_HELD)
        return;
    bool is_closers = a->locked_by != NULL && a->locked_by == s->closer;
    if (is_closers || thread_ref_has_ended(a->locked_by)) {
        a->phase = LOCKER_FREE; /* a release that comes late is refused */
        event->kind = HANDLE_DESTROY;
    } else {
        snprintf(s->close_held, sizeof s->close_held, "%s", a->by_mutex.name);
    }
}

/* What the caller has left for it. False: it does not count any more. The caller of an acquire may
 * have gone meanwhile, and a cancel that came too late must not end the wait of the next call. */
static bool complete_event(struct actor *a, struct handle_event *event)
{
    bool counts = true;
    driver_lock(a->client);
    if (event->kind == HANDLE_CLOSE)
        close_locked(a, event);
    if (event->kind == HANDLE_ACQUIRE || event->kind == HANDLE_CANCEL) {
        counts = a->call != NULL && (a->call->canceled || event->kind == HANDLE_ACQUIRE);
        event->at = counts ? a->call->until : 0;
        event->once = counts && a->call->once;
    } else if (event->kind == HANDLE_START) {
        event->at = clock_after_ms(clock_now(), a->initial_delay_ms);
    } else if (event->kind == HANDLE_DESTROY && a->machine.held && a->results != NULL) {
        counts = false; /* nothing is given back while on_done runs: again after POST_LEFT */
        a->posts |= POST_DESTROY;
    } else if (event->kind == HANDLE_RESIGN) {
        event->at = a->resign_pause;
        event->token = a->resign_token;
    }
    event->ran = a->done_ran;
    driver_unlock(a->client);
    return counts;
}

/* The machine has seen it; unless a stop came after it, the next tenure counts again. */
static void resigned(struct actor *a)
{
    driver_lock(a->client);
    if (atomic_load(&a->status) == SIMBA_RUNNING && !a->closing)
        view_start(&a->view);
    driver_unlock(a->client);
}

void actor_take_posts(struct actor *a, uint32_t posts)
{
    static const enum handle_event_kind kinds[] = {
        HANDLE_START, HANDLE_ABANDON, HANDLE_ACQUIRE, HANDLE_CANCEL, HANDLE_RELEASE, HANDLE_RESIGN,
        HANDLE_STOP,  HANDLE_CLOSE,   HANDLE_DESTROY, HANDLE_WARNED, HANDLE_DONE,
    };
    assert(!a->machine.closed || (posts & ~(uint32_t)(POST_CLOSE | POST_DESTROY)) == 0);
    if (!a->is_registered) {
        hash_table_add(&a->client->actors, &a->by_mutex);
        a->is_registered = true;
    }
    if ((posts & (POST_CLOSE | POST_DESTROY)) != 0 && a->machine.kind == HANDLE_OBSERVER)
        observer_closing(a);
    for (unsigned bit = 0; bit < sizeof kinds / sizeof *kinds; bit++) {
        struct handle_event event = {.kind = kinds[bit]};
        if ((posts & (1u << bit)) == 0 || !complete_event(a, &event))
            continue;
        if (event.kind == HANDLE_DONE)
            a->job.run = NULL;
        step(a, &event, NULL);
        if (event.kind == HANDLE_DONE && a->machine.kind == HANDLE_CONTENDER)
            scheduler_go_on(a);
        if (event.kind == HANDLE_DONE && a->machine.kind == HANDLE_LOCKER)
            callback_submit(a); /* a result that has waited for it */
        if (event.kind == HANDLE_DONE && a->machine.kind == HANDLE_OBSERVER && state_next(a))
            step(a, &(struct handle_event){.kind = HANDLE_CHANGED}, NULL);
        if (event.kind == HANDLE_ABANDON) {
            driver_lock(a->client);
            a->abandoned = false;
            driver_unlock(a->client);
        }
        if (event.kind == HANDLE_RESIGN)
            resigned(a);
    }
    if ((posts & POST_LEFT) != 0) {
        scheduler_left(a);
        a->job.run = NULL;
        callback_submit(a);
    }
    end_if_gone(a);
}

void actor_expire(struct timer *timer)
{
    struct actor *a = (struct actor *)(void *)((char *)timer - offsetof(struct actor, timer));
    step(a, &(struct handle_event){.kind = HANDLE_EXPIRE}, NULL);
    end_if_gone(a);
}

void actor_hint(struct actor *a)
{
    if (a->hinted_at == 0 && actor_waits(a))
        a->hinted_at = clock_now();
    step(a, &(struct handle_event){.kind = HANDLE_HINT}, NULL);
}

/* Who has waited longest beside the one that releases: what it asks goes out with the release. */
static void hint_next(const struct actor *a)
{
    struct hash_node *n = hash_table_find(&a->client->actors, a->by_mutex.name);
    struct actor *first = NULL;
    for (; n != NULL; n = hash_table_find_next(n)) {
        struct actor *other = actor_of(n);
        if (other != a && actor_waits(other) &&
            (first == NULL || (int32_t)(other->since - first->since) < 0))
            first = other;
    }
    if (first != NULL)
        actor_hint(first);
}

static bool another_holds(const struct actor *a)
{
    struct hash_node *n = hash_table_find(&a->client->actors, a->by_mutex.name);
    while (n != NULL && actor_of(n)->machine.lease.state != LEASE_HOLDING)
        n = hash_table_find_next(n);
    return n != NULL;
}

/* A renewal, or the grant that began the tenure. */
static bool is_renewal(const struct actor *a, const struct request *r)
{
    bool granted = r->sent.op == SIMBA_CONTEND && r->granted;
    return r->code >= 0 && a->machine.lease.state == LEASE_HOLDING &&
           (r->sent.op == SIMBA_RENEW || granted);
}

/* For a caller that may have to leave without a result. */
static void note_answer_locked(struct call *call, const struct request *r, bool parked)
{
    call->parked = parked;
    if (r->sent.sent_at >= call->began)
        call->said_held = r->owner != NULL || r->own;
}

void actor_answered(struct actor *a, struct request *r)
{
    assert(a->requests > 0);
    int64_t failing_since = a->trouble.since;
    a->requests--;
    trace_exchange(r);
    if (r->sent.op != SIMBA_PUBLISH) {
        report_answer(a, r);
        trouble_answered(a, r);
    }
    if (r->sent.op == SIMBA_CONTEND && r->code == 0) {
        bool parked = !r->granted && a->client->backend->hands_over && another_holds(a);
        driver_lock(a->client);
        a->same_id = r->own && !r->granted;
        if (a->machine.kind == HANDLE_LOCKER && a->call != NULL)
            note_answer_locked(a->call, r, parked);
        driver_unlock(a->client);
    }
    struct lease_reply reply = {
        .request = r->sent,
        .code = r->code,
        .granted = r->granted,
        .owner = r->own             ? actor_id(a)
                 : r->owner != NULL ? r->owner
                                    : "",
        .token = r->token,
        .left = r->left_ms * NS_PER_MS,
    };
    step(a, &(struct handle_event){.kind = HANDLE_REPLY, .reply = &reply}, r);
    bool renewed = is_renewal(a, r);
    if (!request_has_failed(r) && r->sent.op != SIMBA_PUBLISH)
        report_works(a, renewed && r->sent.op == SIMBA_RENEW, failing_since);
    if (renewed)
        a->renewed_at = r->sent.sent_at;
    end_if_gone(a);
}
