/* test_date.c: days and dates. */
#include "core/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Counted day by day, 800 years: every rule of the calendar comes in them. */
static void every_day_follows_the_one_before(void **state)
{
    (void)state;
    struct date expected = {1600, 1, 1};
    int64_t days = date_to_days(1600, 1, 1);
    int weekday = 6; /* 1 January 1600 was a Saturday */
    for (; expected.year < 2400; days++, weekday = (weekday + 1) % 7) {
        struct date d = date_of_days(days);
        assert_int_equal(d.year, expected.year);
        assert_int_equal(d.month, expected.month);
        assert_int_equal(d.day, expected.day);
        assert_int_equal(date_to_days(d.year, d.month, d.day), days);
        assert_int_equal(date_weekday(days), weekday);
        if (++expected.day > date_days_in_month(expected.year, expected.month)) {
            expected.day = 1;
            expected.month = expected.month % 12 + 1;
            expected.year += expected.month == 1;
        }
    }
}

static void known_days(void **state)
{
    (void)state;
    assert_int_equal(date_to_days(1970, 1, 1), 0);
    assert_int_equal(date_to_days(2000, 2, 29), 11016);
    assert_int_equal(date_to_days(0, 3, 1), -719468);
    assert_int_equal(date_of_days(-719469).year, 0);
    assert_int_equal(date_weekday(0), 4);
    assert_int_equal(date_weekday(-1), 3);
    assert_true(date_is_leap_year(2000));
    assert_true(date_is_leap_year(2028));
    assert_false(date_is_leap_year(2100));
    assert_false(date_is_leap_year(2027));
    assert_int_equal(date_days_in_month(2028, 2), 29);
    assert_int_equal(date_days_in_month(2100, 2), 28);
}

static void rounds_down(void **state)
{
    (void)state;
    assert_int_equal(date_floor_div(7, 7), 1);
    assert_int_equal(date_floor_div(6, 7), 0);
    assert_int_equal(date_floor_div(-1, 7), -1);
    assert_int_equal(date_floor_div(-7, 7), -1);
    assert_int_equal(date_floor_div(-8, 7), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_follows_the_one_before),
        cmocka_unit_test(known_days),
        cmocka_unit_test(rounds_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
