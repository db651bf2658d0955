/* test_cron.c: which cron expressions there are, and what is said of others. */
#include "core/cron.h"

#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BITS(n) ((UINT64_C(1) << (n)) - 1)

static struct cron parse(const char *text)
{
    struct cron c;
    char why[CRON_WHY_SIZE];
    if (cron_parse(&c, text, why, sizeof why) != 0)
        fail_msg("'%s': %s", text, why);
    return c;
}

static void fields_are_sets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t minutes;
        uint32_t hours, days, months;
        uint8_t weekdays;
    } cases[] = {
        {"* * * * *", BITS(60), BITS(24), BITS(32) - 1, BITS(13) - 1, BITS(7)},
        {"0 0 1 1 *", 1, 1, 2, 2, BITS(7)},
        {"  5\t6 7  8 2 ", 32, 64, 128, 256, 4},
        {"*/20 9-17/4 1-31/10 */6 *", 1 | 1 << 20 | UINT64_C(1) << 40, 1 << 9 | 1 << 13 | 1 << 17,
         1 << 1 | 1 << 11 | 1 << 21 | UINT32_C(1) << 31, 1 << 1 | 1 << 7, BITS(7)},
        {"1,2,59 23 1 jan,DEC sun", 6 | UINT64_C(1) << 59, 1 << 23, 2, 2 | 1 << 12, 1},
        {"0 0 * Mar-may Mon-FRI", 1, 1, BITS(32) - 1, 7 << 3, 62},
        {"0 0 * * 7", 1, 1, BITS(32) - 1, BITS(13) - 1, 1},
        {"0 0 * * 5-7", 1, 1, BITS(32) - 1, BITS(13) - 1, 1 | 32 | 64},
        {"0 0 * * fri-sun", 1, 1, BITS(32) - 1, BITS(13) - 1, 1 | 32 | 64},
        {"0 0 * * 0-0", 1, 1, BITS(32) - 1, BITS(13) - 1, 1},
        {"0 0 * * */7", 1, 1, BITS(32) - 1, BITS(13) - 1, 1},
        {"*/60 */24 */31 */12 *", 1, 1, 2, 2, BITS(7)},
        {"059 000000 1 1 *", UINT64_C(1) << 59, 1, 2, 2, BITS(7)},
        {"@hourly", 1, BITS(24), BITS(32) - 1, BITS(13) - 1, BITS(7)},
        {"@daily", 1, 1, BITS(32) - 1, BITS(13) - 1, BITS(7)},
        {" @midnight\t ", 1, 1, BITS(32) - 1, BITS(13) - 1, BITS(7)},
        {"@weekly", 1, 1, BITS(32) - 1, BITS(13) - 1, 1},
        {"@monthly", 1, 1, 2, BITS(13) - 1, BITS(7)},
        {"@yearly", 1, 1, 2, 2, BITS(7)},
        {"@annually", 1, 1, 2, 2, BITS(7)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cron c = parse(cases[i].text);
        assert_int_equal(c.minutes, cases[i].minutes);
        assert_int_equal(c.hours, cases[i].hours);
        assert_int_equal(c.days, cases[i].days);
        assert_int_equal(c.months, cases[i].months);
        assert_int_equal(c.weekdays, cases[i].weekdays);
    }
}

