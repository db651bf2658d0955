/* candidate.c: see candidate.h.
 *
 * elect does not wait for CMD before on_released, which the library calls as soon as the tenure
 * is lost; the work of schedule waits, so there the main thread finds a loss by asking. The
 * library keeps the tenure until on_released, or the work, returns. */
#include "cli/run/candidate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/run/guard.h"
#include "cli/run/hindrance.h"
#include "cli/run/listen.h"
#include "cli/run/relay.h"
#include "cli/run/run_options.h"
#include "cli/run/service_watchdog.h"
#include "cli/shown.h"

#define BUSY_MS 100     /* how soon it is seen that a tenure was lost under schedule's work … */
#define IDLE_MS 1000    /* … otherwise the library calls us */
#define STOPPING_MS 10  /* how soon it is seen that all is over */
#define SILENCE_MS 1000 /* of a store, before it is asked what is wrong */
#define SAID_MS 5000    /* one that is silent is said to be so, as late as it can be known why */
#define READ_TIMEOUT_MS 1000
#define CLOSE_TIMEOUT_MS 5000

void candidate_end(struct candidate *c, int code)
{
    struct keeper *k = &c->keeper;
    pthread_mutex_lock(&k->lock);
    c->end = end_with(code);
    pthread_mutex_unlock(&k->lock);
    keeper_wake(k);
}

void candidate_flush(struct candidate *c)
{
    struct step flushed = flush_stdout(c->keeper.opts->c);
    if (flushed.ends)
        candidate_end(c, flushed.code);
}

/* ---- what the keeper asks ------------------------------------------------------------------ */

static int64_t remaining_ms(void *data, uint64_t token)
{
    const struct candidate *c = data;
    int64_t left = simba_contender_remaining(c->contender);
    return simba_contender_owns(c->contender, token) ? left : 0;
}

static void on_outcome(void *data, const struct outcome *o)
{
    struct candidate *c = data;
    if (!c->accepts(c->data, o))
        c->leave = STEP_DOWN;
}

static void stop(struct candidate *c)
{
    keeper_stop(&c->keeper);
    c->again_at = 0;
    simba_contender_stop(c->contender); /* fails only if it is stopped already */
}

/* Who hangs would hang again: the others have a lease to take over. */
static int64_t pause_after_stall(const struct candidate *c)
{
    const struct run_options *opts = c->keeper.opts;
    char pause[24];
    int64_t lease_ms = opts->c->ttl_ms + opts->c->transition_ms;
    print_note(opts->c, "mutex '%s' on %s: left to others for a lease, %s", opts->mutex,
               opts->c->store, show_duration(lease_ms, pause));
    return lease_ms * NS_PER_MS + opts->kill_after;
}

/* A hook has failed. */
static int64_t pause_after_failure(const struct candidate *c)
{
    const struct run_options *opts = c->keeper.opts;
    char pause[24];
    print_note(opts->c, "mutex '%s' on %s: left to others for a ttl, %s", opts->mutex,
               opts->c->store, show_duration(opts->c->ttl_ms, pause));
    return opts->c->ttl_ms * NS_PER_MS;
}

/* A scheduler has stopped itself, and its error was shown (says_errors): what comes next, once until it
 * leads again, or can. */
static void on_stopped_itself(struct candidate *c, int64_t ttl_ms)
{
    const struct run_options *opts = c->keeper.opts;
    char pause[24];
    if (opts->fail_fast) {
        c->end = print_error(opts->c,
                             "mutex '%s' on %s: contending has stopped; giving up (--fail-fast)",
                             opts->mutex, opts->c->store);
    } else if (!c->is_stop_said) {
        print_error(opts->c, "mutex '%s' on %s: contending has stopped; trying again every %s",
                    opts->mutex, opts->c->store, show_duration(ttl_ms, pause));
    }
    c->is_stop_said = true;
}

/* --fail-fast: a schedule that leads and runs nothing, since a tick of the future is claimed, is as
 * good as none. The library has said why. */
