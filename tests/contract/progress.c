/* progress.c: an owner that must say that it gets on, or that resigns. */
#include "suite.h"

#include <stddef.h>

#define PROGRESS_MS 3000

static uint64_t stalled_so_far(simba_client *s)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    return m.stalled;
}

/* A worker that hangs in on_acquired is followed by another although its process lives and the store
 * answers. It is told when its callback ends. */
/* shows: C11 */
static void progress_hangs(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("hangs");
    struct simba_handle_options o = lease_short(), other = lease_short();
    o.progress_ms = 500;
    struct probe a = {.in_acquired = probe_block}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(atomic_load(&a.acquired) == 1);
    probe_start(&b, two, mutex, &other);
    referee_begin(&referee);
    AWAIT(atomic_load(&b.acquired) >= 1);
    CHECK(atomic_load(&a.returned) == 0);
    CHECK(!simba_contender_is_owner(a.c));
    CHECK(simba_contender_status(a.c) == SIMBA_RUNNING);
    CHECK_REFUSED(simba_contender_progress(a.c, atomic_load(&a.token)), SIMBA_ELOST, "over");
    CHECK(stalled_so_far(one) == 1);
    atomic_store(&a.gate, true);
    AWAIT(atomic_load(&a.released) == 1);
    CHECK(atomic_load(&a.reason) == SIMBA_STALLED);
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

static atomic_bool reports;

static _Atomic uint64_t reported; /* the token that it is for */

static void *report_for(void *arg)
{
    struct probe *p = arg;
    for (; atomic_load(&reports); nap(10))
        simba_contender_progress(p->c, atomic_load(&reported));
    return NULL;
}

/* Reports keep the tenure. When they end it is given back, and left to others for a whole lease,
 * even if nobody else owns it any more. */
/* shows: C11 */
static void progress_keeps(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("keeps");
    struct simba_handle_options o = lease_long(), other = lease_long();
    o.progress_ms = PROGRESS_MS;
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = atomic_load(&a.token);
    atomic_store(&reported, token);
    atomic_store(&reports, true);
    pthread_t reporter = spawn(report_for, &a);
    probe_start(&b, two, mutex, &other);
    nap(PROGRESS_MS + 1000);
    CHECK(simba_contender_owns(a.c, token));
    CHECK(atomic_load(&a.released) == 0);
    atomic_store(&reports, false);
    join(reporter);
    AWAIT(probe_leads(&b));
    CHECK(atomic_load(&a.reason) == SIMBA_STALLED);
    CHECK(atomic_load(&b.began_at) > atomic_load(&a.ended_at));
    probe_stop(&b);
    nap(500);
    CHECK(!simba_contender_is_owner(a.c) && atomic_load(&a.acquired) == 1);
    client_close(one);
    client_close(two);
}

/* A worker of the tenure before does not keep this one. */
/* shows: C11 */
static void progress_old_token(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.progress_ms = PROGRESS_MS;
    struct probe p = {0};
    probe_start(&p, s, fresh("old"), &o);
    AWAIT(probe_leads(&p));
    uint64_t old = atomic_load(&p.token);
    atomic_store(&reported, old);
    atomic_store(&reports, true);
    pthread_t reporter = spawn(report_for, &p);
    CHECK_OK(simba_contender_progress(p.c, old));
    probe_stop(&p);
    CHECK_CODE(simba_contender_progress(p.c, old), SIMBA_ELOST);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(atomic_load(&p.acquired) == 2);
    CHECK_CODE(simba_contender_progress(p.c, old), SIMBA_ELOST);
    CHECK_CODE(simba_contender_progress(p.c, 0), SIMBA_ELOST);
    CHECK_OK(simba_contender_progress(p.c, atomic_load(&p.token)));
    AWAIT(atomic_load(&p.released) == 2);
    CHECK(atomic_load(&p.reason) == SIMBA_STALLED);
    atomic_store(&reports, false);
    join(reporter);
    client_close(s);
}

/* Who does not ask for it may report all the same. */
static void progress_not_asked_for(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_contender *c = NULL;
    struct probe p = {0};
    CHECK_REFUSED(simba_contender_progress(NULL, 1), SIMBA_EINVAL, NULL);
    o.progress_ms = 0;
    CHECK_REFUSED(simba_contender_create(s, "x", &o, &c), SIMBA_EINVAL, "progress");
    o.progress_ms = SIMBA_LEASE_MAX_MS + 1;
    CHECK_REFUSED(simba_contender_create(s, "x", &o, &c), SIMBA_EINVAL, "progress");
    o.progress_ms = SIMBA_DEFAULT;
    probe_start(&p, s, fresh("unasked"), &o);
    AWAIT(probe_leads(&p));
    CHECK_OK(simba_contender_progress(p.c, atomic_load(&p.token)));
    client_close(s);
}

static atomic_int runs;

/* The second run hangs; the gate lets it go. */
static int work(void *data, const simba_run *run)
{
    (void)run;
    if (atomic_fetch_add(&runs, 1) == 1)
        AWAIT_FOR(SERVER_MS, atomic_load((atomic_bool *)data));
    return 0;
}

/* A scheduler is asked during its runs only: neither its callbacks nor the time between runs count.
 * A run that hangs ends the tenure. */
/* shows: C11 */
static void progress_of_work(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("work");
    struct simba_handle_options o = lease_short();
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    struct probe b = {0};
    atomic_bool gate = false;
    simba_scheduler *x = NULL;
    o.progress_ms = 500;
    o.data = &gate;
    when.period_ms = when.initial_delay_ms = 1000;
    CHECK_OK(simba_scheduler_create(one, mutex, &when, work, &o, &x));
    simba_contender *c = simba_scheduler_contender(x);
    CHECK_OK(simba_contender_start(c));
    AWAIT(simba_contender_is_owner(c));
    uint64_t token = simba_contender_token(c);
    AWAIT(atomic_load(&runs) >= 2);
    CHECK(token != 0 && stalled_so_far(one) == 0);
    o.progress_ms = SIMBA_DEFAULT;
    probe_start(&b, two, mutex, &o);
    AWAIT(atomic_load(&b.acquired) >= 1);
    CHECK(atomic_load(&runs) == 2 && stalled_so_far(one) == 1);
    CHECK(!simba_contender_owns(c, token));
    atomic_store(&gate, true);
    client_close(one);
    client_close(two);
}

/* ---- resign -------------------------------------------------------------------------------- */

/* Another leads; and when that has gone, nobody does: pushes do not shorten the pause. A stop ends
 * it. */
/* shows: C4 */
static void resign_for_long(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("resign");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    CHECK_REFUSED(simba_contender_resign(b.c, 0), SIMBA_ESTATE, "owner");
    CHECK_OK(simba_contender_resign(a.c, SIMBA_FOREVER));
    CHECK(!simba_contender_is_owner(a.c));
    CHECK_REFUSED(simba_contender_resign(a.c, 0), SIMBA_ESTATE, "owner");
    AWAIT(probe_leads(&b));
    CHECK(probe_is_idle(&a) && atomic_load(&a.reason) == SIMBA_RELEASED);
    CHECK(atomic_load(&b.began_at) > atomic_load(&a.ended_at));
    CHECK(simba_contender_status(a.c) == SIMBA_RUNNING);
    probe_stop(&b);
    nap(500);
    CHECK(!simba_contender_is_owner(a.c) && atomic_load(&a.acquired) == 1);
    probe_stop(&a);
    CHECK_OK(simba_contender_start(a.c));
    AWAIT(probe_leads(&a));
    CHECK_OK(simba_contender_resign(a.c, PATIENCE_MS));
    client_close(one);
    CHECK(atomic_load(&a.closed) == 1);
    client_close(two);
}

/* A program that has had to end its own work: that is a loss, for the metrics and for on_released; and
 * the mutex is free at once. */
static void fail_counts(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("fail");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = simba_contender_token(a.c);
    CHECK_REFUSED(simba_contender_fail(a.c, token, SIMBA_RELEASED), SIMBA_EINVAL, "knows");
    CHECK_REFUSED(simba_contender_fail(a.c, token + 1, SIMBA_STALLED), SIMBA_ELOST, "is over");
    CHECK(simba_contender_owns(a.c, token));
    CHECK_OK(simba_contender_fail(a.c, token, SIMBA_STALLED));
    CHECK(!simba_contender_is_owner(a.c));
    CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&a.reason) == SIMBA_STALLED && stalled_so_far(one) == 1);
    probe_start(&b, two, mutex, &o);
    AWAIT(probe_leads(&b));
    probe_stop(&b);
    CHECK_OK(simba_contender_start(a.c)); /* the next tenure is one like others */
    AWAIT(probe_leads(&a));
    probe_stop(&a);
    CHECK(atomic_load(&a.reason) == SIMBA_RELEASED && stalled_so_far(one) == 1);
    client_close(one);
    client_close(two);
}

