/* ticking.c: which tick a run is for, and that nobody else runs it.
 *
 * core/ticks.h knows the ticks. What it needs is here: a clock that all leaders agree on, and the
 * note of the mutex, in which a tick is claimed before its run and ended after it. The note is read
 * and written on the thread of the run, so that the loop never waits for the store. */
#include "runtime/ticking.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "core/failure.h"
#include "core/schedule.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/inquiry.h"
#include "runtime/options.h"
#include "runtime/zoneinfo.h"

#define RECHECK_MS 30000      /* so long a step of the wall clock may go unnoticed */
#define CLAIM_TIMEOUT_MS 2000 /* of one attempt to read or write the note … */
#define CLAIM_PAUSE_MS 500    /* … and from one that failed to the next */
#define LASTING_FAILURES 4    /* of attempts to read or write it, in a row */
#define REPORT_LEASES 4       /* that a clock is wrong is said this often, as long as it is */
#define TAKEOVER_LEASES 2     /* so late is a leader that takes over, at most */

/* ---- the clock that decides ----------------------------------------------------------------- */

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    return ns > 0 ? ns : 0;
}

/* Its steps since it was asked are not noticed, those of this machine's clock are. */
static int64_t store_now(const struct ticking *t)
{
    return t->asked_at != 0 ? clock_now() / NS_PER_MS + t->store_ahead : 0;
}

/* What the store's clock shows now; 0: unknown. */
static void set_store(struct ticking *t, int64_t wall_ms)
{
    t->asked_at = wall_ms != 0 ? clock_now() : 0;
    t->store_ahead = wall_ms - t->asked_at / NS_PER_MS;
}

/* Since 1970, by the clock that ticks go by; not below 0. */
static int64_t now_ms(const struct ticking *t)
{
    int64_t now = ticks_clock(wall_ns() / NS_PER_MS, store_now(t));
    return now > 0 ? now : 0;
}

/* How far the clock of this machine is ahead of the store's; 0: they agree, or that is not
 * known. */
static int64_t apart_ms_of(const struct ticking *t)
{
    int64_t own = wall_ns() / NS_PER_MS, store = store_now(t);
    return store != 0 && ticks_clock(own, store) != own ? own - store : 0;
}

/* The store was asked so long ago that its clock may have been set right, or wrong, since. */
static bool is_old(const struct ticking *t)
{
    return t->asked_at != 0 && clock_now() - t->asked_at > RECHECK_MS * NS_PER_MS;
}

/* When the planned tick is to be looked at, on the clock that decides: at its time, but soon enough
 * to notice a wall clock that steps. */
static int64_t planned_at(const struct ticking *t)
{
    int64_t now = clock_now(), wall = wall_ns();
    if (apart_ms_of(t) != 0)
        wall = store_now(t) * NS_PER_MS;
    int64_t left_ms = t->ticks.planned - wall / NS_PER_MS;
    if (left_ms > RECHECK_MS)
        return now + RECHECK_MS * NS_PER_MS;
    int64_t left = t->ticks.planned * NS_PER_MS - wall;
    return now + (left > 0 ? left : 0);
}

/* ---- clocks that are wrong ------------------------------------------------------------------ */

static void count_if(_Atomic uint64_t *gauge, bool *was, bool is)
{
    if (is && !*was)
        atomic_fetch_add(gauge, 1);
    else if (!is && *was)
        atomic_fetch_sub(gauge, 1);
    *was = is;
}

static void set_clocks(struct ticking *t, bool is_blocked, bool is_apart)
{
    struct metrics *m = &t->actor->client->metrics;
    count_if(&m->schedules_blocked, &t->is_blocked, is_blocked);
    count_if(&m->schedules_apart, &t->is_apart, is_apart);
    if (!is_blocked && !is_apart)
        t->report_at = 0;
}

static void report_apart(const struct ticking *t, int64_t apart_ms)
{
    int64_t s = (apart_ms < 0 ? -apart_ms : apart_ms) / 1000;
    log_put(
        &t->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s' on %s: the clock of this machine is %lld:%02d:%02d %s the store's: ticks go "
        "by the store's clock. Set the one that is wrong",
        t->actor->by_mutex.name, actor_store(t->actor), (long long)(s / 3600), (int)(s / 60 % 60),
        (int)(s % 60), apart_ms < 0 ? "behind" : "ahead of");
}

static void report_blocked(const struct ticking *t)
{
    char tick[TICK_TEXT_SIZE], now[TICK_TEXT_SIZE];
    tick_write(tick, t->ticks.claimed);
    tick_write(now, now_ms(t));
    log_put(
        &t->actor->client->log, SIMBA_LOG_ERROR,
        "mutex '%s' on %s: nothing runs until tick %s, because it is claimed already; it is %s "
        "now. A clock was wrong when it was claimed, or is wrong now. Set the clocks, or have the "
        "claim forgotten: simba release --note %s",
        t->actor->by_mutex.name, actor_store(t->actor), tick, now, t->actor->by_mutex.name);
}

/* Counted and said as long as it is so. Where the clocks are apart ticks go on; a claim that is far
 * ahead is kept, since what it names has been run. */
