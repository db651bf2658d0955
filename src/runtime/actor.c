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
#include "runtime/scheduler.h"

#define FAR (250 * NS_PER_MS)

/* ---- what others see ------------------------------------------------------------------------ */

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Takes over now.id, which is the actor's own, or allocated, or NULL. True: another tenure, or none
 * any more. */
static bool see(struct actor *a, struct tenure now, enum simba_reason reason)
{
    char *unused = now.id;
    loop_lock(a->client);
    bool changed = !tenure_is_same(&a->after, &now);
    if (changed) {
        unused = a->before.id;
        a->before = a->after;
        a->reason = (uint8_t)reason;
    } else {
        now.id = a->after.id;
        now.acquired_at = a->after.acquired_at; /* a renewal moves nothing but the end */
    }
    a->after = now;
    loop_unlock(a->client);
    if (unused != actor_id(a) && unused != now.id)
        free(unused);
    return changed;
}

/* An observer sees that one tenure has ended and another begun, and tells it in two steps, so that each
 * has its reason. The second comes when the first has been told (tell_next). While it is busy telling
 * something else, changes become one. */
static bool see_end_first(struct actor *a, const struct tenure *now, bool *changed)
{
    *changed = false;
    if (a->machine.kind != HANDLE_OBSERVER)
        return false;
    if (a->next == NULL) {
        bool busy = a->machine.call != CALL_NONE || a->machine.changed;
        if (busy || a->after.id == NULL || now->id == NULL || tenure_is_same(&a->after, now))
            return false;
        a->next = malloc(sizeof *a->next);
        if (a->next == NULL)
            return false; /* one step, then */
        *a->next = (struct tenure){.id = NULL};
        struct tenure nobody = {.asked_at = now->asked_at, .seen_at = now->seen_at};
        *changed = see(a, nobody, tenure_end(&a->after, now->seen_at));
    }
    free(a->next->id);
    *a->next = *now;
    return true;
}

/* guess: if its lease is like ours; for stores that do not say it. */
static int64_t began_at(const struct request *r, int64_t guess)
{
    int64_t asked_at = r->sent.sent_at;
    if (r->age_ms >= 0)
        return asked_at - r->age_ms * NS_PER_MS;
    return guess < asked_at ? guess : asked_at;
}

