/* rng.h: random numbers for jitter. The seed is the caller's, so that a run can be repeated;
 * nothing that must be hard to guess comes from here. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <assert.h>
#include <stdint.h>

/* A seed from the system; from the clock where that has none. */
uint64_t rng_seed(void);

/* splitmix64 */
static inline uint64_t rng_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From low up to, but not including, high; low if there is nothing between. */
static inline int64_t rng_between(uint64_t *state, int64_t low, int64_t high)
{
    assert(low <= high);
    if (low == high)
        return low;
    return low + (int64_t)(rng_next(state) % (uint64_t)(high - low));
}
#endif
