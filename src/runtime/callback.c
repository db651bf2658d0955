/* callback.c: the user's functions, one at a time for each handle, on a thread of the executor:
 * never on the loop, never under a lock. */
#include "runtime/callback.h"

#include <stdlib.h>

#include "base/clock.h"
#include "runtime/client.h"
#include "runtime/locker.h"
#include "runtime/scheduler.h"
#include "runtime/state.h"

static void post_done(struct actor *a, bool ran)
{
    struct simba_client *s = a->client;
    driver_lock(s);
    a->done_ran = ran;
    turn_post_locked(a, POST_DONE);
    driver_unlock(s);
}

static void post_warned(struct actor *a)
{
    struct simba_client *s = a->client;
    driver_lock(s);
    turn_post_locked(a, POST_WARNED);
    driver_unlock(s);
}

/* ---- results of asynchronous calls --------------------------------------------------------- */

void callback_add_result_locked(struct actor *a, struct call *call)
{
    struct call *last = a->results;
    call->next = last != NULL ? last->next : call;
    if (last != NULL)
        last->next = call;
    a->results = call;
    atomic_fetch_add(&a->client->callbacks, 1);
}

/* NULL: there is none. */
static struct call *first_result(struct actor *a)
{
    if (a->machine.kind != HANDLE_LOCKER)
        return NULL;
    driver_lock(a->client);
    struct call *first = a->results != NULL ? a->results->next : NULL;
    driver_unlock(a->client);
    return first;
}

/* The first of them has been told. */
static void result_over(struct actor *a)
{
    struct simba_client *s = a->client;
    driver_lock(s);
    struct call *first = a->results->next;
    if (first == a->results)
        a->results = NULL;
    else
        a->results->next = first->next;
    atomic_fetch_sub(&s->callbacks, 1);
    turn_post_locked(a, POST_LEFT);
    driver_unlock(s);
    free(first);
}

/* ---- a callback ---------------------------------------------------------------------------- */

/* One run of a callback, on the stack of its thread. */
struct callback {
    struct actor *actor;
    struct simba_client *client_before;
    struct actor *actor_before;
    const char *name; /* and the tenure that it is about, for the trace */
    uint64_t token;
    int64_t submitted, began;
    bool warns;   /* on_endangered, which may run beside another */
    bool results; /* the result of an asynchronous call */
    bool ran, returned;
    int cancel; /* the thread's, for user code */
};

static const char *callback_name(const struct actor *a)
{
    static const char *const names[] = {
        [CALLBACK_ACQUIRED] = "on_acquired", [CALLBACK_RELEASED] = "on_released",
        [CALLBACK_CHANGED] = "on_changed",   [CALLBACK_STOPPED] = "on_stopped",
        [CALLBACK_CLOSED] = "on_closed",
    };
    bool is_lost = a->machine.kind == HANDLE_LOCKER && a->job_callback == CALLBACK_RELEASED;
    return is_lost ? "on_lost" : names[a->job_callback];
}

/* Only the user's code may be cancelled, not ours around it. */
static struct callback callback_begin(struct actor *a, const char *name, uint64_t token,
                                      int64_t submitted)
{
    struct callback c = {
        .actor = a,
        .client_before = thread_client,
        .actor_before = thread_actor,
        .name = name,
        .token = token,
        .submitted = submitted,
        .began = clock_now(),
        .ran = true,
    };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
    thread_client = a->client;
    thread_actor = a;
    return c;
}

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
    if (c->ran)
        trace_callback(a, c->name, c->token, c->submitted, c->began);
    if (c->warns)
        post_warned(a);
    else if (c->results)
        result_over(a);
    else
        post_done(a, c->ran);
}

/* Those that are told a state; the other NULL. */
static simba_state_fn *state_fn(const struct actor *a)
{
    if (a->job_callback == CALLBACK_CLOSED || a->job_callback == CALLBACK_STOPPED)
        return NULL;
    return a->job_callback == CALLBACK_RELEASED ? a->on_released : a->on_acquired;
}

static void (*plain_fn(const struct actor *a))(void *)
{
    if (a->job_callback == CALLBACK_STOPPED)
        return actor_extra(a)->on_stopped;
    return a->job_callback == CALLBACK_CLOSED ? a->on_closed : NULL;
}

/* On a thread of the executor. An acquisition that has ended while it was queued is not told. */
static void run_callback(void *arg)
{
    struct actor *a = arg;
    struct callback c = callback_begin(a, callback_name(a), a->job_token, a->job_at);

    struct simba_state state;
    state_show(a, &state); /* before the check: so it shows the tenure that is checked */
    if (a->job_callback == CALLBACK_CHANGED && a->to_report != NULL) {
        state = *a->to_report;
        free(a->to_report);
        a->to_report = NULL;
    }
    if (a->job_callback != CALLBACK_CHANGED)
        state.reason = (enum simba_reason)a->job_reason;
    if (a->job_callback == CALLBACK_ACQUIRED)
        c.ran = actor_owns(a, a->job_token);
    pthread_cleanup_push(callback_over, &c);
    if (c.ran) {
        pthread_setcancelstate(c.cancel, NULL);
        if (plain_fn(a) != NULL)
            plain_fn(a)(a->data);
        else
            state_fn(a)(a->data, a->by_mutex.name, &state);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    }
    c.returned = true;
    pthread_cleanup_pop(1);
    pthread_setcancelstate(c.cancel, NULL);
}

