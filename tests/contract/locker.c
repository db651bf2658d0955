/* locker.c: the blocking lock on a store that works. */
#include "suite.h"

#include <stddef.h>
#include <string.h>

static simba_locker *locker(simba_client *s, const char *mutex)
{
    struct simba_handle_options o = lease_long();
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    CHECK(!simba_locker_is_held(l));
    CHECK(simba_locker_token(l) == 0);
    return l;
}

static void locker_basics(void)
{
    simba_client *s = client_open();
    simba_locker *l = locker(s, fresh("basics"));
    uint64_t last = 0;
    for (int round = 0; round < 5; round++) {
        CHECK_OK(simba_locker_acquire(l, round % 2 ? SIMBA_FOREVER : PATIENCE_MS));
        CHECK(simba_locker_is_held(l));
        CHECK(simba_locker_remaining(l) > 0);
        CHECK(simba_locker_token(l) > last);
        last = simba_locker_token(l);
        CHECK_OK(simba_locker_release(l));
        CHECK(!simba_locker_is_held(l));
        CHECK(simba_locker_token(l) == 0);
        CHECK(simba_locker_remaining(l) == 0);
    }
    simba_locker_destroy(l);
    client_close(s);
}

/* shows: C9 */
static void locker_try(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("try");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex), *c = locker(one, mutex);
    CHECK_OK(simba_locker_acquire(a, 0));
    CHECK_REFUSED(simba_locker_acquire(b, 0), SIMBA_EHELD, mutex);
    CHECK_REFUSED(simba_locker_acquire(c, 0), SIMBA_EHELD, mutex);
    CHECK(!simba_locker_is_held(b));
    CHECK(simba_locker_is_held(a));
    CHECK_OK(simba_locker_release(a));
    CHECK_OK(simba_locker_acquire(b, 0));
    CHECK_OK(simba_locker_release(b));
    client_close(one);
    client_close(two);
}

/* Who gave up leaves no trace: no queue entry, no late grant that nobody releases. */
/* shows: C9 */
static void locker_timeout(void)
{
    struct heard heard = {0};
    simba_client *one = client_open(), *two = client_open_hearing(&heard);
    const char *mutex = fresh("timeout");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex), *c = locker(two, mutex);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    hear_anew(&heard);
    int64_t began = simba_now();
    int code = simba_locker_acquire(b, 200);
    CHECK(simba_now() - began >= 200);
    CHECK(strstr(simba_error_text(), mutex) != NULL);
    check_in_vain(&heard, code, 200, NULL);
    CHECK(!simba_locker_is_held(b));
    CHECK_OK(simba_locker_release(a));
    CHECK_OK(simba_locker_acquire(c, PATIENCE_MS));
    CHECK_OK(simba_locker_release(c));
    client_close(one);
    client_close(two);
}

static void *release_it(void *arg)
{
    CHECK_OK(simba_locker_release(arg));
    return NULL;
}

/* The time-out and the grant race; whatever wins, the next acquire of the same locker works. The store may not have
 * answered in so short a time. Beside a release it may also have said that nobody owned it, and granted it to nobody. */
static void locker_after_timeout(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("after");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex);
    for (int round = 0; round < 20; round++) {
        CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
        int code;
        if (round % 2 == 0) {
            code = simba_locker_acquire(b, 1);
            CHECK_OK(simba_locker_release(a));
        } else {
            pthread_t thread = spawn(release_it, a);
            code = simba_locker_acquire(b, 1);
            join(thread);
        }
        bool is_race = round % 2 == 1;
        if (code != SIMBA_ETIMEOUT && code != SIMBA_ESTORE && !is_race)
            CHECK_CODE(code, SIMBA_ETIMEOUT);
        CHECK(code == 0 || code == SIMBA_ETIMEOUT || code == SIMBA_ESTORE || code == SIMBA_ENOTYET);
        if (code != 0)
            CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
        CHECK_OK(simba_locker_release(b));
    }
    client_close(one);
    client_close(two);
}

/* ---- one thread at a time, not reentrant --------------------------------------------------- */

static void *acquire_refused(void *arg)
{
    CHECK_REFUSED(simba_locker_acquire(arg, 0), SIMBA_ESTATE, NULL);
    CHECK_REFUSED(simba_locker_acquire(arg, PATIENCE_MS), SIMBA_ESTATE, NULL);
    return NULL;
}

static void locker_not_reentrant(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("reentrant");
    simba_locker *l = locker(s, mutex);
    CHECK_REFUSED(simba_locker_release(l), SIMBA_ESTATE, mutex);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    acquire_refused(l);
    join(spawn(acquire_refused, l));
    CHECK(simba_locker_token(l) == token);
    join(spawn(release_it, l)); /* it belongs to no thread */
    CHECK_REFUSED(simba_locker_release(l), SIMBA_ESTATE, mutex);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    client_close(s);
}

