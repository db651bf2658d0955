/* metrics.h: what is counted. One thread writes a counter at a time, whoever has the baton or the
 * client's lock; any thread reads it. */
#ifndef RUNTIME_METRICS_H
#define RUNTIME_METRICS_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
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
    _Atomic uint64_t events_dropped;                 /* any thread, as the two before */
    struct histogram operation, handoff, wait, hold; /* by whoever has the baton */
    struct histogram callback_delay, callback, run;  /* under the client's lock, and: */
    _Atomic uint64_t runs, runs_failed;
    _Atomic uint64_t schedules_blocked, schedules_apart; /* now; any thread */
    _Atomic bool per_handle; /* a page with every handle was asked for: since then also of each */
};

void metrics_add(_Atomic uint64_t *counter, uint64_t n);
void histogram_add(struct histogram *h, int64_t ns);

struct actor;
void metrics_count(struct actor *a, enum metrics_counter which);
void metrics_add_latency(struct actor *a, int64_t ns); /* of an exchange, if it is asked for */
void metrics_forget(struct actor *a);                  /* it goes */

/* What a handle has counted, and its state. */
enum {
    VALUE_OWNED = METRICS_COUNTERS,
    VALUE_TOKEN,
    VALUE_STATUS,
    VALUE_LATENCY_US,
    VALUE_EXCHANGES, /* that make up the latency */
    SNAPSHOT_VALUES
};

struct snapshot {
    struct snapshot *next;
    uint64_t value[SNAPSHOT_VALUES]; /* first the counters */
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
};

struct simba_client;
int snapshot_take(struct simba_client *s, struct snapshot **out); /* whoever has the baton */
void snapshot_free(struct snapshot *list);
#endif
