/* test_schemes.c: which store a URL is of. */
#include "base/schemes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_scheme_is_what_stands_before_the_colon(void **state)
{
    (void)state;
    assert_int_equal(scheme_kind("sqlite:/tmp/l.db"), STORE_SQLITE);
    assert_int_equal(scheme_kind("redis+sentinel://h/m"), STORE_REDIS);
    assert_int_equal(scheme_kind("mariadb://h/d"), STORE_MYSQL);
    assert_int_equal(scheme_kind("postgres://h/d"), STORE_POSTGRES);
    assert_int_equal(scheme_of("zookeeper://h")->port, 2181);
    assert_string_equal(scheme_of("rediss://h")->name, "rediss");
}

static void all_else_is_of_others(void **state)
{
    (void)state;
    static const char *const others[] = {
        "", ":", "redis", "redi:", "rediss+:", "etcd://h", "SQLITE:x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_null(scheme_of(others[i]));
        assert_int_equal(scheme_kind(others[i]), STORE_OTHER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheme_is_what_stands_before_the_colon),
        cmocka_unit_test(all_else_is_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
