/* close.c: the end of handles and clients in every state they can be in (C9). */
#include "suite.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* ---- destroy ------------------------------------------------------------------------------- */

/* shows: C4 */
static void destroy_owner(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("destroy-own");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    simba_contender_destroy(a.c);
    AWAIT(probe_leads(&b));
    AWAIT(atomic_load(&a.closed) == 1);
    CHECK(atomic_load(&a.released) == 1);
    CHECK(atomic_load(&b.first_began_at) > atomic_load(&a.ended_at));
    client_close(one);
    client_close(two);
}

static void destroy_waiter(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("destroy-wait");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    CHECK_OK(simba_contender_wait(b.c, SIMBA_RUNNING, PATIENCE_MS));
    simba_contender_destroy(b.c);
    AWAIT(atomic_load(&b.closed) == 1);
    CHECK(atomic_load(&b.acquired) == 0);
    CHECK(probe_leads(&a));
    client_close(one);
    client_close(two);
}

/* Right after create, right after start, right after stop: fifty of each. */
/* shows: C9 */
static void destroy_at_once(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("destroy-now");
    struct simba_handle_options o = lease_long();
    static struct probe p[150];
    for (int i = 0; i < 150; i++) {
        probe_create(&p[i], s, mutex, &o);
        if (i % 3 > 0)
            CHECK_OK(simba_contender_start(p[i].c));
        if (i % 3 > 1)
            CHECK_OK(simba_contender_stop(p[i].c));
        simba_contender_destroy(p[i].c);
    }
    for (int i = 0; i < 150; i++)
        AWAIT(atomic_load(&p[i].closed) == 1);
    struct probe last = {0};
    probe_start(&last, s, mutex, &o);
    AWAIT(probe_leads(&last));
    client_close(s);
}

/* ---- close --------------------------------------------------------------------------------- */

static void close_empty(void)
{
    for (int i = 0; i < 20; i++) {
        simba_client *s = client_open();
        client_close(s);
    }
}

static void take_time(struct probe *p)
{
    (void)p;
    nap(50);
}

/* One client with contenders and lockers in all states at once. */
/* shows: C9 */
static void close_all_states(void)
{
    enum { SETS = 5, KINDS = 6 };
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    static struct probe p[SETS][KINDS];
    for (int i = 0; i < SETS; i++) {
        const char *owned = fresh("all-owned"), *other = fresh("all-other");
        struct probe *created = &p[i][0], *owner = &p[i][1], *waiter = &p[i][2],
                     *starting = &p[i][3], *stopping = &p[i][4], *stopped = &p[i][5];
        owner->in_released = stopping->in_released = take_time;
        probe_create(created, s, owned, &o);
        probe_start(owner, s, owned, &o);
        probe_start(stopping, s, other, &o);
        AWAIT(probe_leads(owner) && probe_leads(stopping));
        probe_start(waiter, s, owned, &o);
        probe_start(stopped, s, owned, &o);
        probe_stop(stopped);
        CHECK_OK(simba_contender_stop(stopping->c));
        probe_start(starting, s, other, &o);
        simba_locker *idle = NULL, *held = NULL;
        CHECK_OK(simba_locker_create(s, owned, &o, &idle));
        CHECK_OK(simba_locker_create(s, fresh("all-locked"), &o, &held));
        CHECK_OK(simba_locker_acquire(held, PATIENCE_MS));
    }
    client_close(s);
    for (int i = 0; i < SETS; i++)
        for (int k = 0; k < KINDS; k++)
            CHECK(atomic_load(&p[i][k].closed) == 1 && probe_is_idle(&p[i][k]));
}

/* Close returns in time, frees nothing while a callback runs, and can be called again. */
/* shows: C9 */
static void close_hanging_callback(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = probe_block}, calm = {0};
    probe_start(&p, s, fresh("close-hang"), &o);
    probe_start(&calm, s, fresh("close-calm"), &o);
    AWAIT(atomic_load(&p.acquired) == 1 && probe_leads(&calm));
    check_close_refused(s, "a callback still runs");
    CHECK(atomic_load(&p.closed) == 0);
    AWAIT(atomic_load(&calm.closed) == 1);
    CHECK_CODE(simba_close(s, 0), SIMBA_ETIMEOUT);
    atomic_store(&p.gate, true);
    client_close(s);
    CHECK(atomic_load(&p.released) == 1);
    CHECK(atomic_load(&p.closed) == 1);
}

