/* rng.c: see rng.h. The numbers themselves are in the header: pure code uses them, too. */
#include "base/rng.h"

#include <sys/random.h>

#include "base/clock.h"

uint64_t rng_seed(void)
{
    uint64_t seed;
    return getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : (uint64_t)clock_now();
}
