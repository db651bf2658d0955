/* test_duration.c: durations as people write them, exactly or not at all. */
#include "core/duration.h"

#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void exact_ones_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"0ms", 0},
        {"0.0h", 0},
        {"10", 10000},
        {"0.5", 500},
        {"500ms", 500},
        {"10s", 10000},
        {"1.5s", 1500},
        {"0.001s", 1},
        {"0.3", 300},
        {"1.50000000000000000000000s", 1500},
        {"2.000ms", 2},
        {"5m", 300000},
        {"0.1m", 6000},
        {"1h", 3600000},
        {"0.0000025h", 9},
        {"0.0078125h", 28125}, /* 2 seven times: as fine as hours can be split */
        {"1d", 86400000},
        {"0.5d", 43200000},
        {"0.0009765625d", 84375}, /* 2 ten times */
        {"007s", 7000},
        {"000000000000000000000000000001s", 1000},
        {"315360000000ms", 315360000000},
        {"315360000", 315360000000},
        {"87600h", 315360000000},
        {"3650d", 315360000000},
        {"87599.5h", 315358200000},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;
        const char *why = "unset";
        assert_int_equal(duration_parse(cases[i].text, &ms, &why), 0);
        assert_int_equal(ms, cases[i].ms);
        assert_null(why);
    }
}

static void others_are_refused_by_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text, *rule;
    } cases[] = {
        {"", "is a number"},
        {" ", "is a number"},
        {"abc", "is a number"},
        {"s", "is a number"},
        {"-1s", "is a number"},
        {"+1s", "is a number"},
        {" 1s", "is a number"},
        {".5s", "is a number"},
        {"5.", "is a number"},
        {"5.s", "is a number"},
        {"1..5s", "is a number"},
        {"inf", "is a number"},
        {"1w", "unit"},
        {"1D", "unit"},
        {"1 s", "unit"},
        {"1s ", "unit"},
        {"1S", "unit"},
        {"1sec", "unit"},
        {"1m30s", "unit"},
        {"1.5.5s", "unit"},
        {"1e3", "unit"},
        {"0x10", "unit"},
        {"1,5s", "unit"},
        {"1\xff", "unit"},
        {"0.0001s", "finer"},
        {"1.5ms", "finer"},
        {"0.00001m", "finer"},
        {"0.0000001h", "finer"},
        {"0.00390625h", "finer"},
        {"0.00000001h", "finer"},
        {"0.00000000001d", "finer"}, /* eleven digits */
        {"0.00048828125d", "finer"},
        {"0.1234567890123456789012345678901234567890h", "finer"},
        {"315360000001ms", "ten years"},
        {"315360000.001", "ten years"},
        {"87600.5h", "ten years"},
        {"87601h", "ten years"},
        {"3650.5d", "ten years"},
        {"3651d", "ten years"},
        {"3000000000000h", "ten years"}, /* in milliseconds beyond 64 bits */
        {"9223372036854775807ms", "ten years"},
        {"9223372036854775808ms", "ten years"},
        {"18446744073709551616", "ten years"},
        {"18446744073709551617ms", "ten years"},
        {"99999999999999999999999999999999999999999999h", "ten years"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;
        const char *why = NULL;
        assert_int_equal(duration_parse(cases[i].text, &ms, &why), SIMBA_EINVAL);
        assert_int_equal(ms, -1);
        assert_non_null(why);
        assert_non_null(strstr(why, cases[i].rule));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_ones_are_taken),
        cmocka_unit_test(others_are_refused_by_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
