/* test_rng.c: a seed gives the same numbers again, and they stay within their bounds. */
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The first numbers of splitmix64 as its author published them. */
static void sequence_is_that_of_splitmix64(void **state)
{
    (void)state;
    uint64_t random = 1234567;
    assert_true(rng_next(&random) == UINT64_C(6457827717110365317));
    assert_true(rng_next(&random) == UINT64_C(3203168211198807973));
    assert_true(rng_next(&random) == UINT64_C(9817491932198370423));
    assert_true(rng_next(&random) == UINT64_C(4593380528125082431));
    assert_true(rng_next(&random) == UINT64_C(16408922859458223821));
}

static void all_between_the_bounds_and_nothing_else(void **state)
{
    (void)state;
    uint64_t random = 1;
    int seen[10] = {0};
    for (int i = 0; i < 10000; i++) {
        int64_t value = rng_between(&random, -5, 5);
        assert_true(value >= -5 && value < 5);
        seen[value + 5]++;
    }
    for (size_t i = 0; i < 10; i++)
        assert_in_range(seen[i], 850, 1150);
}

static void nothing_between_is_the_lower_bound_and_costs_no_throw(void **state)
{
    (void)state;
    uint64_t random = 7;
    assert_int_equal(rng_between(&random, 42, 42), 42);
    assert_int_equal(random, 7);
    assert_int_equal(rng_between(&random, 42, 43), 42);
}

static void one_seed_one_sequence(void **state)
{
    (void)state;
    uint64_t a = 9, b = 9, c = 10;
    assert_true(rng_next(&a) == rng_next(&b));
    assert_true(rng_next(&a) != rng_next(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence_is_that_of_splitmix64),
        cmocka_unit_test(all_between_the_bounds_and_nothing_else),
        cmocka_unit_test(nothing_between_is_the_lower_bound_and_costs_no_throw),
        cmocka_unit_test(one_seed_one_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
