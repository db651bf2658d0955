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
 * While no run is at work there is no thread: the loop waits, with a timer. When on_released is due while a
 * run is at work, the loop keeps it back until the run has ended (scheduler_end). From the first to the last of this the machine has user code
 * running, so nothing is released (C4), and no second tenure can begin. What is below "tenure"
 * belongs to on_acquired, then in turns to the run that is at work and, while none is, to the
 * loop; each hands it on with a post. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/text.h"
#include "core/failure.h"
#include "core/schedule.h"
#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/inquiry.h"
#include "runtime/note.h"
#include "runtime/options.h"
#include "runtime/scheduler.h"
#include "runtime/ticking.h"

#define CLAIM_TIMEOUT_MS 2000 /* of one attempt to read or write the note … */
#define CLAIM_PAUSE_MS 500    /* … and from one that failed to the next */
#define REPORT_LEASES 4       /* that a clock is wrong is said this often, as long as it is */
#define TAKEOVER_LEASES 2     /* so late is a leader that takes over, at most */

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
    bool has_read;     /* of ticks: what was claimed before, and the store's clock */
    bool is_blocked;   /* what is claimed is long to come … */
    bool is_apart;     /* … this machine's clock is not the store's: both are counted */
    int64_t report_at; /* that is said again */
};

/* ---- a run, as its work sees it ------------------------------------------------------------ */

struct simba_run {
    struct actor *actor;
    uint64_t token;
    int64_t tick;
};

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

/* ---- clocks that are wrong ----------------------------------------------------------------- */

static void count_if(_Atomic uint64_t *gauge, bool *was, bool is)
{
    if (is && !*was)
        atomic_fetch_add(gauge, 1);
    else if (!is && *was)
        atomic_fetch_sub(gauge, 1);
    *was = is;
}

static void set_clocks(struct scheduler *x, bool is_blocked, bool is_apart)
{
    struct metrics *m = &x->actor->client->metrics;
    count_if(&m->schedules_blocked, &x->is_blocked, is_blocked);
    count_if(&m->schedules_apart, &x->is_apart, is_apart);
    if (!is_blocked && !is_apart)
        x->report_at = 0;
}

static void report_apart(const struct scheduler *x, int64_t apart_ms)
{
    int64_t s = (apart_ms < 0 ? -apart_ms : apart_ms) / 1000;
    log_put(
        &x->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s' on %s: the clock of this machine is %lld:%02d:%02d %s the store's: ticks go "
        "by the store's clock. Set the one that is wrong",
        x->actor->by_mutex.name, actor_store(x->actor), (long long)(s / 3600), (int)(s / 60 % 60),
        (int)(s % 60), apart_ms < 0 ? "behind" : "ahead of");
}

static void report_blocked(const struct scheduler *x)
{
    char tick[TICK_TEXT_SIZE], now[TICK_TEXT_SIZE];
    tick_write(tick, x->ticking->ticks.claimed);
    tick_write(now, ticking_now(x->ticking));
    log_put(
        &x->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s' on %s: nothing runs until tick %s, because it is claimed already; it is %s "
        "now. A clock was wrong when it was claimed, or is wrong now. Set the clocks, or have the "
        "claim forgotten: simba release --note %s",
        x->actor->by_mutex.name, actor_store(x->actor), tick, now, x->actor->by_mutex.name);
}

/* Counted and said as long as it is so. Where the clocks are apart ticks go on; a claim that is far ahead
 * is kept, since what it names has been run. */
static void check_clocks(struct scheduler *x)
{
    int64_t now = clock_now(), apart_ms = ticking_apart_ms(x->ticking);
    set_clocks(x, ticks_is_blocked(&x->ticking->ticks, ticking_now(x->ticking)), apart_ms != 0);
    if ((!x->is_blocked && !x->is_apart) || now < x->report_at)
        return;
    x->report_at = now + REPORT_LEASES * actor_period(x->actor)->lease;
    if (x->is_apart)
        report_apart(x, apart_ms);
    if (x->is_blocked)
        report_blocked(x);
}

/* What the store's clock shows may have changed, or this machine's has, since it was asked. */
static bool has_to_ask(const struct scheduler *x)
{
    bool is_apart = ticking_apart_ms(x->ticking) != 0;
    return is_apart != x->is_apart || ((is_apart || x->is_blocked) && ticking_is_old(x->ticking));
}

