/* test_executor.c: threads for callbacks: as many as are needed, up to the limit, and no job is
 * forgotten. */
#include "runtime/executor.h"

#include <sched.h>
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/futex.h"
#include "core/period.h"

#define JOBS (EXECUTOR_THREADS_MAX + 50)
#define PATIENCE (INT64_C(20000) * NS_PER_MS)

static struct {
    _Atomic uint32_t begun, ended, gate; /* futexes */
} world;

static void add(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    futex_wake(word);
}

static void await(_Atomic uint32_t *word, uint32_t least)
{
    int64_t until = clock_now() + PATIENCE;
    for (uint32_t now; (now = atomic_load(word)) < least;)
        assert_true(futex_wait(word, now, until));
}

static void run(void *arg)
{
    (void)arg;
    add(&world.begun);
    (void)futex_wait(&world.gate, 0, clock_now() + PATIENCE);
    add(&world.ended);
}

static size_t threads_of(struct executor *x)
{
    pthread_mutex_lock(&x->lock);
    size_t threads = x->threads;
    pthread_mutex_unlock(&x->lock);
    return threads;
}

static bool is_idle(struct executor *x)
{
    pthread_mutex_lock(&x->lock);
    bool yes = x->idle == x->threads;
    pthread_mutex_unlock(&x->lock);
    return yes;
}

static void begin(struct executor *x)
{
    atomic_store(&world.begun, 0);
    atomic_store(&world.ended, 0);
    atomic_store(&world.gate, 0);
    assert_int_equal(executor_init(x, "test", 1, EXECUTOR_THREADS_MAX), 0);
    assert_int_equal(threads_of(x), 1);
    while (!is_idle(x)) /* or the first job gets another thread */
        sched_yield();
}

static void end(struct executor *x)
{
    assert_true(executor_stop(x, clock_now() + PATIENCE));
    executor_free(x);
}

/* Each job that hangs has a thread of its own, so the next one does not wait for it. */
static void grows_with_what_hangs(void **state)
{
    (void)state;
    static struct job jobs[20];
    struct executor x;
    begin(&x);
    for (uint32_t i = 0; i < 20; i++) {
        jobs[i] = (struct job){.run = run};
        executor_submit(&x, &jobs[i]);
        await(&world.begun, i + 1);
    }
    assert_int_equal(threads_of(&x), 20);
    futex_set(&world.gate, 1);
    end(&x);
    assert_int_equal(atomic_load(&world.ended), 20);
}

/* Over the limit they queue; none is lost. */
static void stops_at_the_limit(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    struct executor x;
    begin(&x);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.run = run};
        executor_submit(&x, &jobs[i]);
    }
    await(&world.begun, EXECUTOR_THREADS_MAX);
    assert_int_equal(threads_of(&x), EXECUTOR_THREADS_MAX);
    assert_int_equal(atomic_load(&world.begun), EXECUTOR_THREADS_MAX);
    futex_set(&world.gate, 1);
    await(&world.ended, JOBS);
    assert_int_equal(threads_of(&x), EXECUTOR_THREADS_MAX);
    end(&x);
    assert_int_equal(atomic_load(&world.begun), JOBS);
}

/* Asked to stop, it says that something hangs; asked again, it waits for what was queued. */
static void stop_is_asked_again(void **state)
{
    (void)state;
    struct job job = {.run = run};
    struct executor x;
    begin(&x);
    executor_submit(&x, &job);
    await(&world.begun, 1);
    assert_false(executor_stop(&x, clock_now()));
    assert_false(executor_stop(&x, clock_now() + NS_PER_MS));
    futex_set(&world.gate, 1);
    end(&x);
    assert_int_equal(atomic_load(&world.ended), 1);
}

/* None stays, each job has a thread, and no job waits for one that hangs. */
static void grows_from_nothing(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    struct executor x;
    atomic_store(&world.begun, 0);
    atomic_store(&world.ended, 0);
    atomic_store(&world.gate, 0);
    assert_int_equal(executor_init(&x, "test", 0, SIZE_MAX), 0);
    assert_int_equal(threads_of(&x), 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.run = run};
        assert_int_equal(executor_submit(&x, &jobs[i]), 0);
    }
    await(&world.begun, JOBS);
    assert_int_equal(threads_of(&x), JOBS);
    futex_set(&world.gate, 1);
    end(&x);
    assert_int_equal(atomic_load(&world.ended), JOBS);
}

/* A job for which there is no thread is refused, not forgotten in the queue. */
static void refuses_without_thread(void **state)
{
    (void)state;
    struct job job = {.run = run};
    struct executor x;
    pthread_attr_t attr;
    size_t usual;
    atomic_store(&world.begun, 0);
    atomic_store(&world.gate, 1);
    assert_int_equal(executor_init(&x, "test", 0, SIZE_MAX), 0);
    assert_int_equal(pthread_getattr_default_np(&attr), 0);
    assert_int_equal(pthread_attr_getstacksize(&attr, &usual), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 46), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    assert_int_equal(executor_submit(&x, &job), SIMBA_ELIMIT);
    assert_int_equal(pthread_attr_setstacksize(&attr, usual), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    assert_int_equal(executor_submit(&x, &job), 0);
    await(&world.begun, 1);
    end(&x);
    assert_int_equal(atomic_load(&world.begun), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_with_what_hangs),  cmocka_unit_test(stops_at_the_limit),
        cmocka_unit_test(stop_is_asked_again),    cmocka_unit_test(grows_from_nothing),
        cmocka_unit_test(refuses_without_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
