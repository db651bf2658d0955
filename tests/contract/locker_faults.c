/* locker_faults.c: the blocking lock when the store hangs, fails or ends the tenure. */
#include "suite.h"

#include <stddef.h>

struct loss {
    simba_locker *l;
    atomic_int lost, closed;
    atomic_int reason;
    atomic_bool calls_back; /* tries the locker from its own callback */
};

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    struct loss *x = data;
    CHECK(mutex != NULL && *mutex != '\0');
    CHECK(!simba_locker_is_held(x->l));
    CHECK(simba_locker_token(x->l) == 0);
    CHECK(state->before.token != 0);
    if (atomic_load(&x->calls_back)) {
        /* Waiting for itself would never end; that it is refused at all is what counts. */
        int code = simba_locker_acquire(x->l, SIMBA_FOREVER);
        CHECK(code == SIMBA_EDEADLOCK || code == SIMBA_ESTATE);
    }
    atomic_store(&x->reason, (int)state->reason);
    atomic_fetch_add(&x->lost, 1);
}

static void on_closed(void *data)
{
    struct loss *x = data;
    CHECK(atomic_fetch_add(&x->closed, 1) == 0);
}

static void create(struct loss *x, simba_client *s, const char *mutex,
                   const struct simba_handle_options *like)
{
    struct simba_handle_options o = *like;
    o.on_lost = on_lost;
    o.on_closed = on_closed;
    o.data = x;
    CHECK_OK(simba_locker_create(s, mutex, &o, &x->l));
}

/* ---- loss ---------------------------------------------------------------------------------- */

static void lose(bool forced, bool calls_back)
{
    simba_client *s = client_open();
    const char *mutex = fresh("lost");
    struct simba_handle_options o = lease_steady();
    struct loss x = {.calls_back = calls_back};
    create(&x, s, mutex, &o);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    uint64_t token = simba_locker_token(x.l);
    store_evict(mutex, forced);
    AWAIT(!simba_locker_is_held(x.l));
    CHECK(simba_locker_remaining(x.l) == 0);
    AWAIT(atomic_load(&x.lost) == 1);
    CHECK(atomic_load(&x.reason) == SIMBA_EVICTED);
    CHECK_REFUSED(simba_locker_release(x.l), SIMBA_ELOST, mutex);
    CHECK_CODE(simba_locker_release(x.l), SIMBA_ESTATE);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    CHECK(simba_locker_token(x.l) > token);
    CHECK(simba_locker_release(x.l) == 0);
    client_close(s);
    CHECK(atomic_load(&x.lost) == 1);
    CHECK(atomic_load(&x.closed) == 1);
}

static void locker_evicted(void)
{
    lose(false, false);
}

static void locker_evicted_forced(void)
{
    lose(true, false);
}

static void locker_lost_calls_back(void)
{
    lose(true, true);
}

/* Evicted by force, and nobody tells: the release must find out (the work was not protected). */
static void locker_release_finds_loss(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("finds-loss");
    struct simba_handle_options o = lease_long();
    struct loss x = {0}, y = {0};
    create(&x, one, mutex, &o);
    create(&y, two, mutex, &o);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    store_set(LOSE_HINT);
    store_evict(mutex, true);
    CHECK_OK(simba_locker_acquire(y.l, PATIENCE_MS));
    CHECK_REFUSED(simba_locker_release(x.l), SIMBA_ELOST, NULL);
    CHECK(simba_locker_is_held(y.l));
    CHECK_OK(simba_locker_release(y.l));
    client_close(one);
    client_close(two);
}

/* The lease runs out while the store hangs: is_held turns false by the clock alone. A release that
 * finds this before anybody was told still says that the lock was lost. */
/* shows: C5 */
static void locker_expires(void)
{
    simba_client *one = client_open_quick(200), *two = client_open_quick(200);
    const char *mutex = fresh("expires");
    struct simba_handle_options o = lease_tiny();
    struct loss x = {0}, y = {0};
    create(&x, one, mutex, &o);
    create(&y, two, mutex, &o);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    store_set(HANG);
    AWAIT(!simba_locker_is_held(x.l));
    CHECK_CODE(simba_locker_release(x.l), SIMBA_ELOST);
    store_set(HEALTHY);
    CHECK_OK(simba_locker_acquire(y.l, PATIENCE_MS));
    client_close(one);
    CHECK(atomic_load(&x.lost) <= 1);
    client_close(two);
}

/* An orderly release is no loss: nobody is told. */
static void locker_release_is_silent(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct loss x = {0};
    create(&x, s, fresh("silent"), &o);
    for (int round = 0; round < 10; round++) {
        CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(x.l));
    }
    client_close(s);
    CHECK(atomic_load(&x.lost) == 0);
    CHECK(atomic_load(&x.closed) == 1);
}

