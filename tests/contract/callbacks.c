/* callbacks.c: C3, what a callback may do. It may call any function of the library; one that would
 * wait for itself gets SIMBA_EDEADLOCK. That callbacks alternate and never overlap is checked by
 * every probe in every test. */
#include "suite.h"

#include <stddef.h>

/* ---- on its own handle --------------------------------------------------------------------- */

static void stop_here(struct probe *p)
{
    CHECK_OK(simba_contender_stop(p->c));
    CHECK(simba_contender_status(p->c) == SIMBA_STOPPING);
    CHECK_CODE(simba_contender_start(p->c), SIMBA_ESTATE);
    CHECK_CODE(simba_contender_stop(p->c), SIMBA_ESTATE);
}

/* shows: C3 */
static void stop_in_acquired(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = stop_here};
    probe_create(&p, s, fresh("stop-in"), &o);
    for (int round = 1; round <= 5; round++) {
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(atomic_load(&p.released) == round);
        CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, PATIENCE_MS));
        CHECK(atomic_load(&p.reason) == SIMBA_RELEASED);
        CHECK(probe_is_idle(&p));
    }
    client_close(s);
}

static void destroy_here(struct probe *p)
{
    simba_contender_destroy(p->c);
}

/* shows: C3 */
static void destroy_in_released(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_released = destroy_here}, next = {0};
    const char *mutex = fresh("destroy-rel");
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    CHECK_OK(simba_contender_stop(p.c));
    AWAIT(atomic_load(&p.closed) == 1);
    probe_start(&next, s, mutex, &o);
    AWAIT(probe_leads(&next));
    client_close(s);
    CHECK(atomic_load(&p.acquired) == 1);
    CHECK(atomic_load(&p.closed) == 1);
}

/* shows: C3 */
static void destroy_in_acquired(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = destroy_here}, next = {0};
    const char *mutex = fresh("destroy-acq");
    probe_start(&p, s, mutex, &o);
    AWAIT(atomic_load(&p.closed) == 1);
    CHECK(atomic_load(&p.released) == 1);
    probe_start(&next, s, mutex, &o);
    AWAIT(probe_leads(&next));
    client_close(s);
}

static void expect_running(struct probe *p)
{
    if (atomic_load(&p->released) > 1)
        return; /* that one is the end of the test */
    CHECK(simba_contender_status(p->c) == SIMBA_RUNNING);
    CHECK_CODE(simba_contender_start(p->c), SIMBA_ESTATE);
}

/* A tenure that the store ended does not end the contender: it is RUNNING and goes on. */
static void running_after_loss(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_steady(); /* there is a tenure to evict */
    struct probe p = {.in_released = expect_running};
    const char *mutex = fresh("after-loss");
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    store_evict(mutex, true);
    AWAIT(atomic_load(&p.acquired) >= 2);
    client_close(s);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void wait_here(struct probe *p)
{
    CHECK_CODE(simba_contender_wait(p->c, SIMBA_INITIAL, SIMBA_FOREVER), SIMBA_EDEADLOCK);
    CHECK_CODE(simba_contender_wait(p->c, SIMBA_INITIAL, 10), SIMBA_EDEADLOCK);
}

/* shows: C3 */
static void wait_in_callback(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = wait_here, .in_released = wait_here};
    probe_start(&p, s, fresh("wait-in"), &o);
    AWAIT(probe_leads(&p));
    probe_stop(&p);
    client_close(s);
}

static void close_here(struct probe *p)
{
    CHECK_CODE(simba_close(p->data, SIMBA_FOREVER), SIMBA_EDEADLOCK);
    CHECK_CODE(simba_close(p->data, 0), SIMBA_EDEADLOCK);
}

/* And the refused call has changed nothing: the client still serves. */
/* shows: C3 */
static void close_in_callback(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = close_here, .in_released = close_here, .data = s};
    probe_start(&p, s, fresh("close-in"), &o);
    AWAIT(atomic_load(&p.returned) == 1);
    CHECK(probe_leads(&p));
    probe_stop(&p);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(probe_leads(&p));
    client_close(s);
}

