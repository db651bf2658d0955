/* test_zone.c: time zones: files that are right and wrong, rules, and what is in force when. */
#include "core/zone.h"

#include <simba.h>

#include "core/date.h"
#include "unit/zones.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HOUR 3600

static struct zone zone;
static struct zone_bytes bytes;

static int64_t at(int64_t year, int month, int day, int hour, int minute)
{
    return date_to_days(year, month, day) * 86400 + hour * HOUR + minute * 60;
}

static void utc_is_without_change(void **state)
{
    (void)state;
    int64_t until;
    zone_init_utc(&zone);
    assert_int_equal(zone_offset(&zone, 0, &until), 0);
    assert_int_equal(until, ZONE_FOREVER);
}

static void a_table_of_changes(void **state)
{
    (void)state;
    static const struct zone_change changes[] = {
        {1000, 3600}, {2000, 7200}, {2500, 7200}, {3000, 3600}};
    int64_t until;
    const char *why;
    zone_make_file(&bytes, 500, changes, COUNT(changes), "");
    assert_int_equal(zone_parse(&zone, bytes.at, bytes.size, &why), 0);
    assert_int_equal(zone.changes, 3); /* one changes nothing */
    assert_int_equal(zone_offset(&zone, 999, &until), 500);
    assert_int_equal(until, 1000);
    assert_int_equal(zone_offset(&zone, 1000, &until), 3600);
    assert_int_equal(until, 2000);
    assert_int_equal(zone_offset(&zone, 2999, &until), 7200);
    assert_int_equal(until, 3000);
    assert_int_equal(zone_offset(&zone, 3000, &until), 3600);
    assert_int_equal(until, ZONE_FOREVER);
}

/* The last one is kept, as the rule begins there. */
static void the_last_change_stays(void **state)
{
    (void)state;
    static const struct zone_change changes[] = {{1000, 3600}, {2000, 3600}};
    int64_t until;
    const char *why;
    zone_make_file(&bytes, 0, changes, COUNT(changes), "AAA-2");
    assert_int_equal(zone_parse(&zone, bytes.at, bytes.size, &why), 0);
    assert_int_equal(zone_offset(&zone, 1999, &until), 3600);
    assert_int_equal(zone_offset(&zone, 2000, &until), 7200);
}

/* After the last change the rule holds, before it the table, whatever the rule says. */
static void a_table_and_a_rule(void **state)
{
    (void)state;
    struct zone_change changes[] = {{at(2020, 1, 1, 0, 0), 3600}};
    int64_t until;
    const char *why;
    zone_make_file(&bytes, 0, changes, 1, "CET-1CEST,M3.5.0,M10.5.0/3");
    assert_int_equal(zone_parse(&zone, bytes.at, bytes.size, &why), 0);
    assert_int_equal(zone_offset(&zone, at(2019, 7, 1, 0, 0), &until), 0);
    assert_int_equal(until, changes[0].at);
    assert_int_equal(zone_offset(&zone, at(2020, 2, 1, 0, 0), &until), HOUR);
    assert_int_equal(until, at(2020, 3, 29, 1, 0));
    assert_int_equal(zone_offset(&zone, at(2020, 7, 1, 0, 0), &until), 2 * HOUR);
    assert_int_equal(until, at(2020, 10, 25, 1, 0));
}

/* Where and when summer time begins and ends in 2027, in UTC. */
static void rules(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int32_t standard, summer;
        struct date begin, end;
        int begin_hour, end_hour;
    } cases[] = {
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1, 2, {2027, 3, 28}, {2027, 10, 31}, 1, 1},
        {"EST5EDT,M3.2.0,M11.1.0", -5, -4, {2027, 3, 14}, {2027, 11, 7}, 7, 6},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 10, 11, {2027, 10, 2}, {2027, 4, 3}, 16, 16},
        {"<-03>+3<-02>,M3.5.0/-2,M10.5.0/-1", -3, -2, {2027, 3, 28}, {2027, 10, 31}, 1, 1},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1, 0, {2027, 10, 31}, {2027, 3, 28}, 1, 1},
        {"AAA0BBB-1,J60/0,J300/1", 0, 1, {2027, 3, 1}, {2027, 10, 27}, 0, 0},
        {"AAA0BBB,59/0,299/1:00:00", 0, 1, {2027, 3, 1}, {2027, 10, 27}, 0, 0},
        {"AAA0BBB,M3.1.4/26,M11.5.1/25:0", 0, 1, {2027, 3, 5}, {2027, 11, 30}, 2, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct date *b = &cases[i].begin, *e = &cases[i].end;
        int64_t begin = at(b->year, b->month, b->day, cases[i].begin_hour, 0), until;
        int64_t end = at(e->year, e->month, e->day, cases[i].end_hour, 0);
        zone_of_rule(&zone, cases[i].rule);
        assert_int_equal(zone_offset(&zone, begin - 1, &until), cases[i].standard * HOUR);
        assert_int_equal(until, begin);
        assert_int_equal(zone_offset(&zone, begin, &until), cases[i].summer * HOUR);
        assert_int_equal(zone_offset(&zone, end - 1, &until), cases[i].summer * HOUR);
        assert_int_equal(until, end);
        assert_int_equal(zone_offset(&zone, end, &until), cases[i].standard * HOUR);
    }
}

