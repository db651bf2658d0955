/* ticking.h: the ticks of a scheduler: what the machine in core/ticks.h needs beside it. */
#ifndef RUNTIME_TICKING_H
#define RUNTIME_TICKING_H

#include <simba.h>

#include "core/ticks.h"

struct ticking {
    struct ticks ticks;
    struct cron cron;
    struct zone zone;
};

/* Of a schedule that has ticks; allocated. A fault: SIMBA_EINVAL, SIMBA_ELIMIT. */
int ticking_create(const struct simba_schedule *schedule, struct ticking **out);

int64_t ticking_now(void); /* ms since 1970, by the wall clock; not below 0 */

/* When the planned tick is to be looked at, on the clock that decides: at its time, but soon enough
 * to notice a wall clock that steps. */
int64_t ticking_due(const struct ticking *t);
#endif
