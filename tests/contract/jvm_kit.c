/* jvm_kit.c: the cases of the JVM original's compatibility kit, under their own names. */
#include "suite.h"

#include <stddef.h>

static void start(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_start(&p, s, fresh("start"), &o);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_RUNNING, PATIENCE_MS));
    AWAIT(probe_leads(&p));
    CHECK(simba_contender_token(p.c) == atomic_load(&p.token));
    CHECK(simba_contender_remaining(p.c) > 0);
    probe_stop(&p);
    CHECK(atomic_load(&p.released) == 1);
    CHECK(atomic_load(&p.reason) == SIMBA_RELEASED);
    CHECK(simba_contender_status(p.c) == SIMBA_INITIAL);
    CHECK(simba_contender_remaining(p.c) == 0);
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1);
}

static void restart(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_create(&p, s, fresh("restart"), &o);
    for (int round = 1; round <= 3; round++) {
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(probe_leads(&p));
        probe_stop(&p);
        CHECK(atomic_load(&p.acquired) == round);
        CHECK(atomic_load(&p.released) == round);
    }
    client_close(s);
}

/* Holds one tenure over several ttls while another waits for it. */
/* shows: C6 */
static void guard(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("guard");
    struct simba_handle_options o = lease_steady();
    o.renew_ms = SIMBA_DEFAULT;
    struct probe owner = {0}, waiter = {0};
    probe_start(&owner, one, mutex, &o);
    AWAIT(probe_leads(&owner));
    uint64_t token = atomic_load(&owner.token);
    probe_start(&waiter, two, mutex, &o);
    int64_t end = simba_now() + 5 * o.ttl_ms / 2; /* a lease is two: it must have been renewed */
    for (; simba_now() < end; nap(20)) {
        CHECK(simba_contender_owns(owner.c, token));
        CHECK(simba_contender_remaining(owner.c) <= o.ttl_ms + o.transition_ms);
        CHECK(!simba_contender_is_owner(waiter.c));
    }
    CHECK(atomic_load(&owner.acquired) == 1);
    CHECK(atomic_load(&owner.released) == 0);
    CHECK(atomic_load(&waiter.acquired) == 0);
    client_close(one);
    client_close(two);
}

/* ---- multi_contend: ten contenders over three clients -------------------------------------- */

#define CONTENDERS 10

static atomic_int leaders;
static atomic_int tenures;
static _Atomic uint64_t last_token;
static atomic_bool is_over;

static void count_in(struct probe *p)
{
    CHECK(atomic_fetch_add(&leaders, 1) == 0);
    CHECK(atomic_exchange(&last_token, p->token) < p->token);
    atomic_fetch_add(&tenures, 1);
}

static void count_out(struct probe *p)
{
    (void)p;
    CHECK(atomic_fetch_sub(&leaders, 1) == 1);
}

/* Leads for some milliseconds whenever it is elected, then lets the others. */
static void *candidate(void *arg)
{
    struct probe *p = arg;
    while (!atomic_load(&is_over)) {
        CHECK_OK(simba_contender_start(p->c));
        while (!probe_leads(p) && !atomic_load(&is_over)) /* no AWAIT: nobody promises fairness */
            nap(1);
        nap(5);
        probe_stop(p);
    }
    return NULL;
}

/* shows: C1 */
static void multi_contend(void)
{
    simba_client *clients[3] = {client_open(), client_open(), client_open()};
    const char *mutex = fresh("multi");
    struct simba_handle_options o = lease_long();
    static struct probe p[CONTENDERS];
    pthread_t thread[CONTENDERS];
    struct referee referee = {.probes = CONTENDERS};
    for (int i = 0; i < CONTENDERS; i++) {
        p[i].in_acquired = count_in;
        p[i].in_released = count_out;
        probe_create(&p[i], clients[i % 3], mutex, &o);
        referee.probe[i] = &p[i];
    }
    referee_begin(&referee);
    for (int i = 0; i < CONTENDERS; i++)
        thread[i] = spawn(candidate, &p[i]);
    nap(suite_is_long() ? 30000 : 4000);
    AWAIT(atomic_load(&tenures) >= 3);
    atomic_store(&is_over, true);
    for (int i = 0; i < CONTENDERS; i++)
        join(thread[i]);
    referee_end(&referee);
    CHECK(atomic_load(&leaders) == 0);
    for (int i = 0; i < 3; i++)
        client_close(clients[i]);
}

const struct test jvm_kit_tests[] = {
    {"start", start, ANY_STORE, 0}, {"restart", restart, ANY_STORE, 0},
    {"guard", guard, ANY_STORE, 0}, {"multi_contend", multi_contend, ANY_STORE, 40},
    {NULL, NULL, ANY_STORE, 0},
};
