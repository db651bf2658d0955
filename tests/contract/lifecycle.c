/* lifecycle.c: the statuses and the moves between them, waiting for one, and stop at the moments
 * when it is inconvenient (C8, C9, T8). */
#include "suite.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- status -------------------------------------------------------------------------------- */

/* Illegal moves return SIMBA_ESTATE with a text and change nothing. */
static void status_moves(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("moves");
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_released = probe_block};
    probe_create(&p, s, mutex, &o);
    CHECK_REFUSED(simba_contender_stop(p.c), SIMBA_ESTATE, mutex);
    CHECK(simba_contender_status(p.c) == SIMBA_INITIAL);
    CHECK_OK(simba_contender_start(p.c));
    CHECK_REFUSED(simba_contender_start(p.c), SIMBA_ESTATE, mutex);
    AWAIT(probe_leads(&p));
    CHECK(simba_contender_status(p.c) == SIMBA_RUNNING);
    CHECK_REFUSED(simba_contender_start(p.c), SIMBA_ESTATE, mutex);
    CHECK(simba_contender_status(p.c) == SIMBA_RUNNING);
    CHECK(probe_leads(&p));
    CHECK_OK(simba_contender_stop(p.c));
    AWAIT(atomic_load(&p.released) == 1);
    CHECK(simba_contender_status(p.c) == SIMBA_STOPPING);
    CHECK_REFUSED(simba_contender_start(p.c), SIMBA_ESTATE, mutex);
    CHECK_REFUSED(simba_contender_stop(p.c), SIMBA_ESTATE, mutex);
    CHECK(simba_contender_status(p.c) == SIMBA_STOPPING);
    atomic_store(&p.gate, true);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK_REFUSED(simba_contender_stop(p.c), SIMBA_ESTATE, mutex);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    client_close(s);
}

/* STARTING until the store has answered once, RUNNING from then on whatever it does. */
static void starting_while_hanging(void)
{
    simba_client *s = client_open_quick(200);
    struct simba_handle_options o = lease_short();
    struct probe p = {0};
    store_set(HANG);
    probe_start(&p, s, fresh("starting"), &o);
    CHECK_CODE(simba_contender_wait(p.c, SIMBA_RUNNING, 600), SIMBA_ETIMEOUT);
    CHECK(simba_contender_status(p.c) == SIMBA_STARTING);
    store_set(HEALTHY);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_RUNNING, PATIENCE_MS));
    AWAIT(probe_leads(&p));
    store_set(HANG);
    AWAIT(!simba_contender_is_owner(p.c));
    CHECK(simba_contender_status(p.c) == SIMBA_RUNNING);
    store_set(HEALTHY);
    client_close(s);
}

/* A waiter is RUNNING too: the store has answered it. */
static void waiter_is_running(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("waiter");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, s, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, s, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    CHECK(!simba_contender_is_owner(b.c));
    CHECK(simba_contender_token(b.c) == 0);
    CHECK(simba_contender_remaining(b.c) == 0);
    client_close(s);
}

/* shows: C9 */
static void wait_timeout(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("wait");
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_create(&p, s, mutex, &o);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, 0));
    CHECK_REFUSED(simba_contender_wait(p.c, SIMBA_RUNNING, 0), SIMBA_ETIMEOUT, mutex);
    CHECK_OK(simba_contender_start(p.c));
    CHECK_OK(simba_contender_wait(p.c, SIMBA_RUNNING, SIMBA_FOREVER));
    char scheme[32];
    snprintf(scheme, sizeof scheme, "%.*s", (int)strcspn(suite_url(), ":"), suite_url());
    CHECK_REFUSED(simba_contender_wait(p.c, SIMBA_INITIAL, 50), SIMBA_ETIMEOUT, mutex);
    CHECK(strstr(simba_error_text(), scheme) != NULL);
    client_close(s);
}

/* Time is the subject: nothing is tried before the initial delay is over. */
static void initial_delay(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.initial_delay_ms = 400;
    struct probe p = {0};
    int64_t began = simba_now();
    probe_start(&p, s, fresh("delay"), &o);
    AWAIT(probe_leads(&p));
    CHECK(simba_now() - began >= 400);
    client_close(s);
}

/* ---- stop ---------------------------------------------------------------------------------- */

