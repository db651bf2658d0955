/* test_request.c: what the responder of --listen takes for a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run/request.h"

static char bytes[512];

/* What comes of it: 0, or the status. */
static int parse(const char *text, struct request_head *q)
{
    size_t count = strlen(text);
    memcpy(bytes, text, count);
    size_t length = request_length(bytes, count);
    assert_true(length > 0 && length <= count);
    return request_parse(bytes, length, q);
}

static void takes_a_request(void **state)
{
    struct request_head q;
    (void)state;
    assert_int_equal(0, parse("GET /leader?x=1 HTTP/1.1\r\nhost:  a:80 \r\n\r\nrest", &q));
    assert_string_equal("GET", q.method);
    assert_string_equal("/leader", q.path);
    assert_string_equal("a:80", q.host);
    assert_true(q.keeps && !q.is_head && !q.has_body);
    assert_int_equal(0, parse("HEAD / HTTP/1.0\n\n", &q));
    assert_true(!q.keeps && q.is_head && q.host == NULL);
    assert_int_equal(0, parse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", &q));
    assert_string_equal("", q.host);
}

static void knows_where_it_ends(void **state)
{
    static const char whole[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    (void)state;
    for (size_t i = 0; i < sizeof whole - 1; i++)
        assert_int_equal(0, request_length(whole, i));
    assert_int_equal(sizeof whole - 1, request_length(whole, sizeof whole - 1));
    assert_int_equal(2, request_length("\n\nGET", 5));
}

static void sees_what_it_may_not_have(void **state)
{
    struct request_head q;
    (void)state;
    assert_int_equal(0, parse("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", &q));
    assert_false(q.keeps);
    assert_int_equal(0, parse("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", &q));
    assert_false(q.has_body);
    assert_int_equal(0, parse("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", &q));
    assert_true(q.has_body);
    assert_int_equal(0, parse("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &q));
    assert_true(q.has_body);
}

static void refuses_the_rest(void **state)
{
    static const char *const wrong[] = {"GET /\r\n\r\n",
                                        "GET\r\n\r\n",
                                        "\r\n\r\n",
                                        "GET  / HTTP/1.1\r\n\r\n",
                                        " GET / HTTP/1.1\r\n\r\n",
                                        "GET / HTTP/1.1 \r\n\r\n",
                                        "GET / FTP/1.1\r\n\r\n",
                                        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"};
    struct request_head q;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(400, parse(wrong[i], &q));
    assert_int_equal(505, parse("GET / HTTP/2.0\r\n\r\n", &q));
    char with_nul[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    assert_int_equal(400, request_parse(with_nul, sizeof with_nul - 1, &q));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_request),
        cmocka_unit_test(knows_where_it_ends),
        cmocka_unit_test(sees_what_it_may_not_have),
        cmocka_unit_test(refuses_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
