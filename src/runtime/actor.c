/* actor.c: executes what the machine of a handle decides. The only place where the machine is
 * stepped; always on the loop's thread, each time with a fresh reading of the clock.
 *
 * After a step the order is fixed: first what is_owner() says, then who is told about it. */
#include "runtime/actor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"
#include "runtime/clock.h"
#include "runtime/futex.h"
#include "runtime/process.h"

#define RENEWAL_STEPS 512 /* of a ttl */

/* ---- what others see ------------------------------------------------------------------------ */

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Takes over now.id, which is the actor's own, or allocated, or NULL. */
static void see(struct actor *a, struct seen now, enum simba_reason reason)
{
    char *unused = now.id;
    pthread_mutex_lock(&a->client->lock);
    if (now.token != a->after.token || !same(now.id, a->after.id)) {
        unused = a->before.id;
        a->before = a->after;
        a->reason = reason;
    } else {
        now.id = a->after.id;
    }
    a->after = now;
    pthread_mutex_unlock(&a->client->lock);
    if (unused != a->id && unused != now.id)
        free(unused);
}

static void see_answer(struct actor *a, struct request *r)
{
    const struct period *p = a->period;
    struct seen now = {.id = NULL};
    bool own = r->own || r->sent.op == SIMBA_RENEW;
    if (r->code < 0 || r->sent.op == SIMBA_RELEASE)
        return;
    if (own && lease_deadline(&a->machine.lease) == 0)
        return; /* ours, but not to act on */
    if (own || r->owner != NULL) {
        int64_t end = clock_after_ms(r->sent.sent_at, r->left_ms);
        now.id = own ? (char *)a->id : r->owner;
        now.token = r->sent.op == SIMBA_RENEW ? r->sent.token : r->token;
        now.acquired_at = r->age_ms < 0 ? end - p->lease : r->sent.sent_at - r->age_ms * NS_PER_MS;
        now.ttl_at = end - p->transition;
        now.transition_at = end;
        r->owner = NULL;
    }
    see(a, now, now.id != NULL ? SIMBA_ACQUIRED : SIMBA_RELEASED);
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void post_done(struct actor *a, bool ran)
{
    struct simba *s = a->client;
    pthread_mutex_lock(&s->lock);
    a->notes |= NOTE_DONE;
    a->done_ran = ran;
    loop_post_locked(s, a);
    pthread_mutex_unlock(&s->lock);
}

/* On a thread of the executor. An acquisition that has ended while it was queued is not told. */
static void run_callback(void *arg)
{
    struct actor *a = arg;
    struct simba *client_before = thread_client;
    struct actor *actor_before = thread_actor;
    thread_client = a->client;
    thread_actor = a;

    struct simba_state state;
    actor_state(a, &state); /* before the check: so it shows the tenure that is checked */
    state.reason = a->job_reason;
    uint64_t token;
    int64_t left;
    bool ran = true;
    if (a->job_call == CALL_ACQUIRED) {
        ran = actor_owns(a, &token, &left) && token == a->job_token;
        if (ran)
            a->on_acquired(a->data, a->by_mutex.name, &state);
    } else if (a->job_call == CALL_RELEASED) {
        a->on_released(a->data, a->by_mutex.name, &state);
    } else {
        a->on_closed(a->data);
    }
    thread_client = client_before;
    thread_actor = actor_before;
    post_done(a, ran);
}

static void dispatch(struct actor *a, const struct handle_update *up)
{
    struct simba *s = a->client;
    bool wanted = up->call == CALL_ACQUIRED   ? a->on_acquired != NULL
                  : up->call == CALL_RELEASED ? a->on_released != NULL
                                              : a->on_closed != NULL;
    if (!wanted) {
        post_done(a, true);
        return;
    }
    a->job = (struct job){.run = run_callback, .arg = a};
    a->job_call = up->call;
    a->job_reason = up->reason;
    a->job_token = a->machine.lease.token;
    if (s->has_executor_user) {
        if (s->executor_user.submit(s->executor_user.data, run_callback, a) == 0)
            return;
        log_put(&s->log, SIMBA_LOG_WARN,
                "mutex '%s': your executor refused a callback, it runs on a thread of ours",
                a->by_mutex.name);
    }
    executor_submit(&s->executor, &a->job);
}

/* ---- what a step brings about ---------------------------------------------------------------- */

static void send_request(struct actor *a, const struct lease_request *sent)
{
    struct simba *s = a->client;
    struct request *r = loop_request(s);
    if (r == NULL) /* as a request that is never answered: the machine tries again */
        return;
    r->actor = a;
    r->sent = *sent;
    r->wire.op = sent->op;
    r->wire.mutex = a->by_mutex.name;
    r->wire.id = a->id;
    r->wire.token = sent->token;
    r->wire.ttl_ms = a->period->ttl / NS_PER_MS;
    r->wire.transition_ms = a->period->transition / NS_PER_MS;
    a->requests++;
    loop_send(s, r);
}

/* Why a locker's caller did not get what it wanted; under the lock. */
static void say_why(struct actor *a, int code, char *out, size_t size)
{
    const char *holder = a->after.id != NULL ? a->after.id : "another";
    const char *failure = a->failure != NULL ? a->failure : "the store does not answer";
    const char *store = actor_store(a);
    if (code == SIMBA_EHELD)
        snprintf(out, size, "%.150s: held by %s", store, holder);
    else if (code == SIMBA_ETIMEOUT && a->machine.answered)
        snprintf(out, size, "%.150s: not in time, held by %s", store, holder);
    else
        snprintf(out, size, "%.150s: %s", store, failure);
}

/* The last touch of the caller's memory is the futex; of the actor, before that. */
static void give_verdict(struct actor *a, int code)
{
    pthread_mutex_lock(&a->client->lock);
    struct call *call = a->call;
    assert(call != NULL);
    a->call = NULL;
    a->phase = code == 0 && a->machine.held ? LOCKER_HELD : LOCKER_FREE;
    call->code = code;
    if (code < 0)
        say_why(a, code, call->text, sizeof call->text);
    pthread_mutex_unlock(&a->client->lock);
    futex_set(&call->done, 1);
}

static void report(struct actor *a, const struct handle_update *up)
{
    struct log *log = &a->client->log;
    const char *mutex = a->by_mutex.name;
    const struct lease *l = &a->machine.lease;
    if (up->news == LEASE_BEGAN)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': acquired by %s, token %llu", mutex, a->id,
                (unsigned long long)l->token);
    else if (up->news == LEASE_LOST)
        log_put(log, SIMBA_LOG_WARN, "mutex '%s': lost by %s, %s", mutex, a->id,
                l->reason == SIMBA_EVICTED ? "the store says that it is over"
                                           : "it could not be renewed in time");
    else if (up->news == LEASE_GIVEN || up->news == LEASE_GONE)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': %s by %s", mutex,
                up->news == LEASE_GIVEN ? "given back" : "already lost when given back", a->id);
    else if (up->news == LEASE_FAILED && l->failures <= 1)
        log_put(log, SIMBA_LOG_WARN, "mutex '%s' on %.150s: %s; %s", mutex, actor_store(a),
                a->failure != NULL ? a->failure : "the store does not answer",
                handle_gives_up(up->failure) ? "that will not change" : "trying again");
}

