/* test_timers.c: the heap against a model that looks at all timers each time. */
#include "runtime/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/period.h"

#define TIMERS 200
#define STEPS 50000

struct model {
    struct timers heap;
    struct timer timer[TIMERS];
    int64_t at[TIMERS]; /* what the heap should know; NEVER: not set */
    int64_t now;
    uint64_t random;
};

static int64_t first_of(const struct model *m)
{
    int64_t first = NEVER;
    for (size_t i = 0; i < TIMERS; i++)
        first = m->at[i] < first ? m->at[i] : first;
    return first;
}

static void set(struct model *m, size_t i, int64_t at)
{
    timers_set(&m->heap, &m->timer[i], at);
    m->at[i] = at;
}

/* Takes what is due: each exactly once, the earliest first, none that is not due. */
static void pop_due(struct model *m)
{
    struct timer *t;
    int64_t before = INT64_MIN;
    while ((t = timers_pop(&m->heap, m->now)) != NULL) {
        size_t i = (size_t)(t - m->timer);
        assert_true(i < TIMERS);
        assert_true(m->at[i] <= m->now);
        assert_true(m->at[i] == first_of(m));
        assert_true(m->at[i] >= before);
        before = m->at[i];
        m->at[i] = NEVER;
        assert_null(t->before);
        assert_null(t->child);
        assert_null(t->next);
        assert_null(t->same);
    }
    assert_true(first_of(m) > m->now);
}

static void init(struct model *m, uint64_t seed)
{
    *m = (struct model){.random = seed};
    for (size_t i = 0; i < TIMERS; i++)
        m->at[i] = NEVER;
}

static void no_timer_is_never_due(void **state)
{
    (void)state;
    struct timers t = {.first = NULL};
    struct timer timer = {.at = 0};
    assert_true(timers_next(&t) == NEVER);
    assert_null(timers_pop(&t, NEVER));
    timers_set(&t, &timer, NEVER);
    assert_true(timers_next(&t) == NEVER);
}

static void one_timer_is_set_again_and_unset(void **state)
{
    (void)state;
    struct timers t = {.first = NULL};
    struct timer timer = {.at = 0};
    timers_set(&t, &timer, 5);
    timers_set(&t, &timer, 5);
    assert_int_equal(timers_next(&t), 5);
    timers_set(&t, &timer, 3);
    assert_int_equal(timers_next(&t), 3);
    assert_null(timers_pop(&t, 2));
    assert_ptr_equal(timers_pop(&t, 3), &timer);
    assert_null(timers_pop(&t, NEVER));
    timers_set(&t, &timer, 0);
    assert_int_equal(timers_next(&t), 0);
    timers_set(&t, &timer, NEVER);
    assert_null(timers_pop(&t, NEVER));
}

static void equal_times_are_all_popped(void **state)
{
    (void)state;
    static struct model m;
    init(&m, 1);
    for (size_t i = 0; i < TIMERS; i++)
        set(&m, i, 7);
    m.now = 7;
    pop_due(&m);
}

static void heap_agrees_with_the_model(void **state)
{
    (void)state;
    static struct model m;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        init(&m, seed);
        for (int step = 0; step < STEPS; step++) {
            size_t i = (size_t)rng_between(&m.random, 0, TIMERS);
            int64_t random = rng_between(&m.random, 0, 100);
            if (random < 30)
                set(&m, i, m.now + rng_between(&m.random, -10, 1000));
            else if (random < 60) /* at few instants */
                set(&m, i, (m.now / 100 + rng_between(&m.random, 0, 5)) * 100);
            else if (random < 75)
                set(&m, i, NEVER);
            else if (random < 80)
                set(&m, i, m.at[i]);
            else if (random < 85)
                set(&m, i, first_of(&m));
            else if (random < 90)
                m.now += rng_between(&m.random, 0, 50);
            if (random >= 90)
                pop_due(&m);
            assert_true(timers_next(&m.heap) == first_of(&m));
        }
        m.now = NEVER - 1;
        pop_due(&m);
        assert_null(m.heap.first);
        for (size_t i = 0; i < TIMERS_RECENT; i++)
            assert_null(m.heap.recent[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_timer_is_never_due),
        cmocka_unit_test(one_timer_is_set_again_and_unset),
        cmocka_unit_test(equal_times_are_all_popped),
        cmocka_unit_test(heap_agrees_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
