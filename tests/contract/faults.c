/* faults.c: a store that fails for a while, loses answers, repeats requests, forgets hints, or is
 * told by an operator to end a tenure (C6, C7, C8). */
#include "suite.h"

#include <stddef.h>

/* ---- blips --------------------------------------------------------------------------------- */

static int64_t deadline(const struct probe *p)
{
    return simba_now() + simba_contender_remaining(p->c);
}

/* Time is the subject: with a lease of eight seconds the store may fail for about five. */
static void blip(enum fault fault)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("blip");
    struct simba_handle_options o = lease_steady();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = atomic_load(&a.token);
    probe_start(&b, two, mutex, &o);
    for (int round = 0; round < 2; round++) {
        store_set(fault);
        nap(2500);
        int64_t before = deadline(&a);
        store_set(HEALTHY);
        AWAIT(deadline(&a) > before + 500 || !simba_contender_owns(a.c, token)); /* renewed */
        CHECK(simba_contender_owns(a.c, token));
        CHECK(atomic_load(&a.released) == 0);
    }
    CHECK(atomic_load(&b.acquired) == 0);
    client_close(one);
    client_close(two);
}

/* shows: C6 */
static void blip_fail(void)
{
    blip(FAIL);
}

/* shows: C6 */
static void blip_hang(void)
{
    blip(HANG);
}

/* T9: a contender whose first tries all fail does not drop out. */
/* shows: C7 */
static void fails_at_first(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_short();
    struct probe p = {0};
    store_set(FAIL);
    probe_start(&p, s, fresh("first"), &o);
    nap(1000); /* several tries */
    CHECK(atomic_load(&p.acquired) == 0);
    store_set(HEALTHY);
    AWAIT(probe_leads(&p));
    client_close(s);
}

/* A waiter that the store fails hears of the release all the same. */
/* shows: C7 */
static void waiter_through_fail(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("waiter-fail");
    struct simba_handle_options o = lease_steady();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    store_set(FAIL);
    CHECK_OK(simba_contender_stop(a.c));
    AWAIT(atomic_load(&a.acquired) == atomic_load(&a.released));
    store_set(HEALTHY);
    AWAIT(probe_leads(&b));
    CHECK(atomic_load(&b.first_began_at) > atomic_load(&a.ended_at));
    client_close(one);
    client_close(two);
}

/* ---- unknown outcomes ---------------------------------------------------------------------- */

/* The contender owns the very tenure that the store knows. */
static bool agrees(const struct probe *p, const struct simba_owner *stored)
{
    return stored->token != 0 && simba_contender_owns(p->c, stored->token) &&
           simba_owner_is(stored, simba_contender_id(p->c)) && probe_leads(p);
}

/* The grant's answer is lost. Whoever finds itself owner by its own generated id may adopt the
 * tenure; with an id that a user chose it has to wait for its end. Never two owners. */
