/* test_text.c: texts that do not fit, numbers at their limits, and UTF-8 of every kind. */
#include "base/text.h"

#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void adds_up(void **state)
{
    (void)state;
    char buffer[64];
    struct text t;
    memset(buffer, 'x', sizeof(buffer));
    text_init(&t, buffer, sizeof(buffer));
    assert_string_equal(buffer, "");
    text_add(&t, "lease");
    text_add(&t, "");
    text_add_bytes(&t, " of many", 3);
    text_add(&t, " ");
    text_add_int(&t, -5);
    assert_string_equal(buffer, "lease of -5");
    assert_int_equal(t.length, strlen(buffer));
    assert_false(t.cut);
}

/* Of what does not fit the last whole words are kept, and a reader sees that there was more. */
static void ends_with_an_ellipsis(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"it all fits in here", "it all fits in here"},
        {"not all of it fits in here", "not all of it " TEXT_ELLIPSIS},
        {"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
         "\xc3\xa4",
         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4" TEXT_ELLIPSIS},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
         TEXT_ELLIPSIS}, /* nothing but the insides of characters */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char buffer[20];
        struct text t;
        text_init(&t, buffer, sizeof(buffer));
        text_add(&t, rows[i].text);
        text_end(&t);
        assert_string_equal(buffer, rows[i].shown);
        assert_int_equal(t.length, strlen(buffer));
    }
    char small[sizeof TEXT_ELLIPSIS];
    struct text t;
    text_init(&t, small, sizeof(small));
    text_add(&t, "no room for it");
    text_end(&t);
    assert_string_equal(small, "no ");
}

static void writes_numbers(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } ints[] = {
        {0, "0"},
        {9, "9"},
        {10, "10"},
        {-1, "-1"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    char buffer[32];
    struct text t;
    for (size_t i = 0; i < COUNT(ints); i++) {
        text_init(&t, buffer, sizeof(buffer));
        text_add_int(&t, ints[i].value);
        assert_string_equal(buffer, ints[i].text);
    }
    text_init(&t, buffer, sizeof(buffer));
    text_add_uint(&t, UINT64_MAX);
    assert_string_equal(buffer, "18446744073709551615");

    static const struct {
        uint64_t value;
        size_t digits;
        const char *text;
    } hex[] = {
        {0, 1, "0"},      {0x3f9a2c7e, 8, "3f9a2c7e"},          {0xab, 8, "000000ab"},
        {0x123, 2, "23"}, {UINT64_MAX, 16, "ffffffffffffffff"},
    };
    for (size_t i = 0; i < COUNT(hex); i++) {
        text_init(&t, buffer, sizeof(buffer));
        text_add_hex(&t, hex[i].value, hex[i].digits);
        assert_string_equal(buffer, hex[i].text);
    }
}

/* What stays of each text is the longest run of whole characters that fits. */
static void cuts_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *kept;
    } cases[] = {
        {"abc", 4, "abc"},
        {"abc", 3, "ab"},
        {"abc", 1, ""},
        {"a\u00e9", 4, "a\u00e9"},
        {"a\u00e9", 3, "a"},
        {"\u20ac!", 4, "\u20ac"},
        {"\u20ac!", 3, ""},
        {"\u20ac!", 2, ""},
        {"\U0001F981!", 5, "\U0001F981"},
        {"\U0001F981!", 4, ""},
        {"\U0001F981!", 3, ""},
        {"\U0001F981!", 2, ""},
        {"ab\x80\x80\x80\x80", 6, "ab\x80\x80\x80"}, /* no character at all: cut anywhere */
        {"\x80\x80\x80", 3, "\x80\x80"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char buffer[16];
        memset(buffer, '#', sizeof(buffer));
        struct text t;
        text_init(&t, buffer, cases[i].size);
        text_add(&t, cases[i].text);
        assert_string_equal(buffer, cases[i].kept);
        assert_int_equal(t.length, strlen(cases[i].kept));
        assert_int_equal(t.cut, strlen(cases[i].text) >= cases[i].size);
        assert_int_equal(buffer[cases[i].size], '#');
    }
}

