/* random.h: dice for jitter. The seed is the caller's, so that a run can be repeated; nothing that
 * must be hard to guess comes from here. */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <assert.h>
#include <stdint.h>

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From low up to, but not including, high; low if there is nothing between. */
static inline int64_t random_between(uint64_t *state, int64_t low, int64_t high)
{
    assert(low <= high);
    if (low == high)
        return low;
    return low + (int64_t)(random_next(state) % (uint64_t)(high - low));
}
#endif
