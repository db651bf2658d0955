/* test_failure.c: which errors time does not mend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/failure.h"

static void each_code(void **state)
{
    (void)state;
    int lasting = 0, ours = 0;
#define SIMBA_X(name, code, text)   \
    lasting += failure_lasts(code); \
    ours += failure_is_ours(code);  \
    assert_true(!failure_is_ours(code) || failure_lasts(code));
    SIMBA_ERRORS(SIMBA_X)
#undef SIMBA_X
    assert_int_equal(lasting, 4);
    assert_int_equal(ours, 2);
    assert_true(failure_is_ours(SIMBA_EINVAL) && failure_is_ours(SIMBA_EUNSUPPORTED));
    assert_true(failure_lasts(SIMBA_EDENIED) && failure_lasts(SIMBA_ESCHEMA));
    assert_false(failure_lasts(SIMBA_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
