/* tokens.c: C2, every tenure carries a token greater than that of every earlier one. */
#include "suite.h"

#include <stddef.h>

/* Over restarts of one contender, over contenders and over clients that come and go. */
/* shows: C2 */
static void tokens_rise(void)
{
    simba_client *keeper =
        client_open(); /* a memory: store lives as long as somebody has it open */
    const char *mutex = fresh("rise");
    struct simba_handle_options o = lease_long();
    uint64_t last = 0;
    for (int round = 0; round < 4; round++) {
        simba_client *s = client_open();
        struct probe p[2] = {{0}, {0}};
        for (int i = 0; i < 2; i++)
            probe_create(&p[i], i == 0 ? s : keeper, mutex, &o);
        for (int turn = 0; turn < 4; turn++) {
            struct probe *now = &p[turn % 2];
            CHECK_OK(simba_contender_start(now->c));
            AWAIT(probe_leads(now));
            CHECK(simba_contender_token(now->c) > last);
            last = simba_contender_token(now->c);
            probe_stop(now);
        }
        client_close(s);
        simba_contender_destroy(p[1].c);
        AWAIT(atomic_load(&p[1].closed) == 1);
    }
    client_close(keeper);
}

/* T17: work of an earlier tenure must not take the answer of a later one for its own. */
/* shows: C2 */
static void owns_old_token(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_start(&p, s, fresh("owns"), &o);
    AWAIT(probe_leads(&p));
    uint64_t first = simba_contender_token(p.c);
    CHECK(simba_contender_owns(p.c, first));
    CHECK(!simba_contender_owns(p.c, 0));
    CHECK(!simba_contender_owns(p.c, first + 1));
    probe_stop(&p);
    CHECK(!simba_contender_owns(p.c, first));
    CHECK(!simba_contender_owns(p.c, 0));
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    CHECK(simba_contender_is_owner(p.c));
    CHECK(!simba_contender_owns(p.c, first));
    CHECK(simba_contender_owns(p.c, atomic_load(&p.token)));
    client_close(s);
}

/* Tokens belong to a mutex: tenures of others neither share nor disturb them. */
/* shows: C2 */
static void tokens_per_mutex(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, s, fresh("per-a"), &o);
    probe_start(&b, s, fresh("per-b"), &o);
    AWAIT(probe_leads(&a) && probe_leads(&b));
    uint64_t kept = simba_contender_token(a.c);
    for (int round = 0; round < 5; round++) {
        probe_stop(&b);
        CHECK_OK(simba_contender_start(b.c));
        AWAIT(probe_leads(&b));
    }
    CHECK(simba_contender_owns(a.c, kept));
    CHECK(atomic_load(&a.acquired) == 1);
    client_close(s);
}

/* The state that the handle shows, at rest and in office. */
static void state_shown(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    o.id = "the id that is shown";
    struct probe p = {0};
    probe_create(&p, s, fresh("state"), &o);
    CHECK(simba_contender_id(p.c) != o.id);
    struct simba_state state;
    simba_contender_state(p.c, &state);
    CHECK(!simba_owner_is(&state.after, o.id));
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    simba_contender_state(p.c, &state);
    int64_t now = simba_now();
    CHECK(simba_owner_is(&state.after, o.id));
    CHECK(state.after.token == atomic_load(&p.token));
    CHECK(simba_owner_exists(&state.after, now));
    CHECK(simba_owner_in_ttl(&state.after, now));
    CHECK(!simba_owner_in_transition(&state.after, now));
    CHECK(state.after.acquired_at <= now);
    probe_stop(&p);
    simba_contender_state(p.c, &state);
    CHECK(!simba_owner_is(&state.after, o.id));
    client_close(s);
}

const struct test token_tests[] = {
    {"tokens_rise", tokens_rise, ANY_STORE, 0},
    {"owns_old_token", owns_old_token, ANY_STORE, 0},
    {"tokens_per_mutex", tokens_per_mutex, ANY_STORE, 0},
    {"state_shown", state_shown, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
