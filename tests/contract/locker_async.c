/* locker_async.c: locks that nobody waits for: the results of asynchronous calls. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async_probe.h"
#include "suite.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY_FACTOR 20
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define MANY_FACTOR 20
#endif
#endif
#ifndef MANY_FACTOR
#define MANY_FACTOR 1
#endif

static void none(void *data, int code)
{
    (void)data;
    (void)code;
}

static void async_grants(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe p = {0};
    uint64_t last = 0;
    async_probe_create(&p, s, fresh("async"), &o);
    for (int round = 0; round < 5; round++) {
        CHECK_OK(async_acquire(&p, round % 2 ? SIMBA_FOREVER : PATIENCE_MS));
        CHECK(async_result(&p) == 0);
        CHECK(simba_locker_is_held(p.l));
        CHECK(simba_locker_token(p.l) > last);
        last = simba_locker_token(p.l);
        CHECK_REFUSED(async_acquire(&p, 0), SIMBA_ESTATE, "held already");
        CHECK_OK(async_release(&p));
        CHECK(!simba_locker_is_held(p.l)); /* from the call on */
        CHECK(async_result(&p) == 0);
        CHECK_REFUSED(async_release(&p), SIMBA_ESTATE, "not held");
        CHECK_OK(simba_locker_acquire(p.l, PATIENCE_MS)); /* the two kinds go together */
        CHECK_OK(simba_locker_release_async(p.l, NULL, NULL));
        CHECK(!simba_locker_is_held(p.l));
        AWAIT(simba_locker_acquire(p.l, PATIENCE_MS) == 0);
        CHECK_OK(simba_locker_release(p.l));
    }
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1 && atomic_load(&p.dones) == 10);
}

/* shows: C9 */
static void async_refuses(void)
{
    struct heard heard = {0};
    simba_client *one = client_open(), *two = client_open_hearing(&heard);
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("refused");
    struct async_probe a = {0}, b = {0};
    async_probe_create(&a, one, mutex, &o);
    async_probe_create(&b, two, mutex, &o);
    CHECK_REFUSED(simba_locker_acquire_async(NULL, 0, none, NULL), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_locker_acquire_async(a.l, 0, NULL, NULL), SIMBA_EINVAL, mutex);
    CHECK_REFUSED(simba_locker_acquire_async(a.l, -1, none, NULL), SIMBA_EINVAL, mutex);
    CHECK_REFUSED(simba_locker_release_async(NULL, none, NULL), SIMBA_EINVAL, NULL);
    CHECK_OK(async_acquire(&a, 0));
    CHECK(async_result(&a) == 0);
    CHECK_OK(async_acquire(&b, 0));
    CHECK(async_result(&b) == SIMBA_EHELD);
    CHECK(strstr(b.text, mutex) != NULL && strstr(b.text, "held by") != NULL);
    CHECK_OK(async_acquire(&b, SIMBA_FOREVER));
    CHECK_REFUSED(async_acquire(&b, 0), SIMBA_ESTATE, "this locker waits already");
    CHECK_OK(simba_locker_cancel(b.l));
    CHECK(async_result(&b) == SIMBA_ECANCELED);
    hear_anew(&heard);
    int64_t began = simba_now();
    CHECK_OK(async_acquire(&b, 200));
    int code = async_result(&b);
    CHECK(simba_now() - began >= 200);
    CHECK(code == SIMBA_ESTORE || strstr(b.text, "timed out after") != NULL);
    check_in_vain(&heard, code, 200, NULL);
    CHECK(!simba_locker_is_held(b.l) && simba_locker_is_held(a.l));
    client_close(one);
    client_close(two);
}

/* shows: C9 */
static void async_cancel(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("canceled");
    struct async_probe a = {0}, b = {0};
    async_probe_create(&a, one, mutex, &o);
    async_probe_create(&b, two, mutex, &o);
    CHECK_OK(simba_locker_acquire(a.l, PATIENCE_MS));
    for (int round = 0; round < 3; round++) {
        CHECK_OK(async_acquire(&b, SIMBA_FOREVER));
        CHECK_OK(simba_locker_cancel(b.l));
        CHECK(async_result(&b) == SIMBA_ECANCELED);
        CHECK(strstr(b.text, "the wait was canceled") != NULL);
        CHECK_REFUSED(simba_locker_cancel(b.l), SIMBA_ESTATE, mutex);
    }
    CHECK_OK(simba_locker_release(a.l));
    CHECK_OK(async_acquire(&b, PATIENCE_MS));
    CHECK(async_result(&b) == 0);
    CHECK_OK(async_release(&b));
    CHECK_OK(simba_locker_acquire(a.l, PATIENCE_MS));
    client_close(one);
    client_close(two);
}

/* ---- many ---------------------------------------------------------------------------------- */

static atomic_int granted;

static void count_grant(void *data, int code)
{
    CHECK_CODE(code, 0);
    CHECK(simba_locker_is_held(data));
    atomic_fetch_add(&granted, 1);
}

/* All at once, in one client: more than there could be threads. */
static void async_many(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    bool is_quick = suite_is_memory() || suite_is_sqlite() || suite_is_redis();
    int many = (is_quick ? 10000 : 500) / MANY_FACTOR;
    simba_locker **l = calloc((size_t)many, sizeof(simba_locker *));
    const char *prefix = fresh("many");
    char mutex[SIMBA_MUTEX_MAX + 1];
    CHECK(l != NULL);
    for (int i = 0; i < many; i++) {
        snprintf(mutex, sizeof mutex, "%s-%d", prefix, i);
        CHECK_OK(simba_locker_create(s, mutex, &o, &l[i]));
        CHECK_OK(simba_locker_acquire_async(l[i], SIMBA_FOREVER, count_grant, l[i]));
    }
    AWAIT(atomic_load(&granted) == many);
    CHECK(count_threads(NULL) < 300);
    for (int i = 0; i < many; i++)
        CHECK_OK(simba_locker_release_async(l[i], NULL, NULL));
    client_close(s);
    free(l);
}

