/* test_status.c: all twenty cells of the table of status.h. */
#include "core/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void moves_are_as_drawn_and_no_others(void **state)
{
    (void)state;
    static const struct {
        enum simba_status from;
        int start, answered, failed, stop, idle;
    } rows[] = {
        {SIMBA_INITIAL, SIMBA_STARTING, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_ESTATE},
        {SIMBA_STARTING, SIMBA_ESTATE, SIMBA_RUNNING, SIMBA_INITIAL, SIMBA_STOPPING, SIMBA_ESTATE},
        {SIMBA_RUNNING, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_STOPPING, SIMBA_ESTATE},
        {SIMBA_STOPPING, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_ESTATE, SIMBA_INITIAL},
    };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(status_next(rows[i].from, STATUS_START), rows[i].start);
        assert_int_equal(status_next(rows[i].from, STATUS_ANSWERED), rows[i].answered);
        assert_int_equal(status_next(rows[i].from, STATUS_FAILED), rows[i].failed);
        assert_int_equal(status_next(rows[i].from, STATUS_STOP), rows[i].stop);
        assert_int_equal(status_next(rows[i].from, STATUS_IDLE), rows[i].idle);
    }
}

static void names_are_those_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(status_name(SIMBA_INITIAL), "INITIAL");
    assert_string_equal(status_name(SIMBA_STARTING), "STARTING");
    assert_string_equal(status_name(SIMBA_RUNNING), "RUNNING");
    assert_string_equal(status_name(SIMBA_STOPPING), "STOPPING");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_are_as_drawn_and_no_others),
        cmocka_unit_test(names_are_those_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
