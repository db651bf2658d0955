/* exclusion.c: C1 and C5, never two owners: not with equal ids, not when the store hangs, not when
 * it loses, repeats and delays; and the owner that cannot renew fences itself. */
#include "suite.h"

#include <poll.h>
#include <signal.h>
#include <simba/backend.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tries at the very moment when the lease of another ends: whoever would act a little too long is
 * found out. */
static struct simba_handle_options eager(int64_t ttl_ms, int64_t transition_ms)
{
    struct simba_handle_options o = lease(ttl_ms, transition_ms);
    o.jitter_early_ms = o.jitter_late_ms = 0;
    return o;
}

/* ---- without faults ------------------------------------------------------------------------ */

/* T7, T19: two that were given the same id by mistake are still two. */
/* shows: C1 */
static void same_id_two_clients(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("twins");
    struct simba_handle_options o = lease_long();
    o.id = "twin";
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    for (int round = 1; round <= 10; round++) {
        struct probe *first = round % 2 ? &a : &b, *second = round % 2 ? &b : &a;
        CHECK_OK(simba_contender_start(first->c));
        AWAIT(probe_leads(first));
        CHECK_OK(simba_contender_start(second->c));
        CHECK_OK(simba_contender_wait(second->c, SIMBA_RUNNING, PATIENCE_MS));
        CHECK(probe_leads(first));
        CHECK(!simba_contender_is_owner(second->c));
        probe_stop(first);
        AWAIT(probe_leads(second));
        CHECK(atomic_load(&second->token) > atomic_load(&first->token));
        probe_stop(second);
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* Leases that are lost whenever the machine is busy: whoever owns, owns alone. */
/* shows: C1 */
static void tiny_leases(void)
{
    simba_client *clients[3] = {client_open(), client_open(), client_open()};
    const char *mutex = fresh("tiny");
    struct simba_handle_options o = eager(150, 50);
    o.renew_ms = SIMBA_DEFAULT;
    struct probe p[3] = {{0}, {0}, {0}};
    struct referee referee = {.probe = {&p[0], &p[1], &p[2]}, .probes = 3};
    for (int i = 0; i < 3; i++)
        probe_create(&p[i], clients[i], mutex, &o);
    referee_begin(&referee);
    for (int i = 0; i < 3; i++)
        CHECK_OK(simba_contender_start(p[i].c));
    nap(2000);
    AWAIT(atomic_load(&p[0].acquired) + atomic_load(&p[1].acquired) + atomic_load(&p[2].acquired) >
          0);
    referee_end(&referee);
    for (int i = 0; i < 3; i++)
        client_close(clients[i]);
}

/* ---- the store hangs ----------------------------------------------------------------------- */

/* T1: is_owner turns false by the clock alone, on_released comes, and all of it before the store
 * could have given the mutex to anybody; afterwards there is a new tenure with a new token. */
/* shows: C5 */
static void self_fencing(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("fencing");
    struct simba_handle_options o = lease_short();
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &o);
    AWAIT(probe_leads(&a));
    uint64_t token = atomic_load(&a.token);
    store_set(HANG);
    probe_start(&b, two, mutex, &o);
    AWAIT(!simba_contender_is_owner(a.c));
    CHECK(!simba_contender_owns(a.c, token));
    CHECK(simba_contender_remaining(a.c) == 0);
    AWAIT(probe_is_idle(&a));
    CHECK(atomic_load(&a.reason) == SIMBA_EXPIRED);
    CHECK(simba_contender_status(a.c) == SIMBA_RUNNING);
    CHECK(atomic_load(&b.acquired) == 0);
    simba_contender_destroy(b.c);
    store_set(HEALTHY);
    AWAIT(probe_leads(&a));
    CHECK(atomic_load(&a.acquired) == 2);
    CHECK(atomic_load(&a.token) > token);
    CHECK(!simba_contender_owns(a.c, token));
    client_close(one);
    client_close(two);
}

/* The margin in time: when the old owner's is_owner turns false, the lease that the store knows
 * has not ended yet. What it promised last is in remaining(), which a renewal only makes later. */
/* shows: C5 */
static void fenced_before_lease_end(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_short();
    struct probe p = {0};
    probe_start(&p, s, fresh("margin"), &o);
    AWAIT(probe_leads(&p));
    for (int i = 0; i < 200; i++, nap(5)) {
        /* sent_at <= now, so the time left to act is below the lease by margin and drift */
        CHECK(simba_contender_remaining(p.c) < o.ttl_ms + o.transition_ms);
    }
    store_set(HANG);
    int64_t before = simba_now();
    int64_t end = before + o.ttl_ms + o.transition_ms;
    for (int64_t now = before; now < end + 100; now = simba_now()) {
        CHECK(now < end || !simba_contender_is_owner(p.c));
        nap(1);
    }
    CHECK(!simba_contender_is_owner(p.c));
    store_set(HEALTHY);
    client_close(s);
}

/* Hang and go on, again and again, with the other one waiting to take over. */
/* shows: C1 */
static void hang_cycles(void)
{
    simba_client *one = client_open_quick(150), *two = client_open_quick(150);
    const char *mutex = fresh("cycles");
    struct simba_handle_options o = eager(300, 200);
    struct probe a = {0}, b = {0};
    struct referee left = {.probe = {&a, &b}, .probes = 2};
    struct referee right = {.probe = {&b, &a}, .probes = 2};
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&left);
    referee_begin(&right);
    CHECK_OK(simba_contender_start(a.c));
    CHECK_OK(simba_contender_start(b.c));
    for (int round = 1; round <= 6; round++) {
        AWAIT(simba_contender_is_owner(a.c) || simba_contender_is_owner(b.c));
        store_set(HANG);
        nap(100 * round); /* sometimes shorter than the lease, sometimes longer */
        store_set(HEALTHY);
    }
    AWAIT(simba_contender_is_owner(a.c) || simba_contender_is_owner(b.c));
    referee_end(&left);
    referee_end(&right);
    client_close(one);
    client_close(two);
}

