/* trace.c: the events of a client (simba_options.trace): what they tell, in which order, that they
 * agree with the metrics, and that a slow trace function holds up nothing. And the labels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"
#include "work_probe.h"

#define SEEN_MAX 8192

/* An event, with its strings. */
struct seen {
    struct simba_event e;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1], text[400];
};

/* What a trace function has been told. */
static struct recorder {
    atomic_int count, inside;
    atomic_int facts; /* of these, those that no metric counts */
    _Atomic uint64_t dropped;
    atomic_bool block, gate; /* block: each call waits for the gate */
    struct seen seen[SEEN_MAX];
} rec;

static void record(void *data, const struct simba_event *event)
{
    struct recorder *r = data;
    CHECK(atomic_fetch_add(&r->inside, 1) == 0);
    int n = atomic_load(&r->count);
    CHECK(n < SEEN_MAX);
    CHECK(event->name != NULL && event->mutex != NULL && event->id != NULL);
    CHECK(event->text != NULL && event->reserved[0] == 0 && event->reserved[1] == 0);
    CHECK(event->duration_us >= 0 && event->began_us > 0);
    CHECK((event->began_us + event->duration_us) / 1000 <= simba_now());
    if (atomic_load(&r->block))
        AWAIT(atomic_load(&r->gate));
    struct seen *s = &r->seen[n];
    s->e = *event;
    snprintf(s->mutex, sizeof s->mutex, "%s", event->mutex);
    snprintf(s->id, sizeof s->id, "%s", event->id);
    snprintf(s->text, sizeof s->text, "%s", event->text);
    atomic_fetch_add(&r->facts, event->kind >= SIMBA_EVENT_FAILING);
    atomic_fetch_add(&r->dropped, event->dropped);
    CHECK(atomic_fetch_sub(&r->inside, 1) == 1);
    atomic_store(&r->count, n + 1);
}

static simba_client *open_with(struct simba_options o)
{
    simba_client *s = NULL;
    o.trace = record;
    o.trace_data = &rec;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    return s;
}

static simba_client *open_traced(uint32_t flags)
{
    struct simba_options o = suite_options();
    o.flags = flags;
    return open_with(o);
}

/* kinds: 0, or those that are told. Where tests make the store silent, that is noticed soon. */
static simba_client *open_kinds(uint64_t kinds)
{
    struct simba_options o = suite_options();
    o.trace_kinds = kinds;
    if (suite_is_memory())
        o.command_timeout_ms = 200;
    return open_with(o);
}

/* Each event is one count in one of these. */
static uint64_t counted(simba_client *s)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.wait.count == m.acquisitions && m.run.count == m.runs);
    return m.operation.count + m.acquisitions + m.hold.count + m.callback.count + m.runs -
           m.events_dropped;
}

/* Nothing goes on any more, and all of it has been told. */
#define AWAIT_ALL(s) \
    AWAIT(counted(s) == (uint64_t)(atomic_load(&rec.count) - atomic_load(&rec.facts)))

/* The first event like this one from `from` on; name NULL, token 0: any. -1: none. */
static int find(int from, enum simba_event_kind kind, const char *name, uint64_t token)
{
    for (int i = from; i < atomic_load(&rec.count); i++) {
        const struct simba_event *e = &rec.seen[i].e;
        if (e->kind == kind && (name == NULL || strcmp(e->name, name) == 0) &&
            (token == 0 || e->token == token))
            return i;
    }
    return -1;
}

static const struct simba_event *at(int i)
{
    CHECK(i >= 0);
    return &rec.seen[i].e;
}

static void check_names(int i, const char *mutex, const char *id)
{
    CHECK(i >= 0);
    CHECK(strcmp(rec.seen[i].mutex, mutex) == 0 && strcmp(rec.seen[i].id, id) == 0);
}

