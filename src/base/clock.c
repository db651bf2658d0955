/* clock.c: the clock that decides, as users read it. Here because modules have a copy of it. */
#include <simba.h>

#include "base/clock.h"

int64_t simba_now(void)
{
    return clock_now() / NS_PER_MS;
}
