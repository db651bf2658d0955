/* at_least.c: a mutex that is kept for a least time, on_endangered and on_stopped. */
#include "suite.h"

#include <stddef.h>
#include <string.h>

#define AT_LEAST_MS 1500

/* Stopped early: not owner, but the other gets it only when the time is over. */
/* shows: C4 */
static void at_least_stop(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("stop");
    struct simba_handle_options o = lease_long(), other = lease_long();
    o.at_least_ms = AT_LEAST_MS;
    struct probe a = {0}, b = {0};
    int64_t began = simba_now(); /* the tenure begins after that */
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &other);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    CHECK_OK(simba_contender_stop(a.c));
    CHECK(!simba_contender_is_owner(a.c));
    AWAIT(atomic_load(&a.released) == 1 || simba_now() >= began + AT_LEAST_MS);
    CHECK(simba_now() >= began + AT_LEAST_MS);
    AWAIT(probe_leads(&b));
    CHECK(atomic_load(&b.began_at) > atomic_load(&a.ended_at));
    CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
    client_close(one);
    client_close(two);
}

/* A close that is in a hurry hears that something goes on. */
static void at_least_close(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.at_least_ms = 2 * AT_LEAST_MS;
    struct probe p = {0};
    int64_t began = simba_now();
    probe_start(&p, s, fresh("close"), &o);
    AWAIT(probe_leads(&p));
    int code;
    AWAIT((code = simba_close(s, 20)) == 0 || strstr(simba_error_text(), "at_least") != NULL);
    CHECK(code == SIMBA_ETIMEOUT);
    client_close(s);
    CHECK(simba_now() >= began + o.at_least_ms);
    CHECK(atomic_load(&p.closed) == 1);
}

/* The release returns at once; the next acquire, by anybody, waits. */
static void at_least_lock(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("lock");
    struct simba_handle_options o = lease_long(), other = lease_long();
    simba_locker *l = NULL, *rival = NULL;
    o.at_least_ms = AT_LEAST_MS;
    CHECK_OK(simba_locker_create(one, mutex, &o, &l));
    CHECK_OK(simba_locker_create(two, mutex, &other, &rival));
    int64_t began = simba_now();
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    CHECK_OK(simba_locker_release(l));
    CHECK(!simba_locker_is_held(l) && simba_locker_token(l) == 0);
    CHECK_CODE(simba_locker_release(l), SIMBA_ESTATE);
    int tried = simba_locker_acquire(rival, 0);
    CHECK(tried == SIMBA_EHELD || simba_now() >= began + AT_LEAST_MS);
    if (tried == 0)
        CHECK_OK(simba_locker_release(rival));
    tried = simba_locker_acquire(l, 0);
    if (tried == SIMBA_EHELD && simba_now() < began + AT_LEAST_MS)
        CHECK(strstr(simba_error_text(), "at_least") != NULL);
    CHECK(tried == SIMBA_EHELD || simba_now() >= began + AT_LEAST_MS);
    if (tried != 0)
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(simba_now() >= began + AT_LEAST_MS);
    CHECK(simba_locker_token(l) > token);
    CHECK_OK(simba_locker_release(l));
    client_close(one);
    CHECK_OK(simba_locker_acquire(rival, PATIENCE_MS));
    CHECK(simba_now() >= began + 2 * AT_LEAST_MS);
    CHECK_OK(simba_locker_release(rival));
    client_close(two);
}

static void at_least_refused(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    o.at_least_ms = -2;
    CHECK_REFUSED(simba_contender_create(s, "x", &o, &c), SIMBA_EINVAL, "at_least");
    o.at_least_ms = SIMBA_LEASE_MAX_MS + 1;
    CHECK_REFUSED(simba_locker_create(s, "x", &o, &l), SIMBA_EINVAL, "at_least");
    CHECK(c == NULL && l == NULL);
    client_close(s);
}

/* ---- on_endangered ------------------------------------------------------------------------- */

static atomic_int warnings, warning;
static atomic_bool saves, holds;
static simba_locker *locker;

static void on_endangered(void *data, const char *mutex, int64_t left_ms)
{
    struct probe *p = data;
    CHECK(atomic_fetch_add(&warning, 1) == 0);
    CHECK(mutex[0] != '\0' && left_ms >= 0 && left_ms <= 60000);
    if (atomic_load(&saves))
        simba_contender_progress(p->c, atomic_load(&p->token));
    if (locker != NULL)
        CHECK_OK(simba_locker_release(locker)); /* it does not wait for itself */
    atomic_fetch_add(&warnings, 1);
    while (atomic_load(&holds))
        nap(1);
    CHECK(atomic_fetch_sub(&warning, 1) == 1);
}

static void no_warning(struct probe *p)
{
    (void)p;
    CHECK(atomic_load(&warning) == 0);
}

