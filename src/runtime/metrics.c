/* metrics.c: counting, and showing what was counted. */
#include "runtime/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/inquiry.h"

/* ---- counting ------------------------------------------------------------------------------ */

/* There is one writer: no need for a locked instruction. */
static void add(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + n, memory_order_relaxed);
}

void histogram_add(struct histogram *h, int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned bucket = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    add(&h->bucket[bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1], 1);
    add(&h->sum_us, us);
    if (us > atomic_load_explicit(&h->max_us, memory_order_relaxed))
        atomic_store_explicit(&h->max_us, us, memory_order_relaxed);
}

void metrics_count(struct actor *a, enum metrics_counter which)
{
    uint32_t now = atomic_load_explicit(&a->counted[which], memory_order_relaxed);
    atomic_store_explicit(&a->counted[which], now + 1, memory_order_relaxed);
    add(&a->client->metrics.counted[which], 1);
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
    if (s == NULL || out == NULL || out->size < sizeof m.size || out->size > sizeof m)
        return fault(SIMBA_EINVAL, "simba_metrics_read needs a client, and metrics that start as "
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
    copy_histogram(&m.operation, &from->operation);
    copy_histogram(&m.handoff, &from->handoff);
    copy_histogram(&m.callback_delay, &from->callback_delay);
    copy_histogram(&m.callback, &from->callback);
    m.size = out->size;
    memcpy(out, &m, out->size);
    return 0;
}

/* ---- of each handle ------------------------------------------------------------------------ */

enum { OWNED = METRICS_COUNTERS, TOKEN, STATUS, VALUES }; /* and the counters */

struct snapshot {
    struct snapshot *next;
    uint64_t value[VALUES];
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
};

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
    struct snapshot *n = malloc(sizeof *n);
    int64_t left_ms;
    if (n == NULL)
        return false;
    n->next = *list;
    *list = n;
    for (size_t i = 0; i < METRICS_COUNTERS; i++)
        n->value[i] = atomic_load_explicit(&a->counted[i], memory_order_relaxed);
    n->value[TOKEN] = actor_token(a, &left_ms);
    n->value[OWNED] = n->value[TOKEN] != 0;
    n->value[STATUS] = status_of(a);
    snprintf(n->mutex, sizeof n->mutex, "%s", a->by_mutex.name);
    snprintf(n->id, sizeof n->id, "%s", actor_id(a));
    return true;
}

int metrics_take(struct simba_client *s, struct snapshot **out)
{
    for (struct hash_node *n = NULL; (n = hash_table_next(&s->actors, n)) != NULL;) {
        if (!take(actor_of(n), out))
            return SIMBA_ELIMIT;
    }
    return 0;
}