static void run_result(void *arg)
{
    struct actor *a = arg;
    struct callback c = callback_begin(a, "done", 0, a->job_at);
    const struct call *call = first_result(a);
    c.results = true;
    locker_say(a, call);
    pthread_cleanup_push(callback_over, &c);
    pthread_setcancelstate(c.cancel, NULL);
    call->on_done(call->data, call->code);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    c.returned = true;
    pthread_cleanup_pop(1);
    pthread_setcancelstate(c.cancel, NULL);
}

/* A danger that has passed, or come true, while it was queued is not told. */
static void run_endangered(void *arg)
{
    struct actor *a = arg;
    struct actor_extra *x = actor_extra(a);
    struct callback c = callback_begin(a, "on_endangered", x->job_token, x->job_at);
    int64_t left = x->ends_at - c.began;
    c.warns = true;
    c.ran = left > 0 && actor_owns(a, x->job_token);
    pthread_cleanup_push(callback_over, &c);
    if (c.ran) {
        pthread_setcancelstate(c.cancel, NULL);
        x->on_endangered(a->data, a->by_mutex.name, left / NS_PER_MS);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    }
    c.returned = true;
    pthread_cleanup_pop(1);
    pthread_setcancelstate(c.cancel, NULL);
}

/* What the user's executor is given. User code on the loop would hold up every renewal, so an
 * executor that calls this within submit, or later on the loop, has it moved. */
static void run_or_move(struct actor *a, struct job *job, bool *moved)
{
    struct simba_client *s = a->client;
    if (!driver_is_here(s)) {
        job->run(a);
        return;
    }
    *moved = true;
    log_put(&s->log, SIMBA_LOG_WARN,
            "mutex '%s': your executor would run a callback inside submit, it runs on a thread of "
            "ours",
            a->by_mutex.name);
    executor_submit(&s->executor, job);
}

static void run_for_user(void *arg)
{
    struct actor *a = arg;
    run_or_move(a, &a->job, &a->job_moved);
}

static void warn_for_user(void *arg)
{
    struct actor *a = arg;
    run_or_move(a, &actor_extra(a)->job, &actor_extra(a)->job_moved);
}

static void hand_over(struct actor *a, struct job *job, void (*for_user)(void *), bool *moved)
{
    struct simba_client *s = a->client;
    *moved = false;
    if (s->has_executor_user) {
        if (s->executor_user.submit(s->executor_user.data, for_user, a) == 0 || *moved)
            return;
        log_put(&s->log, SIMBA_LOG_WARN,
                "mutex '%s': your executor refused a callback, it runs on a thread of ours",
                a->by_mutex.name);
    }
    executor_submit(&s->executor, job);
}

/* One at a time; a locker's results go first. */
void callback_submit(struct actor *a)
{
    bool is_result = first_result(a) != NULL;
    if (a->job.run != NULL || (!is_result && a->machine.callback == CALLBACK_NONE))
        return;
    a->job = (struct job){.run = is_result ? run_result : run_callback, .arg = a};
    if (!is_result && plain_fn(a) == NULL && state_fn(a) == NULL) {
        post_done(a, true);
        return;
    }
    a->job_at = clock_now();
    hand_over(a, &a->job, run_for_user, &a->job_moved);
}

void callback_warn(struct actor *a, int64_t ends_at)
{
    struct actor_extra *x = actor_extra(a);
    x->job = (struct job){.run = run_endangered, .arg = a};
    x->job_token = a->machine.lease.token;
    x->job_at = clock_now();
    x->ends_at = ends_at;
    hand_over(a, &x->job, warn_for_user, &x->job_moved);
}

void callback_dispatch(struct actor *a, const struct handle_update *up)
{
    struct actor *parent = actor_parent(a);
    bool has_children = a->machine.kind == HANDLE_OBSERVER && a->children > 0;
    a->job_callback = (uint8_t)up->callback;
    a->job_reason = (uint8_t)actor_end_reason(a, up->reason);
    a->job_token = a->machine.lease.token;
    if (up->callback == CALLBACK_CLOSED && has_children) { /* the last of them goes on from here */
        a->childless = true;
        return;
    }
    /* What is seen while the callback waits for a thread is the next change, with its own reason. */
    if (up->callback == CALLBACK_CHANGED && (a->to_report = malloc(sizeof *a->to_report)) != NULL)
        state_show(a, a->to_report);
    if (up->callback == CALLBACK_RELEASED && scheduler_end(a))
        return; /* until POST_LEFT */
    callback_submit(a);
    if (up->callback == CALLBACK_CLOSED && parent != NULL && --parent->children == 0 &&
        parent->childless)
        callback_submit(parent);
}
