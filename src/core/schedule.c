/* schedule.c: see schedule.h. The limits on what a user may set keep all sums far from overflow. */
#include "core/schedule.h"

#include <assert.h>
#include <stdbool.h>

#include "core/period.h"

static bool is_between(int64_t ms, int64_t least, int64_t most)
{
    return ms >= least && ms <= most;
}

int schedule_init(struct schedule *s, const struct simba_schedule *o, const char **why)
{
    *why = NULL;
    if (o->pace != SIMBA_FIXED_RATE && o->pace != SIMBA_FIXED_DELAY)
        *why = "pace must be SIMBA_FIXED_RATE or SIMBA_FIXED_DELAY";
    else if (!is_between(o->period_ms, 1, SIMBA_PERIOD_MAX_MS))
        *why = "period must be set, between 1 ms and 366 days";
    else if (!is_between(o->initial_delay_ms, SIMBA_DEFAULT, SIMBA_PERIOD_MAX_MS))
        *why = "initial_delay of the schedule must be between 0 and 366 days";
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