static bool see_answer(struct actor *a, struct request *r)
{
    const struct lease *l = &a->machine.lease;
    struct tenure now = {.asked_at = r->sent.sent_at, .seen_at = clock_now()};
    bool own = r->own || r->sent.op == SIMBA_RENEW, owner = lease_deadline(l) != 0;
    now.token = r->sent.op == SIMBA_RENEW ? r->sent.token : r->token;
    if (r->code < 0 || r->sent.op == SIMBA_RELEASE)
        return false;
    /* While we own, and until its end has been told, there is our tenure to see; an answer that comes
     * late knows another one. And what is ours, but not to act on, is not shown. */
    if (lease_is_over(l) || (owner ? !own || now.token != l->token : own))
        return false;
    if (own || r->owner != NULL) {
        int64_t end = clock_after_ms(r->sent.sent_at, r->left_ms);
        now.id = own ? (char *)actor_id(a) : r->owner;
        now.acquired_at = began_at(r, end - actor_period(a)->lease);
        now.until = end;
        now.aged = r->age_ms >= 0;
        now.evicted = r->evicted;
    }
    if (a->machine.kind == HANDLE_OBSERVER && tenure_is_old(&a->before, &a->after, &now))
        return false; /* an observer never goes back */
    r->owner = NULL;
    if (now.id == NULL)
        now.token = 0;
    bool changed;
    if (see_end_first(a, &now, &changed))
        return changed;
    return see(a, now, now.id != NULL ? SIMBA_ACQUIRED : tenure_end(&a->after, now.seen_at));
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void post_done(struct actor *a, bool ran)
{
    struct simba *s = a->client;
    loop_lock(s);
    a->notes |= NOTE_DONE;
    a->done_ran = ran;
    loop_post_locked(s, a);
    loop_unlock(s);
}

/* One run of a callback, on the stack of its thread. */
struct callback {
    struct actor *actor;
    struct simba *client_before;
    struct actor *actor_before;
    int64_t began;
    bool ran, returned;
    int cancel; /* the thread's, for user code */
};

/* Also if the user code has ended its thread or thrown an exception: it is over. */
static void callback_over(void *arg)
{
    struct callback *c = arg;
    struct actor *a = c->actor;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    thread_client = c->client_before;
    thread_actor = c->actor_before;
    if (!c->returned)
        log_put(&a->client->log, SIMBA_LOG_WARN,
                "mutex '%s': a callback did not return, it has ended its thread; it counts as done",
                a->by_mutex.name);
    int64_t delay = c->began - a->job_at, ran_for = clock_now() - c->began;
    loop_lock(a->client);
    histogram_add(&a->client->metrics.callback_delay, delay);
    histogram_add(&a->client->metrics.callback, ran_for);
    loop_unlock(a->client);
    post_done(a, c->ran);
}

static void call_user(struct actor *a, const struct simba_state *state)
{
    if (a->job_call == CALL_ACQUIRED)
        a->on_acquired(a->data, a->by_mutex.name, state);
    else if (a->job_call == CALL_RELEASED)
        a->on_released(a->data, a->by_mutex.name, state);
    else if (a->job_call == CALL_CHANGED)
        a->on_changed(a->data, a->by_mutex.name, state);
    else
        a->on_closed(a->data);
}

/* On a thread of the executor. An acquisition that has ended while it was queued is not told. Only
 * the user's code may be cancelled, not ours around it. */
static void run_callback(void *arg)
{
    struct actor *a = arg;
    struct callback c = {a, thread_client, thread_actor, clock_now(), true, false, 0};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
    thread_client = a->client;
    thread_actor = a;

    struct simba_state state;
    actor_state(a, &state); /* before the check: so it shows the tenure that is checked */
    if (a->job_call == CALL_CHANGED && a->telling != NULL) {
        state = *a->telling;
        free(a->telling);
        a->telling = NULL;
    }
    if (a->job_call != CALL_CHANGED)
        state.reason = (enum simba_reason)a->job_reason;
    uint64_t token;
    int64_t left;
    if (a->job_call == CALL_ACQUIRED)
        c.ran = actor_owns(a, &token, &left) && token == a->job_token;
    pthread_cleanup_push(callback_over, &c);
    if (c.ran) {
        pthread_setcancelstate(c.cancel, NULL);
        call_user(a, &state);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    }
    c.returned = true;
    pthread_cleanup_pop(1);
    pthread_setcancelstate(c.cancel, NULL);
}

/* What the user's executor is given. User code on the loop would hold up every renewal, so an
 * executor that calls this within submit, or later on the loop, has it moved. */
static void run_for_user(void *arg)
{
    struct actor *a = arg;
    struct simba *s = a->client;
    if (!loop_is_here(s)) {
        run_callback(a);
        return;
    }
    a->job_moved = true;
    log_put(&s->log, SIMBA_LOG_WARN,
            "mutex '%s': your executor would run a callback inside submit, it runs on a thread of "
            "ours",
            a->by_mutex.name);
    executor_submit(&s->executor, &a->job);
}

static void submit_job(struct actor *a)
{
    struct simba *s = a->client;
    bool wanted = a->job_call == CALL_ACQUIRED   ? a->on_acquired != NULL
                  : a->job_call == CALL_RELEASED ? a->on_released != NULL
                  : a->job_call == CALL_CHANGED  ? a->on_changed != NULL
                                                 : a->on_closed != NULL;
    if (!wanted) {
        post_done(a, true);
        return;
    }
    a->job = (struct job){.run = run_callback, .arg = a};
    a->job_at = clock_now();
    a->job_moved = false;
    if (s->has_executor_user) {
        if (s->executor_user.submit(s->executor_user.data, run_for_user, a) == 0 || a->job_moved)
            return;
        log_put(&s->log, SIMBA_LOG_WARN,
                "mutex '%s': your executor refused a callback, it runs on a thread of ours",
                a->by_mutex.name);
    }
    executor_submit(&s->executor, &a->job);
}

static void dispatch(struct actor *a, const struct handle_update *up)
{
    struct actor *parent = actor_parent(a);
    bool has_children = a->machine.kind == HANDLE_OBSERVER && a->children > 0;
    a->job_call = (uint8_t)up->call;
    a->job_reason = (uint8_t)up->reason;
    a->job_token = a->machine.lease.token;
    if (up->call == CALL_CLOSED && has_children) { /* the last of them goes on from here */
        a->childless = true;
        return;
    }
    /* What is seen while the callback waits for a thread is the next change, with its own reason. */
    if (up->call == CALL_CHANGED && (a->telling = malloc(sizeof *a->telling)) != NULL)
        actor_state(a, a->telling);
    if (up->call == CALL_RELEASED && scheduler_lingers(a, up->reason))
        return; /* until NOTE_LEFT */
    submit_job(a);
    if (up->call == CALL_CLOSED && parent != NULL && --parent->children == 0 && parent->childless)
        submit_job(parent);
}

/* ---- what a step brings about ---------------------------------------------------------------- */

static bool others_wait(const struct actor *a)
{
    struct table_node *n = table_find(&a->client->actors, a->by_mutex.name);
    while (n != NULL && (n == &a->by_mutex || !actor_waits((struct actor *)(void *)n)))
        n = table_find_next(n);
    return n != NULL;
}

static void send_request(struct actor *a, const struct lease_request *sent)
{
    struct simba *s = a->client;
    struct request *r = loop_request(s);
    if (r == NULL) /* as a request that is never answered: the machine tries again */
        return;
    r->actor = a;
    r->sent = *sent;
    r->wire.op = a->by_mutex.name[0] != '\0' ? sent->op : SIMBA_LIST;
    r->wire.mutex = a->by_mutex.name;
    r->wire.id = actor_id(a);
    r->wire.token = sent->token;
    r->wire.others = sent->op == SIMBA_CONTEND && others_wait(a);
    r->wire.ttl_ms = actor_period(a)->ttl / NS_PER_MS;
    r->wire.transition_ms = actor_period(a)->transition / NS_PER_MS;
    a->requests++;
    loop_send(s, r);
}

/* Why a locker's caller did not get what it wanted; under the lock. */
static void say_why(struct actor *a, int code, char *out, size_t size)
{
    const char *holder = a->after.id != NULL ? a->after.id : "another";
    const char *failure = a->failure != NULL ? a->failure : "the store does not answer";
    const char *store = actor_store(a), *late = code == SIMBA_ETIMEOUT ? "not in time, " : "";
    bool is_held = code == SIMBA_EHELD || (code == SIMBA_ETIMEOUT && a->machine.answered);
    if (is_held && (a->after.id != NULL || a->failure == NULL))
        snprintf(out, size, "%.150s: %sheld by %s", store, late, holder);
    else
        snprintf(out, size, "%.150s: %s", store, failure);
}

/* The caller hears of it at the end of the turn, so that it finds the next turn free. */
static void give_verdict(struct actor *a, int code)
{
    loop_lock(a->client);
    struct call *call = a->abandoned ? NULL : a->call;
    if (!a->abandoned) {
        a->call = NULL;
        a->phase = code == 0 && a->machine.held ? LOCKER_HELD : LOCKER_FREE;
    }
    if (call != NULL)
        call->code = code;
    if (call != NULL && code < 0)
        say_why(a, code, call->text, sizeof call->text);
    loop_unlock(a->client);
    if (call == NULL) /* it has gone */
        return;
    call->next = a->client->verdicts;
    a->client->verdicts = call;
}

static void report_failure(struct actor *a, int code, const char *text)
{
    log_put(&a->client->log, SIMBA_LOG_WARN, "mutex '%s' on %.150s: %s; %s", a->by_mutex.name,
            actor_store(a), text, handle_gives_up(code) ? "that will not change" : "trying again");
}

static void report(struct actor *a, const struct handle_update *up)
{
    struct log *log = &a->client->log;
    const char *mutex = a->by_mutex.name;
    const struct lease *l = &a->machine.lease;
    if (up->news == LEASE_BEGAN)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': acquired by %s, token %llu", mutex, actor_id(a),
                (unsigned long long)l->token);
    else if (up->news == LEASE_LOST)
        log_put(log, SIMBA_LOG_WARN, "mutex '%s': lost by %s, %s", mutex, actor_id(a),
                l->reason == SIMBA_EVICTED ? "the store says that it is over"
                                           : "it could not be renewed in time");
    else if (up->news == LEASE_GIVEN || up->news == LEASE_GONE)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': %s by %s", mutex,
                up->news == LEASE_GIVEN ? "given back" : "already lost when given back",
                actor_id(a));
    else if (up->news == LEASE_FAILED && up->failure == SIMBA_ETIMEOUT && l->failures <= 1)
        report_failure(a, up->failure, "the store does not answer");
}