static void resign_there(struct probe *p)
{
    if (atomic_load(&p->acquired) > 2)
        return;
    CHECK(simba_contender_is_owner(p->c));
    CHECK_OK(simba_contender_resign(p->c, 0));
    CHECK(!simba_contender_is_owner(p->c));
}

static void cannot_resign(struct probe *p)
{
    CHECK_CODE(simba_contender_resign(p->c, 0), SIMBA_ESTATE);
}

/* In its callbacks; it gets the mutex back if nobody else wants it. */
static void resign_in_callbacks(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = resign_there, .in_released = cannot_resign};
    probe_create(&p, s, fresh("callbacks"), &o);
    CHECK_CODE(simba_contender_resign(p.c, 0), SIMBA_ESTATE);
    CHECK_REFUSED(simba_contender_resign(p.c, -1), SIMBA_EINVAL, "negative");
    CHECK_REFUSED(simba_contender_resign(NULL, 0), SIMBA_EINVAL, NULL);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(atomic_load(&p.acquired) == 3);
    CHECK(atomic_load(&p.released) == 2);
    CHECK(simba_contender_status(p.c) == SIMBA_RUNNING);
    AWAIT(probe_leads(&p));
    CHECK_OK(simba_contender_resign(p.c, 20));
    AWAIT(atomic_load(&p.acquired) == 4);
    simba_contender_destroy(p.c);
    AWAIT(atomic_load(&p.closed) == 1);
    client_close(s);
}

/* Two who resign for each other, while a referee looks. */
/* shows: C1 */
static void resign_to_and_fro(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("fro");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    referee_begin(&referee);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(simba_contender_resign(a.c, 500));
        AWAIT(probe_leads(&b));
        AWAIT(atomic_load(&a.released) == i + 1);
        nap(600); /* a waits again */
        CHECK_OK(simba_contender_resign(b.c, 500));
        AWAIT(probe_leads(&a));
        nap(600);
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

const struct test progress_tests[] = {
    {"progress_hangs", progress_hangs, ANY_STORE, 0},
    {"progress_keeps", progress_keeps, PUSHES, 0},
    {"progress_old_token", progress_old_token, ANY_STORE, 0},
    {"progress_not_asked_for", progress_not_asked_for, ANY_STORE, 0},
    {"progress_of_work", progress_of_work, ANY_STORE, 0},
    {"fail_counts", fail_counts, ANY_STORE, 0},
    {"resign_for_long", resign_for_long, PUSHES, 0},
    {"resign_in_callbacks", resign_in_callbacks, ANY_STORE, 0},
    {"resign_to_and_fro", resign_to_and_fro, PUSHES, 0},
    {.name = NULL},
};
