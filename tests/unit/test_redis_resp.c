/* test_redis_resp.c: bytes to replies, with all that a server may send, and commands to bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/redis/resp.h"

static struct decoder d;

static int begin(void **state)
{
    (void)state;
    return decoder_init(&d) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    decoder_free(&d);
    return 0;
}

static const struct reply *decode(const char *bytes)
{
    assert_true(decoder_feed(&d, bytes, strlen(bytes)));
    return decoder_next(&d);
}

static void every_kind(void **state)
{
    (void)state;
    const struct reply *r =
        decode("*7\r\n:-5\r\n$3\r\na\r\n\r\n+OK\r\n-ERR no\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n"
               "$0\r\n\r\n");
    assert_non_null(r);
    assert_int_equal(r->elements, 7);
    assert_int_equal(reply_at(r, 0)->integer, -5);
    assert_int_equal(reply_at(r, 1)->length, 3);
    assert_string_equal(reply_at(r, 1)->text, "a\r\n");
    assert_int_equal(reply_at(r, 2)->kind, REPLY_STATUS);
    assert_true(reply_is_error(reply_at(r, 3), "ERR"));
    assert_false(reply_is_error(reply_at(r, 3), "ER"));
    assert_int_equal(reply_at(r, 4)->kind, REPLY_NIL);
    assert_int_equal(reply_at(r, 5)->kind, REPLY_NIL);
    assert_int_equal(reply_at(reply_at(r, 6), 0)->integer, 1);
    assert_int_equal(reply_at(reply_at(r, 6), 9)->kind, REPLY_NIL);
    assert_int_equal(reply_at(reply_at(r, 0), 0)->kind, REPLY_NIL);
    assert_null(decoder_next(&d));
    assert_null(d.fault);
}

/* Cut at every byte it is the same. */
static void in_pieces(void **state)
{
    (void)state;
    static const char bytes[] = "*3\r\n$5\r\nhello\r\n:42\r\n*1\r\n+x\r\n:7\r\n";
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        const struct reply *r;
        assert_true(decoder_feed(&d, bytes, cut));
        r = decoder_next(&d);
        bool early = r != NULL;
        assert_true(decoder_feed(&d, bytes + cut, sizeof bytes - 1 - cut));
        if (!early)
            r = decoder_next(&d);
        assert_non_null(r);
        if (!early) {
            assert_string_equal(reply_at(r, 0)->text, "hello");
            assert_string_equal(reply_at(reply_at(r, 2), 0)->text, "x");
        }
        const struct reply *last = decoder_next(&d);
        assert_non_null(last);
        assert_int_equal(last->integer, 7);
        assert_null(decoder_next(&d));
    }
}

/* The kinds of the newer protocol, which is not asked for, also inside an array. */
static void other_kinds(void **state)
{
    static const char *const bad[] = {
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "(123\r\n",
        "!5\r\nERR x\r\n",
        "=7\r\ntxt:abc\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "%0\r\n",
        "~1\r\n:1\r\n",
        ">2\r\n+message\r\n:1\r\n",
        "|1\r\n+a\r\n:1\r\n:2\r\n",
    };
    for (size_t i = 0; i < 2 * (sizeof bad / sizeof *bad); i++) {
        if (i % 2 == 1)
            assert_null(decode("*2\r\n:1\r\n"));
        assert_null(decode(bad[i / 2]));
        assert_non_null(d.fault);
        end(state);
        assert_int_equal(begin(state), 0);
    }
}

/* T40: counts and lengths of the other side's choice. */
static void limits(void **state)
{
    static const char *const bad[] = {
        "*2147483647\r\n",
        "*1152921504606846976\r\n",
        "*-2\r\n",
        "$-2\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ":12x\r\n",
        "hello\r\n",
        "*200000\r\n*200000\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(decode(bad[i]));
        assert_non_null(d.fault);
        assert_false(decoder_feed(&d, ":1\r\n", 4)); /* and nothing is believed after it */
        assert_null(decoder_next(&d));
        end(state);
        assert_int_equal(begin(state), 0);
    }
    char *many = calloc(1, 1 << 20);
    assert_true(decoder_feed(&d, "$2000000000\r\n", 13));
    assert_null(decoder_next(&d));
    size_t fed = 0;
    while (decoder_feed(&d, many, 1 << 20))
        fed += 1 << 20;
    assert_true(fed <= RESP_BYTES_MAX);
    free(many);
}

static void digits(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_true(reply_digits(decode("$16\r\n1753000000000001\r\n"), &n));
    assert_int_equal(n, 1753000000000001);
    assert_false(reply_digits(decode("$0\r\n\r\n"), &n));
    assert_false(reply_digits(decode("$2\r\n-1\r\n"), &n));
    assert_true(decoder_feed(&d, "$3\r\n1\0002\r\n", 9)); /* with a NUL in it */
    const struct reply *r = decoder_next(&d);
    assert_non_null(r);
    assert_false(reply_is_text(r) || reply_digits(r, &n));
    assert_false(reply_digits(decode("$20\r\n99999999999999999999\r\n"), &n));
}

static void commands(void **state)
{
    (void)state;
    struct buffer b = {.at = NULL};
    resp_begin(&b, 4);
    resp_argument(&b, "SET");
    resp_pieces(&b, (const char *const[]){"simba:{", "m", "}", "", NULL});
    resp_number(&b, INT64_MIN);
    resp_number(&b, 1200);
    static const char want[] =
        "*4\r\n$3\r\nSET\r\n$9\r\nsimba:{m}\r\n$20\r\n-9223372036854775808\r\n"
        "$4\r\n1200\r\n";
    assert_int_equal(b.used, sizeof want - 1);
    assert_memory_equal(b.at, want, b.used);
    b.used = BUFFER_MAX - 10;
    b.size = BUFFER_MAX - 10; /* as if it were so large */
    buffer_add(&b, want, 20);
    assert_true(b.failed);
    b.used = b.size = 0;
    buffer_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind, begin, end),
        cmocka_unit_test_setup_teardown(in_pieces, begin, end),
        cmocka_unit_test_setup_teardown(other_kinds, begin, end),
        cmocka_unit_test_setup_teardown(limits, begin, end),
        cmocka_unit_test_setup_teardown(digits, begin, end),
        cmocka_unit_test(commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