/* ---- on others ----------------------------------------------------------------------------- */

struct others {
    simba_client *s;
    const char *contended, *locked;
    struct probe other;
};

/* Waiting for somebody else is allowed, on the same client too. */
static void use_everything(struct probe *p)
{
    struct others *x = p->data;
    struct simba_handle_options o = lease_long();
    simba_locker *l = NULL;
    struct simba_owner owner;
    probe_start(&x->other, x->s, x->contended, &o);
    CHECK_OK(simba_contender_wait(x->other.c, SIMBA_RUNNING, PATIENCE_MS));
    AWAIT(probe_leads(&x->other));
    CHECK_OK(simba_read(x->s, x->contended, PATIENCE_MS, &owner));
    CHECK(simba_owner_is(&owner, simba_contender_id(x->other.c)));
    probe_stop(&x->other);
    CHECK_OK(simba_locker_create(x->s, x->locked, &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    simba_locker_destroy(l);
    simba_client *another = client_open();
    client_close(another);
}

/* shows: C3 */
static void callback_uses_everything(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct others x = {.s = s, .contended = fresh("others-c"), .locked = fresh("others-l")};
    struct probe p = {.in_acquired = use_everything, .data = &x};
    probe_start(&p, s, fresh("others"), &o);
    AWAIT(atomic_load(&p.returned) == 1);
    CHECK(probe_leads(&p));
    client_close(s);
}

/* ---- on_closed ----------------------------------------------------------------------------- */

static bool any_leads(const struct probe *p, int n)
{
    for (int i = 0; i < n; i++)
        if (probe_leads(&p[i]))
            return true;
    return false;
}

/* The probes check "last" and "once"; here a second contender shares the client and lives on. */
/* shows: C3 */
static void closed_is_last(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("closed");
    struct simba_handle_options o = lease_long();
    struct probe stays = {0};
    probe_start(&stays, s, fresh("stays"), &o);
    AWAIT(probe_leads(&stays));
    static struct probe p[8];
    for (int i = 0; i < 8; i++)
        probe_start(&p[i], s, mutex, &o);
    AWAIT(any_leads(p, 8));
    for (int i = 0; i < 8; i++)
        simba_contender_destroy(p[i].c);
    for (int i = 0; i < 8; i++)
        AWAIT(atomic_load(&p[i].closed) == 1);
    CHECK(probe_leads(&stays));
    CHECK(atomic_load(&stays.closed) == 0);
    client_close(s);
    CHECK(atomic_load(&stays.closed) == 1);
    for (int i = 0; i < 8; i++)
        CHECK(atomic_load(&p[i].closed) == 1);
}

/* Contenders need no callbacks at all. */
static void no_callbacks(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_contender *c = NULL;
    CHECK_OK(simba_contender_create(s, fresh("bare"), &o, &c));
    CHECK_OK(simba_contender_start(c));
    AWAIT(simba_contender_is_owner(c));
    CHECK_OK(simba_contender_stop(c));
    CHECK_OK(simba_contender_wait(c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(!simba_contender_is_owner(c));
    simba_contender_destroy(c);
    simba_contender_destroy(NULL);
    simba_locker_destroy(NULL);
    client_close(s);
}

const struct test callback_tests[] = {
    {"stop_in_acquired", stop_in_acquired, ANY_STORE, 0},
    {"destroy_in_released", destroy_in_released, ANY_STORE, 0},
    {"destroy_in_acquired", destroy_in_acquired, ANY_STORE, 0},
    {"running_after_loss", running_after_loss, ANY_STORE, 0},
    {"wait_in_callback", wait_in_callback, ANY_STORE, 0},
    {"close_in_callback", close_in_callback, ANY_STORE, 0},
    {"callback_uses_everything", callback_uses_everything, ANY_STORE, 0},
    {"closed_is_last", closed_is_last, ANY_STORE, 0},
    {"no_callbacks", no_callbacks, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