/* Held over many renewals it stays the same tenure. */
static void locker_is_renewed(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_steady();
    struct loss x = {0};
    create(&x, s, fresh("renewed"), &o);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    uint64_t token = simba_locker_token(x.l);
    for (int64_t end = simba_now() + o.ttl_ms + o.transition_ms + 500; simba_now() < end; nap(20))
        CHECK(simba_locker_is_held(x.l) && simba_locker_token(x.l) == token);
    CHECK_OK(simba_locker_release(x.l));
    client_close(s);
    CHECK(atomic_load(&x.lost) == 0);
}

/* ---- a store that does not answer ---------------------------------------------------------- */

static int trouble_code(simba_locker *l)
{
    struct simba_trouble t;
    CHECK_OK(simba_locker_trouble(l, &t));
    return t.code;
}

/* "Not in time" and "never reached" are different answers. */
/* shows: C9 */
static void locker_store_down(void)
{
    simba_client *s = client_open_quick(500); /* a healthy one must not be late by that */
    const char *mutex = fresh("down");
    struct simba_handle_options o = lease_steady();
    struct loss x = {0};
    create(&x, s, mutex, &o);
    store_set(FAIL);
    CHECK_REFUSED(simba_locker_acquire(x.l, 0), SIMBA_ESTORE, mutex);
    CHECK_REFUSED(acquire_until_refused(x.l, 1500), SIMBA_ESTORE, mutex);
    CHECK(trouble_code(x.l) == SIMBA_ESTORE);
    store_set(HANG);
    CHECK_REFUSED(acquire_until_refused(x.l, 1500), SIMBA_ESTORE, mutex);
    CHECK(trouble_code(x.l) == SIMBA_ETIMEOUT); /* it may only be slow */
    CHECK(!simba_locker_is_held(x.l));
    store_set(HEALTHY);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    CHECK(simba_locker_release(x.l) == 0);
    client_close(s);
}

/* It is released here at once; the store is told when it can be reached, or the lease ends. */
/* shows: C9 */
static void locker_release_store_down(void)
{
    simba_client *one = client_open_quick(500), *two = client_open_quick(500);
    const char *mutex = fresh("rel-down");
    struct simba_handle_options o = lease_steady();
    struct loss x = {0}, y = {0};
    create(&x, one, mutex, &o);
    create(&y, two, mutex, &o);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    store_set(HANG);
    CHECK(simba_locker_release(x.l) == SIMBA_ESTORE);
    CHECK(!simba_locker_is_held(x.l));
    store_set(HEALTHY);
    CHECK_OK(simba_locker_acquire(y.l, PATIENCE_MS));
    CHECK(simba_locker_release(y.l) == 0);
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    CHECK(simba_locker_release(x.l) == 0);
    client_close(one);
    client_close(two);
    CHECK(atomic_load(&x.lost) == 0);
}

/* T12: the grant comes after the waiter gave up; it must not stay with nobody for a minute. */
/* shows: C8 */
static void locker_late_grant(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("late");
    struct simba_handle_options o = lease_long();
    struct loss x = {0}, y = {0};
    create(&x, one, mutex, &o);
    create(&y, two, mutex, &o);
    for (int round = 0; round < 5; round++) {
        store_delay(100);
        int code = simba_locker_acquire(x.l, 20);
        if (code == 0) /* the machine slept through both */
            CHECK_OK(simba_locker_release(x.l));
        else
            CHECK(code == SIMBA_ETIMEOUT || code == SIMBA_ESTORE);
        store_set(HEALTHY);
        CHECK_OK(simba_locker_acquire(y.l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(y.l));
    }
    CHECK_OK(simba_locker_acquire(x.l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(x.l));
    client_close(one);
    client_close(two);
}

const struct test locker_fault_tests[] = {
    {"locker_evicted", locker_evicted, ANY_STORE, 0},
    {"locker_evicted_forced", locker_evicted_forced, ANY_STORE, 0},
    {"locker_lost_calls_back", locker_lost_calls_back, MEMORY_FAULTS, 0},
    {"locker_expires", locker_expires, MEMORY_FAULTS, 0},
    {"locker_release_finds_loss", locker_release_finds_loss, MEMORY_FAULTS, 0},
    {"locker_release_is_silent", locker_release_is_silent, ANY_STORE, 0},
    {"locker_is_renewed", locker_is_renewed, ANY_STORE, 0},
    {"locker_store_down", locker_store_down, MEMORY_FAULTS, 0},
    {"locker_release_store_down", locker_release_store_down, MEMORY_FAULTS, 0},
    {"locker_late_grant", locker_late_grant, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};
