/* scheduler.c: work that runs on the leader only.
 *
 * A scheduler is a contender whose callbacks are ours: they call the user's, and begin and end the
 * tenure of one thread. So simba_scheduler and simba_contender are two names of one actor; what is
 * added hangs on its `data` and goes with on_closed.
 *
 *   executor  on_acquired ------------------------------------------------------> on_released
 *                        \ starts                                    submitted by / joins
 *   thread                 work  work  work ................. ends, NOTE_LEFT --
 *   loop                                  / scheduler_lingers() wakes it
 *
 * Nobody waits for the thread: when on_released is due, the loop wakes it, and submits the
 * callback only when the thread has said that it is leaving. From the first to the last of this
 * the machine has user code running, so nothing is released (C4), and no second tenure, and so
 * no second thread, can begin. Between these moments the thread alone uses what is below
 * "tenure". */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "core/schedule.h"
#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/scheduler.h"

enum ends { GOES_ON, ENDS };

struct scheduler {
    struct schedule schedule;
    simba_work_fn *work;
    simba_state_fn *on_acquired, *on_released; /* the user's, with data */
    void (*on_closed)(void *data);
    void *data;
    struct actor *actor; /* known since the first callback */

    /* tenure */
    _Atomic uint32_t ends; /* futex: enum ends, set by the loop */
    uint64_t token;
    int64_t due;
    uint64_t failures; /* in a row */
    bool has_thread, has_before;
    pthread_t thread; /* that leaves, for on_released to join */
    pthread_t before; /* whose work ended it, for the next one to join */
};

struct simba_run {
    const struct actor *actor;
    uint64_t token;
};

bool simba_run_should_stop(const simba_run *run)
{
    return run == NULL || !actor_owns(run->actor, run->token);
}

uint64_t simba_run_token(const simba_run *run)
{
    return run != NULL ? run->token : 0;
}

/* ---- its thread ---------------------------------------------------------------------------- */

static void *lead(void *arg);

/* failure NULL: it went well. Of a work that fails for long, ever fewer runs are logged. */
static void ended(struct scheduler *x, const char *failure)
{
    struct log *log = &x->actor->client->log;
    const char *mutex = x->actor->by_mutex.name;
    actor_ask_progress(x->actor, false);
    x->due = schedule_next(&x->schedule, x->due, clock_now());
    if (failure == NULL && x->failures > 0)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': the scheduled work is fine after %llu failures",
                mutex, (unsigned long long)x->failures);
    x->failures = failure == NULL ? 0 : x->failures + 1;
    if ((x->failures & (x->failures - 1)) == 0 && failure != NULL)
        log_put(log, SIMBA_LOG_WARN,
                "mutex '%s': the scheduled work %s, %llu times in a row; the schedule goes on",
                mutex, failure, (unsigned long long)x->failures);
}

/* Only the work may be cancelled. */
static void run_once(struct scheduler *x)
{
    struct simba_run run = {.actor = x->actor, .token = x->token};
    actor_ask_progress(x->actor, true);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    int code = x->work(x->data, &run);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    char failure[32];
    snprintf(failure, sizeof failure, "returned %d", code);
    ended(x, code != 0 ? failure : NULL);
}

static void run_all(struct scheduler *x)
{
    while (!futex_wait(&x->ends, GOES_ON, x->due)) {
        if (actor_owns(x->actor, x->token))
            run_once(x);
        else /* the loop is about to say so */
            futex_wait(&x->ends, GOES_ON, NEVER);
    }
}

/* The last that the thread does; the scheduler may be gone when this returns. */
static void leave(struct scheduler *x)
{
    struct actor *a = x->actor;
    struct simba_client *s = a->client;
    futex_wait(&x->ends, GOES_ON, NEVER);
    x->thread = pthread_self();
    driver_lock(s);
    turn_post_locked(a, NOTE_LEFT);
    driver_unlock(s);
}

/* Whoever starts it does not learn which one it is: its work may end it, and be replaced, before
 * the starter looks. The last one says so itself. */
static int start_thread(struct scheduler *x)
{
    pthread_t unused;
    return thread_start(&unused, NULL, lead, x);
}

/* A leader that cannot work makes room for others. */
static void give_up(struct scheduler *x)
{
    log_put(
        &x->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s': no thread can be started for the scheduled work; the contender is stopped, "
        "start it again when there are fewer threads",
        x->actor->by_mutex.name);
    (void)simba_contender_stop((simba_contender *)(void *)x->actor);
}