static int plain; /* no atomic: the lock is what protects it, and TSan watches */

static void count_up(struct async_probe *p, int code)
{
    CHECK_CODE(code, 0);
    if (!simba_locker_is_held(p->l)) { /* the release has been told */
        if (++p->rounds < 10)
            CHECK_OK(async_acquire(p, SIMBA_FOREVER));
        return;
    }
    int seen = plain;
    sched_yield();
    plain = seen + 1;
    CHECK_OK(async_release(p));
}

/* shows: C1 */
static void async_exclusion(void)
{
    enum { LOCKERS = 8 };
    simba_client *s[2] = {client_open(), client_open()};
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("exclusion");
    static struct async_probe p[LOCKERS];
    for (int i = 0; i < LOCKERS; i++) {
        p[i].in_done = count_up;
        async_probe_create(&p[i], s[i % 2], mutex, &o);
        CHECK_OK(async_acquire(&p[i], SIMBA_FOREVER));
    }
    for (int i = 0; i < LOCKERS; i++)
        AWAIT(atomic_load(&p[i].dones) == 20);
    client_close(s[0]);
    client_close(s[1]);
    CHECK(plain == LOCKERS * 10);
}

/* ---- threads and processes ----------------------------------------------------------------- */

static void note_code(void *data, int code)
{
    atomic_store((atomic_int *)data, code);
}

/* Who closes right after the call may find the lock waited for, or granted in the meantime. */
static void async_then_close(void)
{
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("closed");
    for (int i = 0; i < 100 / MANY_FACTOR; i++) {
        simba_client *s = client_open();
        simba_locker *l;
        atomic_int code = 1;
        CHECK_OK(simba_locker_create(s, mutex, &o, &l));
        CHECK_OK(simba_locker_acquire_async(l, SIMBA_FOREVER, note_code, &code));
        client_close(s);
        CHECK(atomic_load(&code) == 0 || atomic_load(&code) == SIMBA_ECANCELED);
    }
}

static void acquire_other(void *data, int code)
{
    struct async_probe *p = data;
    CHECK_CODE(code, 0);
    CHECK_OK(async_acquire(p, PATIENCE_MS));
}

/* What a callback acquires is no thread's: it is waited for until it is released. */
static void async_in_a_callback(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe other = {0};
    simba_locker *l;
    async_probe_create(&other, s, fresh("other"), &o);
    CHECK_OK(simba_locker_create(s, fresh("first"), &o, &l));
    CHECK_OK(simba_locker_acquire_async(l, PATIENCE_MS, acquire_other, &other));
    AWAIT(simba_locker_is_held(other.l));
    CHECK_OK(simba_locker_release(l));
    check_close_refused(s, "other");
    CHECK(simba_locker_is_held(other.l));
    CHECK_OK(simba_locker_release(other.l));
    client_close(s);
}

static void *acquire_and_wait(void *arg)
{
    struct async_probe *p = arg;
    CHECK_OK(async_acquire(p, PATIENCE_MS));
    AWAIT(atomic_load(&p->gate));
    return NULL;
}

/* For simba_close the thread that asked is the one that has the lock. */
/* shows: C9 */
static void async_close_waits(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct async_probe own = {0}, others = {0};
    async_probe_create(&own, s, fresh("own"), &o);
    async_probe_create(&others, s, fresh("others"), &o);
    CHECK_OK(async_acquire(&own, PATIENCE_MS));
    CHECK(async_result(&own) == 0);
    pthread_t thread = spawn(acquire_and_wait, &others);
    AWAIT(simba_locker_is_held(others.l));
    check_close_refused(s, "is held by another thread");
    CHECK(simba_locker_is_held(others.l));
    CHECK_CODE(async_acquire(&own, 0), SIMBA_ECANCELED);
    CHECK_OK(async_release(&others)); /* a holder still may */
    atomic_store(&others.gate, true);
    join(thread);
    client_close(s);
    CHECK(atomic_load(&own.closed) == 1 && atomic_load(&others.closed) == 1);
}

static void async_fork(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("fork");
    struct async_probe p = {0};
    async_probe_create(&p, s, mutex, &o);
    CHECK_OK(async_acquire(&p, PATIENCE_MS));
    CHECK(async_result(&p) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_REFUSED(simba_locker_acquire_async(p.l, 0, none, NULL), SIMBA_EFORKED, mutex);
        CHECK_REFUSED(simba_locker_release_async(p.l, none, NULL), SIMBA_EFORKED, mutex);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(simba_locker_is_held(p.l));
    client_close(s);
}

const struct test locker_async_tests[] = {
    {"async_grants", async_grants, ANY_STORE, 0},
    {"async_refuses", async_refuses, ANY_STORE, 0},
    {"async_cancel", async_cancel, PUSHES, 0},
    {"async_many", async_many, ANY_STORE, 0},
    {"async_exclusion", async_exclusion, PUSHES, 0},
    {"async_then_close", async_then_close, ANY_STORE, 0},
    {"async_in_a_callback", async_in_a_callback, ANY_STORE, 0},
    {"async_close_waits", async_close_waits, ANY_STORE, 0},
    {"async_fork", async_fork, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
