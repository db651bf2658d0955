/* period.c: arithmetic of the lease. See period.h for the picture. */
#include "core/period.h"

#include <assert.h>
#include <simba.h>
#include <stddef.h>

#include "base/rng.h"

#define SLACK (2 * NS_PER_MS) /* a store that counts in milliseconds rounds */
#define MARGIN_MAX (1000 * NS_PER_MS)
#define PAUSE_MIN (50 * NS_PER_MS)
#define PAUSE_MAX (1000 * NS_PER_MS)
#define BACKOFF_MIN (100 * NS_PER_MS)
#define ATTEMPT_MIN (1 * NS_PER_MS)
#define RETRY_MIN (20 * NS_PER_MS) /* nobody asks in a tight loop */
#define COMMAND_TIMEOUT_MAX_MS 3600000
#define JITTER_EARLY_MS 200 /* as the JVM's contenders do */
#define JITTER_LATE_MS 1000
#define JITTER_MAX_MS 3600000
#define DRIFT_PPM 10000
#define DRIFT_PPM_MAX 200000
#define RENEW_SPREAD 10 /* a tenth of the renewal period */
#define OBSERVE_MARGIN_MIN (2 * SLACK)
#define RENEW_STEPS 128 /* of the renewal period */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value < 0 ? fallback : value;
}

/* What is surely left of a length of the store's time, if its clock runs fast. */
static int64_t shortened(const struct period *p, int64_t length)
{
    return length - (length / 1000 * p->drift_ppm) / 1000 - SLACK;
}

int64_t period_margin(int64_t ttl, int64_t transition)
{
    return min64(MARGIN_MAX, max64(transition / 4, (ttl + transition) / 10));
}

int64_t period_margin_least(int64_t lease)
{
    return period_margin(lease, 0);
}

static const char *broken_rule(const struct period_options *o)
{
    if (o->ttl_ms == 0 || o->ttl_ms < SIMBA_DEFAULT)
        return "ttl must be at least 1 ms";
    if (o->transition_ms < SIMBA_DEFAULT)
        return "transition must not be negative";
    if (o->ttl_ms > SIMBA_LEASE_MAX_MS || o->transition_ms > SIMBA_LEASE_MAX_MS)
        return "ttl and transition must not be longer than a day";
    if (o->renew_ms == 0 || o->renew_ms < SIMBA_DEFAULT || o->renew_ms > SIMBA_LEASE_MAX_MS)
        return "renew must be between 1 ms and a day";
    if (o->command_timeout_ms == 0 || o->command_timeout_ms < SIMBA_DEFAULT ||
        o->command_timeout_ms > COMMAND_TIMEOUT_MAX_MS)
        return "command_timeout must be between 1 ms and an hour";
    if (o->drift_ppm < SIMBA_DEFAULT || o->drift_ppm > DRIFT_PPM_MAX)
        return "drift_ppm must be between 0 and 200000";
    if (o->jitter_early_ms < SIMBA_DEFAULT || o->jitter_early_ms > JITTER_MAX_MS)
        return "jitter_early must be between 0 and an hour";
    if (o->jitter_late_ms < SIMBA_DEFAULT || o->jitter_late_ms > JITTER_MAX_MS)
        return "jitter_late must be between 0 and an hour";
    return NULL;
}