struct waiting {
    simba_locker *l;
    atomic_int code;
    atomic_bool is_done;
    atomic_bool stays; /* while this is set */
};

static void *wait_for_it(void *arg)
{
    struct waiting *w = arg;
    int code;
    do /* the test may be trying the same locker at this moment */
        code = simba_locker_acquire(w->l, SIMBA_FOREVER);
    while (code == SIMBA_ESTATE);
    atomic_store(&w->code, code);
    atomic_store(&w->is_done, true);
    while (atomic_load(&w->stays))
        nap(1);
    return NULL;
}

/* While one thread waits, another gets SIMBA_ESTATE; then the waiting one gets the lock by the
 * release, not by the end of a lease of a minute. */
/* shows: C4 C7 C9 */
static void locker_handover(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("handover");
    simba_locker *a = locker(one, mutex);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    uint64_t token = simba_locker_token(a);
    struct waiting w = {.l = locker(two, mutex), .stays = true};
    pthread_t thread = spawn(wait_for_it, &w);
    AWAIT(simba_locker_acquire(w.l, 0) == SIMBA_ESTATE); /* the thread waits */
    CHECK_REFUSED(simba_locker_acquire(w.l, 0), SIMBA_ESTATE,
                  "this locker waits already: cancel that wait, or create another locker");
    CHECK_REFUSED(simba_locker_acquire(a, 0), SIMBA_ESTATE,
                  "this locker is held already: release it first, or create another locker");
    CHECK_REFUSED(simba_locker_release(w.l), SIMBA_ESTATE, NULL);
    CHECK(!atomic_load(&w.is_done));
    CHECK_OK(simba_locker_release(a));
    AWAIT(atomic_load(&w.is_done));
    CHECK(atomic_load(&w.code) == 0);
    CHECK(simba_locker_token(w.l) > token);
    check_close_refused(two, "is held by another thread: release it, then close again");
    CHECK(simba_locker_is_held(w.l));
    atomic_store(&w.stays, false);
    join(thread);
    CHECK_OK(simba_locker_release(w.l));
    client_close(one);
    client_close(two);
}

/* shows: C9 */
static void locker_close_cancels(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("cancels");
    simba_locker *a = locker(one, mutex);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    struct waiting w = {.l = locker(two, mutex)};
    pthread_t thread = spawn(wait_for_it, &w);
    AWAIT(simba_locker_acquire(w.l, 0) == SIMBA_ESTATE); /* the thread waits */
    client_close(two);
    join(thread);
    CHECK(atomic_load(&w.code) == SIMBA_ECANCELED);
    CHECK(simba_locker_is_held(a));
    CHECK_OK(simba_locker_release(a));
    client_close(one);
}

/* The waiting thread hears of it, the locker is free for the next acquire, and nothing is left
 * behind that would keep another waiting. */
/* shows: C9 */
static void locker_cancel(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("cancel");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex);
    CHECK_REFUSED(simba_locker_cancel(b), SIMBA_ESTATE, mutex);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    CHECK_REFUSED(simba_locker_cancel(a), SIMBA_ESTATE, mutex); /* held, not awaited */
    for (int round = 0; round < 3; round++) {
        struct waiting w = {.l = b};
        pthread_t thread = spawn(wait_for_it, &w);
        AWAIT(simba_locker_cancel(b) == 0);
        join(thread);
        CHECK(atomic_load(&w.code) == SIMBA_ECANCELED);
        CHECK(!simba_locker_is_held(b));
    }
    CHECK_REFUSED(simba_locker_cancel(b), SIMBA_ESTATE, mutex);
    CHECK(simba_locker_is_held(a));
    CHECK_OK(simba_locker_release(a));
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    CHECK_OK(simba_locker_release(b));
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    client_close(one);
    client_close(two);
}

static void *cancel_it(void *arg)
{
    int code = simba_locker_cancel(arg);
    CHECK(code == 0 || code == SIMBA_ESTATE);
    return NULL;
}

/* The cancel and the grant race: either the lock is held, or it is not and can be acquired
 * again, at once and by others. A cancel that comes too late does not end the next wait. */