static void check_schedule(struct candidate *c)
{
    const struct run_options *opts = c->keeper.opts;
    struct simba_metrics m = SIMBA_METRICS_INIT;
    if (!opts->fail_fast || c->end.ends || simba_metrics_read(opts->c->client, &m) != 0 ||
        m.schedules_blocked == 0)
        return;
    c->end = print_error(opts->c, "mutex '%s' on %s: nothing runs; giving up (--fail-fast)",
                         opts->mutex, opts->c->store);
}

/* It is stopped by us; or by itself, when a scheduler finds a note that is not of a schedule, may not write
 * its own, or has got no thread for its work. */
static void stop_or_start(struct candidate *c, bool is_idle)
{
    const struct run_options *opts = c->keeper.opts;
    int64_t now = clock_now(), later = now + opts->c->ttl_ms * NS_PER_MS;
    uint64_t ended = c->keeper.ended_by_guard;
    if (ended != c->left_tenure && c->keeper.ended_reason == SIMBA_STALLED)
        c->leave = STEP_BACK;
    else if (ended != c->left_tenure && opts->on_released != NULL && c->leave == STAY)
        c->leave = STEP_ASIDE; /* on_released has been begun, so the tenure must not go on */
    c->left_tenure = ended;
    if (c->leave != STAY && c->again_at == 0) {
        c->again_at = c->leave == STEP_BACK   ? now + pause_after_stall(c)
                      : c->leave == STEP_DOWN ? now + pause_after_failure(c)
                                              : now;
        if (c->leave == STEP_DOWN ||
            simba_contender_fail(c->contender, ended, c->keeper.ended_reason) != 0)
            simba_contender_stop(c->contender);
    } else if (is_idle && c->again_at == 0) {
        c->again_at = later;
        on_stopped_itself(c, opts->c->ttl_ms);
    } else if (is_idle && now >= c->again_at) {
        c->again_at = 0;
        simba_contender_start(c->contender);
    }
    c->leave = STAY;
}

static bool runs_cmd(const struct keeper *k)
{
    return k->job.kind == JOB_CMD && k->job.is_wanted && k->job.is_sent && !k->job.is_over;
}

/* From when the start is through. Of an owner it is said that its renewals fail. */
static void tell_hindrance(struct candidate *c)
{
    struct simba_trouble t = {.code = 0};
    if (!c->is_started)
        return;
    if (!simba_contender_is_owner(c->contender))
        simba_contender_trouble(c->contender, &t);
    hindrance_tell(&c->hindrance, c->keeper.opts, &t, SIMBA_FOREVER);
}

/* A signal that ends us went to CMD, too. CMD may take its time, under the mutex, as under simba lock:
 * the lease is renewed until it has ended. */
static bool on_turn(void *data, int *pause_ms)
{
    struct candidate *c = data;
    const struct keeper *k = &c->keeper;
    bool is_idle = simba_contender_status(c->contender) == SIMBA_INITIAL;
    if (k->is_guard_dead && !c->end.ends)
        c->end = end_with(EXIT_TROUBLE);
    check_schedule(c);
    if (!k->is_stopping && (c->end.ends || (k->has_ending_signal && !runs_cmd(k))))
        stop(c);
    else if (k->is_stopping && is_idle)
        return false;
    *pause_ms = STOPPING_MS;
    if (k->is_stopping)
        return true;
    stop_or_start(c, is_idle);
    tell_hindrance(c);
    bool is_awaited = k->job.is_wanted && !k->job.is_over && !k->job.is_detached;
    *pause_ms = is_awaited || c->again_at != 0 ? BUSY_MS : IDLE_MS;
    return true;
}

/* ---- the beginning and the end ------------------------------------------------------------- */

