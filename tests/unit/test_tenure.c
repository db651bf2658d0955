/* test_tenure.c: others' tenures, seen from outside. */
#include "core/tenure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct tenure seen(char *id, uint64_t token)
{
    return (struct tenure){
        .id = id, .token = token, .acquired_at = 100, .until = 1000, .seen_at = 200, .aged = true};
}

static void tokens_tell_tenures_apart(void **state)
{
    (void)state;
    struct tenure nobody = {.id = NULL}, a = seen("a", 7), b = seen("b", 7), again = seen("a", 8);
    struct tenure renewed = seen("a", 7);
    renewed.until = 5000;
    renewed.acquired_at = 300; /* whatever the store says: tokens count */
    assert_true(tenure_is_same(&nobody, &nobody));
    assert_false(tenure_is_same(&nobody, &a));
    assert_false(tenure_is_same(&a, &nobody));
    assert_false(tenure_is_same(&a, &b));
    assert_false(tenure_is_same(&a, &again));
    assert_true(tenure_is_same(&a, &renewed));
}

/* A foreign client's: the store does not know its token. */
static void without_tokens_the_beginning_tells(void **state)
{
    (void)state;
    struct tenure a = seen("a", 0), renewed = seen("a", 0), again = seen("a", 0);
    struct tenure unaged = seen("a", 0), known = seen("a", 7);
    renewed.acquired_at = 200; /* as late as the last sighting: it may be the same */
    again.acquired_at = 201;
    unaged.aged = false;
    unaged.acquired_at = 500;
    assert_true(tenure_is_same(&a, &renewed));
    assert_false(tenure_is_same(&a, &again));
    assert_true(tenure_is_same(&a, &unaged));
    assert_true(tenure_is_same(&a, &known));
    assert_true(tenure_is_same(&known, &a));
}

static void ends_have_reasons(void **state)
{
    (void)state;
    struct tenure a = seen("a", 7);
    assert_int_equal(tenure_end(&a, 999), SIMBA_RELEASED);
    assert_int_equal(tenure_end(&a, 1000), SIMBA_EXPIRED);
    a.evicted = true;
    assert_int_equal(tenure_end(&a, 999), SIMBA_EVICTED);
    assert_int_equal(tenure_end(&a, 1000), SIMBA_EVICTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_tell_tenures_apart),
        cmocka_unit_test(without_tokens_the_beginning_tells),
        cmocka_unit_test(ends_have_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