/* When the planned tick is looked at. */
static void await_tick(struct scheduler *x)
{
    int64_t due = ticking_due(x->ticking);
    x->due = x->report_at != 0 && x->report_at < due ? x->report_at : due;
}

/* ---- ticks --------------------------------------------------------------------------------- */

static simba_contender *contender_of(const struct scheduler *x)
{
    return (simba_contender *)(void *)x->actor;
}

/* A leader that cannot work makes room for others. */
static void give_up(struct scheduler *x)
{
    x->due = NEVER;
    (void)simba_contender_stop(contender_of(x));
}

/* What is not run, and why. */
static void report_missed(struct scheduler *x, int64_t first, bool is_first_plan, bool dropped)
{
    struct log *log = &x->actor->client->log;
    const char *mutex = x->actor->by_mutex.name, *store = actor_store(x->actor);
    char from[TICK_TEXT_SIZE], next[TICK_TEXT_SIZE];
    tick_write(from, first);
    tick_write(next, x->ticking->ticks.planned);
    if (dropped)
        log_put(log, SIMBA_LOG_ERROR,
                "mutex '%s' on %s: more than %d ticks were missed: those from %s on are dropped, "
                "the first that is made up is %s",
                mutex, store, TICKS_MADE_UP_MAX, from, next);
    else if (is_first_plan)
        log_put(log, SIMBA_LOG_ERROR,
                "mutex '%s' on %s: nobody has run the ticks from %s on, and they are not run any "
                "more; the next is %s",
                mutex, store, from, next);
    else
        log_put(log, SIMBA_LOG_INFO,
                "mutex '%s' on %s: the ticks from %s on came during the last run, and are not run; "
                "the next is %s",
                mutex, store, from, next);
}

static void plan_tick(struct scheduler *x)
{
    struct ticks *t = &x->ticking->ticks;
    bool is_first_plan = t->is_first, goes_on = t->claimed != 0 && !t->is_changed;
    int64_t next = goes_on ? ticks_after(t, t->claimed) : 0;
    bool dropped = ticks_plan(t, ticking_now(x->ticking));
    x->due = NEVER;
    if (t->planned != CALENDAR_NEVER)
        await_tick(x);
    if (goes_on && t->planned > next && t->planned != CALENDAR_NEVER)
        report_missed(x, next, is_first_plan, dropped);
}

/* Writes the note. An attempt without an answer is repeated: it is the same text. False: the tenure
 * is over, or there is no hope. */
static bool write_note(struct scheduler *x, const struct simba_run *run, const char *note)
{
    for (uint32_t failures = 1;; failures++) {
        int rc = note_publish(x->actor, x->token, note, CLAIM_TIMEOUT_MS);
        if (rc == 0)
            return !simba_run_should_stop(run);
        if (rc == SIMBA_ELOST || simba_run_should_stop(run))
            return false;
        if ((failures & (failures - 1)) == 0)
            log_put(&x->actor->client->log, failure_lasts(rc) ? SIMBA_LOG_ERROR : SIMBA_LOG_WARN,
                    "mutex '%s': its note '%s' cannot be written: %s%s", x->actor->by_mutex.name,
                    note, simba_error_text(),
                    failure_lasts(rc) ? "; the contender is stopped" : "; trying again");
        if (failure_lasts(rc)) {
            give_up(x);
            return false;
        }
        if (simba_run_wait(run, CLAIM_PAUSE_MS))
            return false;
    }
}

/* The note is not one that we can go on from. */
static void refuse_note(struct scheduler *x, int rc, const char *note)
{
    char shown[80];
    struct text text;
    text_init(&text, shown, sizeof shown);
    text_add_escaped(&text, note);
    log_put(&x->actor->client->log, SIMBA_LOG_ERROR,
            "mutex '%s' on %s: its note %s ('%s'), so no "
            "tick can be claimed in it; the contender is stopped. %s",
            x->actor->by_mutex.name, actor_store(x->actor),
            rc == SIMBA_EUNSUPPORTED ? "is of a newer version of simba" : "is not of a schedule",
            shown,
            rc == SIMBA_EUNSUPPORTED ? "Upgrade this one" : "Give the schedule a mutex of its own");
    give_up(x);
}