/* On a terminal: whom we wait for. */
static void report_owner(const struct candidate *c)
{
    const struct run_options *opts = c->keeper.opts;
    struct simba_owner o;
    char since[24];
    if (opts->c->quiet || isatty(STDERR_FILENO) == 0 ||
        simba_read(opts->c->client, opts->mutex, READ_TIMEOUT_MS, &o) != 0 || o.id[0] == '\0' ||
        strcmp(o.id, c->keeper.id) == 0)
        return;
    print_note(opts->c, "waiting for '%s' on %s: held by %s%s%s", opts->mutex, opts->c->store, o.id,
               o.acquired_at != 0 ? " for " : "",
               o.acquired_at != 0 ? show_duration(simba_now() - o.acquired_at, since) : "");
}

/* What is wrong with a store that does not answer. */
static void say_silence(const struct run_options *opts, int rc, const struct simba_trouble *t,
                        int64_t left_ms)
{
    char left[24], next[80] = "; trying again until it works";
    if (opts->fail_fast && left_ms == 0)
        snprintf(next, sizeof next, "; giving up (--fail-fast)");
    else if (opts->fail_fast)
        snprintf(next, sizeof next, "; trying again for another %s (--fail-fast)",
                 show_duration(left_ms, left));
    if (rc != 0)
        print_error(opts->c, "%s%s", simba_error_text(), next);
    else
        print_error(opts->c, "mutex '%s' on %s: %s%s", opts->mutex, opts->c->store, t->text, next);
}

/* Says it once, and then only that the store answers, or that we give up. */
static void *report_startup(void *arg)
{
    struct candidate *c = arg;
    const struct run_options *opts = c->keeper.opts;
    struct simba_owner owner;
    struct patience patience = hindrance_patience();
    for (bool has_failed = false;;) {
        int rc = simba_contender_wait(c->contender, SIMBA_RUNNING,
                                      has_failed && !opts->fail_fast ? SIMBA_FOREVER : SILENCE_MS);
        if (rc == 0) {
            relay_notify_ready();
            if (has_failed)
                print_note(opts->c, "mutex '%s': %s answers again", opts->mutex, opts->c->store);
            report_owner(c);
            c->is_started = true;
            return NULL;
        }
        if (rc != SIMBA_ETIMEOUT)
            return NULL;
        struct simba_trouble t = {.code = 0};
        rc = simba_read(opts->c->client, opts->mutex, READ_TIMEOUT_MS, &owner);
        simba_contender_trouble(c->contender, &t);
        int64_t left = hindrance_left_ms(&patience, &t);
        bool is_early = simba_now() - patience.began < SAID_MS;
        bool is_end = opts->fail_fast && left == 0;
        if ((rc == 0 && !hindrance_is_away(&t)) ||
            (is_early && (opts->fail_fast || rc == SIMBA_ETIMEOUT)))
            continue;
        if (!has_failed || is_end)
            say_silence(opts, rc, &t, left);
        has_failed = true;
        if (is_end) {
            candidate_end(c, EXIT_TROUBLE);
            return NULL;
        }
    }
}

static int contend(struct candidate *c)
{
    struct keeper *k = &c->keeper;
    pthread_t thread;
    k->data = c;
    k->id = simba_contender_id(c->contender);
    k->remaining_ms = remaining_ms;
    k->on_turn = on_turn;
    k->on_outcome = on_outcome;
    simba_contender_start(c->contender);
    if (pthread_create(&thread, NULL, report_startup, c) == 0)
        pthread_detach(thread);
    keeper_run(k);
    listen_end(k->opts);
    service_watchdog_end();
    simba_close(k->opts->c->client, CLOSE_TIMEOUT_MS);
    return c->end.code;
}

void candidate_run(struct candidate *c, const struct run_options *opts,
                   struct step (*create)(void *data))
{
    struct step step = keeper_begin(&c->keeper, opts);
    step = AND_THEN(step, create(c->data));
    step = AND_THEN(step, listen_begin(opts, c->contender, NULL));
    int code = step.ends ? step.code : contend(c);
    listen_end(opts);
    guard_end(c->keeper.guard);
    fflush(stdout);
    _exit(code);
}