/* What callers see, and what close counts. */
static void show(struct actor *a)
{
    struct simba *s = a->client;
    const struct handle *h = &a->machine;
    pthread_mutex_lock(&s->lock);
    /* What a caller has asked for meanwhile is already visible and comes next. */
    if (atomic_load(&a->status) != h->status && (a->notes & (NOTE_START | NOTE_STOP)) == 0) {
        if (h->status == SIMBA_INITIAL && handle_gives_up(h->lease.code))
            a->start_failure = h->lease.code;
        atomic_store(&a->status, h->status);
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
    }
    bool quiet = h->closed && handle_is_idle(h) && a->waiters == 0;
    pthread_mutex_unlock(&s->lock);
    if (quiet != a->quiet) {
        a->quiet = quiet;
        s->quiet += quiet ? 1 : (size_t)-1;
    }
}

/* The store is told once per mutex, whatever the number of handles. */
static void watch(struct actor *a, bool on)
{
    struct simba *s = a->client;
    if (on == a->watching)
        return;
    a->watching = on;
    if (s->backend->watch == NULL || s->store_closing)
        return;
    struct table_node *n = table_find(&s->actors, a->by_mutex.name);
    for (; n != NULL; n = table_find_next(n)) {
        if (n != &a->by_mutex && ((struct actor *)(void *)n)->watching)
            return;
    }
    s->backend->watch(s->store, a->by_mutex.name, on ? SIMBA_WAITS : SIMBA_NO_INTEREST);
}

/* Renewals that are due at about the same time happen at the same time, so that the store gets many at
 * once and the loop wakes up less often. Only they may be late, and only by so little. */
static int64_t next_wake(const struct actor *a)
{
    const struct lease *l = &a->machine.lease;
    int64_t at = handle_next_wake(&a->machine), step = a->period->ttl / RENEWAL_STEPS;
    bool renews = l->state == LEASE_HOLDING && !l->in_flight && at == l->wake_at;
    if (!renews || step == 0 || at > l->hold_until - a->period->attempt - step)
        return at;
    return at + step - 1 - (at + step - 1) % step;
}