static void check_clocks(struct ticking *t)
{
    int64_t now = clock_now(), apart_ms = apart_ms_of(t);
    set_clocks(t, ticks_is_blocked(&t->ticks, now_ms(t)), apart_ms != 0);
    if ((!t->is_blocked && !t->is_apart) || now < t->report_at)
        return;
    t->report_at = now + REPORT_LEASES * actor_period(t->actor)->lease;
    if (t->is_apart)
        report_apart(t, apart_ms);
    if (t->is_blocked)
        report_blocked(t);
}

/* What the store's clock shows may have changed, or this machine's has, since it was asked. */
static bool has_to_ask(const struct ticking *t)
{
    bool is_apart = apart_ms_of(t) != 0;
    return is_apart != t->is_apart || ((is_apart || t->is_blocked) && is_old(t));
}

/* When the planned tick is looked at. */
static void await_tick(struct ticking *t)
{
    int64_t due = planned_at(t);
    t->due = t->report_at != 0 && t->report_at < due ? t->report_at : due;
}

/* ---- what is claimed -----------------------------------------------------------------------  */

/* A leader that cannot work makes room for others. */
static void give_up(struct ticking *t)
{
    t->due = NEVER;
    (void)simba_contender_stop((simba_contender *)(void *)t->actor);
}

/* That the note cannot be read or written is said ever more rarely. As long as it is so nothing runs, which
 * is an error when it lasts. */
static void report_failure(const struct ticking *t, uint64_t failures, int code, const char *what)
{
    bool is_error = failure_lasts(code) || failures >= LASTING_FAILURES;
    if ((failures & (failures - 1)) == 0)
        log_put(&t->actor->client->log, is_error ? SIMBA_LOG_ERROR : SIMBA_LOG_WARN,
                "mutex '%s': %s: %s%s", t->actor->by_mutex.name, what, simba_error_text(),
                failure_lasts(code) ? "; the contender is stopped" : "; trying again");
}