/* The 29th of February is day 59 of a leap year; J60 is the first of March in every year. */
static void days_of_a_leap_year(void **state)
{
    (void)state;
    int64_t until;
    zone_of_rule(&zone, "AAA0BBB,J60/0,J59/0");
    zone_offset(&zone, at(2028, 2, 28, 12, 0), &until);
    assert_int_equal(until, at(2028, 3, 1, 0, 0));
    zone_of_rule(&zone, "AAA0BBB,59/0,300/0");
    zone_offset(&zone, at(2028, 2, 28, 12, 0), &until);
    assert_int_equal(until, at(2028, 2, 29, 0, 0));
}

static void a_rule_without_summer(void **state)
{
    (void)state;
    int64_t until;
    zone_of_rule(&zone, "<+0530>-5:30");
    assert_int_equal(zone_offset(&zone, at(2027, 7, 1, 0, 0), &until), 5 * HOUR + 1800);
    assert_int_equal(until, ZONE_FOREVER);
    zone_of_rule(&zone, "LMT+0:19:32");
    assert_int_equal(zone_offset(&zone, 0, &until), -(19 * 60 + 32));
}

/* RFC 8536, 3.3.1: summer time all the year. */
static void a_rule_with_nothing_but_summer(void **state)
{
    (void)state;
    int64_t until, now = at(2027, 1, 1, 0, 0);
    zone_of_rule(&zone, "Aaz0Bbz,J365/24,J1/1");
    assert_int_equal(zone_offset(&zone, now - 1, &until), HOUR);
    assert_int_equal(until, now);
    assert_int_equal(zone_offset(&zone, now, &until), HOUR);
    zone_of_rule(&zone, "EST5EDT,0/0,J365/25");
    for (int i = 0; i < 10; i++, now = until) {
        assert_int_equal(zone_offset(&zone, now - 1, &until), -4 * HOUR);
        assert_int_equal(zone_offset(&zone, now, &until), -4 * HOUR);
        assert_true(until > now);
    }
}

/* Up to a week outside of the year that they belong to. */
static void times_far_from_their_day(void **state)
{
    (void)state;
    int64_t until;
    zone_of_rule(&zone, "AAA0BBB,J364/167,J365/167");
    assert_int_equal(zone_offset(&zone, at(2027, 1, 1, 0, 0), &until), 0);
    assert_int_equal(until, at(2027, 1, 5, 23, 0));
    assert_int_equal(zone_offset(&zone, until, &until), HOUR);
    assert_int_equal(until, at(2027, 1, 6, 22, 0));
    zone_of_rule(&zone, "AAA0BBB,0/-167,1/-167");
    assert_int_equal(zone_offset(&zone, at(2027, 12, 31, 0, 0), &until), 0);
    assert_int_equal(until, at(2028, 12, 25, 1, 0));
}

static void rules_that_are_wrong(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "X5",
        "5",
        "<+03-3",
        "<+3>-3",
        "CET",
        "CET-25",
        "CET-1:60",
        "CET-1:00:x",
        "CET-1C",
        "CET-1CEST",
        "CET-1CEST-",
        "CET-1CEST,",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M3.5.0,",
        "CET-1CEST,M3.5.0,M10.5.0/3x",
        "CET-1CEST,M0.5.0,M10.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3,5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5,0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J5",
        "CET-1CEST,J366,J5",
        "CET-1CEST,366,J5",
        "CET-1CEST,x,J5",
        "CET-1CEST,J4/168,J5",
        "CET-1CEST,J4/,J5",
        "CET-1CEST,J4,J0",
        "CET-1CEST,J4J5",
        "CET-1CEST-2",
        "CE_-1",
        "CE~-1",
        "CE@-1",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *why;
        zone_make_file(&bytes, 0, NULL, 0, cases[i]);
        if (zone_parse(&zone, bytes.at, bytes.size, &why) != SIMBA_EINVAL)
            fail_msg("'%s' is taken", cases[i]);
        assert_string_equal(why, "the rule at its end cannot be understood");
    }
}

static void refused(const char *expected)
{
    const char *why = NULL;
    assert_int_equal(zone_parse(&zone, bytes.at, bytes.size, &why), SIMBA_EINVAL);
    assert_string_equal(why, expected);
}

