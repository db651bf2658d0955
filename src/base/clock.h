/* clock.h: the one clock that decides. CLOCK_BOOTTIME runs on while the machine is suspended, so
 * a lease cannot outlive a sleep; wall clocks are for display only. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <assert.h>
#include <stdint.h>
#include <time.h>

#include "base/time.h"

static inline int64_t clock_now(void)
{
    struct timespec t;
    int rc = clock_gettime(CLOCK_BOOTTIME, &t);
    assert(rc == 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The point `ms` from now; SIMBA_FOREVER and other overflows give NEVER. */
static inline int64_t clock_after_ms(int64_t now, int64_t ms)
{
    return ms > (NEVER - now) / NS_PER_MS ? NEVER : now + ms * NS_PER_MS;
}
#endif