/* r: the answered request that the event is about; NULL: none. */
static void step(struct actor *a, struct handle_event *event, struct request *r)
{
    struct simba *s = a->client;
    struct handle_update up;
    bool owned = lease_deadline(&a->machine.lease) != 0;
    event->now = clock_now();
    handle_step(&a->machine, event, &up);

    int64_t deadline = lease_deadline(&a->machine.lease);
    view_publish(&a->view, deadline, a->machine.lease.token);
    if (owned && deadline == 0)
        see(a, (struct seen){.id = NULL},
            up.news == LEASE_LOST ? (enum simba_reason)a->machine.lease.reason : SIMBA_RELEASED);
    if (r != NULL)
        see_answer(a, r);
    report(a, &up);
    if (up.send)
        send_request(a, &up.request);
    timers_set(&s->timers, &a->timer, next_wake(a));
    watch(a, a->machine.lease.state != LEASE_IDLE);
    show(a);
    if (up.verdict)
        give_verdict(a, up.code);
    if (up.call != CALL_NONE)
        dispatch(a, &up);
}

void actor_free(struct table_node *node)
{
    struct actor *a = (struct actor *)(void *)node;
    if (a->before.id != a->id)
        free(a->before.id);
    if (a->after.id != a->id)
        free(a->after.id);
    free(a->failure);
    free(a);
}

/* Frees the actor if its owner has given it up and nothing can come back to it. The last thing in
 * every entry point but hints, which end nothing. */
static void end_if_gone(struct actor *a)
{
    struct simba *s = a->client;
    show(a);
    if (!a->quiet || a->requests > 0)
        return;
    pthread_mutex_lock(&s->lock);
    bool gone = a->closing && !a->in_inbox;
    if (gone)
        s->actors_count--;
    pthread_mutex_unlock(&s->lock);
    if (!gone)
        return;
    s->quiet--;
    timers_set(&s->timers, &a->timer, NEVER);
    table_remove(&s->actors, &a->by_mutex);
    actor_free(&a->by_mutex);
}

/* ---- events ---------------------------------------------------------------------------------- */

void actor_take_notes(struct actor *a, uint32_t notes)
{
    static const enum handle_event_kind kinds[] = {
        HANDLE_START, HANDLE_ACQUIRE, HANDLE_RELEASE, HANDLE_STOP,
        HANDLE_CLOSE, HANDLE_DESTROY, HANDLE_DONE,
    };
    assert(!a->machine.closed || (notes & ~(uint32_t)(NOTE_CLOSE | NOTE_DESTROY)) == 0);
    if (!a->born) {
        table_add(&a->client->actors, &a->by_mutex);
        a->born = true;
    }
    for (unsigned bit = 0; bit < sizeof kinds / sizeof *kinds; bit++) {
        if ((notes & (1u << bit)) == 0)
            continue;
        struct handle_event event = {.kind = kinds[bit]};
        if (event.kind == HANDLE_START) {
            event.at = clock_now() + a->initial_delay;
        } else if (event.kind == HANDLE_ACQUIRE || event.kind == HANDLE_DONE) {
            pthread_mutex_lock(&a->client->lock);
            event.at = a->wait_until;
            event.once = a->once;
            event.ran = a->done_ran;
            pthread_mutex_unlock(&a->client->lock);
        }
        step(a, &event, NULL);
    }
    end_if_gone(a);
}

void actor_tick(struct actor *a)
{
    step(a, &(struct handle_event){.kind = HANDLE_TICK}, NULL);
    end_if_gone(a);
}

void actor_hint(struct actor *a)
{
    step(a, &(struct handle_event){.kind = HANDLE_HINT}, NULL);
}

void actor_answered(struct actor *a, struct request *r)
{
    assert(a->requests > 0);
    a->requests--;
    if (a->failure != NULL || (r->code < 0 && r->code != SIMBA_ELOST)) {
        char *before = a->failure, *now = NULL;
        if (r->code < 0 && r->code != SIMBA_ELOST)
            now = r->text != NULL ? r->text : strdup(simba_strerror(r->code));
        r->text = NULL;
        pthread_mutex_lock(&a->client->lock);
        a->failure = now;
        pthread_mutex_unlock(&a->client->lock);
        free(before);
    }
    struct lease_reply reply = {
        .request = r->sent,
        .code = r->code,
        .granted = r->granted,
        .owner = r->own             ? a->id
                 : r->owner != NULL ? r->owner
                                    : "",
        .token = r->token,
        .left = r->left_ms * NS_PER_MS,
    };
    step(a, &(struct handle_event){.kind = HANDLE_REPLY, .reply = &reply}, r);
    end_if_gone(a);
}