static void count(struct actor *a, const struct handle_update *up, bool owned, int64_t now)
{
    struct metrics *m = &a->client->metrics;
    const struct lease *l = &a->machine.lease;
    if (up->send && (up->request.op == SIMBA_CONTEND || up->request.op == SIMBA_RENEW))
        metrics_count(a, up->request.op == SIMBA_RENEW ? COUNT_RENEWALS : COUNT_ATTEMPTS);
    if (up->news == LEASE_FAILED)
        metrics_count(a, COUNT_FAILURES);
    else if (up->news == LEASE_LOST)
        metrics_count(a, l->reason == SIMBA_EVICTED ? COUNT_EVICTED : COUNT_EXPIRED);
    else if (up->news == LEASE_BEGAN) {
        metrics_count(a, COUNT_ACQUISITIONS);
        if (a->hinted_at != 0)
            histogram_add(&m->handoff, now - a->hinted_at);
    }
    bool owns = lease_deadline(l) != 0;
    if (owned != owns)
        atomic_fetch_add(&m->owned, owns ? 1 : UINT64_MAX);
}

/* Only one of those who wait is told of a push. If that one leaves without an answer, the next must be
 * told; if it is refused or wins, the store pushes again. */
static void keep_queue(struct actor *a, bool waited, const struct handle_update *up)
{
    struct simba *s = a->client;
    bool waits = actor_waits(a);
    if (waits && !waited)
        a->since = ++s->waits;
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
    struct simba *s = a->client;
    const struct handle *h = &a->machine;
    loop_lock(s);
    /* What a caller has asked for meanwhile is already visible and comes next. */
    if (atomic_load(&a->status) != h->status && (a->notes & (NOTE_START | NOTE_STOP)) == 0) {
        if (h->status == SIMBA_INITIAL && handle_gives_up(h->lease.code))
            a->start_failure = (int16_t)h->lease.code;
        atomic_store(&a->status, h->status);
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
    }
    bool quiet = h->closed && handle_is_idle(h) && a->waiters == 0;
    loop_unlock(s);
    if (quiet != a->quiet) {
        a->quiet = quiet;
        s->quiet += quiet ? 1 : (size_t)-1;
    }
}