static void cuts_a_character_that_came_in_pieces(void **state)
{
    (void)state;
    char buffer[4];
    struct text t;
    text_init(&t, buffer, sizeof(buffer));
    text_add(&t, "a\xe2\x82");
    assert_false(t.cut);
    text_add(&t, "\xac");
    assert_true(t.cut);
    assert_string_equal(buffer, "a");
}

static void has_no_gap(void **state)
{
    (void)state;
    char buffer[4];
    struct text t;
    text_init(&t, buffer, sizeof(buffer));
    text_add(&t, "ab\u00e9");
    text_add(&t, "c");
    text_add_uint(&t, 1);
    assert_string_equal(buffer, "ab");
}

static void knows_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        uint32_t point;
    } cases[] = {
        {"a", 1, 'a'},
        {"\x7f", 1, 0x7F},
        {"\xc2\x80", 2, 0x80},
        {"\xdf\xbf", 2, 0x7FF},
        {"\xe0\xa0\x80", 3, 0x800},
        {"\xed\x9f\xbf", 3, 0xD7FF},
        {"\xee\x80\x80", 3, 0xE000},
        {"\xef\xbf\xbf", 3, 0xFFFF},
        {"\xf0\x90\x80\x80", 4, 0x10000},
        {"\xf0\x9f\xa6\x81", 4, 0x1F981},
        {"\xf4\x8f\xbf\xbf", 4, 0x10FFFF},
        {"\x80", 0, 0},             /* begins with a continuation */
        {"\xbf", 0, 0},             /* likewise */
        {"\xc0\x80", 0, 0},         /* overlong NUL */
        {"\xc1\xbf", 0, 0},         /* overlong */
        {"\xe0\x9f\xbf", 0, 0},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 0, 0}, /* overlong */
        {"\xed\xa0\x80", 0, 0},     /* surrogate */
        {"\xed\xbf\xbf", 0, 0},     /* surrogate */
        {"\xf4\x90\x80\x80", 0, 0}, /* above 10FFFF */
        {"\xf8\x88\x80\x80\x80", 0, 0},
        {"\xff", 0, 0},
        {"\xe2\x82", 0, 0}, /* ends in the middle */
        {"\xe2", 0, 0},
        {"\xe2(\x82", 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t point = 0;
        assert_int_equal(text_utf8(cases[i].bytes, &point), cases[i].length);
        if (cases[i].length > 0)
            assert_int_equal(point, cases[i].point);
    }
}

static void finds_what_cannot_be_shown(void **state)
{
    (void)state;
    assert_null(text_fault(""));
    assert_null(text_fault("caf\u00e9 ~ \U0001F981"));
    assert_string_equal(text_fault("a\nb"), " holds a control character");
    assert_string_equal(text_fault("a\x1f"), " holds a control character");
    assert_string_equal(text_fault("a\x7f"), " holds a control character");
    assert_string_equal(text_fault("a\xff"), " is not valid UTF-8");
}

static void unescapes(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        size_t count;
        const char *to; /* NULL: refused */
    } cases[] = {
        {"", 0, ""},          {"a+b c", 5, "a+b c"},   {"%40%2f%2F", 9, "@//"},
        {"%fFz", 4, "\xffz"}, {"%25%32%35", 9, "%25"}, /* once, not again */
        {"abc", 2, "ab"},     {"%41", 2, NULL},        /* the digit beyond the end does not count */
        {"%41", 1, NULL},     {"%", 1, NULL},          {"%g0", 3, NULL},
        {"%0g", 3, NULL},     {"%@0", 3, NULL},        {"% 1", 3, NULL},
        {"%-1", 3, NULL},     {"%:0", 3, NULL},        {"a%00b", 5, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char to[16];
        const char *fault = text_unescape(to, cases[i].from, cases[i].count);
        if (cases[i].to == NULL) {
            assert_non_null(fault);
        } else {
            assert_null(fault);
            assert_string_equal(to, cases[i].to);
        }
    }
    char to[16];
    assert_non_null(strstr(text_unescape(to, "%00", 3), "%00"));
    assert_non_null(strstr(text_unescape(to, "%zz", 3), "%25"));
}

