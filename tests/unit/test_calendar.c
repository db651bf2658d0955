/* test_calendar.c: when cron expressions come: leap years, weekdays, and the nights in which clocks
 * are changed, in five zones. */
#include "core/calendar.h"

#include "core/date.h"
#include "core/ticks.h"
#include "unit/zones.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UTC "UTC0"
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define SYDNEY "AEST-10AEDT,M10.1.0,M4.1.0/3"
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0" /* by half an hour */
#define DUBLIN "IST-1GMT0,M10.5.0,M3.5.0/1"              /* summer is the standard */
#define SANTIAGO "<-04>4<-03>,M9.1.6/24,M4.1.6/24"       /* at midnight */

static struct zone zone;

static int64_t tick_of(const char *text)
{
    int64_t tick;
    if (!tick_read(text, strlen(text), &tick))
        fail_msg("'%s' is no time", text);
    return tick;
}

/* The ticks after `after`, as many as there are, in UTC. */
static void expect(const char *rule, const char *text, const char *after,
                   const char *const *expected)
{
    struct cron c;
    char why[CRON_WHY_SIZE], found[TICK_TEXT_SIZE];
    int64_t tick = tick_of(after);
    zone_of_rule(&zone, rule);
    assert_int_equal(cron_parse(&c, text, why, sizeof why), 0);
    for (size_t i = 0; expected[i] != NULL; i++) {
        tick = calendar_next(&c, &zone, tick);
        tick_write(found, tick);
        if (strcmp(found, expected[i]) != 0)
            fail_msg("'%s' in %s after %s: tick %zu is %s, not %s", text, rule, after, i, found,
                     expected[i]);
    }
}

#define EXPECT(rule, text, after, ...) \
    expect(rule, text, after, (const char *const[]){__VA_ARGS__, NULL})

static void plain_days(void **state)
{
    (void)state;
    EXPECT(UTC, "* * * * *", "2027-01-31T23:59:59.999Z", "2027-02-01T00:00:00Z",
           "2027-02-01T00:01:00Z");
    EXPECT(UTC, "* * * * *", "2027-01-31T23:59:00Z", "2027-02-01T00:00:00Z");
    EXPECT(UTC, "*/20 8-10/2 * * *", "2027-05-05T08:39:00Z", "2027-05-05T08:40:00Z",
           "2027-05-05T10:00:00Z", "2027-05-05T10:20:00Z", "2027-05-05T10:40:00Z",
           "2027-05-06T08:00:00Z");
    EXPECT(UTC, "30 3 * * mon-fri", "2027-01-01T03:30:00Z", "2027-01-04T03:30:00Z");
    EXPECT(UTC, "0 0 1 jan,jul *", "2027-01-01T00:00:00Z", "2027-07-01T00:00:00Z",
           "2028-01-01T00:00:00Z");
    EXPECT(UTC, "0 12 13 * 5", "2027-01-01T12:00:00Z", "2027-01-08T12:00:00Z",
           "2027-01-13T12:00:00Z", "2027-01-15T12:00:00Z");
    EXPECT(UTC, "0 0 31 * *", "2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z",
           "2027-05-31T00:00:00Z");
    EXPECT(UTC, "@weekly", "2027-01-01T00:00:00Z", "2027-01-03T00:00:00Z");
    EXPECT(UTC, "0 0 1 1 *", "1970-01-01T00:00:00Z", "1971-01-01T00:00:00Z");
}

static void leap_days(void **state)
{
    (void)state;
    EXPECT(UTC, "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z",
           "2032-02-29T00:00:00Z");
    EXPECT(UTC, "0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z");
    EXPECT(UTC, "0 0 29 2 *", "1996-03-01T00:00:00Z", "2000-02-29T00:00:00Z");
    EXPECT(UTC, "0 0 */28 2 1", "2027-02-01T00:00:00Z", "2038-02-01T00:00:00Z");
}

/* Of a field with a star both must fit: the 29th of February on a Sunday, across 2100. */
static void once_in_forty_years(void **state)
{
    (void)state;
    EXPECT(UTC, "0 0 29 2 */7", "2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z");
}

static void nothing_after_the_year_9999(void **state)
{
    (void)state;
    struct cron c;
    char why[CRON_WHY_SIZE];
    zone_of_rule(&zone, BERLIN);
    assert_int_equal(cron_parse(&c, "0 0 1 1 *", why, sizeof why), 0);
    assert_int_equal(calendar_next(&c, &zone, tick_of("9999-12-31T00:00:00Z")), CALENDAR_NEVER);
    assert_int_equal(calendar_next(&c, &zone, tick_of("9999-12-31T23:59:59Z") + 1000),
                     CALENDAR_NEVER);
    assert_int_equal(calendar_next(&c, &zone, INT64_MAX), CALENDAR_NEVER);
    assert_int_equal(cron_parse(&c, "* * 1 1 *", why, sizeof why), 0);
    assert_int_equal(calendar_next(&c, &zone, tick_of("9999-12-31T00:00:00Z")), CALENDAR_NEVER);
}

