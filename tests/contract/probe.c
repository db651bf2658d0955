/* probe.c: a contender that writes down its callbacks and checks what must hold of them always.
 *
 * Its fields are atomic because callbacks come on threads of the library's executor while the test
 * looks at them. The callbacks of one contender never overlap (C3), which `inside` verifies. */
#include <stdio.h>
#include <string.h>

#include "suite.h"

/* Orders the callbacks of all probes of this process. */
static atomic_int events;

static void enter(struct probe *p)
{
    atomic_store(&p->began_at, atomic_fetch_add(&events, 1));
    CHECK(atomic_fetch_add(&p->inside, 1) == 0);
    CHECK(atomic_load(&p->closed) == 0);
}

static void leave(struct probe *p)
{
    CHECK(atomic_fetch_sub(&p->inside, 1) == 1);
    atomic_store(&p->ended_at, atomic_fetch_add(&events, 1));
    atomic_fetch_add(&p->returned, 1);
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct probe *p = data;
    enter(p);
    const char *id = simba_contender_id(p->c);
    CHECK(mutex != NULL && *mutex != '\0');
    CHECK(state->reason == SIMBA_ACQUIRED);
    CHECK(simba_owner_is(&state->after, id));
    CHECK(simba_state_acquired(state, id));
    CHECK(state->after.token > atomic_load(&p->token));
    CHECK(state->after.acquired_at <= simba_now());
    CHECK(state->after.transition_at >= state->after.ttl_at);
    CHECK(atomic_load(&p->acquired) == atomic_load(&p->released));
    if (atomic_load(&p->acquired) == 0)
        atomic_store(&p->first_began_at, atomic_load(&p->began_at));
    atomic_store(&p->token, state->after.token);
    atomic_store(&p->reason, SIMBA_ACQUIRED);
    atomic_fetch_add(&p->acquired, 1);
    if (p->in_acquired != NULL)
        p->in_acquired(p);
    leave(p);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct probe *p = data;
    enter(p);
    const char *id = simba_contender_id(p->c);
    CHECK(mutex != NULL && *mutex != '\0');
    CHECK(state->reason == SIMBA_RELEASED || state->reason == SIMBA_EXPIRED ||
          state->reason == SIMBA_EVICTED || state->reason == SIMBA_STALLED);
    CHECK(simba_owner_is(&state->before, id));
    CHECK(simba_state_released(state, id));
    CHECK(state->before.token == atomic_load(&p->token));
    CHECK(!simba_contender_is_owner(p->c));
    CHECK(!simba_contender_owns(p->c, state->before.token));
    CHECK(simba_contender_token(p->c) == 0);
    CHECK(atomic_load(&p->acquired) == atomic_load(&p->released) + 1);
    atomic_store(&p->reason, (int)state->reason);
    atomic_fetch_add(&p->released, 1);
    if (p->in_released != NULL)
        p->in_released(p);
    leave(p);
}

static void on_closed(void *data)
{
    struct probe *p = data;
    CHECK(atomic_load(&p->inside) == 0);
    CHECK(atomic_load(&p->acquired) == atomic_load(&p->released));
    CHECK(atomic_fetch_add(&p->closed, 1) == 0);
}

void probe_create(struct probe *p, simba_client *s, const char *mutex,
                  const struct simba_handle_options *like)
{
    struct simba_handle_options o = *like;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_closed = on_closed;
    o.data = p;
    CHECK_OK(simba_contender_create(s, mutex, &o, &p->c));
    CHECK(simba_contender_status(p->c) == SIMBA_INITIAL);
    CHECK(!simba_contender_is_owner(p->c));
}

void probe_start(struct probe *p, simba_client *s, const char *mutex,
                 const struct simba_handle_options *like)
{
    probe_create(p, s, mutex, like);
    CHECK_OK(simba_contender_start(p->c));
}

void probe_block(struct probe *p)
{
    AWAIT_FOR(SERVER_MS, atomic_load(&p->gate)); /* the test waits for other things meanwhile */
}

bool probe_leads(const struct probe *p)
{
    return simba_contender_is_owner(p->c) &&
           atomic_load(&p->acquired) == atomic_load(&p->released) + 1;
}

bool probe_is_idle(const struct probe *p)
{
    int acquired = atomic_load(&p->acquired);
    return acquired == atomic_load(&p->released) && atomic_load(&p->returned) == 2 * acquired;
}

void probe_stop(struct probe *p)
{
    CHECK_OK(simba_contender_stop(p->c));
    CHECK_OK(simba_contender_wait(p->c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(!simba_contender_is_owner(p->c));
    CHECK(probe_is_idle(p));
}

/* ---- does the store push? ------------------------------------------------------------------ */

/* One owns, with a lease of a minute; another has been told so, and by itself asks a minute
 * later. If it owns soon after the release, it was hinted. */
bool suite_pushes(void)
{
    static struct probe owner, waiter;
    const char *mutex = fresh("push");
    struct simba_handle_options like = lease_long();
    simba_client *one = client_open(), *two = client_open();
    probe_start(&owner, one, mutex, &like);
    AWAIT(probe_leads(&owner));
    probe_start(&waiter, two, mutex, &like);
    CHECK_OK(simba_contender_wait(waiter.c, SIMBA_RUNNING, PATIENCE_MS));
    probe_stop(&owner);
    for (int64_t until = simba_now() + PUSH_MS; simba_now() < until; nap(5)) {
        if (probe_leads(&waiter))
            return true;
    }
    return false;
}
