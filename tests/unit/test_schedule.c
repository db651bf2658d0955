/* test_schedule.c: when scheduled work is due, and what a user may set. */
#include "core/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/period.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS NS_PER_MS
#define DAY INT64_C(86400000)

static struct schedule schedule_of(enum simba_pace pace, int64_t period_ms)
{
    struct simba_schedule o = SIMBA_SCHEDULE_INIT;
    struct schedule s;
    const char *why = "unset";
    o.pace = pace;
    o.period_ms = period_ms;
    assert_int_equal(schedule_init(&s, &o, &why), 0);
    assert_null(why);
    return s;
}

static void the_default_is_at_once(void **state)
{
    (void)state;
    struct schedule s = schedule_of(SIMBA_FIXED_RATE, 250);
    assert_int_equal(s.period, 250 * MS);
    assert_int_equal(schedule_first(&s, 77), 77);
}

static void the_delay_is_added(void **state)
{
    (void)state;
    struct simba_schedule o = SIMBA_SCHEDULE_INIT;
    struct schedule s;
    const char *why;
    o.period_ms = 10;
    o.initial_delay_ms = 20;
    assert_int_equal(schedule_init(&s, &o, &why), 0);
    assert_int_equal(schedule_first(&s, 5), 5 + 20 * MS);
}

static void what_older_programs_set_is_refused(void **state)
{
    (void)state;
    struct simba_schedule o = SIMBA_SCHEDULE_INIT;
    struct schedule s;
    const char *why;
    o.period_ms = 10;
    o.unused_ms = 0;
    assert_int_equal(schedule_init(&s, &o, &why), 0);
    o.unused_ms = 1; /* at_least_ms */
    assert_int_equal(schedule_init(&s, &o, &why), SIMBA_EUNSUPPORTED);
    assert_non_null(why);
}

/* Due at 1000 with a period of 100: when a run ends decides how many are skipped. */
static void fixed_rate_keeps_its_phase(void **state)
{
    (void)state;
    static const struct {
        int64_t ended, next;
    } cases[] = {
        {1000, 1100},                              /* it took no time at all */
        {1001, 1100},  {1099, 1100}, {1100, 1100}, /* just in time: nothing is skipped */
        {1101, 1200},  {1200, 1200}, {1201, 1300},
        {9950, 10000}, /* asleep for long: one run follows, not ninety */
    };
    struct schedule s = schedule_of(SIMBA_FIXED_RATE, 100);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(schedule_next(&s, 1000 * MS, cases[i].ended * MS), cases[i].next * MS);
    assert_int_equal(schedule_next(&s, 1000 * MS, 1100 * MS + 1), 1200 * MS);
    assert_int_equal(schedule_next(&s, 1000 * MS, 1100 * MS - 1), 1100 * MS);
}

static void fixed_delay_counts_from_the_end(void **state)
{
    (void)state;
    struct schedule s = schedule_of(SIMBA_FIXED_DELAY, 100);
    assert_int_equal(schedule_next(&s, 1000 * MS, 1000 * MS), 1100 * MS);
    assert_int_equal(schedule_next(&s, 1000 * MS, 1234 * MS), 1334 * MS);
}

/* What is due lies in the future of the end, or at it, and by no more than one period. */
static void the_longest_periods_do_not_overflow(void **state)
{
    (void)state;
    struct schedule rate = schedule_of(SIMBA_FIXED_RATE, SIMBA_PERIOD_MAX_MS);
    struct schedule delay = schedule_of(SIMBA_FIXED_DELAY, SIMBA_PERIOD_MAX_MS);
    struct schedule brief = schedule_of(SIMBA_FIXED_RATE, 1);
    int64_t now = 100 * 366 * DAY * MS, year = SIMBA_PERIOD_MAX_MS * MS;
    assert_int_equal(schedule_next(&rate, now, now + 1), now + year);
    assert_int_equal(schedule_next(&rate, now, now + year + 1), now + 2 * year);
    assert_int_equal(schedule_next(&delay, now, now + 1), now + 1 + year);
    assert_int_equal(schedule_next(&brief, 0, now + 1), now + MS);
}

