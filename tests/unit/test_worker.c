/* test_worker.c: the thread of a store that blocks, while other threads work in its place. */
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "backend/worker.h"

#define TICK_MS 20

struct slow_store {
    struct worker worker;
    sem_t looked, ended;
    int answered;
};

/* Takes a while, in which the thread comes and finds it busy. */
static struct simba_request *run_slowly(void *store, struct simba_request **batch, bool patient)
{
    struct slow_store *s = store;
    struct simba_request *all = *batch;
    int64_t until = simba_now() + TICK_MS / 2;
    (void)patient;
    *batch = NULL;
    worker_tick(&s->worker, TICK_MS, true);
    while (simba_now() < until)
        sched_yield();
    return all;
}

static void answer_slowly(void *store, struct simba_request *done)
{
    for (; done != NULL; done = done->next)
        ((struct slow_store *)store)->answered++;
}

static void look_slowly(void *store)
{
    sem_post(&((struct slow_store *)store)->looked);
}

static void end_slowly(void *store)
{
    sem_post(&((struct slow_store *)store)->ended);
}

static bool comes(sem_t *sem)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    return sem_timedwait(sem, &until) == 0;
}

/* Another thread works in place of the worker's, which is needed meanwhile. After that nobody works:
 * still it ticks, and ends. */
static void worker_ticks_after_help(void **state)
{
    (void)state;
    struct simba_request q = {.mutex = "q"};
    struct slow_store s = {.worker = {.store = &s,
                                      .run = run_slowly,
                                      .answer = answer_slowly,
                                      .idle = look_slowly,
                                      .end = end_slowly}};
    sem_init(&s.looked, 0, 0);
    sem_init(&s.ended, 0, 0);
    worker_init(&s.worker, "test");
    worker_submit(&s.worker, &q);
    worker_work(&s.worker, true);
    assert_int_equal(s.answered, 1);
    assert_true(comes(&s.looked));
    assert_true(comes(&s.looked));
    worker_stop(&s.worker);
    assert_true(comes(&s.ended));
    worker_join(&s.worker);
    sem_destroy(&s.looked);
    sem_destroy(&s.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(worker_ticks_after_help)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