/* A tenure from its grant to its release, and what must lie between. */
static void check_tenure(uint64_t token, const char *mutex, const char *id, enum simba_reason why)
{
    int contend = find(0, SIMBA_EVENT_EXCHANGE, "contend", token);
    int acquired = find(0, SIMBA_EVENT_ACQUIRED, "", token);
    int ended = find(0, SIMBA_EVENT_ENDED, "", token);
    int release = find(0, SIMBA_EVENT_EXCHANGE, "release", token);
    check_names(contend, mutex, id);
    check_names(acquired, mutex, id);
    check_names(ended, mutex, id);
    check_names(release, mutex, id);
    CHECK(contend < acquired && acquired < ended && ended < release);
    CHECK(at(contend)->code == 0 && at(acquired)->code == 0 && at(ended)->reason == why);
    CHECK(find(acquired + 1, SIMBA_EVENT_ACQUIRED, "", token) < 0);
    CHECK(find(ended + 1, SIMBA_EVENT_ENDED, "", token) < 0);
    int64_t began = at(acquired)->began_us + at(acquired)->duration_us;
    CHECK(at(ended)->began_us >= began - 1 && at(ended)->began_us <= began + 1);
    CHECK(at(contend)->began_us >= at(acquired)->began_us);
    CHECK(at(release)->began_us >= at(ended)->began_us + at(ended)->duration_us - 1);
}

/* ---- what is told -------------------------------------------------------------------------- */

static void trace_contender(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("traced");
    struct probe p = {0};
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t first = simba_contender_token(p.c);
    store_evict(mutex, true);
    AWAIT(atomic_load(&p.acquired) == 2);
    uint64_t second = atomic_load(&p.token);
    const char *id = simba_contender_id(p.c);
    nap(20);
    probe_stop(&p);
    AWAIT_ALL(s);
    check_tenure(second, mutex, id, SIMBA_RELEASED);
    int lost = find(0, SIMBA_EVENT_ENDED, "", first), renew = -1;
    CHECK(at(lost)->reason == SIMBA_EVICTED);
    for (int i = 0; i < lost; i++) /* the renewal that brought it */
        renew = at(i)->code == SIMBA_ELOST ? i : renew;
    CHECK(strcmp(at(renew)->name, "renew") == 0 && at(renew)->token == first);
    CHECK(at(find(lost, SIMBA_EVENT_ENDED, "", second))->duration_us >= 20000);
    for (int i = 0; i < 2; i++) {
        uint64_t token = i == 0 ? first : second;
        int on_acquired = find(0, SIMBA_EVENT_CALLBACK, "on_acquired", token);
        int on_released = find(0, SIMBA_EVENT_CALLBACK, "on_released", token);
        check_names(on_acquired, mutex, id);
        CHECK(find(0, SIMBA_EVENT_ACQUIRED, "", token) < on_acquired);
        CHECK(on_acquired < on_released);
        CHECK(find(0, SIMBA_EVENT_ENDED, "", token) < on_released);
        CHECK(on_released < find(0, SIMBA_EVENT_EXCHANGE, "release", token));
    }
    client_close(s);
    CHECK(find(0, SIMBA_EVENT_CALLBACK, "on_closed", 0) >= 0);
}

static void trace_renewals(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_steady();
    struct probe p = {0};
    const char *mutex = fresh("renewed");
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    AWAIT(find(0, SIMBA_EVENT_EXCHANGE, "renew", token) >= 0);
    check_names(find(0, SIMBA_EVENT_EXCHANGE, "renew", token), mutex, simba_contender_id(p.c));
    client_close(s);
}

static void *let_go(void *locker)
{
    nap(50);
    CHECK_OK(simba_locker_release(locker));
    return NULL;
}