static void what_may_be_set(void **state)
{
    (void)state;
    static const struct {
        int pace;
        int64_t period, initial_delay;
        int code;
    } cases[] = {
        {SIMBA_FIXED_RATE, 1, -1, 0},
        {SIMBA_FIXED_DELAY, SIMBA_PERIOD_MAX_MS, SIMBA_PERIOD_MAX_MS, 0},
        {SIMBA_FIXED_DELAY, 1, 0, 0},
        {SIMBA_FIXED_RATE, -1, -1, SIMBA_EINVAL}, /* there is no default */
        {SIMBA_FIXED_RATE, 0, -1, SIMBA_EINVAL},
        {SIMBA_FIXED_DELAY, 0, -1, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, SIMBA_PERIOD_MAX_MS + 1, -1, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, INT64_MAX, -1, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, -2, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, SIMBA_PERIOD_MAX_MS + 1, SIMBA_EINVAL},
        {2, 1, -1, SIMBA_EINVAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simba_schedule o = SIMBA_SCHEDULE_INIT;
        struct schedule s;
        const char *why = NULL;
        o.pace = (enum simba_pace)cases[i].pace;
        o.period_ms = cases[i].period;
        o.initial_delay_ms = cases[i].initial_delay;
        assert_int_equal(schedule_init(&s, &o, &why), cases[i].code);
        assert_int_equal(why != NULL, cases[i].code != 0);
    }
}

/* Of ticks: which fields go together. */
static void what_may_be_set_of_ticks(void **state)
{
    (void)state;
    static const struct {
        int pace;
        int64_t period;
        const char *cron, *zone;
        int missed;
        uint32_t flags;
        int code;
    } cases[] = {
        {SIMBA_CRON, -1, "@daily", NULL, SIMBA_MISSED_SKIP, 0, 0},
        {SIMBA_CRON, -1, "@daily", "UTC", SIMBA_MISSED_ALL, SIMBA_AT_LEAST_ONCE, 0},
        {SIMBA_FIXED_RATE, 1, NULL, NULL, SIMBA_MISSED_ONCE, SIMBA_KEEP_PHASE, 0},
        {SIMBA_FIXED_RATE, 1, NULL, NULL, SIMBA_MISSED_ALL, SIMBA_KEEP_PHASE | SIMBA_AT_LEAST_ONCE,
         0},
        {SIMBA_CRON, 1, "@daily", NULL, SIMBA_MISSED_SKIP, 0, SIMBA_EINVAL},
        {SIMBA_CRON, -1, NULL, NULL, SIMBA_MISSED_SKIP, 0, SIMBA_EINVAL},
        {SIMBA_CRON, -1, "@daily", NULL, SIMBA_MISSED_SKIP, SIMBA_KEEP_PHASE, SIMBA_EINVAL},
        {SIMBA_CRON, -1, "@daily", NULL, 3, 0, SIMBA_EINVAL},
        {SIMBA_CRON, -1, "@daily", NULL, -1, 0, SIMBA_EINVAL},
        {SIMBA_CRON, -1, "@daily", NULL, SIMBA_MISSED_SKIP, 4, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, "@daily", NULL, SIMBA_MISSED_SKIP, 0, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, NULL, "UTC", SIMBA_MISSED_SKIP, SIMBA_KEEP_PHASE, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, NULL, NULL, SIMBA_MISSED_ALL, 0, SIMBA_EINVAL},
        {SIMBA_FIXED_RATE, 1, NULL, NULL, SIMBA_MISSED_SKIP, SIMBA_AT_LEAST_ONCE, SIMBA_EINVAL},
        {SIMBA_FIXED_DELAY, 1, NULL, NULL, SIMBA_MISSED_SKIP, SIMBA_KEEP_PHASE, SIMBA_EINVAL},
        {-1, 1, NULL, NULL, SIMBA_MISSED_SKIP, 0, SIMBA_EINVAL},
        {3, 1, NULL, NULL, SIMBA_MISSED_SKIP, 0, SIMBA_EINVAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simba_schedule o = SIMBA_SCHEDULE_INIT;
        struct schedule s;
        const char *why = NULL;
        o.pace = (enum simba_pace)cases[i].pace;
        o.period_ms = cases[i].period;
        o.cron = cases[i].cron;
        o.zone = cases[i].zone;
        o.missed = (enum simba_missed)cases[i].missed;
        o.flags = cases[i].flags;
        assert_int_equal(schedule_init(&s, &o, &why), cases[i].code);
        assert_int_equal(why != NULL, cases[i].code != 0);
        if (cases[i].code == 0)
            assert_true(schedule_has_ticks(&o));
    }
    struct simba_schedule plain = SIMBA_SCHEDULE_INIT;
    assert_false(schedule_has_ticks(&plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_at_once),
        cmocka_unit_test(the_delay_is_added),
        cmocka_unit_test(what_older_programs_set_is_refused),
        cmocka_unit_test(fixed_rate_keeps_its_phase),
        cmocka_unit_test(fixed_delay_counts_from_the_end),
        cmocka_unit_test(the_longest_periods_do_not_overflow),
        cmocka_unit_test(what_may_be_set),
        cmocka_unit_test(what_may_be_set_of_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