/* What all handles but this one want to hear of the mutex. */
static enum simba_interest interest_of_others(const struct actor *a)
{
    enum simba_interest most = SIMBA_NO_INTEREST;
    struct table_node *n = table_find(&a->client->actors, a->by_mutex.name);
    for (; n != NULL; n = table_find_next(n)) {
        const struct actor *other = (struct actor *)(void *)n;
        if (other != a && other->interest > most)
            most = (enum simba_interest)other->interest;
    }
    return most;
}

/* The store is told once per mutex, whatever the number of handles. */
static void watch(struct actor *a)
{
    struct simba *s = a->client;
    enum simba_interest now = a->machine.lease.state == LEASE_IDLE ? SIMBA_NO_INTEREST
                              : a->machine.kind == HANDLE_OBSERVER ? SIMBA_OBSERVES
                                                                   : SIMBA_WAITS;
    enum simba_interest before = (enum simba_interest)a->interest;
    if (now == before)
        return;
    a->interest = (uint8_t)now;
    if (s->backend->watch == NULL || s->store_closing)
        return;
    enum simba_interest others = interest_of_others(a);
    const char *mutex = a->by_mutex.name[0] != '\0' ? a->by_mutex.name : NULL;
    if ((now > before ? now : before) > others)
        s->backend->watch(s->store, mutex, now > others ? now : others);
}

/* What is far away may be a millisecond late: then many machines have the same alarm. No right to act
 * hangs on it: is_owner() and every step look at the clock. */
static int64_t alarm_at(int64_t now, int64_t at)
{
    bool far = at != NEVER && at - now > FAR;
    return far ? at + NS_PER_MS - at % NS_PER_MS : at;
}

static void observe(struct actor *a, struct request *r, bool first);

/* r: the answered request that the event is about; NULL: none. */
static void step(struct actor *a, struct handle_event *event, struct request *r)
{
    struct simba *s = a->client;
    struct handle_update up;
    bool owned = lease_deadline(&a->machine.lease) != 0;
    bool observes = a->machine.kind == HANDLE_OBSERVER, waited = actor_waits(a);
    bool starting = a->machine.status == SIMBA_STARTING;
    event->now = clock_now();
    handle_step(&a->machine, event, &up);

    int64_t deadline = lease_deadline(&a->machine.lease);
    view_publish(&a->view, deadline, a->machine.lease.token);
    if (owned && deadline == 0)
        see(a, (struct tenure){.id = NULL},
            up.news == LEASE_LOST ? (enum simba_reason)a->machine.lease.reason : SIMBA_RELEASED);
    if (r != NULL && !observes)
        see_answer(a, r);
    report(a, &up);
    count(a, &up, owned, event->now);
    keep_queue(a, waited, &up);
    if (up.send)
        send_request(a, &up.request);
    timers_set(&s->timers, &a->timer, alarm_at(event->now, handle_next_wake(&a->machine)));
    watch(a);
    show(a);
    if (up.verdict)
        give_verdict(a, up.code);
    if (up.call != CALL_NONE)
        dispatch(a, &up);
    if (r != NULL && observes && up.news == LEASE_ANSWERED)
        observe(a, r, starting);
}

