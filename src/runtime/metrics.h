/* metrics.h: what is counted. One thread writes a counter at a time, whoever has the baton or the
 * client's lock; any thread reads it. */
#ifndef RUNTIME_METRICS_H
#define RUNTIME_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

enum metrics_counter {
    COUNT_ATTEMPTS,
    COUNT_ACQUISITIONS,
    COUNT_RENEWALS,
    COUNT_FAILURES,
    COUNT_EXPIRED,
    COUNT_EVICTED,
    COUNT_STALLED,
    METRICS_COUNTERS
};

#define METRICS_BUCKETS 32

struct histogram {
    _Atomic uint64_t sum_us, max_us, bucket[METRICS_BUCKETS];
};

struct metrics {
    _Atomic uint64_t counted[METRICS_COUNTERS];
    _Atomic uint64_t reconnects, owned;
    struct histogram operation, handoff;       /* by whoever has the baton */
    struct histogram callback_delay, callback; /* under the client's lock */
};

void histogram_add(struct histogram *h, int64_t ns);

struct actor;
void metrics_count(struct actor *a, enum metrics_counter which);

struct simba_client;
struct snapshot;                                                 /* of each handle */
int metrics_take(struct simba_client *s, struct snapshot **out); /* whoever has the baton */
void metrics_free(struct snapshot *list);
#endif
