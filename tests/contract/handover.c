/* handover.c: C4, on a voluntary end A's last act happens before B's first; and what a callback
 * that does not end can and cannot hold up. */
#include "suite.h"

#include <stddef.h>

static void take_time(struct probe *p)
{
    (void)p;
    nap(200);
}

/* T2: stop while on_acquired still runs; the next one begins after on_released has returned. */
/* shows: C4 C7 */
static void handover_order(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("order");
    struct simba_handle_options o = lease_long();
    struct probe a = {.in_acquired = take_time, .in_released = take_time}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    for (int round = 1; round <= 3; round++) {
        CHECK_OK(simba_contender_start(a.c));
        AWAIT(atomic_load(&a.acquired) == round);
        CHECK_OK(simba_contender_start(b.c));
        CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
        CHECK_OK(simba_contender_stop(a.c));
        AWAIT(atomic_load(&b.acquired) == round);
        CHECK(probe_is_idle(&a));
        CHECK(atomic_load(&b.began_at) > atomic_load(&a.ended_at));
        CHECK(atomic_load(&b.token) > atomic_load(&a.token));
        CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
        probe_stop(&b);
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* The lease is renewed for a callback that outlives it after stop, so that nobody else comes. */
/* shows: C4 */
static void drain_keeps_lease(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("drain");
    struct simba_handle_options o = lease_steady();
    struct probe a = {.in_acquired = probe_block}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(atomic_load(&a.acquired) == 1);
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_stop(a.c));
    for (int64_t end = simba_now() + o.ttl_ms + o.transition_ms + 1000; simba_now() < end;
         nap(20)) {
        CHECK(atomic_load(&b.acquired) == 0);
        CHECK(simba_contender_status(a.c) == SIMBA_STOPPING);
    }
    atomic_store(&a.gate, true);
    AWAIT(probe_leads(&b));
    CHECK(probe_is_idle(&a));
    CHECK(atomic_load(&b.first_began_at) > atomic_load(&a.ended_at));
    CHECK(atomic_load(&a.reason) == SIMBA_RELEASED);
    client_close(one);
    client_close(two);
}

/* After the drain limit the lease is left to expire: the other takes over although the callback
 * still runs, and by then the old one has long been no owner. */
/* shows: C4 */
static void drain_limit(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("limit");
    struct simba_handle_options o = lease_tiny();
    o.drain_ms = 300;
    struct probe a = {.in_acquired = probe_block}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(atomic_load(&a.acquired) == 1);
    probe_start(&b, two, mutex, &o);
    referee_begin(&referee);
    CHECK_OK(simba_contender_stop(a.c));
    AWAIT(atomic_load(&b.acquired) >= 1);
    CHECK(!simba_contender_is_owner(a.c));
    CHECK(atomic_load(&a.returned) == 0);
    CHECK(simba_contender_status(a.c) == SIMBA_STOPPING);
    atomic_store(&a.gate, true);
    CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(probe_is_idle(&a));
    CHECK(atomic_load(&a.acquired) == 1);
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* T4, T14: a callback that hangs neither keeps its contender owner, nor delays its notice of loss
 * for others, nor any other contender of the client. */
static void hanging_callback(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("hangs");
    struct simba_handle_options o = lease(1000, 500), calm = lease_long();
    struct probe a = {.in_acquired = probe_block}, b = {0}, same_client = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(atomic_load(&a.acquired) == 1);
    probe_start(&b, two, mutex, &o);
    referee_begin(&referee);
    store_evict(mutex, false);
    AWAIT(!simba_contender_is_owner(a.c));
    probe_start(&same_client, one, fresh("same"), &calm);
    AWAIT(probe_leads(&same_client));
    probe_stop(&same_client);
    AWAIT(atomic_load(&b.acquired) >= 1);
    CHECK(atomic_load(&a.returned) == 0);
    CHECK(!simba_contender_is_owner(a.c));
    CHECK(atomic_load(&b.token) > atomic_load(&a.token));
    uint64_t before = atomic_load(&b.token);
    atomic_store(&a.gate, true);
    AWAIT(atomic_load(&a.released) >= 1);
    CHECK(atomic_load(&a.reason) != SIMBA_RELEASED);
    probe_stop(&b);
    AWAIT(atomic_load(&a.acquired) >= 2);
    CHECK(atomic_load(&a.token) > before);
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* T18: the store comes back and would say "yours" while on_released of the last tenure still runs:
 * there is no new tenure of this contender before it has returned. */
/* shows: C4 */
static void blocked_released(void)
{
    simba_client *one = client_open_quick(200), *two = client_open_quick(200);
    const char *mutex = fresh("blocked");
    struct simba_handle_options o = lease_tiny();
    struct probe a = {.in_released = probe_block}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(atomic_load(&a.acquired) == 1);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    store_set(HANG);
    AWAIT(atomic_load(&a.released) == 1);
    store_set(HEALTHY);
    CHECK_OK(simba_contender_start(b.c));
    AWAIT(atomic_load(&b.acquired) >= 1);
    CHECK(atomic_load(&a.acquired) == 1);
    CHECK(!simba_contender_is_owner(a.c));
    atomic_store(&a.gate, true);
    AWAIT(atomic_load(&a.returned) >= 2);
    CHECK_OK(simba_contender_stop(b.c));
    AWAIT(atomic_load(&a.acquired) >= 2);
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* A client that closes hands over; the other does not wait for the end of a lease of a minute. */
/* shows: C4 */
static void close_hands_over(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("close-over");
    struct simba_handle_options o = lease_long();
    struct probe a = {.in_released = take_time}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    client_close(one);
    AWAIT(probe_leads(&b));
    CHECK(atomic_load(&a.closed) == 1);
    CHECK(atomic_load(&b.began_at) > atomic_load(&a.ended_at));
    CHECK(atomic_load(&b.token) > atomic_load(&a.token));
    client_close(two);
}

const struct test handover_tests[] = {
    {"handover_order", handover_order, PUSHES, 0},
    {"drain_keeps_lease", drain_keeps_lease, ANY_STORE, 0},
    {"drain_limit", drain_limit, ANY_STORE, 0},
    {"hanging_callback", hanging_callback, MEMORY_FAULTS, 0},
    {"blocked_released", blocked_released, MEMORY_FAULTS, 0},
    {"close_hands_over", close_hands_over, PUSHES, 0},
    {NULL, NULL, ANY_STORE, 0},
};
