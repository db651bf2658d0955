/* test_json.c: the writer of JSON: what it escapes, for pages and for lines, and how values look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

#define NASTY "a\"\\</b>\n\x7f\xc3\xa9\xe2\x80\xae\xff"

static void assert_text(struct json_buffer *t, const char *expected)
{
    json_buffer_add(t, "\n");
    assert_false(t->failed);
    assert_int_equal(t->length, strlen(expected) + 1);
    assert_memory_equal(t->at, expected, t->length - 1);
    free(t->at);
}

static void escapes_for_a_page(void **state)
{
    struct json_buffer t = {0};
    (void)state;
    json_buffer_string(&t, NASTY);
    assert_text(&t, "\"a\\u0022\\u005c\\u003c/b\\u003e\\u000a\\u007f\xc3\xa9\\u202e\\ufffd\"");
}

static void escapes_for_a_line(void **state)
{
    struct json_buffer t = {.is_line = true};
    (void)state;
    json_buffer_string(&t, NASTY);
    assert_text(&t, "\"a\\\"\\\\</b>\\n\\u007f\xc3\xa9\\u202e?\"");
}

static void writes_every_kind_of_value(void **state)
{
    struct json_buffer t = {.is_line = true}, list = {.is_line = true};
    (void)state;
    json_buffer_add(&list, "[1,2]");
    json_buffer_object(&t, "{s:s, s:s, s:i, s:I, s:b, s:n, s:f, s:f, s:o, s:o, s:j}", "a", "x", "b",
                       NULL, "c", -7, "d", (long long)INT64_MIN, "e", 1, "f", "g", 1.5, "h", 2.0,
                       "i", number_or_null(true, 9), "j", number_or_null(false, 9), "k", &list);
    json_buffer_token_of(&t, "after", UINT64_MAX);
    assert_text(&t, "{\"a\":\"x\",\"b\":null,\"c\":-7,\"d\":-9223372036854775808,\"e\":true,"
                    "\"f\":null,\"g\":1.5,\"h\":2.0,\"i\":9,\"j\":null,\"k\":[1,2]},"
                    "\"after\":18446744073709551615");
}

static void has_a_limit(void **state)
{
    struct json_buffer t = {0};
    char *mega = malloc(1024 * 1024 + 1);
    (void)state;
    assert_non_null(mega);
    memset(mega, 'x', 1024 * 1024);
    mega[1024 * 1024] = '\0';
    for (size_t i = 0; i < JSON_BUFFER_MAX / (1024 * 1024); i++)
        json_buffer_add(&t, mega);
    assert_false(t.failed);
    json_buffer_add(&t, "x");
    assert_true(t.failed);
    free(t.at);
    free(mega);
}

static void stays_within_what_it_was_given(void **state)
{
    char room[8] = "";
    struct json_buffer t = {.at = room, .room = sizeof room, .is_fixed = true};
    (void)state;
    json_buffer_string(&t, "abcdef");
    assert_false(t.failed);
    assert_memory_equal(room, "\"abcdef\"", 8);
    json_buffer_add(&t, "x");
    assert_true(t.failed);
    assert_ptr_equal(t.at, room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_for_a_page),
        cmocka_unit_test(escapes_for_a_line),
        cmocka_unit_test(writes_every_kind_of_value),
        cmocka_unit_test(has_a_limit),
        cmocka_unit_test(stays_within_what_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