static void stop_while_waiting(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("waiting");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0}, c = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    probe_start(&c, two, mutex, &o);
    CHECK_OK(simba_contender_wait(c.c, SIMBA_RUNNING, PATIENCE_MS));
    probe_stop(&b);
    CHECK(atomic_load(&b.acquired) == 0);
    CHECK(probe_leads(&a));
    probe_stop(&a);
    AWAIT(probe_leads(&c));
    CHECK(atomic_load(&b.acquired) == 0);
    client_close(one);
    client_close(two);
}

static void stop_right_after_start(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("right-after");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_create(&a, one, mutex, &o);
    for (int round = 0; round < 50; round++) {
        CHECK_OK(simba_contender_start(a.c));
        probe_stop(&a);
    }
    probe_start(&b, two, mutex, &o);
    AWAIT(probe_leads(&b));
    client_close(one);
    client_close(two);
}

/* The answer to the acquire comes after stop: what was won is given back at once, so another gets
 * it long before the lease of a minute would end. */
/* shows: C8 */
static void stop_in_flight(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("in-flight");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_create(&a, one, mutex, &o);
    store_delay(300);
    CHECK_OK(simba_contender_start(a.c));
    nap(100); /* into the middle of the delay; before or after it the test holds as well */
    probe_stop(&a);
    store_set(HEALTHY);
    probe_start(&b, two, mutex, &o);
    AWAIT(probe_leads(&b));
    client_close(one);
    client_close(two);
}

/* The store hangs for good while one stops: stop returns, and the mutex is lost for one lease at
 * most, although the acquire is applied when nobody wants it any more. */
/* shows: C7 C9 */
static void stop_while_store_hangs(void)
{
    simba_client *one = client_open_quick(200), *two = client_open_quick(200);
    const char *mutex = fresh("stop-hang");
    struct simba_handle_options o = lease_tiny();
    struct probe a = {0}, b = {0};
    probe_create(&a, one, mutex, &o);
    store_set(HANG);
    CHECK_OK(simba_contender_start(a.c));
    nap(50);
    CHECK_OK(simba_contender_stop(a.c));
    nap(300);
    store_set(HEALTHY);
    CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
    probe_start(&b, two, mutex, &o);
    AWAIT(probe_leads(&b));
    CHECK(probe_is_idle(&a));
    client_close(one);
    client_close(two);
}

/* T8: answers of an earlier life must not act on the next one. The id is the user's, so a tenure
 * that was forgotten would block its own contender for a minute. */
/* shows: C8 */
static void restart_same_id(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.id = "the same in every life";
    struct probe p = {0};
    probe_create(&p, s, fresh("same-id"), &o);
    store_delay(15);
    for (int round = 0; round < 20; round++) {
        CHECK_OK(simba_contender_start(p.c));
        nap(round % 10 * 4); /* a different moment of the exchange in every round */
        probe_stop(&p);
    }
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    probe_stop(&p);
    client_close(s);
}

/* The owner stops while a renewal is on its way: the late "yours" neither revives the tenure nor
 * keeps the mutex. */
/* shows: C8 */
static void stop_during_renewal(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("renewal");
    struct simba_handle_options o = lease_long();
    o.renew_ms = 10;
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    store_delay(20);
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    for (int round = 0; round < 5; round++) {
        CHECK_OK(simba_contender_start(a.c));
        AWAIT(probe_leads(&a));
        nap(round * 7);
        probe_stop(&a);
        CHECK_OK(simba_contender_start(b.c));
        AWAIT(probe_leads(&b));
        CHECK(!simba_contender_is_owner(a.c));
        probe_stop(&b);
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

const struct test status_tests[] = {
    {"status_moves", status_moves, ANY_STORE, 0},
    {"starting_while_hanging", starting_while_hanging, MEMORY_FAULTS, 0},
    {"waiter_is_running", waiter_is_running, ANY_STORE, 0},
    {"wait_timeout", wait_timeout, ANY_STORE, 0},
    {"initial_delay", initial_delay, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};

const struct test stop_tests[] = {
    {"stop_while_waiting", stop_while_waiting, PUSHES, 0},
    {"stop_right_after_start", stop_right_after_start, ANY_STORE, 0},
    {"stop_in_flight", stop_in_flight, MEMORY_FAULTS, 0},
    {"stop_while_store_hangs", stop_while_store_hangs, MEMORY_FAULTS, 0},
    {"restart_same_id", restart_same_id, MEMORY_FAULTS, 0},
    {"stop_during_renewal", stop_during_renewal, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};