/* Refused at once; then waited for, and the wait is as long as the other holds it. */
static void trace_locker(void)
{
    simba_client *s = open_traced(0), *other = client_open();
    struct simba_handle_options o = lease_long();
    simba_locker *ours, *theirs;
    const char *mutex = fresh("waited");
    CHECK_OK(simba_locker_create(s, mutex, &o, &ours));
    CHECK_OK(simba_locker_create(other, mutex, &o, &theirs));
    CHECK_OK(simba_locker_acquire(theirs, PATIENCE_MS));
    CHECK_CODE(simba_locker_acquire(ours, 0), SIMBA_EHELD);
    int64_t before_us = simba_now() * 1000;
    pthread_t thread = spawn(let_go, theirs);
    CHECK_OK(simba_locker_acquire(ours, PATIENCE_MS));
    join(thread);
    uint64_t token = simba_locker_token(ours);
    nap(30);
    CHECK_OK(simba_locker_release(ours));
    AWAIT_ALL(s);
    check_tenure(token, mutex, simba_locker_id(ours), SIMBA_RELEASED);
    int refused = find(0, SIMBA_EVENT_EXCHANGE, "contend", 0);
    CHECK(at(refused)->code == SIMBA_EHELD && at(refused)->token == 0);
    const struct simba_event *acquired = at(find(0, SIMBA_EVENT_ACQUIRED, "", token));
    CHECK(acquired->began_us >= before_us); /* and let_go began to wait after that, too */
    CHECK(acquired->began_us + acquired->duration_us >= before_us + 50000);
    int64_t held = at(find(0, SIMBA_EVENT_ENDED, "", token))->duration_us;
    CHECK(held >= 30000);
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.wait.count == 1 && m.wait.sum_us == (uint64_t)acquired->duration_us);
    CHECK(m.hold.count == 1 && m.hold.sum_us == (uint64_t)held);
    client_close(s);
    client_close(other);
}

static int fail_second(struct work_probe *d, const simba_run *run)
{
    (void)run;
    return atomic_load(&d->runs) == 2 ? 7 : 0;
}

static void trace_runs(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = fail_second, .period = 2};
    struct simba_metrics m = SIMBA_METRICS_INIT;
    const char *mutex = fresh("work");
    work_probe_start(&d, s, mutex, &o);
    AWAIT(atomic_load(&d.runs) > 3);
    work_probe_stop(&d);
    AWAIT_ALL(s);
    uint64_t token = atomic_load(&d.token);
    int first = find(0, SIMBA_EVENT_RUN, "", token);
    int second = find(first + 1, SIMBA_EVENT_RUN, "", token);
    check_names(second, mutex, simba_contender_id(d.c));
    CHECK(at(first)->code == 0 && at(second)->code == 7);
    CHECK(find(0, SIMBA_EVENT_CALLBACK, "on_acquired", token) < first);
    CHECK(at(second)->began_us >= at(first)->began_us + at(first)->duration_us);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.runs == (uint64_t)atomic_load(&d.runs) && m.runs_failed == 1);
    client_close(s);
}

static void ignore_entry(void *data, const struct simba_entry *entry)
{
    (void)data;
    (void)entry;
}

static void trace_inquiries(void)
{
    simba_client *s = open_kinds(SIMBA_EVENT_BIT(SIMBA_EVENT_EXCHANGE)), *other = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    struct probe p = {0};
    const char *mutex = fresh("asked");
    probe_start(&p, other, mutex, &o);
    AWAIT(probe_leads(&p));
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner));
    CHECK_OK(simba_list(s, mutex, PATIENCE_MS, ignore_entry, NULL));
    CHECK_OK(simba_evict(s, mutex, &owner, true, PATIENCE_MS));
    CHECK_CODE(simba_evict(s, mutex, &owner, true, PATIENCE_MS), SIMBA_ELOST);
    AWAIT_ALL(s);
    CHECK(atomic_load(&rec.count) == 4);
    static const char *const names[] = {"read", "list", "evict", "evict"};
    for (int i = 0; i < 4; i++) {
        CHECK(at(i)->kind == SIMBA_EVENT_EXCHANGE && strcmp(at(i)->name, names[i]) == 0);
        CHECK(at(i)->code == (i == 3 ? SIMBA_ELOST : 0));
        check_names(i, i == 1 ? "" : mutex, i >= 2 ? owner.id : "");
    }
    CHECK(at(2)->token == owner.token);
    client_close(s);
    client_close(other);
}

