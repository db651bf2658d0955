/* trace.c: see trace.h. */
#include "runtime/trace.h"

#include <stdio.h>

#include "base/clock.h"
#include "runtime/client.h"
#include "runtime/inquiry.h"

#define NS_PER_US 1000

/* ---- events on their way ------------------------------------------------------------------- */

struct traced {
    struct simba_event event;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
};

static void write_event(struct delivery *d, const void *record)
{
    const struct trace *trace = (struct trace *)(void *)d;
    const struct traced *traced = record;
    trace->write(trace->data, &traced->event);
}

int trace_init(struct trace *trace, struct simba_client *client, struct executor *executor,
               void (*write)(void *, const struct simba_event *), void *data)
{
    *trace = (struct trace){.write = write, .data = data};
    return delivery_init(&trace->delivery, client, executor, write != NULL ? write_event : NULL,
                         sizeof(struct traced), TRACE_EVENTS_MAX);
}

void trace_free(struct trace *trace)
{
    delivery_free(&trace->delivery);
}

/* The times in it are in ns, and its strings borrowed. Called only if there is a trace function:
 * the event is made for nothing else. */
static void put(struct simba_client *s, const struct simba_event *event)
{
    struct trace *trace = &s->trace;
    delivery_lock(&trace->delivery);
    struct traced *traced = delivery_add_locked(&trace->delivery);
    if (traced == NULL) {
        trace->dropped++;
        atomic_fetch_add(&s->metrics.events_dropped, 1);
    } else {
        traced->event = *event;
        traced->event.began_us = event->began_us / NS_PER_US;
        traced->event.duration_us = event->duration_us / NS_PER_US;
        traced->event.dropped = trace->dropped;
        trace->dropped = 0;
        if (event->name == NULL)
            traced->event.name = "";
        snprintf(traced->mutex, sizeof traced->mutex, "%s", event->mutex);
        snprintf(traced->id, sizeof traced->id, "%s", event->id);
        traced->event.mutex = traced->mutex;
        traced->event.id = traced->id;
    }
    delivery_unlock(&trace->delivery);
}

static void put_of(struct actor *a, struct simba_event event)
{
    event.mutex = a->by_mutex.name;
    event.id = actor_id(a);
    put(a->client, &event);
}

static bool is_on(const struct simba_client *s)
{
    return s->trace.write != NULL;
}

/* ---- exchanges ----------------------------------------------------------------------------- */

static const char *op_name(enum simba_op op)
{
    static const char *const names[] = {
        [SIMBA_CONTEND] = "contend", [SIMBA_RENEW] = "renew",     [SIMBA_RELEASE] = "release",
        [SIMBA_READ] = "read",       [SIMBA_LEAVE] = "leave",     [SIMBA_LIST] = "list",
        [SIMBA_EVICT] = "evict",     [SIMBA_PUBLISH] = "publish",
    };
    return names[op];
}

/* Not granted, because another owns the mutex, or nobody can own it yet. */
static bool is_refused(const struct request *r)
{
    return r->to_store.op == SIMBA_CONTEND && r->code == 0 && !r->granted && !r->own &&
           (r->owner != NULL || r->left_ms > 0);
}

void trace_exchange(const struct request *r)
{
    struct simba_client *s = r->client;
    int64_t took = clock_now() - r->sent.sent_at;
    bool is_granted = r->to_store.op == SIMBA_CONTEND && r->code == 0 && (r->granted || r->own);
    histogram_add(&s->metrics.operation, took);
    if (r->actor != NULL)
        metrics_add_latency(r->actor, took);
    if (is_on(s))
        put(s, &(struct simba_event){
                   .kind = SIMBA_EVENT_EXCHANGE,
                   .code = is_refused(r) ? SIMBA_EHELD : r->code,
                   .name = op_name(r->to_store.op),
                   .mutex = r->to_store.op == SIMBA_LIST ? "" : r->to_store.mutex,
                   .id = r->to_store.id,
                   .token = is_granted ? r->token : r->to_store.token,
                   .began_us = r->sent.sent_at,
                   .duration_us = took,
               });
}

/* ---- tenures ------------------------------------------------------------------------------- */

void trace_tenure(struct actor *a, int64_t now)
{
    struct metrics *m = &a->client->metrics;
    int64_t waited = now - a->since_at;
    metrics_count(a, COUNT_ACQUISITIONS);
    histogram_add(&m->wait, waited);
    if (a->hinted_at != 0)
        histogram_add(&m->handoff, now - a->hinted_at);
    if (is_on(a->client))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_ACQUIRED,
                      .token = a->machine.lease.token,
                      .began_us = a->since_at,
                      .duration_us = waited,
                  });
    a->since_at = now;
}

void trace_tenure_end(struct actor *a, int64_t now, enum simba_reason reason, uint64_t token)
{
    int64_t held = now - a->since_at;
    if (reason == SIMBA_EXPIRED || reason == SIMBA_EVICTED || reason == SIMBA_STALLED)
        metrics_count(a, reason == SIMBA_EXPIRED   ? COUNT_EXPIRED
                         : reason == SIMBA_EVICTED ? COUNT_EVICTED
                                                   : COUNT_STALLED);
    histogram_add(&a->client->metrics.hold, held);
    if (is_on(a->client))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_ENDED,
                      .reason = reason,
                      .token = token,
                      .began_us = a->since_at,
                      .duration_us = held,
                  });
    a->since_at = now;
}

/* ---- user code ----------------------------------------------------------------------------- */

void trace_callback(struct actor *a, const char *name, uint64_t token, int64_t submitted,
                    int64_t began)
{
    struct simba_client *s = a->client;
    int64_t ran_for = clock_now() - began;
    driver_lock(s);
    histogram_add(&s->metrics.callback_delay, began - submitted);
    histogram_add(&s->metrics.callback, ran_for);
    driver_unlock(s);
    if (is_on(s))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_CALLBACK,
                      .name = name,
                      .token = token,
                      .began_us = began,
                      .duration_us = ran_for,
                  });
}

void trace_run(struct actor *a, uint64_t token, int64_t began, int code)
{
    struct simba_client *s = a->client;
    int64_t ran_for = clock_now() - began;
    driver_lock(s);
    metrics_add(&s->metrics.runs, 1);
    if (code != 0)
        metrics_add(&s->metrics.runs_failed, 1);
    histogram_add(&s->metrics.run, ran_for);
    driver_unlock(s);
    if (is_on(s))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_RUN,
                      .code = code,
                      .token = token,
                      .began_us = began,
                      .duration_us = ran_for,
                  });
}
