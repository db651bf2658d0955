/* lease_policy.c: see lease_policy.h. */
#include "cli/lease_policy.h"

#include "core/period.h"

#define KILL_AFTER_MAX (3000 * NS_PER_MS)
#define KILL_AFTER_PART 5 /* of the lease */

int64_t policy_outage(const struct period *p)
{
    return period_hold_until(p, 0, p->lease) - p->renew - p->pause_max - p->attempt;
}

int64_t policy_takeover(const struct period *p, int64_t lease)
{
    return lease + (lease / 1000 * p->drift_ppm) / 1000 + p->late;
}

int64_t policy_kill_after(int64_t ttl, int64_t transition)
{
    int64_t part = (ttl + transition) / KILL_AFTER_PART;
    return part < KILL_AFTER_MAX ? part : KILL_AFTER_MAX;
}

int64_t policy_kill_after_max(int64_t ttl, int64_t transition)
{
    /* Of the lease, what is left for sure when drift and margin are taken off. */
    int64_t sure = (ttl + transition) / 10 * 8;
    return sure - ttl / PERIOD_RENEW_PART - ttl / PERIOD_ATTEMPT_PART;
}