static void ignore_change(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

static void trace_observer(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    simba_observer *w;
    const char *mutex = fresh("observed");
    o.on_changed = ignore_change;
    CHECK_OK(simba_observer_create(s, mutex, &o, &w));
    AWAIT(find(0, SIMBA_EVENT_CALLBACK, "on_changed", 0) >= 0);
    int read = find(0, SIMBA_EVENT_EXCHANGE, "read", 0);
    check_names(read, mutex, "");
    CHECK(read < find(0, SIMBA_EVENT_CALLBACK, "on_changed", 0));
    client_close(s);
}

static void trace_expiry(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_tiny();
    struct probe p = {0};
    probe_start(&p, s, fresh("expires"), &o);
    AWAIT(probe_leads(&p));
    store_set(HANG);
    AWAIT(atomic_load(&p.reason) == SIMBA_EXPIRED);
    AWAIT(find(0, SIMBA_EVENT_ENDED, "", 0) >= 0);
    CHECK(at(find(0, SIMBA_EVENT_ENDED, "", 0))->reason == SIMBA_EXPIRED);
    store_set(HEALTHY);
    client_close(s);
}

static void ignore_danger(void *data, const char *mutex, int64_t left_ms)
{
    (void)data;
    (void)mutex;
    (void)left_ms;
}

static void ignore_stop(void *data)
{
    (void)data;
}

/* An owner that reports no progress. */
static void trace_stalled(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    struct simba_metrics m = SIMBA_METRICS_INIT;
    simba_contender *c;
    o.progress_ms = 200;
    o.on_endangered = ignore_danger;
    o.on_stopped = ignore_stop;
    CHECK_OK(simba_contender_create(s, fresh("stalled"), &o, &c));
    CHECK_OK(simba_contender_start(c));
    AWAIT(find(0, SIMBA_EVENT_ENDED, "", 0) >= 0);
    const struct simba_event *ended = at(find(0, SIMBA_EVENT_ENDED, "", 0));
    CHECK(ended->reason == SIMBA_STALLED && ended->duration_us >= 200000);
    int warned = find(0, SIMBA_EVENT_CALLBACK, "on_endangered", 0); /* it may have come too late */
    CHECK(warned < 0 || at(warned)->token == ended->token);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.stalled == 1 && m.expired == 0);
    CHECK_OK(simba_contender_stop(c));
    AWAIT(find(0, SIMBA_EVENT_CALLBACK, "on_stopped", 0) >= 0);
    client_close(s);
}

static void ignore_done(void *data, int code)
{
    (void)data;
    CHECK(code == 0);
}

static void trace_async(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    simba_locker *l;
    CHECK_OK(simba_locker_create(s, fresh("async"), &o, &l));
    CHECK_OK(simba_locker_acquire_async(l, PATIENCE_MS, ignore_done, NULL));
    AWAIT(find(0, SIMBA_EVENT_CALLBACK, "done", 0) >= 0);
    CHECK(find(0, SIMBA_EVENT_ACQUIRED, "", 0) < find(0, SIMBA_EVENT_CALLBACK, "done", 0));
    CHECK_OK(simba_locker_release(l));
    AWAIT_ALL(s);
    client_close(s);
}

/* ---- facts --------------------------------------------------------------------------------- */

static int64_t end_of(const struct simba_event *e)
{
    return e->began_us + e->duration_us;
}

