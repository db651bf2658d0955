/* test_turn.c: turns of a client without a thread of its own, where the test has the baton and
 * stops between two steps. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/client.h"

#define TIMEOUT_MS 100
#define PATIENCE_MS 20000

struct attempt {
    simba_locker *locker;
    int code;
    atomic_bool over;
};

static void *acquire(void *arg)
{
    struct attempt *t = arg;
    t->code = simba_locker_acquire(t->locker, TIMEOUT_MS);
    atomic_store(&t->over, true);
    return NULL;
}

/* The first step of taking a post; 0: the caller was faster. */
static uint32_t take_post(simba_client *s, struct actor *a, struct attempt *t)
{
    uint32_t posts = 0;
    while (posts == 0 && !atomic_load(&t->over)) {
        driver_lock(s);
        posts = a->posts;
        if (posts != 0) {
            s->inbox = (struct inbox){.posts = NULL};
            turn_init(&s->inbox);
            a->posts = 0;
            a->in_inbox = false;
        }
        driver_unlock(s);
    }
    return posts;
}

static simba_client *open_client(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s;
    o.flags = SIMBA_NO_THREAD;
    assert_int_equal(simba_open("memory:", &o, &s), 0);
    return s;
}

static void caller_has_given_up(void **state)
{
    (void)state;
    struct attempt t = {.locker = NULL};
    uint32_t posts = 0;
    simba_client *s = open_client();
    assert_int_equal(simba_locker_create(s, "m", NULL, &t.locker), 0);
    assert_int_equal(simba_poll(s), 0);
    struct actor *a = (struct actor *)(void *)t.locker;
    while (posts == 0) {
        pthread_t thread;
        atomic_store(&t.over, false);
        assert_int_equal(pthread_create(&thread, NULL, acquire, &t), 0);
        posts = take_post(s, a, &t);
        pthread_join(thread, NULL);
        assert_int_equal(t.code, SIMBA_ESTORE); /* nobody has asked the store */
    }
    assert_int_equal(posts, POST_ACQUIRE);
    actor_take_posts(a, posts);
    assert_int_equal(simba_poll(s), 0);
    assert_false(simba_locker_is_held(t.locker));
    assert_int_equal(simba_locker_acquire(t.locker, PATIENCE_MS), 0);
    assert_int_equal(simba_locker_release(t.locker), 0);
    assert_int_equal(simba_close(s, PATIENCE_MS), 0);
}

int __real_uv_run(uv_loop_t *loop, uv_run_mode mode);
int __wrap_uv_run(uv_loop_t *loop, uv_run_mode mode);
static uv_timer_t *last; /* of the next run */

static void hint(uv_timer_t *timer)
{
    simba_client *s = timer->data;
    s->host.hint(&s->host, NULL);
}

/* As libuv since 1.45: a timer that becomes due during a run is the last to run in it. */
int __wrap_uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    int rc = __real_uv_run(loop, mode);
    uv_timer_t *timer = last;
    last = NULL;
    if (timer != NULL) {
        while (uv_timer_get_due_in(timer) > 0)
            uv_update_time(loop);
        uv_timer_stop(timer);
        hint(timer);
    }
    return rc;
}

/* Nobody is told of what a timer of the store's leaves, unless the poll sees to it. */
static void timer_comes_last(void **state)
{
    (void)state;
    uv_timer_t timer;
    simba_client *s = open_client();
    uv_timer_init(&s->loop.uv, &timer);
    timer.data = s;
    uv_timer_start(&timer, hint, 10, 0);
    last = &timer;
    assert_int_equal(simba_poll(s), 0);
    assert_null(last);
    driver_lock(s);
    assert_false(turn_is_wanted_locked(s));
    driver_unlock(s);
    uv_close((uv_handle_t *)&timer, NULL);
    assert_int_equal(simba_close(s, PATIENCE_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caller_has_given_up),
        cmocka_unit_test(timer_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