static void lose_the_grant(const char *id)
{
    simba_client *one = client_open_quick(100), *two = client_open_quick(100);
    const char *mutex = fresh("lost");
    struct simba_handle_options o = lease(1000, 500);
    o.id = id;
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    store_set(LOSE_ANSWER);
    CHECK_OK(simba_contender_start(a.c));
    nap(50);
    CHECK_OK(simba_contender_start(b.c));
    nap(250);
    store_set(HEALTHY);
    struct simba_owner stored;
    AWAIT(simba_read(two, mutex, PATIENCE_MS, &stored) == 0 &&
          (agrees(&a, &stored) || agrees(&b, &stored)));
    probe_stop(&a);
    AWAIT(probe_leads(&b));
    probe_stop(&b);
    CHECK_OK(simba_contender_start(a.c));
    AWAIT(probe_leads(&a));
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* shows: C8 */
static void lost_answer_generated_id(void)
{
    lose_the_grant(NULL);
}

/* shows: C8 */
static void lost_answer_chosen_id(void)
{
    lose_the_grant("chosen by the user, twice");
}

/* The release's answer is lost, it is tried again, and must not end the next one's tenure (T13). */
static void lose_the_release(const char *id)
{
    simba_client *one = client_open_quick(100), *two = client_open_quick(100);
    const char *mutex = fresh("lost-rel");
    struct simba_handle_options o = lease_steady();
    o.id = id;
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    store_set(LOSE_ANSWER);
    CHECK_OK(simba_contender_stop(a.c));
    AWAIT(atomic_load(&a.acquired) == atomic_load(&a.released));
    nap(50); /* the release is applied, its answer is not coming */
    store_set(HEALTHY);
    probe_start(&b, two, mutex, &o);
    AWAIT(probe_leads(&b));
    uint64_t token = atomic_load(&b.token);
    CHECK_OK(simba_contender_wait(a.c, SIMBA_INITIAL, PATIENCE_MS));
    for (int64_t end = simba_now() + 1000; simba_now() < end; nap(10))
        CHECK(simba_contender_owns(b.c, token));
    CHECK(atomic_load(&b.released) == 0);
    client_close(one);
    client_close(two);
}

/* shows: C8 */
static void lost_release(void)
{
    lose_the_release(NULL);
}

/* Only the token tells the two apart. */
/* shows: C2 */
static void lost_release_same_id(void)
{
    lose_the_release("twin");
}

/* shows: C1 C8 */
static void duplicates(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("twice");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    store_set(DUPLICATE);
    probe_start(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    AWAIT(probe_leads(&a));
    referee_begin(&referee);
    struct probe *now = &a, *next = &b;
    for (int round = 0; round < 6; round++) {
        CHECK_OK(simba_contender_start(next->c));
        CHECK_OK(simba_contender_wait(next->c, SIMBA_RUNNING, PATIENCE_MS));
        CHECK(probe_leads(now));
        probe_stop(now);
        AWAIT(probe_leads(next));
        CHECK(atomic_load(&next->token) > atomic_load(&now->token));
        struct probe *other = now;
        now = next;
        next = other;
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* A hint is only ever a reason to ask earlier: without any, the end of the lease is one too. */
/* shows: C7 */
static void lost_hints(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("hints");
    struct simba_handle_options o = lease_short();
    struct probe a = {0}, b = {0};
    store_set(LOSE_HINT);
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    probe_stop(&a);
    AWAIT(probe_leads(&b));
    CHECK(atomic_load(&b.token) > atomic_load(&a.token));
    client_close(one);
    client_close(two);
}

/* ---- eviction ------------------------------------------------------------------------------ */

/* Graceful: the owner's renewals fail and its lease runs out, so C1 holds. */
static void evict_graceful(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("evict");
    struct simba_handle_options o = lease_steady();
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = atomic_load(&a.token);
    probe_start(&b, two, mutex, &o);
    referee_begin(&referee);
    store_evict(mutex, false);
    AWAIT(atomic_load(&a.released) >= 1);
    CHECK(!simba_contender_owns(a.c, token));
    AWAIT(atomic_load(&a.token) > token || atomic_load(&b.token) > token);
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

static void note_eviction(struct probe *p)
{
    if (atomic_load(&p->released) == 1)
        CHECK(atomic_load(&p->reason) == SIMBA_EVICTED);
}

/* Alone on the mutex it comes back by itself, with another token; the reason was EVICTED. */
static void evict(bool forced)
{
    simba_client *s = client_open();
    const char *mutex = fresh("evict-one");
    struct simba_handle_options o = lease_steady(); /* it must not expire before it hears */
    struct probe p = {.in_released = note_eviction};
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t token = atomic_load(&p.token);
    store_evict(mutex, forced);
    AWAIT(atomic_load(&p.acquired) >= 2);
    CHECK(atomic_load(&p.token) > token);
    AWAIT(probe_leads(&p));
    client_close(s);
}

/* shows: C2 */
static void evict_reason(void)
{
    evict(false);
}

static void evict_forced_reason(void)
{
    evict(true);
}

/* Forced: free at once, and only the tokens tell the two apart until the first one notices. */
static void evict_forced(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("evict-forced");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = atomic_load(&a.token);
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    store_evict(mutex, true);
    AWAIT(atomic_load(&a.released) == 1);
    AWAIT(probe_leads(&b) || atomic_load(&a.acquired) == 2);
    CHECK(!simba_contender_owns(a.c, token));
    struct simba_owner owner;
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &owner));
    CHECK(owner.token > token);
    client_close(one);
    client_close(two);
}

/* ---- answers that come late ---------------------------------------------------------------- */

/* A renewal of the last tenure is answered in the next one: this one is seen, and told of. */
/* shows: C3 */
static void late_renewal(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    o.renew_ms = 50;
    probe_start(&p, s, fresh("late"), &o);
    AWAIT(probe_leads(&p));
    store_delay(600);
    nap(200); /* a renewal is under way */
    store_set(HEALTHY);
    probe_stop(&p);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    for (int64_t end = simba_now() + 800; simba_now() < end; nap(10)) {
        struct simba_state state;
        simba_contender_state(p.c, &state);
        CHECK(state.after.token == atomic_load(&p.token));
    }
    probe_stop(&p); /* on_released compares the tokens */
    client_close(s);
}

/* "It is another's" is answered when the tenure that followed has ended, but has not been told of. */
/* shows: C3 */
static void late_refusal(void)
{
    simba_client *one = client_open(), *two = client_open_quick(100);
    const char *mutex = fresh("late");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {.in_acquired = probe_block};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    store_delay(1000);
    probe_start(&b, two, mutex, &o);
    nap(300); /* it has asked */
    store_set(HEALTHY);
    probe_stop(&a);
    AWAIT(atomic_load(&b.inside) == 1);
    CHECK_OK(simba_contender_stop(b.c));
    nap(1200);
    atomic_store(&b.gate, true);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&b.released) == 1); /* it compares the tokens */
    client_close(one);
    client_close(two);
}

const struct test fault_tests[] = {
    {"blip_fail", blip_fail, MEMORY_FAULTS, 0},
    {"blip_hang", blip_hang, MEMORY_FAULTS, 0},
    {"fails_at_first", fails_at_first, MEMORY_FAULTS, 0},
    {"waiter_through_fail", waiter_through_fail, MEMORY_FAULTS, 0},
    {"lost_answer_generated_id", lost_answer_generated_id, MEMORY_FAULTS, 0},
    {"lost_answer_chosen_id", lost_answer_chosen_id, MEMORY_FAULTS, 0},
    {"lost_release", lost_release, MEMORY_FAULTS, 0},
    {"lost_release_same_id", lost_release_same_id, MEMORY_FAULTS, 0},
    {"duplicates", duplicates, MEMORY_FAULTS, 0},
    {"lost_hints", lost_hints, MEMORY_FAULTS, 0},
    {"late_renewal", late_renewal, MEMORY_FAULTS, 0},
    {"late_refusal", late_refusal, MEMORY_FAULTS, 0},
    {"evict_graceful", evict_graceful, ANY_STORE, 0},
    {"evict_reason", evict_reason, ANY_STORE, 0},
    {"evict_forced_reason", evict_forced_reason, ANY_STORE, 0},
    {"evict_forced", evict_forced, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
