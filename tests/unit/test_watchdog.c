/* test_watchdog.c: when silence ends a tenure, and what counts as a report. */
#include "core/watchdog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LIMIT 1000

static struct watchdog begun_at(int64_t now)
{
    struct watchdog w = {.limit = LIMIT};
    watchdog_end(&w);
    watchdog_begin(&w, now);
    return w;
}

static void silence_is_reported_at_half_and_ends_it(void **state)
{
    (void)state;
    struct watchdog w = begun_at(10000);
    assert_int_equal(w.check_at, 10500);
    assert_int_equal(watchdog_check(&w, 10499, 0), WATCHDOG_FINE);
    assert_int_equal(w.check_at, 10500);
    assert_int_equal(watchdog_check(&w, 10500, 0), WATCHDOG_HALF);
    assert_int_equal(w.check_at, 11000);
    assert_int_equal(watchdog_check(&w, 10999, 0), WATCHDOG_FINE); /* it is told once */
    assert_int_equal(watchdog_check(&w, 11000, 0), WATCHDOG_STALLED);
}

static void a_report_moves_both_on(void **state)
{
    (void)state;
    struct watchdog w = begun_at(10000);
    assert_int_equal(watchdog_check(&w, 10600, 0), WATCHDOG_HALF);
    assert_int_equal(watchdog_check(&w, 11000, 10700), WATCHDOG_FINE);
    assert_int_equal(w.check_at, 11200);
    assert_int_equal(w.ends_at, 11700);
    assert_int_equal(watchdog_check(&w, 11200, 10700), WATCHDOG_HALF);
    assert_int_equal(watchdog_check(&w, 11250, 11249), WATCHDOG_FINE);
    assert_int_equal(watchdog_check(&w, 11749, 11249), WATCHDOG_HALF);
}

/* Also if the loop checks late: then the half is told again for the new silence. */
static void another_silence_is_reported_anew(void **state)
{
    (void)state;
    struct watchdog w = begun_at(10000);
    assert_int_equal(watchdog_check(&w, 10600, 0), WATCHDOG_HALF);
    assert_int_equal(watchdog_check(&w, 11300, 10650), WATCHDOG_HALF);
}

static void a_report_from_before_counts_for_nothing(void **state)
{
    (void)state;
    struct watchdog w = begun_at(10000);
    assert_int_equal(watchdog_check(&w, 11000, 9999), WATCHDOG_STALLED);
}

/* Between the runs of a scheduler. A run that begins after a check ends its first half after the
 * next one. */
static void none_is_asked_for(void **state)
{
    (void)state;
    struct watchdog w = begun_at(10000);
    assert_int_equal(watchdog_check(&w, 30000, NEVER), WATCHDOG_FINE);
    assert_int_equal(w.check_at, 30500);
    assert_int_equal(watchdog_check(&w, 30500, 30001), WATCHDOG_FINE);
    assert_int_equal(w.check_at, 30501);
    assert_int_equal(watchdog_check(&w, 30501, 30001), WATCHDOG_HALF);
    assert_int_equal(watchdog_check(&w, 30600, NEVER), WATCHDOG_FINE);
    assert_int_equal(watchdog_check(&w, 31500, 30700), WATCHDOG_HALF);
}

static void without_a_limit_or_a_tenure_all_is_fine(void **state)
{
    (void)state;
    struct watchdog none = {.limit = 0}, w = begun_at(10000);
    watchdog_begin(&none, 0);
    assert_int_equal(none.check_at, NEVER);
    assert_int_equal(watchdog_check(&none, 1000000, 0), WATCHDOG_FINE);
    watchdog_end(&w);
    assert_int_equal(w.check_at, NEVER);
    assert_int_equal(watchdog_check(&w, 1000000, 0), WATCHDOG_FINE);
}

/* A thread that was held up between its clock and its report does not undo a later one. */
static void reports_only_rise(void **state)
{
    (void)state;
    _Atomic int64_t at = 0;
    watchdog_report(&at, 5);
    assert_int_equal(atomic_load(&at), 5);
    watchdog_report(&at, 3);
    assert_int_equal(atomic_load(&at), 5);
    atomic_store(&at, NEVER);
    watchdog_report(&at, 7);
    assert_int_equal(atomic_load(&at), NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_reported_at_half_and_ends_it),
        cmocka_unit_test(a_report_moves_both_on),
        cmocka_unit_test(another_silence_is_reported_anew),
        cmocka_unit_test(a_report_from_before_counts_for_nothing),
        cmocka_unit_test(none_is_asked_for),
        cmocka_unit_test(without_a_limit_or_a_tenure_all_is_fine),
        cmocka_unit_test(reports_only_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
