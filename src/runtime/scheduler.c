/* scheduler.c: work that runs on the leader only.
 *
 * A scheduler is a contender whose callbacks are ours: they call the user's. So simba_scheduler and
 * simba_contender are two names of one actor; what is added hangs on its `data` and goes with
 * on_closed.
 *
 *   executor  on_acquired                                                  on_released
 *                        \                                                 /
 *   loop                  waits until a run is due, submits it ... POST_LEFT
 *                              \               / POST_LEFT      /
 *   workers                     work -----------          work --
 *
 * While no run is at work there is no thread: the loop waits, with a timer. When on_released is due
 * while a run is at work, the loop keeps it back until the run has ended (scheduler_end). From the
 * first to the last of this the machine has user code running, so nothing is released (C4), and no
 * second tenure can begin. What is below "tenure" belongs to on_acquired, then in turns to the run
 * that is at work and, while none is, to the loop; each hands it on with a post. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/futex.h"
#include "core/schedule.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/options.h"
#include "runtime/scheduler.h"
#include "runtime/ticking.h"

struct scheduler {
    struct schedule schedule;
    struct ticking *ticking; /* NULL: it has no ticks */
    simba_work_fn *work;
    simba_state_fn *on_acquired, *on_released; /* the user's, with data */
    simba_endangered_fn *on_endangered;
    void (*on_stopped)(void *data);
    void (*on_closed)(void *data);
    void *data;
    struct actor *actor; /* known since the first callback */
    struct job job;
    struct timer timer; /* the loop's: until the next run is due, … */
    bool at_work;       /* … or one is at work */

    /* tenure */
    uint64_t token;
    int64_t due;       /* NEVER: no run comes any more */
    int64_t began;     /* the last run */
    uint64_t failures; /* in a row */
};

/* ---- a run, as its work sees it ------------------------------------------------------------ */

bool simba_run_should_stop(const simba_run *run)
{
    return run == NULL || !actor_owns(run->actor, run->token);
}

uint64_t simba_run_token(const simba_run *run)
{
    return run != NULL ? run->token : 0;
}

int64_t simba_run_tick(const simba_run *run)
{
    return run != NULL ? run->tick : 0;
}

/* What ends a tenure changes `changes`, except for the clock. */
bool simba_run_wait(const simba_run *run, int64_t ms)
{
    if (run == NULL)
        return true;
    struct actor *a = run->actor;
    int64_t end = clock_after_ms(clock_now(), ms < 0 ? 0 : ms), left_ms;
    for (;;) {
        uint32_t changes = atomic_load(&a->changes); /* first this, so that no change is missed */
        bool owns = actor_token(a, &left_ms) == run->token;
        int64_t now = clock_now();
        if (!owns || now >= end)
            return !owns;
        int64_t until = clock_after_ms(now, left_ms + 1);
        futex_wait(&a->changes, changes, until < end ? until : end);
    }
}

/* ---- a run --------------------------------------------------------------------------------- */

/* failure NULL: it went well. is_done: its tick is. Of a work that fails for long, ever fewer runs are logged. */
static void ended(struct scheduler *x, int code, const char *failure, bool is_done)
{
    struct log *log = &x->actor->client->log;
    const char *mutex = x->actor->by_mutex.name;
    trace_run(x->actor, x->token, x->began, code);
    actor_ask_progress(x->actor, false);
    if (x->ticking != NULL) {
        ticking_end(x->ticking, &(struct simba_run){.actor = x->actor, .token = x->token}, is_done);
        x->due = x->ticking->due;
    } else {
        x->due = schedule_next(&x->schedule, x->due, clock_now());
    }
    if (failure == NULL && x->failures > 0)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s': the scheduled work is fine after %llu failures",
                mutex, (unsigned long long)x->failures);
    x->failures = failure == NULL ? 0 : x->failures + 1;
    if ((x->failures & (x->failures - 1)) == 0 && failure != NULL)
        log_put(log, SIMBA_LOG_WARN,
                "mutex '%s': the scheduled work %s, %llu times in a row; the schedule goes on",
                mutex, failure, (unsigned long long)x->failures);
}