/* Renewals fail, and work again. */
static void trace_failing(void)
{
    simba_client *s = open_kinds(0);
    struct simba_handle_options o = lease_steady();
    struct simba_trouble t;
    struct probe p = {0};
    const char *mutex = fresh("failing");
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    store_set(FAIL);
    AWAIT(find(0, SIMBA_EVENT_FAILING, "", token) >= 0);
    int failing = find(0, SIMBA_EVENT_FAILING, "", 0);
    int64_t ends_at = simba_now() + simba_contender_remaining(p.c);
    check_names(failing, mutex, simba_contender_id(p.c));
    CHECK(at(failing)->code == SIMBA_ESTORE && at(failing)->duration_us == 0);
    CHECK(at(failing)->until - ends_at <= 2 && ends_at - at(failing)->until <= 2);
    CHECK_OK(simba_contender_trouble(p.c, &t));
    CHECK(t.code == at(failing)->code && strcmp(rec.seen[failing].text, t.text) == 0);
    CHECK(find(0, SIMBA_EVENT_WORKS, NULL, 0) < 0);
    store_set(HEALTHY);
    AWAIT(find(failing, SIMBA_EVENT_WORKS, "", token) >= 0);
    int works = find(0, SIMBA_EVENT_WORKS, NULL, 0);
    check_names(works, mutex, simba_contender_id(p.c));
    CHECK(works > failing && at(works)->code == 0 && rec.seen[works].text[0] == '\0');
    CHECK(at(works)->until > at(failing)->until);
    CHECK(at(works)->began_us <= at(failing)->began_us); /* since the last renewal before */
    CHECK(end_of(at(works)) >= at(failing)->began_us);
    CHECK(find(failing + 1, SIMBA_EVENT_FAILING, NULL, 0) < 0); /* told once */
    client_close(s);
}

