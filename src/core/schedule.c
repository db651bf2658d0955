/* schedule.c: see schedule.h. The limits on what a user may set keep all sums far from overflow. */
#include "core/schedule.h"

#include <assert.h>
#include <stdbool.h>

#include "core/period.h"

static bool is_between(int64_t ms, int64_t least, int64_t most)
{
    return ms >= least && ms <= most;
}

/* NULL, or the rule that is broken. */
static const char *check_ticks(const struct simba_schedule *o)
{
    bool is_cron = o->pace == SIMBA_CRON, keeps_phase = (o->flags & SIMBA_KEEP_PHASE) != 0;
    if ((o->flags & ~(SIMBA_KEEP_PHASE | SIMBA_AT_LEAST_ONCE)) != 0)
        return "flags of the schedule must be SIMBA_KEEP_PHASE, SIMBA_AT_LEAST_ONCE, both or none";
    if (keeps_phase && o->pace != SIMBA_FIXED_RATE)
        return "SIMBA_KEEP_PHASE is for SIMBA_FIXED_RATE";
    if ((int)o->missed < SIMBA_MISSED_SKIP || (int)o->missed > SIMBA_MISSED_ALL)
        return "missed must be SIMBA_MISSED_SKIP, SIMBA_MISSED_ONCE or SIMBA_MISSED_ALL";
    if (!is_cron && (o->cron != NULL || o->zone != NULL))
        return "cron and zone are for SIMBA_CRON";
    if (is_cron && o->cron == NULL)
        return "SIMBA_CRON needs cron, as in \"30 3 * * *\"";
    if (!is_cron && !keeps_phase && (o->missed != SIMBA_MISSED_SKIP || o->flags != 0))
        return "missed and SIMBA_AT_LEAST_ONCE are for ticks: SIMBA_CRON or SIMBA_KEEP_PHASE";
    return NULL;
}

bool schedule_has_ticks(const struct simba_schedule *o)
{
    return o->pace == SIMBA_CRON || (o->flags & SIMBA_KEEP_PHASE) != 0;
}

int schedule_init(struct schedule *s, const struct simba_schedule *o, const char **why)
{
    *why = NULL;
    if (o->unused_ms > 0) {
        *why = "at_least_ms is an option of the handle now";
        return SIMBA_EUNSUPPORTED;
    }
    if ((int)o->pace < SIMBA_FIXED_RATE || (int)o->pace > SIMBA_CRON)
        *why = "pace must be SIMBA_FIXED_RATE, SIMBA_FIXED_DELAY or SIMBA_CRON";
    else if (o->pace == SIMBA_CRON && o->period_ms != SIMBA_DEFAULT)
        *why = "a schedule with SIMBA_CRON has no period";
    else if (o->pace != SIMBA_CRON && !is_between(o->period_ms, 1, SIMBA_PERIOD_MAX_MS))
        *why = "period must be set, between 1 ms and 366 days";
    else if (!is_between(o->initial_delay_ms, SIMBA_DEFAULT, SIMBA_PERIOD_MAX_MS))
        *why = "initial_delay of the schedule must be between 0 and 366 days";
    else
        *why = check_ticks(o);
    if (*why != NULL)
        return SIMBA_EINVAL;
    *s = (struct schedule){
        .pace = o->pace,
        .period = o->period_ms * NS_PER_MS,
        .initial_delay = o->initial_delay_ms < 0 ? 0 : o->initial_delay_ms * NS_PER_MS,
    };
    return 0;
}

int64_t schedule_first(const struct schedule *s, int64_t begin)
{
    return begin + s->initial_delay;
}

int64_t schedule_next(const struct schedule *s, int64_t due, int64_t ended)
{
    assert(ended >= due);
    if (s->pace == SIMBA_FIXED_DELAY)
        return ended + s->period;
    int64_t periods = (ended - due + s->period - 1) / s->period;
    return due + (periods > 0 ? periods : 1) * s->period;
}