/* The work has ended its thread, by pthread_exit or because it was cancelled. In its last moments
 * the thread starts one that goes on instead, and first joins it. */
static void replace(void *arg)
{
    struct scheduler *x = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    ended(x, "ended its thread");
    x->before = pthread_self();
    x->has_before = true;
    if (start_thread(x) == 0)
        return;
    x->has_before = false;
    give_up(x);
    leave(x);
}

static void *lead(void *arg)
{
    struct scheduler *x = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setname_np(pthread_self(), "simba-work");
    if (x->has_before)
        pthread_join(x->before, NULL);
    x->has_before = false;
    thread_client = x->actor->client; /* so that the work cannot wait for itself */
    thread_actor = x->actor;
    pthread_cleanup_push(replace, x);
    run_all(x);
    pthread_cleanup_pop(0);
    leave(x);
    return NULL;
}

/* ---- callbacks ----------------------------------------------------------------------------- */

/* After the user's on_acquired, also if that has ended its thread. */
static void begin_work(void *arg)
{
    struct scheduler *x = arg;
    x->due = schedule_first(&x->schedule, clock_now());
    x->has_thread = start_thread(x) == 0;
    if (!x->has_thread)
        give_up(x);
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct scheduler *x = data;
    x->actor = thread_actor;
    x->token = state->after.token;
    x->failures = 0;
    atomic_store(&x->ends, GOES_ON);
    pthread_cleanup_push(begin_work, x);
    if (x->on_acquired != NULL)
        x->on_acquired(x->data, mutex, state);
    pthread_cleanup_pop(1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct scheduler *x = data;
    if (x->has_thread)
        pthread_join(x->thread, NULL); /* it is leaving */
    x->has_thread = false;
    if (x->on_released != NULL)
        x->on_released(x->data, mutex, state);
}

static void on_closed(void *data)
{
    struct scheduler *x = data;
    pthread_cleanup_push(free, x);
    if (x->on_closed != NULL)
        x->on_closed(x->data);
    pthread_cleanup_pop(1);
}

bool scheduler_lingers(const struct actor *a)
{
    if (a->on_released != on_released)
        return false;
    struct scheduler *x = a->data;
    if (x->has_thread)
        futex_set(&x->ends, ENDS);
    return x->has_thread;
}

/* ---- the public face ----------------------------------------------------------------------- */

int simba_scheduler_create(simba_client *s, const char *mutex,
                           const struct simba_schedule *schedule, simba_work_fn *work,
                           const struct simba_handle_options *options, simba_scheduler **out)
{
    static const struct simba_handle_options defaults = SIMBA_HANDLE_OPTIONS_INIT;
    struct simba_handle_options o = defaults;
    struct schedule parsed;
    const char *why;
    simba_contender *contender = NULL;
    if (s == NULL || schedule == NULL || work == NULL || out == NULL)
        return fault(SIMBA_EINVAL,
                     "simba_scheduler_create needs a client, a schedule, a work and a "
                     "place for the result");
    *out = NULL;
    if (schedule->size != sizeof *schedule)
        return fault(SIMBA_EINVAL, "a schedule must start as SIMBA_SCHEDULE_INIT");
    if (options != NULL && options->size != sizeof *options)
        return fault(SIMBA_EINVAL, "handle options must start as SIMBA_HANDLE_OPTIONS_INIT");
    if (options != NULL)
        o = *options;
    const char *name = mutex != NULL ? mutex : "";
    int rc = schedule_init(&parsed, schedule, &why);
    if (rc < 0)
        return fault(rc, "mutex '%.70s': %s", name, why);
    struct scheduler *x = malloc(sizeof *x);
    if (x == NULL)
        return fault(SIMBA_ELIMIT, "mutex '%.70s': out of memory", name);
    *x = (struct scheduler){
        .schedule = parsed,
        .work = work,
        .on_acquired = o.on_acquired,
        .on_released = o.on_released,
        .on_closed = o.on_closed,
        .data = o.data,
    };
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_closed = on_closed;
    o.data = x;
    rc = simba_contender_create(s, mutex, &o, &contender);
    if (rc < 0)
        free(x);
    else
        actor_ask_progress(actor_of(contender), false); /* that begins with a run */
    *out = (simba_scheduler *)(void *)contender;
    return rc;
}

simba_contender *simba_scheduler_contender(simba_scheduler *x)
{
    return (simba_contender *)(void *)x;
}

void simba_scheduler_destroy(simba_scheduler *x)
{
    simba_contender_destroy((simba_contender *)(void *)x);
}