/* The first of a tenure: an older one can write no more, so what is claimed now stays. */
static void read_claimed(struct scheduler *x, const struct simba_run *run)
{
    struct ticks *t = &x->ticking->ticks;
    char started[TICKS_NOTE_SIZE];
    struct simba_note note;
    int64_t wall_ms;
    int rc = inquiry_read_note(x->actor->client, x->actor->by_mutex.name, CLAIM_TIMEOUT_MS, &note,
                               NULL, &wall_ms);
    if (rc < 0) {
        x->due = clock_after_ms(clock_now(), CLAIM_PAUSE_MS);
        log_put(&x->actor->client->log, failure_lasts(rc) ? SIMBA_LOG_ERROR : SIMBA_LOG_WARN,
                "mutex '%s': which tick is next cannot be read: %s%s", x->actor->by_mutex.name,
                simba_error_text(),
                failure_lasts(rc) ? "; the contender is stopped" : "; trying again");
        if (failure_lasts(rc))
            give_up(x);
        return;
    }
    ticking_set_store(x->ticking, wall_ms);
    t->grace = TAKEOVER_LEASES * actor_period(x->actor)->lease / NS_PER_MS;
    rc = ticks_begin(t, note.text);
    if (rc < 0) {
        refuse_note(x, rc, note.text);
        return;
    }
    if (ticks_start(t, ticking_now(x->ticking), started) && !write_note(x, run, started)) {
        x->due = NEVER;
        return;
    }
    x->has_read = true;
    check_clocks(x);
    plan_tick(x);
}

/* Before and after its run. False: not in this tenure. */
static bool note_tick(struct scheduler *x, const struct simba_run *run, bool has_run)
{
    char note[TICKS_NOTE_SIZE];
    struct ticks *t = &x->ticking->ticks;
    if (!ticks_note(t, has_run, note))
        return true;
    if (!write_note(x, run, note))
        return false;
    ticks_claimed(t);
    return true;
}

/* May the work begin? */
static bool begin_tick(struct scheduler *x, struct simba_run *run)
{
    if (x->ticking == NULL)
        return true;
    if (!x->has_read) {
        read_claimed(x, run);
        return false;
    }
    run->tick = x->ticking->ticks.planned;
    if (note_tick(x, run, false))
        return true;
    x->due = NEVER;
    return false;
}

/* The work has ended. */
static void end_tick(struct scheduler *x, bool is_done)
{
    struct simba_run run = {.actor = x->actor, .token = x->token};
    struct ticks *t = &x->ticking->ticks;
    x->due = NEVER;
    if (t->at_least_once && !is_done) {
        t->is_to_repeat = true;
        x->due = clock_after_ms(clock_now(), CLAIM_PAUSE_MS);
    } else if (note_tick(x, &run, true)) {
        plan_tick(x);
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
    if (x->ticking != NULL)
        end_tick(x, is_done);
    else
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
    } else if (begin_tick(x, &run)) {
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
    if (x->has_read && has_to_ask(x))
        x->has_read = false;
    else if (x->has_read)
        check_clocks(x);
    if (x->has_read && !ticks_is_due(&x->ticking->ticks, ticking_now(x->ticking))) {
        await_tick(x);
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
    give_up(x);
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
    x->has_read = false;
    x->report_at = 0;
    pthread_cleanup_push(begin_schedule, x);
    if (x->on_acquired != NULL)
        x->on_acquired(x->data, mutex, state);
    pthread_cleanup_pop(1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct scheduler *x = data;
    set_clocks(x, false, false);
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
        return fault(SIMBA_EINVAL,
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
        return fault_on(rc, name, NULL, "%s", why);
    if (schedule_has_ticks(&taken) && o.note != NULL)
        return fault_on(SIMBA_EINVAL, name, NULL,
                        "a schedule with ticks keeps them in the note of the mutex, so "
                        "it cannot have a note of yours");
    struct ticking *ticking = NULL;
    rc = schedule_has_ticks(&taken) ? ticking_create(&taken, &ticking) : 0;
    if (rc < 0)
        return rc;
    struct scheduler *x = malloc(sizeof *x);
    if (x == NULL) {
        free(ticking);
        return fault_on(SIMBA_ELIMIT, name, NULL, "out of memory");
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