/* The last of a run; the scheduler may be gone when this returns. */
static void leave(struct scheduler *x)
{
    struct actor *a = x->actor;
    struct simba_client *s = a->client;
    thread_client = NULL;
    thread_actor = NULL;
    driver_lock(s);
    turn_post_locked(a, POST_LEFT);
    driver_unlock(s);
}

/* By pthread_exit, or because it was cancelled. */
static void thread_ended(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    ended(arg, SIMBA_ECANCELED, "ended its thread", true);
    leave(arg);
}

/* May the work begin? */
static bool begins(struct scheduler *x, struct simba_run *run)
{
    if (x->ticking == NULL)
        return true;
    bool begins = ticking_begin(x->ticking, run);
    x->due = x->ticking->due;
    return begins;
}

/* On a thread of the workers. Only the work may be cancelled. */
static void run_work(void *arg)
{
    struct scheduler *x = arg;
    struct simba_run run = {.actor = x->actor, .token = x->token};
    char failure[32];
    int cancel, code = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (!actor_owns(x->actor, x->token)) {
        x->due = NEVER;
    } else if (begins(x, &run)) {
        thread_client = x->actor->client; /* so that the work cannot wait for itself */
        thread_actor = x->actor;
        actor_ask_progress(x->actor, true);
        x->began = clock_now();
        pthread_cleanup_push(thread_ended, x);
        pthread_setcancelstate(cancel, NULL);
        code = x->work(x->data, &run);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
        pthread_cleanup_pop(0);
        snprintf(failure, sizeof failure, "returned %d", code);
        ended(x, code, code != 0 ? failure : NULL, code != SIMBA_ECANCELED);
    }
    leave(x);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void on_released(void *data, const char *mutex, const struct simba_state *state);

/* NULL: it is no scheduler's. */
static struct scheduler *scheduler_of(const struct actor *a)
{
    return a->on_released == on_released ? a->data : NULL;
}

/* Set only while it leads: on_closed frees the scheduler. */
static void set_timer(struct scheduler *x, struct actor *a)
{
    bool leads = a->machine.acquired_ran && a->machine.callback == CALLBACK_NONE;
    if (leads && !x->at_work)
        timers_set_about(&a->client->timers, &x->timer, clock_now(), x->due);
}

/* Begins the run that is due. */
static void expire(struct timer *timer)
{
    struct scheduler *x =
        (struct scheduler *)(void *)((char *)timer - offsetof(struct scheduler, timer));
    struct actor *a = x->actor;
    if (!actor_owns(a, x->token))
        return;
    if (x->ticking != NULL && !ticking_is_due(x->ticking)) {
        x->due = x->ticking->due;
        set_timer(x, a);
        return;
    }
    x->job = (struct job){.run = run_work, .arg = x};
    x->at_work = true;
    if (executor_submit(&a->client->workers, &x->job) == 0)
        return;
    x->at_work = false;
    log_put(
        &x->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s': no thread can be started for the scheduled work; the contender is stopped, "
        "start it again when there are fewer threads",
        x->actor->by_mutex.name);
    x->due = NEVER;
    (void)simba_contender_stop((simba_contender *)(void *)a); /* it makes room for others */
}

void scheduler_left(struct actor *a)
{
    struct scheduler *x = scheduler_of(a);
    if (x == NULL)
        return;
    x->at_work = false;
    set_timer(x, a);
}

void scheduler_go_on(struct actor *a)
{
    struct scheduler *x = scheduler_of(a);
    if (x != NULL)
        set_timer(x, a);
}

bool scheduler_end(struct actor *a)
{
    struct scheduler *x = scheduler_of(a);
    if (x == NULL)
        return false;
    timers_set(&a->client->timers, &x->timer, NEVER);
    return x->at_work;
}

bool scheduler_has_ticks(const struct actor *a)
{
    const struct scheduler *x = scheduler_of(a);
    return x != NULL && x->ticking != NULL;
}

/* ---- callbacks ----------------------------------------------------------------------------- */

/* After the user's on_acquired, also if that has ended its thread. */
static void begin_schedule(void *arg)
{
    struct scheduler *x = arg;
    x->due = schedule_first(&x->schedule, clock_now());
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct scheduler *x = data;
    x->actor = thread_actor;
    x->token = state->after.token;
    x->failures = 0;
    if (x->ticking != NULL)
        ticking_lead(x->ticking, x->actor);
    pthread_cleanup_push(begin_schedule, x);
    if (x->on_acquired != NULL)
        x->on_acquired(x->data, mutex, state);
    pthread_cleanup_pop(1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct scheduler *x = data;
    if (x->ticking != NULL)
        ticking_leave(x->ticking);
    if (x->on_released != NULL)
        x->on_released(x->data, mutex, state);
}

static void on_endangered(void *data, const char *mutex, int64_t left_ms)
{
    struct scheduler *x = data;
    x->on_endangered(x->data, mutex, left_ms);
}

static void on_stopped(void *data)
{
    struct scheduler *x = data;
    x->on_stopped(x->data);
}

static void free_scheduler(void *arg)
{
    struct scheduler *x = arg;
    free(x->ticking);
    free(x);
}

static void on_closed(void *data)
{
    struct scheduler *x = data;
    pthread_cleanup_push(free_scheduler, x);
    if (x->on_closed != NULL)
        x->on_closed(x->data);
    pthread_cleanup_pop(1);
}

/* ---- the public face ----------------------------------------------------------------------- */

int simba_scheduler_create(simba_client *s, const char *mutex,
                           const struct simba_schedule *schedule, simba_work_fn *work,
                           const struct simba_handle_options *options, simba_scheduler **out)
{
    struct simba_handle_options o = {0};
    struct simba_schedule taken;
    struct schedule parsed;
    const char *why;
    simba_contender *contender = NULL;
    if (s == NULL || schedule == NULL || work == NULL || out == NULL)
        return error_say(SIMBA_EINVAL,
                         "simba_scheduler_create needs a client, a schedule, a work and a "
                         "place for the result");
    *out = NULL;
    int rc = options_take(&options_of_schedule, schedule, &taken);
    if (rc == 0)
        rc = options_take(&options_of_handle, options, &o);
    if (rc < 0)
        return rc;
    const char *name = mutex != NULL ? mutex : "";
    rc = schedule_init(&parsed, &taken, &why);
    if (rc < 0)
        return error_on(rc, name, NULL, "%s", why);
    if (schedule_has_ticks(&taken) && o.note != NULL)
        return error_on(SIMBA_EINVAL, name, NULL,
                        "a schedule with ticks keeps them in the note of the mutex, so "
                        "it cannot have a note of yours");
    struct ticking *ticking = NULL;
    rc = schedule_has_ticks(&taken) ? ticking_create(&taken, &ticking) : 0;
    if (rc < 0)
        return rc;
    struct scheduler *x = malloc(sizeof *x);
    if (x == NULL) {
        free(ticking);
        return error_on(SIMBA_ELIMIT, name, NULL, "out of memory");
    }
    *x = (struct scheduler){
        .schedule = parsed,
        .ticking = ticking,
        .timer = {.expire = expire},
        .work = work,
        .on_acquired = o.on_acquired,
        .on_released = o.on_released,
        .on_endangered = o.on_endangered,
        .on_stopped = o.on_stopped,
        .on_closed = o.on_closed,
        .data = o.data,
    };
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_endangered = o.on_endangered != NULL ? on_endangered : NULL;
    o.on_stopped = o.on_stopped != NULL ? on_stopped : NULL;
    o.on_closed = on_closed;
    o.data = x;
    rc = simba_contender_create(s, mutex, &o, &contender);
    if (rc < 0)
        free_scheduler(x);
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
