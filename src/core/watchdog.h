/* watchdog.h: has the owner said lately that it gets on with its work?
 *
 * Its threads report whenever they like, without a lock: watchdog_report() keeps the latest time.
 * The machine reads that time with every event, and checks again when a report could be missing by
 * then. A report only moves the end of the silence on, so a check that is planned is never too late.
 *
 * A report counts if whoever made it owned the tenure when it read the clock (view.h). It can be
 * stored after that tenure has ended; then it is older than the next one, and counts for nothing. */
#ifndef CORE_WATCHDOG_H
#define CORE_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct watchdog {
    int64_t limit;     /* silence of this length ends the tenure; 0: none does */
    int64_t began_at;  /* the tenure: as if that were a report; NEVER: there is none */
    int64_t ends_at;   /* the tenure, if no report comes; NEVER: none is asked for now */
    int64_t check_at;  /* again */
    bool is_half_over; /* half of the limit has passed in silence */
};

enum watchdog_result { WATCHDOG_FINE, WATCHDOG_HALF, WATCHDOG_STALLED };

void watchdog_begin(struct watchdog *w, int64_t now);
void watchdog_end(struct watchdog *w);

/* reported_at: the last report; NEVER: none is asked for now. HALF comes once for each silence. */
enum watchdog_result watchdog_check(struct watchdog *w, int64_t now, int64_t reported_at);

/* By any thread; again if another one was quicker. */
static inline void watchdog_report(_Atomic int64_t *reported_at, int64_t now)
{
    int64_t last = atomic_load(reported_at);
    for (bool stored = false; last < now && !stored;)
        stored = atomic_compare_exchange_strong(reported_at, &last, now);
}
#endif