static void what_begins_with_a_star(void **state)
{
    (void)state;
    struct cron c = parse("*/5 * 1 1 *");
    assert_true(c.any_minute && c.any_hour && !c.any_day && c.any_weekday);
    c = parse("0-59 0-23 */2 * 1");
    assert_true(!c.any_minute && !c.any_hour && c.any_day && !c.any_weekday);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "minute: this field is missing; there are five: minute, hour, day of the month, "
             "month, day of the week"},
        {"* * * *", "day of the week: this field is missing; there are five: minute, hour, day "
                    "of the month, month, day of the week"},
        {"* * * * * *", "there is something after the fifth field, the day of the week"},
        {"60 * * * *", "minute: '60' is not between 0 and 59"},
        {"* 24 * * *", "hour: '24' is not between 0 and 23"},
        {"* * 0 * *", "day of the month: '0' is not between 1 and 31"},
        {"* * 32 * *", "day of the month: '32' is not between 1 and 31"},
        {"* * * 13 *", "month: '13' is not between 1 and 12"},
        {"* * * * 8", "day of the week: '8' is not between 0 and 7"},
        {"99999999999999999999 * * * *", "minute: '99999999999999999999' is not between 0 and 59"},
        {"x * * * *", "minute: 'x' is no value of it"},
        {"5x * * * *", "minute: '5x' is no value of it"},
        {"jan * * * *", "minute: 'jan' is no value of it"},
        {"* * * sun *", "month: 'sun' is no value of it"},
        {"* * * 123 *", "month: '123' is not between 1 and 12"},
        {"* * * janu *", "month: 'janu' is no value of it"},
        {"* * * ja\xc3\xa4 *", "month: 'ja\xc3\xa4' is no value of it"},
        {"* * L * *", "day of the month: 'L' is no value of it"},
        {"* * ? * *", "day of the month: '?' is no value of it"},
        {"\x1b * * * *", "minute: '\\x1b' is no value of it"},
        {"-1 * * * *", "minute: a value is missing"},
        {"1- * * * *", "minute: a value is missing"},
        {"1-60 * * * *", "minute: '60' is not between 0 and 59"},
        {", * * * *", "minute: a value is missing"},
        {"1,,2 * * * *", "minute: a value is missing"},
        {"1, * * * *", "minute: a value is missing"},
        {"9-5 * * * *", "minute: '9-5' is a range from high to low"},
        {"* * * * sat-mon", "day of the week: 'sat-mon' is a range from high to low"},
        {"5/15 * * * *", "minute: a step needs a range or * before it, as in 10-59/5"},
        {"*/ * * * *", "minute: the step after / is missing"},
        {"*/x * * * *", "minute: the step after / is missing"},
        {"*/0 * * * *", "minute: '/0' is not a step within it"},
        {"*/61 * * * *", "minute: '/61' is not a step within it"},
        {"*5 * * * *", "minute: '*5' cannot be understood"},
        {"1-5-7 * * * *", "minute: '1-5-7' cannot be understood"},
        {"*/5/2,7 * * * *", "minute: '*/5/2' cannot be understood"},
        {"@daily 3", "of the names with @ there are @hourly, @daily, @midnight, @weekly, @monthly, "
                     "@yearly and @annually"},
        {"@reboot", "of the names with @ there are @hourly, @daily, @midnight, @weekly, @monthly, "
                    "@yearly and @annually"},
        {"0 0 30 2 *", "it never comes: none of its months has such a day"},
        {"0 0 31 2,4,6,9,11 *", "it never comes: none of its months has such a day"},
        {"0 0 30,31 feb */2", "it never comes: none of its months has such a day"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cron c;
        char why[CRON_WHY_SIZE];
        assert_int_equal(cron_parse(&c, cases[i][0], why, sizeof why), SIMBA_EINVAL);
        assert_string_equal(why, cases[i][1]);
    }
}

static void its_length_has_a_limit(void **state)
{
    (void)state;
    struct cron c;
    char why[CRON_WHY_SIZE], text[CRON_TEXT_MAX + 2];
    memset(text, ' ', sizeof text);
    memcpy(text, "0 0 * * *", 9);
    text[CRON_TEXT_MAX] = '\0';
    assert_int_equal(cron_parse(&c, text, why, sizeof why), 0);
    text[CRON_TEXT_MAX] = ' ';
    text[CRON_TEXT_MAX + 1] = '\0';
    assert_int_equal(cron_parse(&c, text, why, sizeof why), SIMBA_EINVAL);
    assert_string_equal(why, "it is longer than 256 bytes");
}

/* Rare is not never. */
static void what_comes_seldom_is_taken(void **state)
{
    (void)state;
    parse("0 0 29 2 *");
    parse("0 0 31 2,3 *");
    parse("0 0 30 2 1"); /* or Mondays in February */
    parse("0 0 */30 2 *");
}

static void one_of_two_restricted_days_is_enough(void **state)
{
    (void)state;
    struct cron c = parse("0 0 13 * 5");
    assert_true(cron_has_day(&c, 1, 13, 0));
    assert_true(cron_has_day(&c, 1, 14, 5));
    assert_true(cron_has_day(&c, 1, 13, 5));
    assert_false(cron_has_day(&c, 1, 14, 4));
    c = parse("0 0 * 2 5");
    assert_true(cron_has_day(&c, 2, 1, 5));
    assert_false(cron_has_day(&c, 2, 1, 4));
    assert_false(cron_has_day(&c, 3, 1, 5));
    c = parse("0 0 */2 * 5"); /* it begins with a star: both must fit */
    assert_true(cron_has_day(&c, 1, 3, 5));
    assert_false(cron_has_day(&c, 1, 2, 5));
    assert_false(cron_has_day(&c, 1, 3, 4));
    c = parse("0 0 5 * */2");
    assert_true(cron_has_day(&c, 1, 5, 2));
    assert_false(cron_has_day(&c, 1, 5, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_sets),
        cmocka_unit_test(what_begins_with_a_star),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(its_length_has_a_limit),
        cmocka_unit_test(what_comes_seldom_is_taken),
        cmocka_unit_test(one_of_two_restricted_days_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
