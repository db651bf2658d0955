/* plan.c: draws faults from a seed. */
#include "lab/torture/plan.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/time.h"
#include "lab/torture/history.h"

/* A fault begins every twentieth to a third of a lease, so that some strike while others last. */
#define GAP_LEAST_PART 20
#define GAP_MOST_PART 4
#define GAP_LEAST (5 * NS_PER_MS)

static int64_t draw_gap(const struct plan_options *o, uint64_t *random)
{
    int64_t least = o->lease / GAP_LEAST_PART;
    if (least < GAP_LEAST)
        least = GAP_LEAST;
    return rng_between(random, least, least + o->lease / GAP_MOST_PART);
}

static enum fault draw_fault(fault_set faults, uint64_t *random)
{
    int64_t nth = rng_between(random, 0, __builtin_popcount(faults));
    for (int i = 0;; i++) {
        if ((faults & FAULT_BIT(i)) != 0 && nth-- == 0)
            return (enum fault)i;
    }
}

/* From a tenth to two leases; who was killed comes back within one. A server that was killed comes
 * back sooner, while owners of before still count on their lease. */
static int64_t draw_length(const struct plan_options *o, enum fault fault, uint64_t *random)
{
    if (fault == FAULT_KILL || fault == FAULT_RESTART)
        return rng_between(random, 0, o->lease);
    if (fault == FAULT_SERVER_KILL || fault == FAULT_FORGET)
        return rng_between(random, 0, o->lease / 4);
    if (fault == FAULT_SWAP) /* until somebody owns a mutex there */
        return rng_between(random, o->lease, 2 * o->lease);
    return rng_between(random, o->lease / 10, 2 * o->lease);
}

static struct strike draw(const struct plan_options *o, int64_t at, uint64_t *random)
{
    enum fault fault = draw_fault(o->faults, random);
    struct strike s = {.at = at, .fault = (uint8_t)fault};
    s.worker = (uint16_t)rng_between(random, 0, (int64_t)o->workers);
    s.mutex = (uint16_t)rng_between(random, 0, (int64_t)o->mutexes);
    s.lasts = draw_length(o, fault, random);
    /* Up to a quarter of the lease: a renewal gets through, or does not. */
    s.amount = rng_between(random, 1, 2 + o->lease / NS_PER_MS / 4);
    if (fault == FAULT_DUPLICATE) /* when who sent it may own again */
        s.amount = rng_between(random, 1, 1 + o->lease / NS_PER_MS);
    if (fault == FAULT_TRICKLE)
        s.amount = 1 + s.amount / 50;
    if (fault == FAULT_CUT) /* so many answers pass: a handshake, and then some */
        s.amount %= 12;
    if (fault_group_of(fault) == GROUP_SERVER)
        s.worker = FAULT_ON_ALL;
    return s;
}

struct strike *plan_draw(const struct plan_options *o, size_t *count)
{
    uint64_t random = o->seed;
    size_t room = 16;
    struct strike *plan = malloc(room * sizeof *plan);
    *count = 0;
    if (plan == NULL)
        return NULL;
    for (int64_t at = 0; o->faults != 0;) {
        at += draw_gap(o, &random);
        if (at >= o->length)
            break;
        if (*count == room) {
            struct strike *more = realloc(plan, 2 * room * sizeof *plan);
            if (more == NULL) {
                free(plan);
                return NULL;
            }
            plan = more;
            room *= 2;
        }
        plan[(*count)++] = draw(o, at, &random);
    }
    return plan;
}

uint64_t plan_worker_seed(uint64_t seed, unsigned worker, unsigned life)
{
    uint64_t random = seed ^ ((uint64_t)worker << 32 | life);
    return rng_next(&random);
}