/* T6: the lease counts from before the request was sent. The answers are late, then the store hangs
 * until the last lease that it granted is over, and the other one takes it at that moment; counted
 * from its answer the lease of the first would go on for 300 ms. */
/* shows: C1 */
static void late_answers(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("late");
    struct simba_handle_options o = eager(300, 200);
    struct probe a = {0}, b = {0};
    struct referee referee = {.probe = {&a, &b}, .probes = 2};
    probe_create(&a, one, mutex, &o);
    probe_create(&b, two, mutex, &o);
    referee_begin(&referee);
    CHECK_OK(simba_contender_start(a.c));
    CHECK_OK(simba_contender_start(b.c));
    for (int round = 0; round < 5; round++) {
        AWAIT(simba_contender_is_owner(a.c) || simba_contender_is_owner(b.c));
        store_delay(300);
        nap(350);
        store_set(HANG);
        nap(o.ttl_ms + o.transition_ms);
        store_set(HEALTHY);
        nap(100);
    }
    referee_end(&referee);
    client_close(one);
    client_close(two);
}

/* ---- the process hangs --------------------------------------------------------------------- */

/* A process that, asked by a byte, wakes the test after a time, and again and again until the next
 * byte says that it is awake. Ends with the pipe. */
static pid_t make_waker(int *asks, int64_t sleep_ms)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t test = getpid(), waker = fork();
    CHECK(waker >= 0);
    if (waker == 0) {
        char byte;
        struct pollfd next = {.fd = ends[0], .events = POLLIN};
        close(ends[1]);
        while (read(ends[0], &byte, 1) == 1) {
            nap(sleep_ms);
            do
                kill(test, SIGCONT);
            while (poll(&next, 1, 20) == 0);
            if (read(ends[0], &byte, 1) != 1)
                break;
        }
        _exit(0);
    }
    close(ends[0]);
    *asks = ends[1];
    return waker;
}

struct sleeper {
    struct probe p;
    _Atomic uint64_t token;  /* ask about this tenure; 0: nothing to ask */
    _Atomic int64_t over_at; /* from here on nobody may own it */
    atomic_bool is_done;
};

static void ask(struct sleeper *x, uint64_t token)
{
    bool is_over = simba_now() >= atomic_load(&x->over_at);
    CHECK(!simba_contender_owns(x->p.c, token) || !is_over);
}

static void *ask_always(void *arg)
{
    struct sleeper *x = arg;
    while (!atomic_load(&x->is_done)) {
        uint64_t token = atomic_load(&x->token);
        if (token == 0)
            nap(1);
        else
            ask(x, token);
    }
    return NULL;
}