/* What is not run, and why. */
static void report_missed(struct ticking *t, int64_t first, bool is_first_plan, bool dropped)
{
    struct log *log = &t->actor->client->log;
    const char *mutex = t->actor->by_mutex.name, *store = actor_store(t->actor);
    char from[TICK_TEXT_SIZE], next[TICK_TEXT_SIZE];
    tick_write(from, first);
    tick_write(next, t->ticks.planned);
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

static void plan_tick(struct ticking *t)
{
    bool is_first_plan = t->ticks.is_first, goes_on = t->ticks.claimed != 0 && !t->ticks.is_changed;
    int64_t next = goes_on ? ticks_after(&t->ticks, t->ticks.claimed) : 0;
    bool dropped = ticks_plan(&t->ticks, now_ms(t));
    t->due = NEVER;
    if (t->ticks.planned != CALENDAR_NEVER)
        await_tick(t);
    if (goes_on && t->ticks.planned > next && t->ticks.planned != CALENDAR_NEVER)
        report_missed(t, next, is_first_plan, dropped);
}

/* Writes the note. An attempt without an answer is repeated: it is the same text. False: the tenure
 * is over, or there is no hope. */
static bool write_note(struct ticking *t, const struct simba_run *run, const char *note)
{
    char what[TICKS_NOTE_SIZE + 32];
    snprintf(what, sizeof what, "its note '%s' cannot be written", note);
    for (uint32_t failures = 1;; failures++) {
        int rc = note_publish(t->actor, run->token, note, CLAIM_TIMEOUT_MS);
        if (rc == 0)
            return !simba_run_should_stop(run);
        if (rc == SIMBA_ELOST || simba_run_should_stop(run))
            return false;
        report_failure(t, failures, rc, what);
        if (failure_lasts(rc)) {
            give_up(t);
            return false;
        }
        if (simba_run_wait(run, CLAIM_PAUSE_MS))
            return false;
    }
}

/* The note is not one that we can go on from. */
static void refuse_note(struct ticking *t, int rc, const char *note)
{
    char shown[80];
    struct text text;
    text_init(&text, shown, sizeof shown);
    text_add_escaped(&text, note);
    log_put(&t->actor->client->log, SIMBA_LOG_ERROR,
            "mutex '%s' on %s: its note %s ('%s'), so no "
            "tick can be claimed in it; the contender is stopped. %s",
            t->actor->by_mutex.name, actor_store(t->actor),
            rc == SIMBA_EUNSUPPORTED ? "is of a newer version of simba" : "is not of a schedule",
            shown,
            rc == SIMBA_EUNSUPPORTED ? "Upgrade this one" : "Give the schedule a mutex of its own");
    give_up(t);
}

/* The first of a tenure: an older one can write no more, so what is claimed now stays. */
static void read_claimed(struct ticking *t, const struct simba_run *run)
{
    char started[TICKS_NOTE_SIZE];
    struct simba_note note;
    int64_t wall_ms;
    int rc = inquiry_read_note(t->actor->client, t->actor->by_mutex.name, CLAIM_TIMEOUT_MS, &note,
                               NULL, &wall_ms);
    if (rc < 0) {
        t->due = clock_after_ms(clock_now(), CLAIM_PAUSE_MS);
        report_failure(t, ++t->unread, rc, "which tick is next cannot be read");
        if (failure_lasts(rc))
            give_up(t);
        return;
    }
    t->unread = 0;
    set_store(t, wall_ms);
    t->ticks.grace = TAKEOVER_LEASES * actor_period(t->actor)->lease / NS_PER_MS;
    rc = ticks_begin(&t->ticks, note.text);
    if (rc < 0) {
        refuse_note(t, rc, note.text);
        return;
    }
    if (ticks_start(&t->ticks, now_ms(t), started) && !write_note(t, run, started)) {
        t->due = NEVER;
        return;
    }
    t->has_read = true;
    check_clocks(t);
    plan_tick(t);
}

/* Before and after its run. False: not in this tenure. */
static bool note_tick(struct ticking *t, const struct simba_run *run, bool has_run)
{
    char note[TICKS_NOTE_SIZE];
    if (!ticks_note(&t->ticks, has_run, note))
        return true;
    if (!write_note(t, run, note))
        return false;
    ticks_claimed(&t->ticks);
    return true;
}

/* ---- a run and its tick --------------------------------------------------------------------- */

void ticking_lead(struct ticking *t, struct actor *a)
{
    t->actor = a;
    t->has_read = false;
    t->unread = 0;
    t->report_at = 0;
}

void ticking_leave(struct ticking *t)
{
    set_clocks(t, false, false);
}

bool ticking_is_due(struct ticking *t)
{
    if (t->has_read && has_to_ask(t))
        t->has_read = false;
    if (!t->has_read)
        return true;
    check_clocks(t);
    if (ticks_is_due(&t->ticks, now_ms(t)))
        return true;
    await_tick(t);
    return false;
}

bool ticking_begin(struct ticking *t, struct simba_run *run)
{
    if (!t->has_read) {
        read_claimed(t, run);
        return false;
    }
    run->tick = t->ticks.planned;
    if (note_tick(t, run, false))
        return true;
    t->due = NEVER;
    return false;
}

void ticking_end(struct ticking *t, const struct simba_run *run, bool is_done)
{
    t->due = NEVER;
    if (t->ticks.at_least_once && !is_done) {
        t->ticks.is_to_repeat = true;
        t->due = clock_after_ms(clock_now(), CLAIM_PAUSE_MS);
    } else if (note_tick(t, run, true)) {
        plan_tick(t);
    }
}

/* ---- schedules ------------------------------------------------------------------------------ */

int ticking_create(const struct simba_schedule *schedule, struct ticking **out)
{
    char why[CRON_WHY_SIZE];
    struct ticking *t = malloc(sizeof *t);
    if (t == NULL)
        return error_say(SIMBA_ELIMIT, "out of memory");
    t->ticks = (struct ticks){
        .period = schedule->period_ms,
        .missed = schedule->missed,
        .at_least_once = (schedule->flags & SIMBA_AT_LEAST_ONCE) != 0,
    };
    int rc = 0;
    if (schedule->pace == SIMBA_CRON) {
        t->ticks.cron = &t->cron;
        t->ticks.zone = &t->zone;
        rc = cron_parse(&t->cron, schedule->cron, why, sizeof why);
        if (rc < 0)
            error_say(rc, "cron expression '%.100s': %s", schedule->cron, why);
        else
            rc = zoneinfo_read(schedule->zone, &t->zone);
    }
    if (rc < 0) {
        free(t);
        return rc;
    }
    t->ticks.identity = ticks_identity(&t->ticks, schedule->zone);
    *out = t;
    return 0;
}

int simba_schedule_next(const struct simba_schedule *schedule, int64_t after_ms, int64_t *tick_ms,
                        int32_t *offset_s)
{
    struct simba_schedule taken;
    struct schedule parsed;
    struct ticking *t = NULL;
    const char *why;
    int64_t until;
    if (schedule == NULL || tick_ms == NULL || after_ms < 0)
        return error_say(
            SIMBA_EINVAL,
            "simba_schedule_next needs a schedule, a time of 0 or more, and a place for "
            "the result");
    int rc = options_take(&options_of_schedule, schedule, &taken);
    if (rc < 0)
        return rc;
    rc = schedule_init(&parsed, &taken, &why);
    if (rc < 0)
        return error_say(rc, "%s", why);
    if (!schedule_has_ticks(&taken))
        return error_say(SIMBA_EINVAL,
                         "a schedule has ticks with SIMBA_CRON or SIMBA_KEEP_PHASE only");
    rc = ticking_create(&taken, &t);
    if (rc < 0)
        return rc;
    assert(t != NULL);
    *tick_ms = ticks_after(&t->ticks, after_ms);
    if (offset_s != NULL)
        *offset_s = t->ticks.cron != NULL && *tick_ms != CALENDAR_NEVER
                        ? zone_offset(&t->zone, *tick_ms / 1000, &until)
                        : 0;
    free(t);
    return 0;
}
