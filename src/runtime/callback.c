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
    turn_post_locked(a, NOTE_DONE);
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
    turn_post_locked(a, NOTE_LEFT);
    driver_unlock(s);
    free(first);
}

/* ---- a callback ---------------------------------------------------------------------------- */

/* One run of a callback, on the stack of its thread. */
struct callback {
    struct actor *actor;
    const struct call *result; /* that it tells; NULL: it is the machine's */
    struct simba_client *client_before;
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
    driver_lock(a->client);
    histogram_add(&a->client->metrics.callback_delay, delay);
    histogram_add(&a->client->metrics.callback, ran_for);
    driver_unlock(a->client);
    if (c->result != NULL)
        result_over(a);
    else
        post_done(a, c->ran);
}

/* Any but on_closed. */
static simba_state_fn *state_fn(const struct actor *a)
{
    return a->job_callback == CALLBACK_RELEASED ? a->on_released : a->on_acquired;
}

/* What the callback tells. */
static void get_state(struct actor *a, struct simba_state *state)
{
    state_show(a, state);
    if (a->job_callback == CALLBACK_CHANGED && a->to_report != NULL) {
        *state = *a->to_report;
        free(a->to_report);
        a->to_report = NULL;
    }
    if (a->job_callback != CALLBACK_CHANGED)
        state->reason = (enum simba_reason)a->job_reason;
}

/* On a thread of the executor. An acquisition that has ended while it was queued is not told. Only
 * the user's code may be cancelled, not ours around it. */
static void run(struct actor *a, const struct call *result)
{
    struct callback c = {a, result, thread_client, thread_actor, clock_now(), true, false, 0};
    struct simba_state state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
    thread_client = a->client;
    thread_actor = a;
    if (result != NULL)
        locker_say(a, result);
    else
        get_state(a, &state); /* before the check: so it shows the tenure that is checked */
    if (result == NULL && a->job_callback == CALLBACK_ACQUIRED)
        c.ran = actor_owns(a, a->job_token);
    pthread_cleanup_push(callback_over, &c);
    if (c.ran) {
        pthread_setcancelstate(c.cancel, NULL);
        if (result != NULL)
            result->on_done(result->data, result->code);
        else if (a->job_callback == CALLBACK_CLOSED)
            a->on_closed(a->data);
        else
            state_fn(a)(a->data, a->by_mutex.name, &state);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    }
    c.returned = true;
    pthread_cleanup_pop(1);
    pthread_setcancelstate(c.cancel, NULL);
}

static void run_callback(void *actor)
{
    run(actor, NULL);
}

static void run_result(void *actor)
{
    run(actor, first_result(actor));
}

/* What the user's executor is given. User code on the loop would hold up every renewal, so an
 * executor that calls this within submit, or later on the loop, has it moved. */
static void run_for_user(void *arg)
{
    struct actor *a = arg;
    struct simba_client *s = a->client;
    if (!driver_is_here(s)) {
        a->job.run(a);
        return;
    }
    a->job_moved = true;
    log_put(&s->log, SIMBA_LOG_WARN,
            "mutex '%s': your executor would run a callback inside submit, it runs on a thread of "
            "ours",
            a->by_mutex.name);
    executor_submit(&s->executor, &a->job);
}

/* One at a time; a locker's results go first. */
void callback_submit(struct actor *a)
{
    struct simba_client *s = a->client;
    bool is_result = first_result(a) != NULL;
    if (a->job.run != NULL || (!is_result && a->machine.callback == CALLBACK_NONE))
        return;
    a->job = (struct job){.run = is_result ? run_result : run_callback, .arg = a};
    if (!is_result &&
        (a->job_callback == CALLBACK_CLOSED ? a->on_closed == NULL : state_fn(a) == NULL)) {
        post_done(a, true);
        return;
    }
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

void callback_dispatch(struct actor *a, const struct handle_update *up)
{
    struct actor *parent = actor_parent(a);
    bool has_children = a->machine.kind == HANDLE_OBSERVER && a->children > 0;
    a->job_callback = (uint8_t)up->callback;
    a->job_reason = (uint8_t)up->reason;
    a->job_token = a->machine.lease.token;
    if (up->callback == CALLBACK_CLOSED && has_children) { /* the last of them goes on from here */
        a->childless = true;
        return;
    }
    /* What is seen while the callback waits for a thread is the next change, with its own reason. */
    if (up->callback == CALLBACK_CHANGED && (a->to_report = malloc(sizeof *a->to_report)) != NULL)
        state_show(a, a->to_report);
    if (up->callback == CALLBACK_RELEASED && scheduler_lingers(a, up->reason))
        return; /* until NOTE_LEFT */
    callback_submit(a);
    if (up->callback == CALLBACK_CLOSED && parent != NULL && --parent->children == 0 &&
        parent->childless)
        callback_submit(parent);
}
