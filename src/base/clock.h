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

/* Waits of the system are on a clock that stands still during suspend: so they are in slices, and
 * after each the clock that decides is read. This is when a wait of `left` ns, or its slice, ends. */
#define CLOCK_SLICE_MS 60000

static inline struct timespec clock_slice_end(int64_t left)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (left > CLOCK_SLICE_MS * NS_PER_MS)
        left = CLOCK_SLICE_MS * NS_PER_MS;
    int64_t ns = t.tv_nsec + left;
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}
#endif