/* A time that does not exist comes when the gap has ended; both of two are one tick then. */
static void a_skipped_time_comes_once_after_it(void **state)
{
    (void)state;
    EXPECT(BERLIN, "30 2 * * *", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z",
           "2027-03-29T00:30:00Z");
    EXPECT(BERLIN, "0,30 2,3 * * *", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z",
           "2027-03-28T01:30:00Z", "2027-03-29T00:00:00Z");
    EXPECT(NEW_YORK, "15 2 * * *", "2027-03-13T07:15:00Z", "2027-03-14T07:00:00Z",
           "2027-03-15T06:15:00Z");
    EXPECT(SYDNEY, "59 2 * * *", "2027-10-01T16:59:00Z", "2027-10-02T16:00:00Z",
           "2027-10-03T15:59:00Z");
    EXPECT(LORD_HOWE, "15 2 * * *", "2027-10-01T15:45:00Z", "2027-10-02T15:30:00Z",
           "2027-10-03T15:15:00Z");
    EXPECT(LORD_HOWE, "45 2 * * *", "2027-10-02T15:00:00Z", "2027-10-02T15:45:00Z");
    EXPECT(DUBLIN, "30 1 * * *", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z",
           "2027-03-29T00:30:00Z");
    EXPECT(SANTIAGO, "@daily", "2027-09-04T04:00:00Z", "2027-09-05T04:00:00Z",
           "2027-09-06T03:00:00Z");
}

static void a_repeated_time_comes_once(void **state)
{
    (void)state;
    EXPECT(BERLIN, "30 2 * * *", "2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z",
           "2027-11-01T01:30:00Z");
    EXPECT(BERLIN, "30 2 * * *", "2027-10-31T01:15:00Z", "2027-11-01T01:30:00Z");
    EXPECT(BERLIN, "0 3 * * *", "2027-10-31T00:30:00Z", "2027-10-31T02:00:00Z");
    EXPECT(NEW_YORK, "30 1 * * *", "2027-11-06T05:30:00Z", "2027-11-07T05:30:00Z",
           "2027-11-08T06:30:00Z");
    EXPECT(SYDNEY, "30 2 * * *", "2027-04-02T15:30:00Z", "2027-04-03T15:30:00Z",
           "2027-04-04T16:30:00Z");
    EXPECT(LORD_HOWE, "45 1 * * *", "2027-04-02T14:45:00Z", "2027-04-03T14:45:00Z",
           "2027-04-04T15:15:00Z");
    EXPECT(DUBLIN, "30 1 * * *", "2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z",
           "2027-11-01T01:30:00Z");
    EXPECT(SANTIAGO, "30 23 * * 6", "2027-04-03T00:00:00Z", "2027-04-04T02:30:00Z",
           "2027-04-11T03:30:00Z");
}

static void a_star_follows_the_time_that_passes(void **state)
{
    (void)state;
    EXPECT(BERLIN, "@hourly", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z",
           "2027-03-28T02:00:00Z");
    EXPECT(BERLIN, "*/30 2 * * *", "2027-03-27T02:00:00Z", "2027-03-29T00:00:00Z");
    EXPECT(BERLIN, "@hourly", "2027-10-30T23:30:00Z", "2027-10-31T00:00:00Z",
           "2027-10-31T01:00:00Z", "2027-10-31T02:00:00Z");
    EXPECT(BERLIN, "*/30 2 * * *", "2027-10-30T23:30:00Z", "2027-10-31T00:00:00Z",
           "2027-10-31T00:30:00Z", "2027-10-31T01:00:00Z", "2027-10-31T01:30:00Z",
           "2027-11-01T01:00:00Z");
    EXPECT(LORD_HOWE, "0 * * * *", "2027-10-02T15:00:00Z", "2027-10-02T16:00:00Z");
    EXPECT(NEW_YORK, "30 * * * *", "2027-11-07T05:00:00Z", "2027-11-07T05:30:00Z",
           "2027-11-07T06:30:00Z", "2027-11-07T07:30:00Z");
}

static void the_last_one(void **state)
{
    (void)state;
    static const struct {
        const char *text, *after, *until, *last;
    } cases[] = {
        {"* * * * *", "2027-01-01T00:00:00Z", "2027-01-01T00:30:10Z", "2027-01-01T00:30:00Z"},
        {"* * * * *", "2026-01-01T00:00:00Z", "2027-01-01T00:30:00Z", "2027-01-01T00:30:00Z"},
        {"0 3 * * *", "2026-01-01T00:00:00Z", "2027-01-01T01:30:00Z", "2026-12-31T02:00:00Z"},
        {"0 0 29 2 *", "2020-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2024-02-28T23:00:00Z"},
        {"0 0 29 2 *", "2024-02-29T00:00:00Z", "2027-01-01T00:00:00Z", NULL},
        {"0 0 * * *", "2027-01-02T00:00:00Z", "2027-01-01T00:00:00Z", NULL},
    };
    zone_of_rule(&zone, BERLIN);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cron c;
        char why[CRON_WHY_SIZE];
        assert_int_equal(cron_parse(&c, cases[i].text, why, sizeof why), 0);
        int64_t last = calendar_last(&c, &zone, tick_of(cases[i].after), tick_of(cases[i].until));
        assert_int_equal(last, cases[i].last != NULL ? tick_of(cases[i].last) : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_days),
        cmocka_unit_test(leap_days),
        cmocka_unit_test(once_in_forty_years),
        cmocka_unit_test(nothing_after_the_year_9999),
        cmocka_unit_test(a_skipped_time_comes_once_after_it),
        cmocka_unit_test(a_repeated_time_comes_once),
        cmocka_unit_test(a_star_follows_the_time_that_passes),
        cmocka_unit_test(the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