/* Something to tell: what is found first, and every change. */
static void observe(struct actor *a, struct request *r, bool first)
{
    if (a->by_mutex.name[0] == '\0')
        observer_listed(a, r->found);
    else if (see_answer(a, r) || first)
        step(a, &(struct handle_event){.kind = HANDLE_CHANGED}, NULL);
}

/* The end of a tenure has been told: now the one that followed. */
static void tell_next(struct actor *a)
{
    struct tenure *next = a->next;
    if (next == NULL || a->machine.changed || a->machine.call != CALL_NONE)
        return;
    a->next = NULL;
    if (see(a, *next, SIMBA_ACQUIRED))
        step(a, &(struct handle_event){.kind = HANDLE_CHANGED}, NULL);
    free(next);
}

void actor_free(struct table_node *node)
{
    struct actor *a = (struct actor *)(void *)node;
    if (a->machine.kind == HANDLE_OBSERVER) {
        free(a->telling);
        if (a->next != NULL)
            free(a->next->id);
        free(a->next);
    }
    if (a->before.id != actor_id(a))
        free(a->before.id);
    if (a->after.id != actor_id(a))
        free(a->after.id);
    if (a->machine.kind == HANDLE_LOCKER)
        holder_drop(a->holder);
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
    loop_lock(s);
    bool gone = a->closing && !a->in_inbox;
    if (gone)
        s->actors_count--;
    loop_unlock(s);
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
        HANDLE_START, HANDLE_ABANDON, HANDLE_ACQUIRE, HANDLE_RELEASE,
        HANDLE_STOP,  HANDLE_CLOSE,   HANDLE_DESTROY, HANDLE_DONE,
    };
    assert(!a->machine.closed || (notes & ~(uint32_t)(NOTE_CLOSE | NOTE_DESTROY)) == 0);
    if (!a->born) {
        table_add(&a->client->actors, &a->by_mutex);
        a->born = true;
    }
    if ((notes & (NOTE_CLOSE | NOTE_DESTROY)) != 0 && a->machine.kind == HANDLE_OBSERVER)
        observer_closing(a);
    for (unsigned bit = 0; bit < sizeof kinds / sizeof *kinds; bit++) {
        if ((notes & (1u << bit)) == 0)
            continue;
        struct handle_event event = {.kind = kinds[bit]};
        if (event.kind == HANDLE_START) {
            event.at = clock_after_ms(clock_now(), a->initial_delay_ms);
        } else if (event.kind == HANDLE_ACQUIRE || event.kind == HANDLE_DONE) {
            loop_lock(a->client);
            if (event.kind == HANDLE_ACQUIRE) {
                assert(a->call != NULL);
                event.at = a->call->until;
                event.once = a->call->once;
            }
            event.ran = a->done_ran;
            loop_unlock(a->client);
        }
        step(a, &event, NULL);
        if (event.kind == HANDLE_DONE && a->machine.kind == HANDLE_OBSERVER)
            tell_next(a);
        if (event.kind == HANDLE_ABANDON) {
            loop_lock(a->client);
            a->abandoned = false;
            loop_unlock(a->client);
        }
    }
    if ((notes & NOTE_LEFT) != 0)
        submit_job(a);
    end_if_gone(a);
}

void actor_tick(struct actor *a)
{
    step(a, &(struct handle_event){.kind = HANDLE_TICK}, NULL);
    end_if_gone(a);
}

void actor_hint(struct actor *a)
{
    if (a->hinted_at == 0 && actor_waits(a))
        a->hinted_at = clock_now();
    step(a, &(struct handle_event){.kind = HANDLE_HINT}, NULL);
}

/* What the store says against us, for whoever asks why; a failure is logged as well, once until it is
 * another or has passed. */
static void keep_failure(struct actor *a, struct request *r)
{
    bool failed = r->code < 0 && r->code != SIMBA_ELOST, shut = r->code == 0 && r->text != NULL;
    char *before = a->failure, *now = NULL;
    if (before == NULL && !failed && !shut)
        return;
    if (failed || shut) {
        now = r->text != NULL ? r->text : strdup(simba_strerror(r->code));
        r->text = NULL;
    }
    if (failed && now != NULL && !same(now, before))
        report_failure(a, r->code, now);
    loop_lock(a->client);
    a->failure = now;
    loop_unlock(a->client);
    free(before);
}

void actor_answered(struct actor *a, struct request *r)
{
    assert(a->requests > 0);
    a->requests--;
    histogram_add(&a->client->metrics.operation, clock_now() - r->sent.sent_at);
    keep_failure(a, r);
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
    end_if_gone(a);
}
