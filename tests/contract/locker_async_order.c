/* locker_async_order.c: where done runs, what comes before and after it, and what it may do. */
#include <stdlib.h>
#include <string.h>

#include "async_probe.h"
#include "suite.h"

/* ---- before every other callback, never beside one ----------------------------------------- */

/* shows: C3 C9 */
static void async_destroy_ends(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("ends");
    struct async_probe a = {0}, b = {0}, c = {0};
    async_probe_create(&a, one, mutex, &o);
    async_probe_create(&b, two, mutex, &o);
    async_probe_create(&c, two, mutex, &o);
    CHECK_OK(simba_locker_acquire(a.l, PATIENCE_MS));
    CHECK_OK(async_acquire(&b, SIMBA_FOREVER));
    CHECK_OK(async_acquire(&c, SIMBA_FOREVER));
    simba_locker_destroy(b.l);
    AWAIT(atomic_load(&b.closed) == 1);
    CHECK(async_result(&b) == SIMBA_ECANCELED);
    CHECK(strstr(b.text, "is being closed") != NULL);
    client_close(two);
    CHECK(async_result(&c) == SIMBA_ECANCELED && atomic_load(&c.closed) == 1);
    CHECK(simba_locker_is_held(a.l));
    client_close(one);
}

/* Nothing is given back while done runs, which may be working under the lock. */
/* shows: C4 */
static void async_done_is_waited_for(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("waited");
    struct async_probe a = {.in_done = async_probe_block}, b = {.in_done = async_probe_block};
    simba_locker *other;
    async_probe_create(&a, one, mutex, &o);
    CHECK_OK(simba_locker_create(two, mutex, &o, &other));
    CHECK_OK(async_acquire(&a, PATIENCE_MS));
    AWAIT(atomic_load(&a.inside) == 1);
    simba_locker_destroy(a.l);
    nap(50); /* what is wrong has its chance */
    CHECK_CODE(simba_locker_acquire(other, 0), SIMBA_EHELD);
    atomic_store(&a.gate, true);
    CHECK_OK(simba_locker_acquire(other, PATIENCE_MS));
    CHECK_OK(simba_locker_release(other));
    AWAIT(atomic_load(&a.closed) == 1);

    async_probe_create(&b, one, mutex, &o);
    CHECK_OK(async_acquire(&b, PATIENCE_MS));
    AWAIT(atomic_load(&b.inside) == 1);
    check_close_refused(one, "a callback still runs");
    CHECK_CODE(simba_locker_acquire(other, 0), SIMBA_EHELD);
    atomic_store(&b.gate, true);
    client_close(one);
    CHECK_OK(simba_locker_acquire(other, PATIENCE_MS));
    client_close(two);
}

static void lose_it(struct async_probe *p, int code)
{
    if (atomic_load(&p->dones) > 0)
        return;
    CHECK_CODE(code, 0);
    CHECK_OK(simba_evict(p->s, p->mutex, NULL, true, PATIENCE_MS));
    AWAIT(!simba_locker_is_held(p->l));
    nap(50); /* an on_released that does not wait has its chance */
    CHECK(atomic_load(&p->released) == 0);
}

/* Its done comes after the callback that it is called in. */
static void release_what_is_lost(struct async_probe *p, int code)
{
    (void)code;
    CHECK(atomic_load(&p->dones) == 1);
    CHECK_OK(async_release(p));
    nap(50);
    CHECK(atomic_load(&p->dones) == 1);
}

/* shows: C3 */
static void async_lost_at_once(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_steady();
    struct async_probe p = {.in_done = lose_it, .in_released = release_what_is_lost};
    async_probe_create(&p, s, fresh("lost"), &o);
    CHECK_OK(async_acquire(&p, PATIENCE_MS));
    AWAIT(atomic_load(&p.released) == 1);
    CHECK(async_result(&p) == SIMBA_ELOST);
    CHECK(strstr(p.text, "lost before its release") != NULL);
    CHECK_OK(async_acquire(&p, PATIENCE_MS));
    CHECK(async_result(&p) == 0);
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1 && atomic_load(&p.released) == 1);
}

/* ---- what it may do ------------------------------------------------------------------------ */

static void go_on(struct async_probe *p, int code)
{
    CHECK_CODE(code, 0);
    CHECK_REFUSED(simba_close(p->s, 0), SIMBA_EDEADLOCK, NULL);
    CHECK_CODE(simba_locker_acquire(p->l, 0), SIMBA_EDEADLOCK);
    if (!simba_locker_is_held(p->l)) {
        CHECK_OK(async_acquire(p, PATIENCE_MS));
    } else if (++p->rounds < 10) {
        CHECK_OK(async_release(p));
    } else {
        simba_locker_destroy(p->l);
        CHECK(!simba_locker_is_held(p->l));
        CHECK_CODE(simba_locker_release_async(p->l, NULL, NULL), SIMBA_ECANCELED);
    }
}

static void async_calls_back(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe p = {.in_done = go_on};
    async_probe_create(&p, s, fresh("calls"), &o);
    CHECK_OK(async_acquire(&p, PATIENCE_MS));
    AWAIT(atomic_load(&p.closed) == 1);
    CHECK(atomic_load(&p.dones) == 19);
    client_close(s);
}

static void release_and_wait(struct async_probe *p, int code)
{
    CHECK_CODE(code, 0);
    if (simba_locker_is_held(p->l))
        CHECK_OK(simba_locker_release(p->l)); /* waits for nothing that done holds up */
}