int period_init(struct period *p, const struct period_options *o, const char **why)
{
    assert(p != NULL);
    assert(o != NULL);
    *why = broken_rule(o);
    if (*why != NULL)
        return SIMBA_EINVAL;
    int64_t command = or_default(o->command_timeout_ms, PERIOD_COMMAND_TIMEOUT_MS) * NS_PER_MS;

    p->ttl = or_default(o->ttl_ms, SIMBA_TTL_MS) * NS_PER_MS;
    p->transition = or_default(o->transition_ms, SIMBA_TRANSITION_MS) * NS_PER_MS;
    p->lease = p->ttl + p->transition;
    if (p->lease < SIMBA_LEASE_MIN_MS * NS_PER_MS || p->lease > SIMBA_LEASE_MAX_MS * NS_PER_MS) {
        *why = "ttl + transition must be between 50 ms and one day";
        return SIMBA_EINVAL;
    }
    p->drift_ppm = or_default(o->drift_ppm, DRIFT_PPM);
    p->margin = period_margin(p->ttl, p->transition);
    p->attempt = max64(ATTEMPT_MIN, min64(command, p->ttl / PERIOD_ATTEMPT_PART));
    p->patience = min64(command, p->lease / 2);
    p->pause_max = max64(ATTEMPT_MIN, min64(PAUSE_MAX, p->ttl / PERIOD_ATTEMPT_PART));
    p->backoff_max = max64(BACKOFF_MIN, p->ttl);
    p->early = or_default(o->jitter_early_ms, JITTER_EARLY_MS) * NS_PER_MS;
    p->late = or_default(o->jitter_late_ms, JITTER_LATE_MS) * NS_PER_MS;
    if (p->transition == 0)
        p->early = 0;

    p->renew = o->renew_ms < 0 ? p->ttl / PERIOD_RENEW_PART : o->renew_ms * NS_PER_MS;
    p->step = p->renew / RENEW_STEPS;
    p->phase = 0;
    if (p->renew > p->ttl) {
        *why = "renew must not be longer than ttl";
        return SIMBA_EINVAL;
    }
    if (p->renew + p->attempt >= period_hold_until(p, 0, p->lease)) {
        *why = "renew leaves no time for an attempt before the lease ends; make it shorter, or "
               "transition longer";
        return SIMBA_EINVAL;
    }
    return 0;
}

int64_t period_hold_until(const struct period *p, int64_t sent_at, int64_t left)
{
    /* The store may have been told a longer lease by another life of ours; we count only what
     * this one asked for. */
    int64_t sure = shortened(p, min64(max64(left, 0), p->lease));
    return sent_at + sure - p->margin;
}

int64_t period_renew_at(const struct period *p, int64_t sent_at, int64_t left, uint64_t *random)
{
    int64_t after = p->renew - max64(p->lease - left, 0);
    after = max64(after, min64(p->renew, p->attempt));
    int64_t at = sent_at + after - rng_between(random, 0, after / RENEW_SPREAD);
    return at - (at + p->phase) % p->step;
}

int64_t period_retry_at(const struct period *p, int64_t now, int64_t expiry, uint64_t *random)
{
    /* Somebody may be a little early, but only once: close to the end all are late. */
    int64_t early = expiry - now > p->early ? p->early : 0;
    int64_t at = max64(expiry, now) + rng_between(random, -early, p->late);
    return max64(at, now + RETRY_MIN);
}

int64_t period_observe_at(const struct period *p, int64_t now, int64_t expiry, uint64_t *random)
{
    int64_t margin = period_margin_least(expiry - now);
    if (margin <= OBSERVE_MARGIN_MIN)
        return period_retry_at(p, now, expiry, random);
    return expiry - rng_between(random, margin / 2, margin - margin / 8);
}

/* Doubles from first to last; the upper half of that is jitter, so that many do not stay in step. */
static int64_t growing(int64_t first, int64_t last, uint32_t failures, uint64_t *random)
{
    assert(failures > 0);
    uint32_t doublings = failures - 1 < 16 ? failures - 1 : 16;
    int64_t length = min64(last, min64(first, last) << doublings);
    return rng_between(random, length / 2, length);
}

int64_t period_pause(const struct period *p, uint32_t failures, uint64_t *random)
{
    return growing(PAUSE_MIN, p->pause_max, failures, random);
}

int64_t period_backoff(const struct period *p, uint32_t failures, uint64_t *random)
{
    return growing(BACKOFF_MIN, p->backoff_max, failures, random);
}
