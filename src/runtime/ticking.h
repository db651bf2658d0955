/* ticking.h: the ticks of a scheduler: what the machine in core/ticks.h needs beside it. */
#ifndef RUNTIME_TICKING_H
#define RUNTIME_TICKING_H

#include <simba.h>

#include "core/ticks.h"

struct ticking {
    struct ticks ticks;
    struct cron cron;
    struct zone zone;
    int64_t store_ahead; /* ms: the store's clock, less CLOCK_BOOTTIME, when it was asked … */
    int64_t asked_at;    /* … then; 0: it is not known */
};

/* Of a schedule that has ticks; allocated. A fault: SIMBA_EINVAL, SIMBA_ELIMIT. */
int ticking_create(const struct simba_schedule *schedule, struct ticking **out);

/* What the store's clock shows now; 0: unknown. */
void ticking_set_store(struct ticking *t, int64_t wall_ms);

/* ms since 1970, by the clock that ticks go by; not below 0. */
int64_t ticking_now(const struct ticking *t);

/* How far the clock of this machine is ahead of the store's; 0: they agree, or that is not known. */
int64_t ticking_apart_ms(const struct ticking *t);

/* The store was asked so long ago that its clock may have been set right, or wrong, since. */
bool ticking_is_old(const struct ticking *t);

/* When the planned tick is to be looked at, on the clock that decides: at its time, but soon enough
 * to notice a wall clock that steps. */
int64_t ticking_due(const struct ticking *t);
#endif
