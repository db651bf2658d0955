/* clock.h: the time that leases are measured by: it goes on while the machine sleeps. */
#ifndef CLI_RUN_CLOCK_H
#define CLI_RUN_CLOCK_H

#include <time.h>

#include "base/time.h"

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
#endif