static void files_that_are_wrong(void **state)
{
    (void)state;
    static const struct zone_change changes[] = {{1000, 3600}, {1000, 7200}};
    static char rule[200];
    bytes.size = 0;
    refused("it is not in the format TZif");
    zone_add_header(&bytes, '2', (struct zone_counts){.types = 1});
    memcpy(bytes.at, "TZIF", 4);
    refused("it is not in the format TZif");
    bytes.size = 0;
    zone_add_header(&bytes, '2', (struct zone_counts){.times = -1});
    refused("it is not in the format TZif");
    bytes.size = 0;
    zone_add_header(&bytes, '2', (struct zone_counts){.letters = 100001});
    refused("it is not in the format TZif");
    bytes.size = 0;
    zone_add_header(&bytes, '\0', (struct zone_counts){.types = 0});
    refused("its version of the format TZif is 1; tzdata writes 2 and later");
    bytes.size = 0;
    zone_add_header(&bytes, '2', (struct zone_counts){.types = 1});
    refused("it ends too early");
    zone_make_file(&bytes, 0, changes, 1, "");
    bytes.size = 44 + 10;
    refused("its second part is not in the format TZif");
    bytes.size = 44 + 10 + 44;
    refused("it ends too early");
    bytes.size = 44 + 10;
    zone_add_header(&bytes, '2', (struct zone_counts){.letters = 0});
    refused("it ends too early");
    bytes.size = 44 + 10;
    zone_add_header(&bytes, '2', (struct zone_counts){.types = 1, .leaps = 1});
    zone_add(&bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    refused("it counts leap seconds, which the clock of the machine does not");
    zone_make_file(&bytes, 0, changes, 2, "");
    refused("its times are not in order");
    zone_make_file(&bytes, 0, changes, 1, "");
    bytes.at[44 + 10 + 44 + 8] = 7;
    refused("a type of time is missing");
    zone_make_file(&bytes, ZONE_OFFSET_MAX + 1, NULL, 0, "");
    refused("an offset from UTC is out of bounds");
    zone_make_file(&bytes, -ZONE_OFFSET_MAX - 1, NULL, 0, "");
    refused("an offset from UTC is out of bounds");
    zone_make_file(&bytes, 0, NULL, 0, "");
    bytes.size -= 2;
    refused("the rule at its end is missing");
    zone_add(&bytes, "\n", 1);
    refused("the rule at its end is missing");
    zone_add(&bytes, "x", 1);
    refused("the rule at its end is missing");
    zone_make_file(&bytes, 0, NULL, 0, "");
    bytes.at[bytes.size - 2] = 'x';
    refused("the rule at its end is missing");
    memset(rule, 'A', 129);
    zone_make_file(&bytes, 0, NULL, 0, rule);
    refused("the rule at its end cannot be understood");
    zone_make_file(&bytes, 0, NULL, 0, "CET-1");
    bytes.at[bytes.size - 2] = '\0';
    refused("the rule at its end cannot be understood");
}

static void changes_have_a_limit(void **state)
{
    (void)state;
    static struct zone_change changes[200];
    const char *why;
    /* Types are bytes: few of them, and many changes between two. */
    for (size_t extra = 0; extra < 2; extra++) {
        size_t count = ZONE_CHANGES_MAX + extra;
        zone_make_file(&bytes, 0, changes, 0, "");
        bytes.size = 44 + 10;
        zone_add_header(&bytes, '2', (struct zone_counts){.times = (int64_t)count, .types = 2});
        for (size_t i = 0; i < count; i++)
            zone_add_number(&bytes, (int64_t)i, 8);
        for (size_t i = 0; i < count; i++)
            zone_add_number(&bytes, 1 - (int64_t)i % 2, 1);
        zone_add(&bytes, "\0\0\0\0\0\0\0\0\1\0\0\0\n\n", 14);
        assert_int_equal(zone_parse(&zone, bytes.at, bytes.size, &why), extra ? SIMBA_EINVAL : 0);
        if (extra)
            assert_string_equal(why, "it has more than 1024 changes");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utc_is_without_change),
        cmocka_unit_test(a_table_of_changes),
        cmocka_unit_test(the_last_change_stays),
        cmocka_unit_test(a_table_and_a_rule),
        cmocka_unit_test(rules),
        cmocka_unit_test(days_of_a_leap_year),
        cmocka_unit_test(a_rule_without_summer),
        cmocka_unit_test(a_rule_with_nothing_but_summer),
        cmocka_unit_test(times_far_from_their_day),
        cmocka_unit_test(rules_that_are_wrong),
        cmocka_unit_test(files_that_are_wrong),
        cmocka_unit_test(changes_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
