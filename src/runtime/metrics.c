/* metrics.c: counting, and reading what was counted; as a page for Prometheus: prometheus.c. */
#include "runtime/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/inquiry.h"
#include "runtime/options.h"

/* ---- counting ------------------------------------------------------------------------------ */

/* There is one writer: no need for a locked instruction. */
void metrics_add(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + n, memory_order_relaxed);
}

void histogram_add(struct histogram *h, int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned bucket = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    metrics_add(&h->bucket[bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1], 1);
    metrics_add(&h->sum_us, us);
    if (us > atomic_load_explicit(&h->max_us, memory_order_relaxed))
        atomic_store_explicit(&h->max_us, us, memory_order_relaxed);
}

void metrics_count(struct actor *a, enum metrics_counter which)
{
    uint32_t now = atomic_load_explicit(&a->counted[which], memory_order_relaxed);
    atomic_store_explicit(&a->counted[which], now + 1, memory_order_relaxed);
    metrics_add(&a->client->metrics.counted[which], 1);
}

/* ---- latency of each handle ---------------------------------------------------------------- */

/* Few want it: so it is beside the handle. */
struct latency {
    uint64_t sum_us, exchanges;
};

void metrics_add_latency(struct actor *a, int64_t ns)
{
    if (!atomic_load_explicit(&a->client->metrics.per_handle, memory_order_relaxed))
        return;
    if (a->latency == NULL && (a->latency = calloc(1, sizeof *a->latency)) == NULL)
        return; /* out of memory: it begins to count with a later exchange */
    a->latency->sum_us += ns > 0 ? (uint64_t)ns / 1000 : 0;
    a->latency->exchanges++;
}

void metrics_forget(struct actor *a)
{
    free(a->latency);
}

/* ---- of the client ------------------------------------------------------------------------- */

static void copy_histogram(struct simba_histogram *out, const struct histogram *h)
{
    out->count = 0;
    out->sum_us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);
    out->max_us = atomic_load_explicit(&h->max_us, memory_order_relaxed);
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        out->bucket[i] = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
        out->count += out->bucket[i]; /* so that they agree */
    }
}

int simba_metrics_read(simba_client *s, struct simba_metrics *out)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    if (s == NULL || out == NULL || !options_size_valid(&options_of_metrics, out->size))
        return error_say(SIMBA_EINVAL,
                         "simba_metrics_read needs a client, and metrics that start as "
                         "SIMBA_METRICS_INIT");
    int rc = client_check(s);
    if (rc < 0)
        return rc;
    const struct metrics *from = &s->metrics;
    driver_lock(s);
    m.handles = s->actors_count;
    driver_unlock(s);
    m.owned = atomic_load(&from->owned);
    m.attempts = atomic_load(&from->counted[COUNT_ATTEMPTS]);
    m.acquisitions = atomic_load(&from->counted[COUNT_ACQUISITIONS]);
    m.renewals = atomic_load(&from->counted[COUNT_RENEWALS]);
    m.failures = atomic_load(&from->counted[COUNT_FAILURES]);
    m.expired = atomic_load(&from->counted[COUNT_EXPIRED]);
    m.evicted = atomic_load(&from->counted[COUNT_EVICTED]);
    m.stalled = atomic_load(&from->counted[COUNT_STALLED]);
    m.reconnects = atomic_load(&from->reconnects);
    m.runs = atomic_load(&from->runs);
    m.runs_failed = atomic_load(&from->runs_failed);
    m.schedules_blocked = atomic_load(&from->schedules_blocked);
    m.schedules_apart = atomic_load(&from->schedules_apart);
    m.events_dropped = atomic_load(&from->events_dropped);
    copy_histogram(&m.operation, &from->operation);
    copy_histogram(&m.handoff, &from->handoff);
    copy_histogram(&m.callback_delay, &from->callback_delay);
    copy_histogram(&m.callback, &from->callback);
    copy_histogram(&m.wait, &from->wait);
    copy_histogram(&m.hold, &from->hold);
    copy_histogram(&m.run, &from->run);
    options_give(&options_of_metrics, &m, out);
    return 0;
}

/* ---- of each handle ------------------------------------------------------------------------ */

/* A locker is not started; it waits or holds, and the store has answered it, or not. */
static enum simba_status status_of(const struct actor *a)
{
    const struct handle *h = &a->machine;
    if (h->kind != HANDLE_LOCKER)
        return (enum simba_status)atomic_load(&a->status);
    if (h->held || (h->waiting && h->answered))
        return SIMBA_RUNNING;
    return h->waiting ? SIMBA_STARTING : SIMBA_INITIAL;
}

static bool take(struct actor *a, struct snapshot **list)
{
    const struct latency *latency = a->latency;
    struct snapshot *n = malloc(sizeof *n);
    int64_t left_ms;
    if (n == NULL)
        return false;
    n->next = *list;
    *list = n;
    for (size_t i = 0; i < METRICS_COUNTERS; i++)
        n->value[i] = atomic_load_explicit(&a->counted[i], memory_order_relaxed);
    n->value[VALUE_TOKEN] = actor_token(a, &left_ms);
    n->value[VALUE_OWNED] = n->value[VALUE_TOKEN] != 0;
    n->value[VALUE_STATUS] = status_of(a);
    n->value[VALUE_LATENCY_US] = latency != NULL ? latency->sum_us : 0;
    n->value[VALUE_EXCHANGES] = latency != NULL ? latency->exchanges : 0;
    snprintf(n->mutex, sizeof n->mutex, "%s", a->by_mutex.name);
    snprintf(n->id, sizeof n->id, "%s", actor_id(a));
    return true;
}

int snapshot_take(struct simba_client *s, struct snapshot **out)
{
    for (struct hash_node *n = NULL; (n = hash_table_next(&s->actors, n)) != NULL;) {
        if (!take(actor_of(n), out))
            return SIMBA_ELIMIT;
    }
    return 0;
}

void snapshot_free(struct snapshot *list)
{
    for (struct snapshot *next; list != NULL; list = next) {
        next = list->next;
        free(list);
    }
}

int simba_metrics_each(simba_client *s, simba_handle_metrics_fn *each, void *data)
{
    struct snapshot *list = NULL;
    if (s == NULL || each == NULL)
        return error_say(SIMBA_EINVAL, "simba_metrics_each needs a client and a function to call");
    int rc = inquiry_snapshot(s, &list);
    for (struct snapshot *n = list; n != NULL && rc == 0; n = n->next) {
        struct simba_handle_metrics m = {
            .mutex = n->mutex,
            .id = n->id,
            .status = (enum simba_status)n->value[VALUE_STATUS],
            .token = n->value[VALUE_TOKEN],
            .attempts = n->value[COUNT_ATTEMPTS],
            .acquisitions = n->value[COUNT_ACQUISITIONS],
            .renewals = n->value[COUNT_RENEWALS],
            .failures = n->value[COUNT_FAILURES],
            .expired = n->value[COUNT_EXPIRED],
            .evicted = n->value[COUNT_EVICTED],
            .stalled = n->value[COUNT_STALLED],
        };
        each(data, &m);
    }
    snapshot_free(list);
    return rc;
}
