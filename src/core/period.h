/* period.h: the lease in time. When a tenure ends, when to renew it, when to try again.
 *
 *   sent_at      renew_at              ttl_at                     hold_until   lease_end
 *     |-------------|-------------------|--------------------------|-----------|
 *     | owner acts  | renews, retries …                            | released  | nobody may win
 *                                                                                before here
 *
 * Every time in src/core is in nanoseconds of CLOCK_BOOTTIME and counts from before the request
 * was sent: the store began to count later, so its lease ends later than ours. */
#ifndef CORE_PERIOD_H
#define CORE_PERIOD_H

#include <stdint.h>

#include "base/time.h"

#define PERIOD_COMMAND_TIMEOUT_MS 2000 /* the default of one exchange with a store */
#define PERIOD_RENEW_PART 2            /* of the ttl, by default: from a renewal to the next */
#define PERIOD_ATTEMPT_PART 8          /* of the ttl: how long a renewal may take */

/* What the user may set, in milliseconds; negative: the default. */
struct period_options {
    int64_t ttl_ms, transition_ms, renew_ms, command_timeout_ms, drift_ppm;
    int64_t jitter_early_ms, jitter_late_ms;
};

/* Derived once, then constant; shared by all machines with the same options. */
struct period {
    int64_t ttl, transition, lease;
    int64_t margin;      /* between our last act and the end of the lease */
    int64_t renew;       /* from a renewal to the next */
    int64_t attempt;     /* how long one renewal may take */
    int64_t patience;    /* how long any other request may take */
    int64_t pause_max;   /* between attempts to renew */
    int64_t backoff_max; /* between attempts to contend while the store fails */
    int64_t early, late; /* jitter around the end of another's lease */
    int64_t drift_ppm;
    int64_t step,
        phase; /* renewals come at multiples of step, less the phase, which is the user's */
};

/* 0, or SIMBA_EINVAL with the broken rule, which names the field, in *why (a constant). */
int period_init(struct period *p, const struct period_options *options, const char **why);

/* When our right to act ends, if the store said at some time after sent_at that `left` is left. */
int64_t period_hold_until(const struct period *p, int64_t sent_at, int64_t left);

/* A little before sent_at + renew, so that the renewals of many mutexes drift apart; but only to a
 * hundred or so instants per period, so that the renewals of one instant go out together. What the
 * answer left of the lease less than the whole, the next renewal is earlier, down to an attempt. */
int64_t period_renew_at(const struct period *p, int64_t sent_at, int64_t left, uint64_t *random);

/* When one that is not owner tries again: another's lease ends at expiry. */
int64_t period_retry_at(const struct period *p, int64_t now, int64_t expiry, uint64_t *random);

/* When an observer asks again. So close before the end that an owner that is alive has renewed, and one
 * that has not will not (see tenure_end). The lease is the owner's, as far as it is seen: not that of p.
 * With so little left that this is past, as above. */
int64_t period_observe_at(const struct period *p, int64_t now, int64_t expiry, uint64_t *random);

/* From the end of the right to act to where another may own the mutex. */
int64_t period_margin(int64_t ttl, int64_t transition);
int64_t period_margin_least(int64_t lease); /* whatever part of the lease is ttl, or transition */

/* ---- after failures ------------------------------------------------------------------------ */

/* How long to wait after the n-th failure in a row, n from 1. */
int64_t period_pause(const struct period *p, uint32_t failures, uint64_t *random);
int64_t period_backoff(const struct period *p, uint32_t failures, uint64_t *random);
#endif
