/* clock.c: the public face of the clock. */
#include "base/clock.h"

#include <simba.h>

int64_t simba_now(void)
{
    return clock_now() / NS_PER_MS;
}

int64_t simba_wall_ms(int64_t boot_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t wall = (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
    return boot_ms - simba_now() + wall;
}