/* T1, T16: the whole process stands still for longer than the lease. Threads that ask all the time
 * ask on when it wakes, often before the library's own thread has run, and must hear no. The store
 * hangs, so that nothing can have been renewed in the moment before the stop. */
/* shows: C5 */
static void stopped_process(void)
{
    struct simba_handle_options o = lease_tiny();
    int64_t length = o.ttl_ms + o.transition_ms;
    int asks;
    pid_t waker = make_waker(&asks, length + 50);
    simba_client *s = client_open();
    struct sleeper x = {.token = 0};
    probe_start(&x.p, s, fresh("stopped"), &o);
    pthread_t thread[2] = {spawn(ask_always, &x), spawn(ask_always, &x)};
    for (int round = 0; round < 6; round++) {
        AWAIT(probe_leads(&x.p));
        uint64_t token = atomic_load(&x.p.token);
        store_set(HANG);
        atomic_store(&x.over_at, simba_now() + length);
        atomic_store(&x.token, token);
        CHECK(write(asks, "x", 1) == 1);
        raise(SIGSTOP);
        ask(&x, token);
        CHECK(write(asks, "x", 1) == 1);
        atomic_store(&x.token, 0);
        store_set(HEALTHY);
    }
    atomic_store(&x.is_done, true);
    for (int i = 0; i < 2; i++)
        join(thread[i]);
    close(asks);
    CHECK(waitpid(waker, NULL, 0) == waker);
    client_close(s);
}

/* ---- everything at once -------------------------------------------------------------------- */

#define STORM 6

static atomic_bool is_over;

static void *churn(void *arg)
{
    struct probe *p = arg;
    unsigned random = (unsigned)(uintptr_t)p | 1u;
    while (!atomic_load(&is_over)) {
        CHECK_OK(simba_contender_start(p->c));
        random = random * 1103515245u + 12345u;
        nap((int64_t)(random >> 16) % 400);
        CHECK_OK(simba_contender_stop(p->c));
        CHECK_OK(simba_contender_wait(p->c, SIMBA_INITIAL, PATIENCE_MS));
    }
    return NULL;
}

static void storm(uint64_t seed, bool own_ids)
{
    simba_client *clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = client_open_quick(60);
    const char *mutex = fresh("storm");
    struct simba_handle_options o = eager(300, 200);
    static struct probe p[STORM];
    pthread_t thread[STORM];
    struct referee referee = {.probes = STORM};
    for (int i = 0; i < STORM; i++) {
        o.id = own_ids ? (i % 2 ? "storm-odd" : "storm-even") : NULL;
        probe_create(&p[i], clients[i % 3], mutex, &o);
        referee.probe[i] = &p[i];
    }
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    f.delay_ms = 3;
    f.lose_request = f.lose_answer = f.duplicate = 15;
    f.lose_hint = 50;
    f.seed = seed;
    CHECK_OK(simba_memory_set_faults(suite_url(), &f));
    referee_begin(&referee);
    for (int i = 0; i < STORM; i++)
        thread[i] = spawn(churn, &p[i]);
    nap(4000);
    atomic_store(&is_over, true);
    for (int i = 0; i < STORM; i++)
        join(thread[i]);
    store_set(HEALTHY);
    CHECK_OK(simba_contender_start(p[0].c));
    AWAIT(probe_leads(&p[0]));
    referee_end(&referee);
    for (int i = 0; i < 3; i++)
        client_close(clients[i]);
}

/* shows: C1 */
static void storm_one(void)
{
    storm(1, false);
}

/* shows: C1 */
static void storm_two(void)
{
    storm(0x5eed, false);
}

/* shows: C1 */
static void storm_same_ids(void)
{
    storm(7, true);
}

const struct test exclusion_tests[] = {
    {"same_id_two_clients", same_id_two_clients, PUSHES, 0},
    {"tiny_leases", tiny_leases, ANY_STORE, 0},
    {"self_fencing", self_fencing, MEMORY_FAULTS, 0},
    {"fenced_before_lease_end", fenced_before_lease_end, MEMORY_FAULTS, 0},
    {"hang_cycles", hang_cycles, MEMORY_FAULTS, 0},
    {"late_answers", late_answers, MEMORY_FAULTS, 0},
    {"stopped_process", stopped_process, MEMORY_FAULTS, 0},
    {"storm_one", storm_one, MEMORY_FAULTS, 0},
    {"storm_two", storm_two, MEMORY_FAULTS, 0},
    {"storm_same_ids", storm_same_ids, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};