static void async_releases_blocking(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe p = {.in_done = release_and_wait};
    async_probe_create(&p, s, fresh("blocking"), &o);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(async_acquire(&p, PATIENCE_MS));
        CHECK(async_result(&p) == 0);
    }
    client_close(s);
}

static void exit_thread(struct async_probe *p, int code)
{
    CHECK_CODE(code, 0);
    atomic_fetch_sub(&p->inside, 1);
    atomic_fetch_add(&p->dones, 1);
    pthread_exit(NULL);
}

static void async_exits_thread(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe p = {.in_done = exit_thread};
    async_probe_create(&p, s, fresh("exits"), &o);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(async_acquire(&p, PATIENCE_MS));
        CHECK(async_result(&p) == 0);
        CHECK_OK(async_release(&p));
        CHECK(async_result(&p) == 0);
    }
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1);
}

/* ---- where it runs ------------------------------------------------------------------------- */

enum manner { TAKES, REFUSES, RUNS_IT };

struct task {
    void (*run)(void *arg);
    void *arg;
};

static _Thread_local bool is_ours;
static atomic_int tasks;

static void *run_task(void *arg)
{
    struct task *t = arg;
    is_ours = true;
    t->run(t->arg);
    free(t);
    return NULL;
}

static int submit(void *data, void (*run)(void *arg), void *arg)
{
    enum manner *manner = data;
    if (*manner == REFUSES)
        return -1;
    if (*manner == RUNS_IT) {
        run(arg);
        return 0;
    }
    struct task *t = malloc(sizeof *t);
    CHECK(t != NULL);
    *t = (struct task){run, arg};
    atomic_fetch_add(&tasks, 1);
    CHECK(pthread_detach(spawn(run_task, t)) == 0);
    return 0;
}

static void see_thread(struct async_probe *p, int code)
{
    (void)code;
    p->rounds += is_ours;
}

static void run_on(enum manner manner, int expected)
{
    struct simba_executor x = {&manner, submit};
    struct simba_options options = suite_options();
    struct simba_handle_options o = lease_long();
    struct async_probe p = {.in_done = see_thread};
    simba_client *s;
    options.executor = &x;
    CHECK_OK(simba_open(suite_url(), &options, &s));
    async_probe_create(&p, s, fresh("executor"), &o);
    CHECK_OK(async_acquire(&p, PATIENCE_MS));
    CHECK(async_result(&p) == 0);
    CHECK_OK(async_release(&p));
    CHECK(async_result(&p) == 0);
    client_close(s);
    CHECK(p.rounds == expected && atomic_load(&p.closed) == 1);
}

static void async_executor(void)
{
    run_on(REFUSES, 0);
    run_on(RUNS_IT, 0);
    CHECK(atomic_load(&tasks) == 0);
    run_on(TAKES, 2);
    CHECK(atomic_load(&tasks) == 3); /* on_closed, too */
}

static pthread_t poller;

static void see_poller(struct async_probe *p, int code)
{
    CHECK(pthread_equal(pthread_self(), poller));
    CHECK_CODE(simba_poll(p->s), SIMBA_EDEADLOCK);
    if (code == 0 && simba_locker_is_held(p->l) && p->rounds++ == 0)
        CHECK_OK(async_release(p));
}

static void poll_until(struct async_probe *p, int dones)
{
    int64_t until = simba_now() + PATIENCE_MS;
    while (atomic_load(&p->dones) < dones) {
        client_poll(p->s);
        CHECK(simba_now() < until);
    }
}

/* A client that is polled needs no call that waits. */
static void async_embedded(void)
{
    struct simba_options options = suite_options();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("embedded");
    struct async_probe a = {.in_done = see_poller}, b = {.in_done = see_poller};
    struct heard heard = {0};
    simba_client *s;
    options.flags = SIMBA_NO_THREAD;
    options.trace = hear;
    options.trace_data = &heard;
    poller = pthread_self();
    CHECK_OK(simba_open(suite_url(), &options, &s));
    async_probe_create(&a, s, mutex, &o);
    async_probe_create(&b, s, mutex, &o);
    CHECK_OK(async_acquire(&a, PATIENCE_MS));
    CHECK(atomic_load(&a.dones) == 0); /* not before the poll */
    poll_until(&a, 2);
    CHECK(atomic_load(&a.code) == 0 && !simba_locker_is_held(a.l));
    CHECK_OK(async_acquire(&a, PATIENCE_MS));
    poll_until(&a, 3);
    CHECK_OK(async_acquire(&b, 0));
    poll_until(&b, 1);
    CHECK(atomic_load(&b.code) == SIMBA_EHELD);
    hear_anew(&heard);
    CHECK_OK(async_acquire(&b, 100));
    poll_until(&b, 2);
    check_in_vain(&heard, atomic_load(&b.code), 100, s);
    CHECK_OK(async_acquire(&b, SIMBA_FOREVER));
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK(atomic_load(&b.code) == SIMBA_ECANCELED);
    CHECK(atomic_load(&a.closed) == 1 && atomic_load(&b.closed) == 1);
}

const struct test locker_async_order_tests[] = {
    {"async_destroy_ends", async_destroy_ends, ANY_STORE, 0},
    {"async_done_is_waited_for", async_done_is_waited_for, PUSHES, 0},
    {"async_lost_at_once", async_lost_at_once, ANY_STORE, 0},
    {"async_calls_back", async_calls_back, ANY_STORE, 0},
    {"async_releases_blocking", async_releases_blocking, ANY_STORE, 0},
    {"async_exits_thread", async_exits_thread, ANY_STORE, 0},
    {"async_executor", async_executor, ANY_STORE, 0},
    {"async_embedded", async_embedded, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