/* shows: C8 */
static void locker_cancel_races(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("races");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex);
    for (int round = 0; round < 40; round++) {
        CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
        struct waiting w = {.l = b, .stays = true};
        pthread_t waiter = spawn(wait_for_it, &w);
        AWAIT(simba_locker_acquire(b, 0) == SIMBA_ESTATE); /* the thread waits */
        pthread_t canceler = spawn(cancel_it, b);
        CHECK_OK(simba_locker_release(a));
        AWAIT(atomic_load(&w.is_done));
        int code = atomic_load(&w.code);
        CHECK(code == 0 || code == SIMBA_ECANCELED);
        CHECK(simba_locker_is_held(b) == (code == 0));
        if (code != 0)
            CHECK_OK(simba_locker_acquire(round % 2 == 0 ? b : a, PATIENCE_MS));
        CHECK_OK(simba_locker_release(code == 0 || round % 2 == 0 ? b : a));
        join(canceler);
        atomic_store(&w.stays, false);
        join(waiter);
    }
    client_close(one);
    client_close(two);
}

/* ---- exclusion ----------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS 50

static int plain; /* no atomic: the lock is what protects it, and TSan watches */

static void *count_up(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_OK(simba_locker_acquire(arg, PATIENCE_MS));
        int seen = plain;
        if (round % 10 == 0)
            nap(1); /* let the others run into it */
        plain = seen + 1;
        CHECK_OK(simba_locker_release(arg));
    }
    return NULL;
}

/* shows: C1 */
static void locker_exclusion(void)
{
    simba_client *s[2] = {client_open(), client_open()};
    const char *mutex = fresh("exclusion");
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        thread[i] = spawn(count_up, locker(s[i % 2], mutex));
    for (int i = 0; i < THREADS; i++)
        join(thread[i]);
    CHECK(plain == THREADS * ROUNDS);
    client_close(s[0]);
    client_close(s[1]);
}

static void locker_fast_loop(void)
{
    simba_client *s = client_open();
    simba_locker *l = locker(s, fresh("fast"));
    uint64_t last = 0;
    for (int round = 0; round < 500; round++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK(simba_locker_token(l) > last);
        last = simba_locker_token(l);
        CHECK_OK(simba_locker_release(l));
    }
    client_close(s);
}

/* A held locker that is destroyed releases first. */
/* shows: C4 */
static void locker_destroy_held(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("destroy");
    simba_locker *a = locker(one, mutex), *b = locker(two, mutex);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    simba_locker_destroy(a);
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    client_close(two); /* and so does a client that is closed */
    simba_locker *c = locker(one, mutex);
    CHECK_OK(simba_locker_acquire(c, PATIENCE_MS));
    client_close(one);
}

/* A locker and a contender of one mutex exclude each other too. */
/* shows: C1 */
static void locker_and_contender(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("mixed");
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    simba_locker *l = locker(one, mutex);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    probe_start(&p, two, mutex, &o);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_RUNNING, PATIENCE_MS));
    CHECK(!simba_contender_is_owner(p.c));
    CHECK_OK(simba_locker_release(l));
    AWAIT(probe_leads(&p));
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    CHECK_OK(simba_contender_stop(p.c));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(probe_is_idle(&p));
    CHECK(simba_locker_token(l) > atomic_load(&p.token));
    client_close(one);
    client_close(two);
}

static void *acquire_and_end(void *arg)
{
    CHECK_OK(simba_locker_acquire(arg, PATIENCE_MS));
    return NULL;
}

/* Whoever has ended does no work under the lock: closing releases it. */
/* shows: C9 */
static void locker_thread_ended(void)
{
    simba_client *s = client_open(), *other = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("ended");
    simba_locker *l, *next;
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    CHECK_OK(simba_locker_create(other, mutex, &o, &next));
    join(spawn(acquire_and_end, l));
    CHECK(simba_locker_is_held(l));
    CHECK_OK(simba_locker_release(l)); /* another thread may */
    join(spawn(acquire_and_end, l));
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK_OK(simba_locker_acquire(next, PATIENCE_MS));
    client_close(other);
}

const struct test locker_tests[] = {
    {"locker_thread_ended", locker_thread_ended, ANY_STORE, 0},
    {"locker_basics", locker_basics, ANY_STORE, 0},
    {"locker_try", locker_try, ANY_STORE, 0},
    {"locker_timeout", locker_timeout, ANY_STORE, 0},
    {"locker_after_timeout", locker_after_timeout, ANY_STORE, 0},
    {"locker_not_reentrant", locker_not_reentrant, ANY_STORE, 0},
    {"locker_handover", locker_handover, PUSHES, 0},
    {"locker_close_cancels", locker_close_cancels, ANY_STORE, 0},
    {"locker_cancel", locker_cancel, ANY_STORE, 0},
    {"locker_cancel_races", locker_cancel_races, PUSHES, 0},
    {"locker_exclusion", locker_exclusion, PUSHES, 0},
    {"locker_fast_loop", locker_fast_loop, ANY_STORE, 0},
    {"locker_destroy_held", locker_destroy_held, PUSHES, 0},
    {"locker_and_contender", locker_and_contender, PUSHES, 0},
    {NULL, NULL, ANY_STORE, 0},
};
