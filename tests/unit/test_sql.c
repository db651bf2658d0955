/* test_sql.c: what the SQL stores share and needs no server: statements as text, what a poll
 * means, the id of one who was evicted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/sql/poller.h"
#include "backend/sql/sql.h"
#include "backend/sql/statements.h"

static void statement_as_text(void **state)
{
    (void)state;
    struct statement t = {.bytes = NULL};
    sql_statement_reset(&t);
    sql_statement_hex(&t, "a'\xff\\");
    sql_statement_number(&t, UINT64_MAX);
    assert_string_equal(t.bytes, "6127ff5c18446744073709551615");
    for (int i = 0; i < 5000; i++)
        sql_statement_put(&t, "0123456789");
    assert_false(t.failed);
    assert_int_equal(t.length, 28 + 50000);
    sql_statement_free(&t);
}

static void statement_has_a_limit(void **state)
{
    (void)state;
    struct statement t = {.bytes = NULL};
    char *kilo = calloc(1, 1025);
    memset(kilo, 'x', 1024);
    sql_statement_reset(&t);
    for (int i = 0; i < 20000 && !t.failed; i++)
        sql_statement_put(&t, kilo);
    assert_true(t.failed);
    sql_statement_reset(&t);
    assert_false(t.failed);
    sql_statement_free(&t);
    free(kilo);
}

static void evicted_ids(void **state)
{
    (void)state;
    char out[SIMBA_ID_MAX + 1];
    sql_evicted_id("0:1@host", out);
    assert_string_equal(out, "~:1@host");
    sql_evicted_id("~x", out);
    assert_string_equal(out, "!x");
    sql_evicted_id("\xc3\xa4x", out); /* a whole character */
    assert_string_equal(out, "~x");
    sql_evicted_id("y", out);
    assert_string_equal(out, "~");
}

/* Where TLS is off unless it is asked for. */
static void local_hosts(void **state)
{
    (void)state;
    static const char *const local[] = {"localhost", "127.0.0.1", "127.8.9.10",
                                        "::1",       "/run/sock", "::ffff:127.0.0.1"};
    static const char *const others[] = {"127.evil.example",  "127.0.0.1.example", "127.",
                                         "localhost.example", "10.0.0.1",          "::2",
                                         "::ffff:10.0.0.1",   "example.com"};
    assert_true(sql_config_is_local(NULL));
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_true(sql_config_is_local(local[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sql_config_is_local(others[i]));
}

static const char *shown(const char *owner, uint32_t first)
{
    static char out[SIMBA_ID_MAX + 1];
    memset(out, 'z', sizeof out);
    sql_shown_id(owner, first, out);
    return out;
}

static void shown_ids(void **state)
{
    (void)state;
    char owner[4 * SIMBA_ID_MAX + 1];
    assert_string_equal(shown("", 0), "");
    assert_string_equal(shown("0:1@host", 0), "0:1@host");
    assert_string_equal(shown("~ightly", 'n'), "nightly");
    assert_string_equal(shown("~", 'n'), "n");
    assert_string_equal(shown("~uro", 0xe282ac), "\xe2\x82\xacuro");
    assert_string_equal(shown("!x", 0xf09f9880), "\xf0\x9f\x98\x80x");
    assert_string_equal(shown("a\xff\xc3", 0), "a??");
    assert_string_equal(shown("~x", 0xff), "?x"); /* no character at all */
    memset(owner, 'x', sizeof owner);
    owner[SIMBA_ID_MAX] = '\0';
    assert_string_equal(shown(owner, 0), owner);
    owner[SIMBA_ID_MAX] = 'x';
    owner[SIMBA_ID_MAX + 1] = '\0';
    const char *cut = shown(owner, 0);
    assert_int_equal(strlen(cut), SIMBA_ID_MAX);
    assert_string_equal(cut + SIMBA_ID_MAX - 3, "\xe2\x80\xa6");
    assert_int_equal(sql_cut_bytes(cut), SIMBA_ID_MAX - 3);
    for (size_t i = 0; i < SIMBA_ID_MAX; i++)
        memcpy(owner + 4 * i, "\xf0\x9f\x98\x80", 4);
    owner[4 * SIMBA_ID_MAX] = '\0';
    cut = shown(owner, 'a');
    assert_int_equal(strlen(cut), 1 + 4 * 31 + 3); /* whole characters */
    assert_int_equal(sql_cut_bytes("abc"), 0);
}

static void who_waits_is_notified_of_what_is_free(void **state)
{
    (void)state;
    struct simba_watched w = {.interest = SIMBA_WAITS};
    assert_false(sql_poller_is_news(&w, "a", 1));
    assert_false(sql_poller_is_news(&w, "b", 2));
    assert_true(sql_poller_is_news(&w, "", 2));
    assert_false(sql_poller_is_news(&w, "", 2)); /* once */
    assert_true(sql_poller_is_news(&w, "", 3));  /* somebody had it in between */
    assert_false(sql_poller_is_news(&w, "a", 4));
    assert_true(sql_poller_is_news(&w, "", 4));
}

static void who_observes_is_notified_of_every_change(void **state)
{
    (void)state;
    struct simba_watched w = {.interest = SIMBA_OBSERVES};
    assert_true(sql_poller_is_news(&w, "a", 1));
    assert_false(sql_poller_is_news(&w, "a", 1));
    assert_true(sql_poller_is_news(&w, "a", 2));
    assert_true(sql_poller_is_news(&w, "~", 2)); /* evicted */
    assert_true(sql_poller_is_news(&w, "", 2));
}

static void what_is_ours_needs_no_poll(void **state)
{
    (void)state;
    struct simba_watched w = {.interest = SIMBA_WAITS};
    assert_true(sql_poller_needs_poll(&w, 100) && !sql_poller_is_ours(&w, 100));
    sql_poller_set_ours(&w, 200);
    assert_true(!sql_poller_needs_poll(&w, 100) && sql_poller_is_ours(&w, 100));
    assert_true(sql_poller_needs_poll(&w, 200)); /* its lease has ended */
    w.interest = SIMBA_OBSERVES;
    assert_true(sql_poller_needs_poll(&w, 100) && sql_poller_is_ours(&w, 100));
    sql_poller_set_ours(&w, 0);
    assert_false(sql_poller_is_ours(&w, 100));
}

static void evictions_and_digest(void **state)
{
    (void)state;
    struct sql_poller p = {.poll_ms = 0};
    assert_int_equal(sql_poller_evictions(&p, 0), 0); /* nobody was evicted */
    assert_int_equal(sql_poller_evictions(&p, 1), 1);
    assert_int_equal(sql_poller_evictions(&p, 7),
                     2); /* or by others before our first poll: all ask */
    assert_int_equal(sql_poller_evictions(&p, 7), 0);
    assert_int_equal(sql_poller_evictions(&p, 8), 1);
    assert_int_equal(sql_poller_evictions(&p, 11), 2);
    assert_true(sql_poller_digest(&p, 1));
    assert_false(sql_poller_digest(&p, 1));
    assert_true(sql_poller_digest(&p, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statement_as_text),
        cmocka_unit_test(statement_has_a_limit),
        cmocka_unit_test(evicted_ids),
        cmocka_unit_test(shown_ids),
        cmocka_unit_test(local_hosts),
        cmocka_unit_test(who_waits_is_notified_of_what_is_free),
        cmocka_unit_test(who_observes_is_notified_of_every_change),
        cmocka_unit_test(what_is_ours_needs_no_poll),
        cmocka_unit_test(evictions_and_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
