/* test_view.c: what is_owner() reads, and when it must look again. */
#include "core/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void nobody_owns(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    assert_false(view_begin(&v, &r));
}

/* shows: C2 */
static void deadline_and_token_belong_together(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    view_publish(&v, 100, 7);
    assert_true(view_begin(&v, &r));
    assert_int_equal(r.deadline, 100);
    assert_int_equal(r.token, 7);
    assert_true(view_end(&v, &r));
    view_publish(&v, 100, 7); /* nothing new */
    assert_true(view_end(&v, &r));
}

/* Renewed between the two readings: the reader must look again, and then sees the new deadline. */
/* shows: C5 */
static void renewal_is_noticed(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    view_publish(&v, 100, 7);
    assert_true(view_begin(&v, &r));
    view_publish(&v, 200, 7);
    assert_false(view_end(&v, &r));
    assert_true(view_begin(&v, &r));
    assert_int_equal(r.deadline, 200);
}

/* Stopped, and the next tenure begun, while the reader slept (T17). */
/* shows: C5 */
static void next_tenure_is_noticed(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    view_publish(&v, 100, 7);
    assert_true(view_begin(&v, &r));
    view_publish(&v, 0, 7);
    assert_false(view_end(&v, &r));
    view_publish(&v, 300, 8);
    assert_false(view_end(&v, &r));
    assert_true(view_begin(&v, &r));
    assert_int_equal(r.token, 8);
}

/* Straight from one tenure to the next, as an adopted one after a loss would be. */
static void token_changes_under_no_deadline(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    view_publish(&v, 100, 7);
    view_publish(&v, 200, 8);
    assert_true(view_begin(&v, &r));
    assert_int_equal(r.deadline, 200);
    assert_int_equal(r.token, 8);
}

/* A stop counts at once, also against renewals and grants that the machine publishes before it has
 * seen it; the next start ends that. */
/* shows: C4 */
static void stop_counts_at_once(void **state)
{
    (void)state;
    struct view v = {0};
    struct view_reading r;
    view_publish(&v, 100, 7);
    assert_true(view_begin(&v, &r));
    assert_true(view_is_of(&r, 7));
    assert_false(view_is_of(&r, 8));
    view_stop(&v);
    assert_false(view_end(&v, &r)); /* also if it comes between the two readings */
    assert_false(view_begin(&v, &r));
    assert_int_equal(r.deadline, 0);
    view_publish(&v, 200, 7);
    assert_false(view_begin(&v, &r));
    view_publish(&v, 300, 8);
    assert_false(view_begin(&v, &r));
    view_publish(&v, 0, 8);
    view_start(&v);
    assert_false(view_begin(&v, &r));
    view_publish(&v, 400, 9);
    assert_true(view_begin(&v, &r));
    assert_int_equal(r.token, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_owns),
        cmocka_unit_test(stop_counts_at_once),
        cmocka_unit_test(deadline_and_token_belong_together),
        cmocka_unit_test(renewal_is_noticed),
        cmocka_unit_test(next_tenure_is_noticed),
        cmocka_unit_test(token_changes_under_no_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
