/* test_id.c: ids as they are written, and what happens where they do not fit. */
#include "core/id.h"

#include "core/name.h"

#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void host_ids_have_the_known_form(void **state)
{
    (void)state;
    static const struct {
        uint64_t counter;
        int64_t pid;
        const char *host, *address;
        uint32_t random;
        const char *id;
    } cases[] = {
        {0, 12345, "web1", "192.168.1.10", 0x3f9a2c7e, "0:12345@web1/192.168.1.10-3f9a2c7e"},
        {0, 12345, "", "192.168.1.10", 0x3f9a2c7e, "0:12345@192.168.1.10-3f9a2c7e"},
        {7, 1, "", "::1", 0, "7:1@::1-00000000"},
        {UINT64_MAX, INT64_MAX, "", "h", UINT32_MAX,
         "18446744073709551615:9223372036854775807@h-ffffffff"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[SIMBA_ID_MAX + 1];
        const char *why;
        assert_int_equal(id_host(out, sizeof(out), cases[i].counter, cases[i].pid, cases[i].host,
                                 cases[i].address, cases[i].random),
                         0);
        assert_string_equal(out, cases[i].id);
        assert_int_equal(name_check_id(out, &why), 0);
    }
}

static void host_id_that_does_not_fit_is_none(void **state)
{
    (void)state;
    const char *id = "1:2@h-0000000a";
    char out[2 * SIMBA_ID_MAX];
    assert_int_equal(id_host(out, strlen(id) + 1, 1, 2, "", "h", 10), 0);
    assert_string_equal(out, id);
    assert_int_equal(id_host(out, strlen(id), 1, 2, "", "h", 10), SIMBA_ELIMIT);
    assert_string_equal(out, "");
    assert_int_equal(id_host(out, 1, 1, 2, "", "h", 10), SIMBA_ELIMIT);
    assert_string_equal(out, "");
}

/* However large the buffer is: an id must be one that the stores take. */
static void host_id_is_never_longer_than_an_id(void **state)
{
    (void)state;
    char out[2 * SIMBA_ID_MAX];
    char address[SIMBA_ID_MAX];
    size_t others = strlen("1:2@-0000000a");
    memset(address, 'h', sizeof(address));
    address[SIMBA_ID_MAX - others] = '\0';
    assert_int_equal(id_host(out, sizeof(out), 1, 2, "", address, 10), 0);
    assert_int_equal(strlen(out), SIMBA_ID_MAX);
    address[SIMBA_ID_MAX - others] = 'h';
    address[SIMBA_ID_MAX - others + 1] = '\0';
    assert_int_equal(id_host(out, sizeof(out), 1, 2, "", address, 10), SIMBA_ELIMIT);
    assert_string_equal(out, "");
}

/* With the longest name and the greatest numbers there is room. */
static void the_longest_host_id_fits(void **state)
{
    (void)state;
    char out[SIMBA_ID_MAX + 1], host[ID_HOST_MAX + 1];
    memset(host, 'h', ID_HOST_MAX);
    host[ID_HOST_MAX] = '\0';
    assert_int_equal(
        id_host(out, sizeof(out), UINT64_MAX, INT64_MAX, host, "255.255.255.255", UINT32_MAX), 0);
}

static void names_of_hosts_are_plain_or_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"web1", "web1"},
        {"Web-1.example.org", "Web-1.example.org"},
        {"", ""},
        {"(none)", ""},
        {"web 1", ""},
        {"web/1", ""},
        {"web@1", ""},
        {"web_1", ""},
        {"w\xc3\xa9", ""},
        {"a\n", ""},
        {"0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789"},
        {"0123456789012345678901234567890123456789x", "0123456789012345678901234567890123456789"},
        {"0123456789012345678901234567890123456789_", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[ID_HOST_MAX + 1];
        id_host_name(out, cases[i].name);
        assert_string_equal(out, cases[i].shown);
    }
}

static void uuids_are_of_version_four(void **state)
{
    (void)state;
    static const struct {
        uint8_t random[16];
        const char *id;
    } cases[] = {
        {{0}, "00000000000040008000000000000000"},
        {{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32,
          0x10},
         "0123456789ab4defbedcba9876543210"},
        {{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
         "ffffffffffff4fffbfffffffffffffff"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[SIMBA_ID_MAX + 1];
        assert_int_equal(id_uuid(out, sizeof(out), cases[i].random), 0);
        assert_string_equal(out, cases[i].id);
        assert_int_equal(id_uuid(out, 33, cases[i].random), 0);
        assert_int_equal(id_uuid(out, 32, cases[i].random), SIMBA_ELIMIT);
        assert_string_equal(out, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_ids_have_the_known_form),
        cmocka_unit_test(host_id_that_does_not_fit_is_none),
        cmocka_unit_test(host_id_is_never_longer_than_an_id),
        cmocka_unit_test(the_longest_host_id_fits),
        cmocka_unit_test(names_of_hosts_are_plain_or_left_out),
        cmocka_unit_test(uuids_are_of_version_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
