/* test_turn.c: a note that is out of date when its turn comes. The client has no thread: the test has
 * the baton, and stops between the two steps of taking a note. */
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

/* The first step; 0: the caller was faster. */
static uint32_t take_note(simba *s, struct actor *a, struct attempt *t)
{
    uint32_t notes = 0;
    while (notes == 0 && !atomic_load(&t->over)) {
        driver_lock(s);
        notes = a->notes;
        if (notes != 0) {
            s->inbox = (struct inbox){.notes = NULL};
            turn_init(&s->inbox);
            a->notes = 0;
            a->in_inbox = false;
        }
        driver_unlock(s);
    }
    return notes;
}

static void caller_has_given_up(void **state)
{
    (void)state;
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct attempt t = {.locker = NULL};
    uint32_t notes = 0;
    simba *s;
    o.flags = SIMBA_NO_THREAD;
    assert_int_equal(simba_open("memory:", &o, &s), 0);
    assert_int_equal(simba_locker_create(s, "m", NULL, &t.locker), 0);
    assert_int_equal(simba_poll(s), 0);
    struct actor *a = (struct actor *)(void *)t.locker;
    while (notes == 0) {
        pthread_t thread;
        atomic_store(&t.over, false);
        assert_int_equal(pthread_create(&thread, NULL, acquire, &t), 0);
        notes = take_note(s, a, &t);
        pthread_join(thread, NULL);
        assert_int_equal(t.code, SIMBA_ETIMEOUT);
    }
    assert_int_equal(notes, NOTE_ACQUIRE);
    actor_take_notes(a, notes);
    assert_int_equal(simba_poll(s), 0);
    assert_false(simba_locker_is_held(t.locker));
    assert_int_equal(simba_locker_acquire(t.locker, PATIENCE_MS), 0);
    assert_int_equal(simba_locker_release(t.locker), 0);
    assert_int_equal(simba_close(s, PATIENCE_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caller_has_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