void metrics_free(struct snapshot *list)
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
        return fault(SIMBA_EINVAL, "simba_metrics_each needs a client and a function to call");
    int rc = inquiry_snapshot(s, &list);
    for (struct snapshot *n = list; n != NULL && rc == 0; n = n->next) {
        struct simba_handle_metrics m = {
            .mutex = n->mutex,
            .id = n->id,
            .status = (enum simba_status)n->value[STATUS],
            .token = n->value[TOKEN],
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
    metrics_free(list);
    return rc;
}

/* ---- for Prometheus ------------------------------------------------------------------------ */

/* Text that grows; what does not fit is only counted. */
struct page {
    char *out;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *p, const char *format, ...)
{
    bool fits = p->length < p->size;
    va_list args;
    va_start(args, format);
    int n =
        vsnprintf(fits ? p->out + p->length : NULL, fits ? p->size - p->length : 0, format, args);
    va_end(args);
    p->length += n > 0 ? (size_t)n : 0;
}

/* The value of a label, escaped as Prometheus wants it. */
static void put_label(struct page *p, const char *name, const char *value)
{
    put(p, "%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\n')
            put(p, "\\n");
        else
            put(p, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    }
    put(p, "\"");
}

static void put_head(struct page *p, const char *name, const char *type, const char *help)
{
    put(p, "# HELP simba_%s %s\n# TYPE simba_%s %s\n", name, help, name, type);
}

static void put_number(struct page *p, const char *name, const char *type, const char *help,
                       uint64_t value)
{
    put_head(p, name, type, help);
    put(p, "simba_%s %llu\n", name, (unsigned long long)value);
}

/* Microseconds as seconds; printf would write a comma in some locales. */
static void put_seconds(struct page *p, uint64_t us)
{
    put(p, "%llu.%06llu", (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static void put_histogram(struct page *p, const char *name, const char *help,
                          const struct simba_histogram *h)
{
    uint64_t sum = 0;
    put_head(p, name, "histogram", help);
    for (unsigned i = 0; i + 1 < METRICS_BUCKETS; i++) {
        sum += h->bucket[i];
        put(p, "simba_%s_bucket{le=\"", name);
        put_seconds(p, UINT64_C(1) << i);
        put(p, "\"} %llu\n", (unsigned long long)sum);
    }
    put(p, "simba_%s_bucket{le=\"+Inf\"} %llu\nsimba_%s_sum ", name, (unsigned long long)h->count,
        name);
    put_seconds(p, h->sum_us);
    put(p, "\nsimba_%s_count %llu\n", name, (unsigned long long)h->count);
}

static void put_client(struct page *p, const struct simba_metrics *m)
{
    put_number(p, "handles", "gauge", "Contenders, lockers, schedulers and observers.", m->handles);
    put_number(p, "owned", "gauge", "Mutexes owned now.", m->owned);
    put_number(p, "attempts_total", "counter", "Attempts to acquire.", m->attempts);
    put_number(p, "acquisitions_total", "counter", "Tenures that began.", m->acquisitions);
    put_number(p, "renewals_total", "counter", "Renewals asked for.", m->renewals);
    put_number(p, "failures_total", "counter", "Requests that failed or were not answered.",
               m->failures);
    put_head(p, "losses_total", "counter", "Tenures that ended against the owner's will.");
    put(p, "simba_losses_total{reason=\"expired\"} %llu\n", (unsigned long long)m->expired);
    put(p, "simba_losses_total{reason=\"evicted\"} %llu\n", (unsigned long long)m->evicted);
    put(p, "simba_losses_total{reason=\"stalled\"} %llu\n", (unsigned long long)m->stalled);
    put_number(p, "reconnects_total", "counter", "Connections to the store made anew.",
               m->reconnects);
    put_histogram(p, "operation_seconds", "From a request to its answer.", &m->operation);
    put_histogram(p, "handoff_seconds", "From a push to the acquisition.", &m->handoff);
    put_histogram(p, "callback_delay_seconds", "Callbacks waiting for a thread.",
                  &m->callback_delay);
    put_histogram(p, "callback_seconds", "Callbacks running.", &m->callback);
}

static void put_handles(struct page *p, const struct snapshot *list)
{
    static const struct {
        const char *name, *more, *type, *help; /* help NULL: as the one before */
        int value;
    } samples[] = {
        {"mutex_owned", "", "gauge", "1 while the handle owns the mutex.", OWNED},
        {"mutex_token", "", "gauge", "Fencing token of the tenure; 0: not owned.", TOKEN},
        {"mutex_status", "", "gauge", "0 initial, 1 starting, 2 running, 3 stopping.", STATUS},
        {"mutex_attempts_total", "", "counter", "Attempts to acquire.", COUNT_ATTEMPTS},
        {"mutex_acquisitions_total", "", "counter", "Tenures that began.", COUNT_ACQUISITIONS},
        {"mutex_renewals_total", "", "counter", "Renewals asked for.", COUNT_RENEWALS},
        {"mutex_failures_total", "", "counter", "Requests that failed.", COUNT_FAILURES},
        {"mutex_losses_total", ",reason=\"expired\"", "counter", "Tenures lost.", COUNT_EXPIRED},
        {"mutex_losses_total", ",reason=\"evicted\"", NULL, NULL, COUNT_EVICTED},
        {"mutex_losses_total", ",reason=\"stalled\"", NULL, NULL, COUNT_STALLED},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        if (samples[i].help != NULL)
            put_head(p, samples[i].name, samples[i].type, samples[i].help);
        for (const struct snapshot *n = list; n != NULL; n = n->next) {
            put(p, "simba_%s{", samples[i].name);
            put_label(p, "mutex", n->mutex);
            put(p, ",");
            put_label(p, "id", n->id);
            put(p, "%s} %llu\n", samples[i].more, (unsigned long long)n->value[samples[i].value]);
        }
    }
}

int64_t simba_metrics_prometheus(simba_client *s, bool per_handle, char *out, size_t size)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    struct snapshot *list = NULL;
    struct page p = {.out = out, .size = size};
    if (out == NULL && size > 0)
        return fault(SIMBA_EINVAL, "simba_metrics_prometheus needs a place for the text");
    int rc = simba_metrics_read(s, &m);
    if (rc == 0 && per_handle)
        rc = inquiry_snapshot(s, &list);
    if (rc == 0) {
        put_client(&p, &m);
        if (per_handle)
            put_handles(&p, list);
    }
    metrics_free(list);
    return rc < 0 ? rc : (int64_t)p.length;
}
