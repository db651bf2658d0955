/* ticking.c: see ticking.h. */
#include "runtime/ticking.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "core/schedule.h"
#include "runtime/fault.h"
#include "runtime/options.h"
#include "runtime/zoneinfo.h"

#define RECHECK_MS 30000 /* so long a step of the wall clock may go unnoticed */

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

void ticking_set_store(struct ticking *t, int64_t wall_ms)
{
    t->asked_at = wall_ms != 0 ? clock_now() : 0;
    t->store_ahead = wall_ms - t->asked_at / NS_PER_MS;
}

int64_t ticking_now(const struct ticking *t)
{
    int64_t now = ticks_clock(wall_ns() / NS_PER_MS, store_now(t));
    return now > 0 ? now : 0;
}

int64_t ticking_apart_ms(const struct ticking *t)
{
    int64_t own = wall_ns() / NS_PER_MS, store = store_now(t);
    return store != 0 && ticks_clock(own, store) != own ? own - store : 0;
}

bool ticking_is_old(const struct ticking *t)
{
    return t->asked_at != 0 && clock_now() - t->asked_at > RECHECK_MS * NS_PER_MS;
}

int64_t ticking_due(const struct ticking *t)
{
    int64_t now = clock_now(), wall = wall_ns();
    if (ticking_apart_ms(t) != 0)
        wall = store_now(t) * NS_PER_MS;
    int64_t left_ms = t->ticks.planned - wall / NS_PER_MS;
    if (left_ms > RECHECK_MS)
        return now + RECHECK_MS * NS_PER_MS;
    int64_t left = t->ticks.planned * NS_PER_MS - wall;
    return now + (left > 0 ? left : 0);
}

int ticking_create(const struct simba_schedule *schedule, struct ticking **out)
{
    char why[CRON_WHY_SIZE];
    struct ticking *t = malloc(sizeof *t);
    if (t == NULL)
        return fault(SIMBA_ELIMIT, "out of memory");
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
            fault(rc, "cron expression '%.100s': %s", schedule->cron, why);
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
        return fault(SIMBA_EINVAL,
                     "simba_schedule_next needs a schedule, a time of 0 or more, and a place for "
                     "the result");
    int rc = options_take(&options_of_schedule, schedule, &taken);
    if (rc < 0)
        return rc;
    rc = schedule_init(&parsed, &taken, &why);
    if (rc < 0)
        return fault(rc, "%s", why);
    if (!schedule_has_ticks(&taken))
        return fault(SIMBA_EINVAL, "a schedule has ticks with SIMBA_CRON or SIMBA_KEEP_PHASE only");
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