/* The store says nothing: the tenure is lost, and then nothing is acquired. */
static void trace_silent(void)
{
    simba_client *s = open_kinds(0);
    struct simba_handle_options o = lease_tiny();
    struct probe p = {0};
    probe_start(&p, s, fresh("silent"), &o);
    AWAIT(probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    store_set(HANG);
    AWAIT(find(0, SIMBA_EVENT_ENDED, "", token) >= 0);
    int ended = find(0, SIMBA_EVENT_ENDED, "", token);
    AWAIT(find(ended, SIMBA_EVENT_FAILING, "", 0) >= 0);
    const struct simba_event *waits = at(find(ended, SIMBA_EVENT_FAILING, "", 0));
    CHECK(waits->code == SIMBA_ETIMEOUT && waits->until == 0 && waits->token == 0);
    int first = find(0, SIMBA_EVENT_FAILING, "", 0);
    CHECK(first > ended || (at(first)->token == token && at(first)->until > 0));
    CHECK(strcmp(rec.seen[first].text, "the store does not answer") == 0);
    CHECK(find(0, SIMBA_EVENT_WORKS, NULL, 0) < 0);
    store_set(HEALTHY);
    AWAIT(find(ended, SIMBA_EVENT_WORKS, "", 0) >= 0);
    int works = find(ended, SIMBA_EVENT_WORKS, "", 0);
    CHECK(at(works)->began_us <= at(first)->began_us + 1000 && at(works)->duration_us > 0);
    client_close(s);
}

/* A wait fails from the beginning; the store is reached after that, once. */
static void trace_reached(void)
{
    struct simba_options quick = suite_options();
    quick.connect_timeout_ms = 200;
    quick.command_timeout_ms = 200;
    int64_t before_us = simba_now() * 1000;
    simba_client *s = open_with(quick);
    store_set(FAIL);
    struct simba_handle_options o = lease_long();
    simba_locker *l;
    const char *mutex = fresh("reached");
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    CHECK_CODE(simba_locker_acquire(l, 300), SIMBA_ESTORE);
    CHECK(strncmp(simba_error_text(), "mutex '", 7) == 0);
    AWAIT(find(0, SIMBA_EVENT_FAILING, "", 0) >= 0);
    int failing = find(0, SIMBA_EVENT_FAILING, "", 0);
    CHECK(strcmp(rec.seen[failing].text, simba_error_cause()) == 0);
    CHECK(at(failing)->until == 0 && at(failing)->token == 0);
    CHECK(find(0, SIMBA_EVENT_REACHED, NULL, 0) < 0);
    store_set(HEALTHY);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    AWAIT_ALL(s);
    int reached = find(0, SIMBA_EVENT_REACHED, "", 0);
    check_names(reached, "", "");
    CHECK(at(reached)->code == 0 && at(reached)->began_us >= before_us - 1000);
    CHECK(at(reached)->duration_us >= 300000);
    CHECK(find(reached + 1, SIMBA_EVENT_REACHED, NULL, 0) < 0);
    CHECK(find(0, SIMBA_EVENT_WORKS, NULL, 0) < 0); /* each wait begins anew */
    client_close(s);
}

/* The note is not written with the tenure, but with a renewal. */
static void trace_note(void)
{
    simba_client *s = open_kinds(0);
    struct simba_handle_options o = lease_steady();
    struct probe p = {0};
    const char *mutex = fresh("noted");
    o.note = "http://me";
    store_delay(300);
    probe_start(&p, s, mutex, &o);
    struct simba_metrics m = SIMBA_METRICS_INIT;
    AWAIT(simba_metrics_read(s, &m) == 0 && m.attempts > 0);
    store_set(FAIL); /* the grant is on its way */
    AWAIT(find(0, SIMBA_EVENT_NOTE_FAILED, "", 0) >= 0);
    int failed = find(0, SIMBA_EVENT_NOTE_FAILED, "", 0);
    uint64_t token = at(failed)->token;
    check_names(failed, mutex, simba_contender_id(p.c));
    CHECK(token != 0 && at(failed)->code == SIMBA_ESTORE && rec.seen[failed].text[0] != '\0');
    store_set(HEALTHY);
    AWAIT(find(failed, SIMBA_EVENT_NOTE_PUBLISHED, "", token) >= 0);
    int published = find(failed, SIMBA_EVENT_NOTE_PUBLISHED, "", token);
    check_names(published, mutex, simba_contender_id(p.c));
    CHECK(at(published)->code == 0 && end_of(at(published)) >= at(failed)->began_us);
    client_close(s);
}

/* What was not asked for is neither told nor dropped. */
static void trace_kinds(void)
{
    simba_client *s = open_kinds(SIMBA_EVENT_BIT(SIMBA_EVENT_ENDED));
    struct simba_handle_options o = lease_long();
    struct simba_metrics m = SIMBA_METRICS_INIT;
    simba_locker *l;
    CHECK_OK(simba_locker_create(s, fresh("kinds"), &o, &l));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    AWAIT(atomic_load(&rec.count) >= 3);
    client_close(s);
    CHECK(atomic_load(&rec.count) == 3);
    for (int i = 0; i < 3; i++)
        CHECK(at(i)->kind == SIMBA_EVENT_ENDED);
    s = open_kinds(SIMBA_EVENT_BIT(SIMBA_EVENT_FAILING));
    int threads = count_threads("simba-call");
    CHECK_OK(simba_locker_create(s, fresh("kinds"), &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.events_dropped == 0 && count_threads("simba-call") == threads);
    client_close(s);
    CHECK(atomic_load(&rec.count) == 3);
}

/* ---- a trace function that is slow, or ends its thread ------------------------------------- */

#define ROUNDS 320 /* of four events: more than wait at a time */

static void trace_slow(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    struct simba_metrics m = SIMBA_METRICS_INIT;
    simba_locker *l;
    CHECK_OK(simba_locker_create(s, fresh("slow"), &o, &l));
    atomic_store(&rec.block, true);
    for (int i = 0; i < ROUNDS; i++) { /* none of these waits for the trace function */
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    CHECK(atomic_load(&rec.count) == 0);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.acquisitions == ROUNDS && m.events_dropped > 0);
    check_close_refused(s, "trace function");
    atomic_store(&rec.gate, true);
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK(atomic_load(&rec.count) >= 1024);
    CHECK(find(0, SIMBA_EVENT_EXCHANGE, "contend", 0) == 0);
}

/* The next event that fits tells how many did not. */
static void trace_dropped(void)
{
    simba_client *s = open_traced(0);
    struct simba_handle_options o = lease_long();
    struct simba_metrics m = SIMBA_METRICS_INIT;
    simba_locker *l;
    CHECK_OK(simba_locker_create(s, fresh("dropped"), &o, &l));
    atomic_store(&rec.block, true);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    atomic_store(&rec.gate, true);
    AWAIT(atomic_load(&rec.count) == 1024);
    CHECK(atomic_load(&rec.dropped) == 0);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.events_dropped >= 4 * ROUNDS - 1024);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT_ALL(s);
    CHECK(at(1024)->dropped == m.events_dropped && atomic_load(&rec.dropped) == at(1024)->dropped);
    client_close(s);
}

static atomic_int exits;

static void record_and_exit(void *data, const struct simba_event *event)
{
    simba_client **s = data;
    record(&rec, event);
    CHECK_REFUSED(simba_close(*s, 0), SIMBA_EDEADLOCK, NULL);
    if (atomic_fetch_add(&exits, 1) % 2 == 0)
        pthread_exit(NULL);
}

static void trace_ends_its_thread(void)
{
    struct simba_options o = suite_options();
    struct simba_handle_options lasting = lease_long();
    simba_client *s = NULL;
    simba_locker *l;
    o.trace = record_and_exit;
    o.trace_data = &s;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    CHECK_OK(simba_locker_create(s, fresh("exits"), &lasting, &l));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    AWAIT_ALL(s);
    CHECK(atomic_load(&rec.count) >= 12);
    client_close(s);
}

static pthread_t polls;

static void record_here(void *data, const struct simba_event *event)
{
    CHECK(pthread_equal(polls, pthread_self()));
    record(data, event);
}

static void trace_in_poll(void)
{
    struct simba_options o = suite_options();
    struct simba_handle_options lasting = lease_long();
    simba_client *s = NULL;
    simba_locker *l;
    polls = pthread_self();
    o.trace = record_here;
    o.trace_data = &rec;
    o.flags = SIMBA_NO_THREAD;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    CHECK_OK(simba_locker_create(s, fresh("polled"), &lasting, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_poll(s));
    check_tenure(token, rec.seen[0].mutex, simba_locker_id(l), SIMBA_RELEASED);
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

/* ---- labels -------------------------------------------------------------------------------- */

static int open_labelled(const char *labels, simba_client **out)
{
    struct simba_options o = suite_options();
    o.labels = labels;
    *out = NULL;
    return simba_open(suite_url(), &o, out);
}

static void labels_refused(void)
{
    static const struct {
        const char *labels, *part;
    } bad[] = {
        {"app", "after a name comes"},
        {"app=web", "after a name comes"},
        {"1app=\"web\"", "does not begin with a digit"},
        {"=\"web\"", "letters, digits and _"},
        {"a-b=\"web\"", "'a': after a name comes"},
        {"app=\"web", "no quote at the end"},
        {"app=\"web\",", "label 2"},
        {"app=\"web\" ", "comma"},
        {"app=\"web\"zone=\"b\"", "comma"},
        {"app=\"a\\tb\"", "backslash"},
        {"app=\"a\nb\"", "new line"},
        {"app=\"a\\", "backslash"},
        {"app=\"\xff\"", "UTF-8"},
        {"app=\"\"", "empty"},
        {"app=\"a\",zone=\"b\",app=\"c\"", "label 3 'app': this name comes twice"},
        {"mutex=\"x\"", "the library has"},
        {"le=\"x\"", "the library has"},
        {"reason=\"x\"", "the library has"},
        {"__app=\"x\"", "Prometheus"},
    };
    simba_client *s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_REFUSED(open_labelled(bad[i].labels, &s), SIMBA_EINVAL, bad[i].part);
    char many[4096] = "a=\"";
    memset(many + 3, 'x', sizeof many - 4);
    CHECK_REFUSED(open_labelled(many, &s), SIMBA_EINVAL, "bytes at most");
    for (size_t i = 0, length = 0; i < 17; i++)
        length += (size_t)snprintf(many + length, sizeof many - length, "%sa%zu=\"x\"",
                                   i > 0 ? "," : "", i);
    CHECK_REFUSED(open_labelled(many, &s), SIMBA_EINVAL, "16 at most");
}

/* On every begin of its client; who is on one page with others needs labels of its own. */
static void labels_on_a_page(void)
{
    static char page[1 << 18];
    simba_client *s[3];
    CHECK_OK(open_labelled("zone=\"b\",app=\"a\\\"\\\\\\n\"", &s[0]));
    CHECK_OK(open_labelled("", &s[1]));
    CHECK_OK(open_labelled("app=\"a\\\"\\\\\\n\",zone=\"b\"", &s[2]));
    CHECK(simba_metrics_prometheus(s, 2, SIMBA_PER_HANDLE, page, sizeof page) > 0);
    const char *first = strstr(page, "\nsimba_owned{app=\"a\\\"\\\\\\n\",zone=\"b\"} 0\n");
    CHECK(first != NULL && strstr(first, "\nsimba_owned 0\n") != NULL);
    CHECK(strstr(page, "_bucket{app=\"a\\\"\\\\\\n\",zone=\"b\",le=\"+Inf\"} 0\n") != NULL);
    CHECK(simba_metrics_prometheus(s, 3, 0, page, sizeof page) == SIMBA_EINVAL);
    CHECK(strstr(simba_error_text(), "differ") != NULL);
    simba_client *twice[] = {s[1], s[1]}, *none[] = {s[1], NULL};
    CHECK(simba_metrics_prometheus(twice, 2, 0, page, sizeof page) == SIMBA_EINVAL);
    CHECK(simba_metrics_prometheus(none, 2, 0, page, sizeof page) == SIMBA_EINVAL);
    for (int i = 0; i < 3; i++)
        client_close(s[i]);
}

/* What each handle's exchanges took, from the first page that asks for it on. */
static void latency_on_a_page(void)
{
    static char page[1 << 16];
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_locker *l;
    char begin[512];
    const char *mutex = fresh("latency");
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    int length = snprintf(begin, sizeof begin,
                          "\nsimba_mutex_operation_seconds_count{mutex=\"%s\",id=\"%s\"} ", mutex,
                          simba_locker_id(l));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
        CHECK(simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, page, sizeof page) > 0);
        const char *line = strstr(page, begin);
        CHECK(line != NULL);
        long count = strtol(line + length, NULL, 10);
        CHECK(i == 0 ? count == 0 : count >= 2); /* a hint may have made it renew at once */
    }
    client_close(s);
}

const struct test trace_tests[] = {
    {"trace_contender", trace_contender, ANY_STORE, 0},
    {"trace_renewals", trace_renewals, ANY_STORE, 0},
    {"trace_locker", trace_locker, PUSHES, 0},
    {"trace_runs", trace_runs, ANY_STORE, 0},
    {"trace_inquiries", trace_inquiries, ANY_STORE, 0},
    {"trace_observer", trace_observer, ANY_STORE, 0},
    {"trace_expiry", trace_expiry, MEMORY_FAULTS, 0},
    {"trace_stalled", trace_stalled, ANY_STORE, 0},
    {"trace_async", trace_async, ANY_STORE, 0},
    {"trace_failing", trace_failing, MEMORY_FAULTS, 0},
    {"trace_silent", trace_silent, MEMORY_FAULTS, 0},
    {"trace_reached", trace_reached, MEMORY_FAULTS, 0},
    {"trace_note", trace_note, MEMORY_FAULTS, 0},
    {"trace_kinds", trace_kinds, ANY_STORE, 0},
    {"trace_slow", trace_slow, ANY_STORE, 0},
    {"trace_dropped", trace_dropped, ANY_STORE, 0},
    {"trace_ends_its_thread", trace_ends_its_thread, ANY_STORE, 0},
    {"trace_in_poll", trace_in_poll, ANY_STORE, 0},
    {"labels_refused", labels_refused, ANY_STORE, 0},
    {"labels_on_a_page", labels_on_a_page, ANY_STORE, 0},
    {"latency_on_a_page", latency_on_a_page, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
