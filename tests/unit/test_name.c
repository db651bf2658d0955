/* test_name.c: which names and ids are refused, by which rule, and that odd ones are not. */
#include "core/name.h"

#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void takes(const char *name)
{
    const char *why = "unset";
    assert_int_equal(name_check_mutex(name, &why), 0);
    assert_null(why);
    why = "unset";
    assert_int_equal(name_check_id(name, &why), 0);
    assert_null(why);
}

static void refuses(const char *name, const char *rule)
{
    const char *why = NULL;
    assert_int_equal(name_check_mutex(name, &why), SIMBA_EINVAL);
    assert_non_null(strstr(why, "the name of the mutex"));
    assert_non_null(strstr(why, rule));
    why = NULL;
    assert_int_equal(name_check_id(name, &why), SIMBA_EINVAL);
    assert_non_null(strstr(why, "the id of the contender"));
    assert_non_null(strstr(why, rule));
}

static void odd_names_are_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a",
        " a ",
        "nightly-report",
        "\U0001F981",
        "caf\u00e9",
        "'; DROP TABLE simba_mutex; --",
        "\"quoted\"",
        "back\\slash",
        "return redis.call('flushall')",
        "}{",
        "../..",
        "%s%n",
        "a\nb",
        "\u200b", /* of no width, but no white space */
        "0:12345@192.168.1.10-3f9a2c7e",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        takes(names[i]);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    refuses(NULL, "missing");
    refuses("", "empty");
    static const char *const malformed[] = {
        "\xff",          "\x80",         "a\xc0\x80",        "a\xc1\xbf",        "\xe0\x80\x80",
        "\xed\xa0\x80",  "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "ab\xe2\x82",
        " \xf0\x9f\xa6",
    };
    for (size_t i = 0; i < COUNT(malformed); i++)
        refuses(malformed[i], "not valid UTF-8");
}

static void blanks_alone_are_refused(void **state)
{
    (void)state;
    static const char *const blanks[] = {
        " ",        "   ",      "\t",     "\n",     "\r\n",   "\v\f",
        "\x1c\x1f", "\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u200a",
        "\u2028",   "\u2029",   "\u202f", "\u205f", "\u3000", " \u3000 ",
    };
    for (size_t i = 0; i < COUNT(blanks); i++)
        refuses(blanks[i], "blanks");
    takes("\u3000x\u3000");
    static const char *const near[] = {
        "\x08", "\x0e", "\x1b", "!", "\xc2\x84", "\xc2\x86", "\u167f", "\u1681", "\u200b", "\u3001",
    };
    for (size_t i = 0; i < COUNT(near); i++)
        takes(near[i]);
}

static void length_counts_in_bytes(void **state)
{
    (void)state;
    const char *why;
    char name[SIMBA_ID_MAX + 2];
    memset(name, 'n', sizeof(name));

    name[SIMBA_MUTEX_MAX] = '\0';
    assert_int_equal(name_check_mutex(name, &why), 0);
    name[SIMBA_MUTEX_MAX] = 'n';
    name[SIMBA_MUTEX_MAX + 1] = '\0';
    assert_int_equal(name_check_mutex(name, &why), SIMBA_EINVAL);
    assert_string_equal(why, "the name of the mutex is longer than 66 bytes");
    assert_int_equal(name_check_id(name, &why), 0);

    name[SIMBA_MUTEX_MAX + 1] = 'n';
    name[SIMBA_ID_MAX] = '\0';
    assert_int_equal(name_check_id(name, &why), 0);
    name[SIMBA_ID_MAX] = 'n';
    name[SIMBA_ID_MAX + 1] = '\0';
    assert_int_equal(name_check_id(name, &why), SIMBA_EINVAL);
    assert_string_equal(why, "the id of the contender is longer than 128 bytes");

    char lions[17 * 4 + 1] = "";
    for (size_t i = 0; i < 17; i++)
        memcpy(lions + 4 * i, "\U0001F981", 5);
    assert_int_equal(name_check_mutex(lions, &why), SIMBA_EINVAL);
    lions[16 * 4] = '\0';
    assert_int_equal(name_check_mutex(lions, &why), 0);
}

static void notes(void **state)
{
    (void)state;
    const char *why;
    char note[SIMBA_NOTE_MAX + 2];
    static const char *const texts[] = {"", "http://10.0.0.7:8080", "two\nlines", "\U0001F981"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(name_check_note(texts[i], &why), 0);
    assert_int_equal(name_check_note(NULL, &why), SIMBA_EINVAL);
    assert_string_equal(why, "the note is missing (NULL)");
    assert_int_equal(name_check_note("caf\xe9", &why), SIMBA_EINVAL);
    assert_string_equal(why, "the note is not valid UTF-8");
    memset(note, 'n', sizeof note);
    note[SIMBA_NOTE_MAX] = '\0';
    assert_int_equal(name_check_note(note, &why), 0);
    note[SIMBA_NOTE_MAX] = 'n';
    note[SIMBA_NOTE_MAX + 1] = '\0';
    assert_int_equal(name_check_note(note, &why), SIMBA_EINVAL);
    assert_string_equal(why, "the note is longer than 1024 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_names_are_names),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(blanks_alone_are_refused),
        cmocka_unit_test(length_counts_in_bytes),
        cmocka_unit_test(notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