static void counts_edits(void **state)
{
    (void)state;
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const struct {
        const char *a, *b;
        size_t edits;
    } cases[] = {
        {"", "", 0},
        {"ttl", "ttl", 0},
        {"", "ttl", 3},
        {"ttl", "", 3},
        {"tttl", "ttl", 1},
        {"tl", "ttl", 1},
        {"txl", "ttl", 1},
        {"tlt", "ttl", 2},
        {"abc", "xyz", 3},
        {"kitten", "sitting", 3},
        {longest, "0", 63},
        {"3", longest, 63},
        {"saturday", "sunday", 3},
    };
    assert_int_equal(strlen(longest), TEXT_DISTANCE_MAX);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(text_distance(cases[i].a, cases[i].b), cases[i].edits);
}

static void escapes_what_cannot_be_seen(void **state)
{
    (void)state;
    char at[128];
    struct text t;
    text_init(&t, at, sizeof at);
    text_add_escaped(&t, "a\x1b[2J\x7f\xc2\x9b\xc3\xa9\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6"
                         "\xe2\x81\xaa\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x82\xac\xff");
    assert_string_equal(at, "a\\x1b[2J\\x7f\\x9b\xc3\xa9\\u202e\\u2028\\u2066\xe2\x81\xaa"
                            "\\u200e\\u200f\\u061c\xe2\x82\xac\\xff");
}

static const char *shortened(const char *bytes, size_t count)
{
    static char out[SIMBA_ID_MAX + 1];
    text_shorten(out, sizeof out, bytes, count);
    return out;
}

static void shortens_names_of_others(void **state)
{
    (void)state;
    char data[300];
    assert_string_equal(shortened("nightly@web1", 12), "nightly@web1");
    assert_string_equal(shortened("", 0), "");
    assert_string_equal(shortened("a\0b\xff\xc3", 5), "a?b??");
    memset(data, 'x', sizeof data);
    assert_int_equal(strlen(shortened(data, SIMBA_ID_MAX)), SIMBA_ID_MAX);
    assert_null(strchr(shortened(data, SIMBA_ID_MAX), '\xe2'));
    const char *cut = shortened(data, SIMBA_ID_MAX + 1);
    assert_int_equal(strlen(cut), SIMBA_ID_MAX);
    assert_string_equal(cut + SIMBA_ID_MAX - 4, "x" TEXT_ELLIPSIS);
    for (size_t at = 0; at + 4 <= sizeof data; at += 4)
        memcpy(data + at, "\xf0\x9f\xa6\x81", 4); /* lions */
    cut = shortened(data, sizeof data);
    assert_int_equal(strlen(cut), 124 + 3); /* whole ones */
    assert_string_equal(cut + 120, "\xf0\x9f\xa6\x81" TEXT_ELLIPSIS);
}

static void durations(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{-5, "0.0s"},       {0, "0.0s"},          {850, "0.8s"},     {5000, "5s"},
                 {5049, "5s"},       {1500, "1.5s"},       {12900, "12s"},    {187000, "3m07s"},
                 {7500000, "2h05m"}, {273600000, "3d04h"}, {754000, "12m34s"}};
    char out[24];
    struct text t;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_init(&t, out, sizeof out);
        text_add_duration(&t, cases[i].ms);
        assert_string_equal(out, cases[i].text);
    }
    text_init(&t, out, sizeof out);
    text_add_steady_duration(&t, 5000);
    text_add_steady_duration(&t, 12000);
    assert_string_equal(out, "5.0s12s");
}

static void suggests_what_is_near(void **state)
{
    static const char *const names[] = {"lock", "leader", "status", "list"};
    (void)state;
    assert_string_equal(text_nearest("lcok", names, 4), "lock");
    assert_string_equal(text_nearest("leadre", names, 4), "leader");
    assert_null(text_nearest("backup", names, 4));
    assert_null(text_nearest("lock", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(escapes_what_cannot_be_seen),
        cmocka_unit_test(shortens_names_of_others),
        cmocka_unit_test(adds_up),
        cmocka_unit_test(ends_with_an_ellipsis),
        cmocka_unit_test(writes_numbers),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(cuts_a_character_that_came_in_pieces),
        cmocka_unit_test(has_no_gap),
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(finds_what_cannot_be_shown),
        cmocka_unit_test(unescapes),
        cmocka_unit_test(counts_edits),
        cmocka_unit_test(suggests_what_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