/* Once when renewals begin to fail, also beside on_acquired, and again only after a success. */
/* shows: C3 */
static void endangered_renewals(void)
{
    simba_client *s = client_open_quick(100);
    struct simba_handle_options o = lease(2000, 20000);
    o.on_endangered = on_endangered;
    struct probe p = {.in_acquired = probe_block, .in_released = no_warning};
    probe_start(&p, s, fresh("renewals"), &o);
    AWAIT(atomic_load(&p.acquired) == 1);
    store_set(FAIL);
    AWAIT(atomic_load(&warnings) == 1);
    CHECK(atomic_load(&p.inside) == 1);
    nap(500);
    CHECK(atomic_load(&warnings) == 1 && simba_contender_is_owner(p.c));
    store_set(HEALTHY);
    int64_t left = simba_contender_remaining(p.c);
    AWAIT(simba_contender_remaining(p.c) > left + 100);
    store_set(HANG);
    AWAIT(atomic_load(&warnings) == 2);
    store_set(HEALTHY);
    atomic_store(&p.gate, true);
    probe_stop(&p);
    client_close(s);
}

/* on_released waits for it, and so does the release. */
/* shows: C3 C4 */
static void endangered_goes_on(void)
{
    simba_client *s = client_open_quick(100);
    struct simba_handle_options o = lease_tiny();
    o.on_endangered = on_endangered;
    struct probe p = {.in_released = no_warning};
    atomic_store(&holds, true);
    probe_start(&p, s, fresh("goes-on"), &o);
    AWAIT(probe_leads(&p));
    store_set(HANG);
    AWAIT(atomic_load(&warnings) == 1);
    AWAIT(!simba_contender_is_owner(p.c));
    nap(300);
    CHECK(atomic_load(&p.released) == 0);
    CHECK_CODE(simba_close(s, 1), SIMBA_ETIMEOUT);
    atomic_store(&holds, false);
    AWAIT(atomic_load(&p.released) == 1);
    CHECK(atomic_load(&p.reason) == SIMBA_EXPIRED);
    store_set(HEALTHY);
    client_close(s);
}

/* A lock can be released where its danger is told. */
static void endangered_lock(void)
{
    simba_client *s = client_open_quick(100);
    struct simba_handle_options o = lease(2000, 20000);
    simba_locker *l = NULL;
    o.on_endangered = on_endangered;
    CHECK_OK(simba_locker_create(s, fresh("locker"), &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    locker = l;
    store_set(FAIL);
    AWAIT(atomic_load(&warnings) == 1 && !simba_locker_is_held(l));
    store_set(HEALTHY);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    CHECK(atomic_load(&warnings) == 1);
    client_close(s);
}

/* At half of the time without a report; who reports then stays. */
/* shows: C11 */
static void endangered_silence(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.progress_ms = 4000;
    o.on_endangered = on_endangered;
    struct probe p = {.in_released = no_warning};
    atomic_store(&saves, true);
    probe_start(&p, s, fresh("silence"), &o);
    AWAIT(probe_leads(&p));
    uint64_t token = atomic_load(&p.token);
    AWAIT(atomic_load(&warnings) >= 3); /* a slow renewal may be one more */
    CHECK(simba_contender_owns(p.c, token));
    atomic_store(&saves, false);
    AWAIT(atomic_load(&p.released) == 1);
    CHECK(atomic_load(&p.reason) == SIMBA_STALLED);
    CHECK(atomic_load(&warnings) >= 4);
    client_close(s);
}

/* ---- on_stopped ---------------------------------------------------------------------------- */

static atomic_int stopped;

static void on_stopped(void *data)
{
    struct probe *p = data;
    CHECK(probe_is_idle(p));
    CHECK(atomic_load(&p->closed) == 0);
    CHECK(simba_contender_status(p->c) == SIMBA_INITIAL);
    int times = atomic_fetch_add(&stopped, 1) + 1;
    if (times < 3)
        CHECK_OK(simba_contender_start(p->c));
    if (times == 4)
        CHECK_CODE(simba_contender_start(p->c), SIMBA_ESTATE); /* it is being closed */
}

/* It comes last of a stop, and may start again. */
/* shows: C3 */
static void stopped_and_started(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.on_stopped = on_stopped;
    struct probe p = {.in_released = probe_block};
    probe_start(&p, s, fresh("stopped"), &o);
    for (int i = 1; i <= 3; i++) {
        AWAIT(probe_leads(&p));
        CHECK_OK(simba_contender_stop(p.c));
        CHECK_REFUSED(simba_contender_start(p.c), SIMBA_ESTATE, "on_stopped");
        CHECK(atomic_load(&stopped) == i - 1);
        atomic_store(&p.gate, true);
        AWAIT(atomic_load(&stopped) == i);
        atomic_store(&p.gate, false);
    }
    atomic_store(&p.gate, true);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    client_close(s);
    CHECK(atomic_load(&stopped) == 4 && atomic_load(&p.closed) == 1);
}

const struct test at_least_tests[] = {
    {"at_least_stop", at_least_stop, PUSHES, 0},
    {"at_least_close", at_least_close, ANY_STORE, 0},
    {"at_least_lock", at_least_lock, ANY_STORE, 0},
    {"at_least_refused", at_least_refused, ANY_STORE, 0},
    {"endangered_renewals", endangered_renewals, MEMORY_FAULTS, 0},
    {"endangered_goes_on", endangered_goes_on, MEMORY_FAULTS, 0},
    {"endangered_lock", endangered_lock, MEMORY_FAULTS, 0},
    {"endangered_silence", endangered_silence, ANY_STORE, 0},
    {"stopped_and_started", stopped_and_started, ANY_STORE, 0},
    {.name = NULL},
};
