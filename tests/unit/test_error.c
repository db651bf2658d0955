/* test_error.c: every code has its text, and no other number has one; texts are safe to show. */
#include <limits.h>
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/error.h"

static void every_code_has_its_text(void **state)
{
    (void)state;
#define CHECK(name, code, text)                      \
    assert_int_equal(SIMBA_E##name, code);           \
    assert_string_equal(simba_strerror(code), text); \
    last = code;
    int last = 0;
    SIMBA_ERRORS(CHECK)
    assert_string_equal(simba_strerror(0), "success");
    assert_string_equal(simba_strerror(last - 1), "unknown error");
}

static void cause_is_without_mutex_and_store(void **state)
{
    (void)state;
    assert_int_equal(error_on(SIMBA_EHELD, "m", "redis://a", "held by %s", "b\n"), SIMBA_EHELD);
    assert_string_equal(simba_error_text(), "mutex 'm' on redis://a: held by b\\x0a");
    assert_string_equal(simba_error_cause(), "held by b\\x0a");
    error_on(SIMBA_EINVAL, "m", NULL, "wrong");
    assert_string_equal(simba_error_text(), "mutex 'm': wrong");
    assert_string_equal(simba_error_cause(), "wrong");
    error_at(SIMBA_ESTORE, "cannot list", "redis://a", "away");
    assert_string_equal(simba_error_text(), "cannot list on redis://a: away");
    assert_string_equal(simba_error_cause(), "away");
    error_say(SIMBA_EINVAL, "all: of it");
    assert_string_equal(simba_error_cause(), "all: of it");
}

static void no_two_codes_share_a_text(void **state)
{
    (void)state;
    for (int a = SIMBA_ECANCELED; a <= 0; a++)
        for (int b = SIMBA_ECANCELED; b < a; b++)
            assert_string_not_equal(simba_strerror(a), simba_strerror(b));
}

static void other_numbers_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(simba_strerror(1), "unknown error");
    assert_string_equal(simba_strerror(INT_MIN), "unknown error");
    assert_string_equal(simba_strerror(INT_MAX), "unknown error");
}

static void what_others_wrote_is_escaped(void **state)
{
    (void)state;
    assert_int_equal(error_say(SIMBA_EHELD, "held by %s", "a\x1b[31m\n\xff\u00e4"), SIMBA_EHELD);
    assert_string_equal(simba_error_text(), "held by a\\x1b[31m\\x0a\\xff\u00e4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_wrote_is_escaped),
        cmocka_unit_test(every_code_has_its_text),
        cmocka_unit_test(cause_is_without_mutex_and_store),
        cmocka_unit_test(no_two_codes_share_a_text),
        cmocka_unit_test(other_numbers_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
