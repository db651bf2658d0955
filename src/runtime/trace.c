/* trace.c: see trace.h. */
#include "runtime/trace.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "runtime/client.h"
#include "runtime/inquiry.h"

#define NS_PER_US 1000

/* ---- events on their way ------------------------------------------------------------------- */

struct traced {
    struct simba_event event;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1], text[CALL_TEXT_MAX];
};

static void write_event(struct delivery *d, const void *record)
{
    const struct trace *trace = (struct trace *)(void *)d;
    const struct traced *traced = record;
    trace->write(trace->data, &traced->event);
}

int trace_init(struct trace *trace, struct simba_client *client, struct executor *executor,
               void (*write)(void *, const struct simba_event *), void *data, uint64_t kinds)
{
    *trace = (struct trace){.write = write,
                            .data = data,
                            .kinds = kinds != 0 ? kinds : UINT64_MAX,
                            .opened_at = clock_now()};
    return delivery_init(&trace->delivery, client, executor, write != NULL ? write_event : NULL,
                         sizeof(struct traced), TRACE_EVENTS_MAX);
}

void trace_free(struct trace *trace)
{
    delivery_free(&trace->delivery);
}

/* What servers say is escaped. */
static const char *copy_text(char out[CALL_TEXT_MAX], const char *text)
{
    struct text escaped;
    out[0] = '\0';
    if (text == NULL)
        return out;
    text_init(&escaped, out, CALL_TEXT_MAX);
    text_add_escaped(&escaped, text);
    text_end(&escaped);
    return out;
}

/* The times in it are in ns, and its strings borrowed; NULL: "". Called only if this kind is
 * wanted: the event is made for nothing else. */
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
        traced->event.until = event->until / NS_PER_MS;
        traced->event.dropped = trace->dropped;
        trace->dropped = 0;
        if (event->name == NULL)
            traced->event.name = "";
        snprintf(traced->mutex, sizeof traced->mutex, "%s", event->mutex);
        snprintf(traced->id, sizeof traced->id, "%s", event->id);
        traced->event.mutex = traced->mutex;
        traced->event.id = traced->id;
        traced->event.text = copy_text(traced->text, event->text);
    }
    delivery_unlock(&trace->delivery);
}

static void put_of(struct actor *a, struct simba_event event)
{
    event.mutex = a->by_mutex.name;
    event.id = actor_id(a);
    put(a->client, &event);
}

static bool is_wanted(const struct simba_client *s, enum simba_event_kind kind)
{
    return s->trace.write != NULL && (s->trace.kinds & SIMBA_EVENT_BIT(kind)) != 0;
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

/* Any answer but a failure. */
static void see_reached(struct simba_client *s, const struct request *r)
{
    int64_t opened_at = s->trace.opened_at;
    if (opened_at == 0 || request_has_failed(r))
        return;
    s->trace.opened_at = 0;
    if (is_wanted(s, SIMBA_EVENT_REACHED))
        put(s, &(struct simba_event){
                   .kind = SIMBA_EVENT_REACHED,
                   .mutex = "",
                   .id = "",
                   .began_us = opened_at,
                   .duration_us = clock_now() - opened_at,
               });
}

void trace_exchange(const struct request *r)
{
    struct simba_client *s = r->client;
    int64_t took = clock_now() - r->sent.sent_at;
    bool is_granted = r->to_store.op == SIMBA_CONTEND && r->code == 0 && (r->granted || r->own);
    histogram_add(&s->metrics.operation, took);
    if (r->actor != NULL)
        metrics_add_latency(r->actor, took);
    if (is_wanted(s, SIMBA_EVENT_EXCHANGE))
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
    see_reached(s, r);
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
    if (is_wanted(a->client, SIMBA_EVENT_ACQUIRED))
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
    if (is_wanted(a->client, SIMBA_EVENT_ENDED))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_ENDED,
                      .reason = reason,
                      .token = token,
                      .began_us = a->since_at,
                      .duration_us = held,
                  });
    a->since_at = now;
}

/* ---- facts ------------------------------------------------------------------------------- */

/* When the tenure ends by the clock; 0: there is none. */
static int64_t tenure_until(const struct actor *a)
{
    return a->machine.lease.state == LEASE_HOLDING ? a->machine.lease.hold_until : 0;
}

static uint64_t tenure_token(const struct actor *a)
{
    return tenure_until(a) != 0 ? a->machine.lease.token : 0;
}

void trace_failing(struct actor *a, int code, const char *text)
{
    a->is_failing_reported = true;
    if (is_wanted(a->client, SIMBA_EVENT_FAILING))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_FAILING,
                      .code = code,
                      .token = tenure_token(a),
                      .began_us = clock_now(),
                      .text = text,
                      .until = tenure_until(a),
                  });
}

void trace_works(struct actor *a, int64_t since)
{
    int64_t now = clock_now();
    a->is_failing_reported = false;
    if (is_wanted(a->client, SIMBA_EVENT_WORKS))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_WORKS,
                      .token = tenure_token(a),
                      .began_us = since,
                      .duration_us = now - since,
                      .until = tenure_until(a),
                  });
}

void trace_not_yet(struct actor *a, int64_t until, const char *text)
{
    if (is_wanted(a->client, SIMBA_EVENT_NOT_YET))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_NOT_YET,
                      .code = SIMBA_ENOTYET,
                      .began_us = clock_now(),
                      .text = text,
                      .until = until,
                  });
}

void trace_note_failed(struct actor *a, int code, const char *text)
{
    if (is_wanted(a->client, SIMBA_EVENT_NOTE_FAILED))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_NOTE_FAILED,
                      .code = code,
                      .token = tenure_token(a),
                      .began_us = clock_now(),
                      .text = text,
                  });
}

void trace_note_published(struct actor *a)
{
    if (is_wanted(a->client, SIMBA_EVENT_NOTE_PUBLISHED))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_NOTE_PUBLISHED,
                      .token = tenure_token(a),
                      .began_us = a->since_at,
                      .duration_us = clock_now() - a->since_at,
                  });
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
    if (is_wanted(s, SIMBA_EVENT_CALLBACK))
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
    if (is_wanted(s, SIMBA_EVENT_RUN))
        put_of(a, (struct simba_event){
                      .kind = SIMBA_EVENT_RUN,
                      .code = code,
                      .token = token,
                      .began_us = began,
                      .duration_us = ran_for,
                  });
}
