/* schedule.h: when scheduled work is due, unless it has ticks: those are in ticks.h.
 *
 * A schedule begins anew with every tenure: the first run is due initial_delay after its beginning.
 *   fixed delay   the next run is due one period after the end of the last one;
 *   fixed rate    runs are due at the beginning plus whole periods. What passes while a run is still
 *                 at work, or while the machine sleeps, is skipped: runs never pile up, and the phase
 *                 stays. A run that ends exactly when the next is due is not late.
 * Times are on one clock, in ns; no clock in here. */
#ifndef CORE_SCHEDULE_H
#define CORE_SCHEDULE_H

#include <simba.h>
#include <stdbool.h>
#include <stdint.h>

struct schedule {
    enum simba_pace pace;
    int64_t period, initial_delay; /* ns */
};

/* SIMBA_EINVAL: *why names the field. */
int schedule_init(struct schedule *s, const struct simba_schedule *options, const char **why);

/* Are its runs named by the wall clock? Then ticks.h says when they are due. */
bool schedule_has_ticks(const struct simba_schedule *options);

int64_t schedule_first(const struct schedule *s, int64_t begin);

/* due: when the run was due, whenever it came to run; ended: when it ended. */
int64_t schedule_next(const struct schedule *s, int64_t due, int64_t ended);
#endif