/* What the closing thread held is released, although it has to close again; so it is not held then. */
static void close_then_release(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = probe_block};
    simba_locker *l = NULL;
    probe_start(&p, s, fresh("close-hang"), &o);
    AWAIT(atomic_load(&p.acquired) == 1);
    CHECK_OK(simba_locker_create(s, fresh("close-held"), &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_CODE(simba_close(s, 300), SIMBA_ETIMEOUT);
    AWAIT(!simba_locker_is_held(l));
    CHECK_CODE(simba_locker_release(l), SIMBA_ECANCELED);
    atomic_store(&p.gate, true);
    client_close(s);
}

/* A store that does not answer is no reason not to close: the lease runs out by itself. */
/* shows: C9 */
static void close_store_hangs(void)
{
    simba_client *s = client_open_quick(200), *keeper = client_open_quick(200);
    const char *mutex = fresh("close-store");
    struct simba_handle_options o = lease_tiny();
    struct probe owner = {0}, starting = {0}, next = {0};
    probe_start(&owner, s, mutex, &o);
    AWAIT(atomic_load(&owner.acquired) >= 1);
    store_set(HANG);
    probe_start(&starting, s, mutex, &o);
    client_close(s);
    CHECK(probe_is_idle(&owner));
    CHECK(atomic_load(&owner.closed) == 1);
    CHECK(atomic_load(&starting.closed) == 1);
    store_set(HEALTHY);
    probe_start(&next, keeper, mutex, &o);
    AWAIT(probe_leads(&next));
    client_close(keeper);
}

static void *close_it(void *arg)
{
    client_close(arg);
    return NULL;
}

/* Two clients of one store close at the same time, from two threads, with work under way. */
static void close_together(void)
{
    const char *mutex = fresh("together");
    struct simba_handle_options o = lease_long();
    for (int round = 0; round < 5; round++) {
        simba_client *s[2] = {client_open(), client_open()};
        struct probe p[2][3] = {{{0}}};
        for (int i = 0; i < 6; i++)
            probe_start(&p[i % 2][i / 2], s[i % 2], mutex, &o);
        pthread_t thread[2];
        for (int i = 0; i < 2; i++)
            thread[i] = spawn(close_it, s[i]);
        for (int i = 0; i < 2; i++)
            join(thread[i]);
        for (int i = 0; i < 6; i++)
            CHECK(atomic_load(&p[i % 2][i / 2].closed) == 1);
    }
}

static void log_blocks(void *data, enum simba_level level, const char *line)
{
    struct probe *p = data;
    (void)level;
    (void)line;
    while (!atomic_load(&p->gate))
        nap(1);
}

/* The same for the log: it is said which of them it is. */
static void close_hanging_log(void)
{
    struct simba_options options = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease_long();
    struct probe gate = {0};
    simba_locker *l = NULL;
    simba_client *s = NULL;
    options.log = log_blocks;
    options.log_data = &gate;
    CHECK_OK(simba_open(suite_url(), &options, &s));
    CHECK_OK(simba_locker_create(s, fresh("close-log"), &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    check_close_refused(s, "the log function still runs");
    atomic_store(&gate.gate, true);
    client_close(s);
}

/* A daemon has closed its stdin, and perhaps opens something there later: no socket of ours gets
 * the number, and it stays as closed as it was. */
static void close_without_stdin(void)
{
    char byte;
    close(STDIN_FILENO);
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_start(&p, s, fresh("stdin"), &o);
    AWAIT(probe_leads(&p));
    CHECK(read(STDIN_FILENO, &byte, 1) < 0 && errno == EBADF);
    client_close(s);
    CHECK(read(STDIN_FILENO, &byte, 1) < 0 && errno == EBADF);
}

const struct test close_tests[] = {
    {"destroy_owner", destroy_owner, PUSHES, 0},
    {"destroy_waiter", destroy_waiter, ANY_STORE, 0},
    {"destroy_at_once", destroy_at_once, ANY_STORE, 0},
    {"close_empty", close_empty, ANY_STORE, 0},
    {"close_all_states", close_all_states, ANY_STORE, 0},
    {"close_hanging_callback", close_hanging_callback, ANY_STORE, 0},
    {"close_hanging_log", close_hanging_log, ANY_STORE, 0},
    {"close_then_release", close_then_release, ANY_STORE, 0},
    {"close_store_hangs", close_store_hangs, MEMORY_FAULTS, 0},
    {"close_together", close_together, ANY_STORE, 0},
    {"close_without_stdin", close_without_stdin, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
