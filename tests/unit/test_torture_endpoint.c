/* test_torture_endpoint.c: where the servers of a URL are, and the URL through proxies. */
#include "lab/torture/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "HOST PORT" or the path of a socket, each; or why there is none. */
static const char *servers(const char *url)
{
    static char line[1024];
    struct endpoints e;
    size_t used = 0;
    endpoints_find(url, &e);
    if (e.count == 0)
        return memcpy(line, e.limit, sizeof e.limit);
    for (size_t i = 0; i < e.count; i++) {
        const struct endpoint *at = &e.at[i];
        const char *gap = i > 0 ? ", " : "";
        int n = at->host[0] == '\0'
                    ? snprintf(line + used, sizeof line - used, "%s%s", gap, at->path)
                    : snprintf(line + used, sizeof line - used, "%s%s %u", gap, at->host, at->port);
        used += (size_t)n;
    }
    return line;
}

static const char *through(const char *url)
{
    static const uint16_t ports[] = {1001, 1002, 1003};
    static char out[1024];
    assert_int_equal(endpoints_rewrite(url, ports, out, sizeof out), 0);
    return out;
}

static void servers_are_found_and_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *url, *servers, *through;
    } cases[] = {
        {"redis://", "127.0.0.1 6379", "redis://127.0.0.1:1001"},
        {"redis://db1", "db1 6379", "redis://127.0.0.1:1001"},
        {"redis://u:p%40q@db1:7/3?ttl=1s&restart_guard=on", "db1 7",
         "redis://u:p%40q@127.0.0.1:1001/3?ttl=1s&restart_guard=on"},
        {"redis://[::1]:7/0", "::1 7", "redis://127.0.0.1:1001/0"},
        {"redis://[fe80::1]", "fe80::1 6379", "redis://127.0.0.1:1001"},
        {"redis+unix:///run/r.sock", "/run/r.sock", "redis://127.0.0.1:1001"},
        {"redis+unix://:pw@/run/a%20b?ttl=1s&db=3&drift=2", "/run/a b",
         "redis://:pw@127.0.0.1:1001/3?ttl=1s&drift=2"},
        {"redis+sentinel://a,b:5,c/0?master=main", "a 26379, b 5, c 26379",
         "redis+sentinel://127.0.0.1:1001,127.0.0.1:1002,127.0.0.1:1003/0?master=main"},
        {"rediss+sentinel://db1,db2:5/0?master=main&sentinel_tls=off", "db1 26379, db2 5",
         "rediss+sentinel://127.0.0.1:1001,127.0.0.1:1002/0?master=main&sentinel_tls=off"},
        {"rediss://localhost:7/0?tls_ca=/ca", "localhost 7",
         "rediss://localhost:1001/0?tls_ca=/ca"},
        {"rediss://db1/0?tls_verify=off", "db1 6379", "rediss://127.0.0.1:1001/0?tls_verify=off"},
        {"mysql://u:p@127.0.0.1:7/simba", "127.0.0.1 7", "mysql://u:p@127.0.0.1:1001/simba"},
        {"mysql://u@[::1]/simba", "::1 3306", "mysql://u@127.0.0.1:1001/simba"},
        {"mariadb://u@/simba?socket=/run/m.sock&ttl=1s", "/run/m.sock",
         "mariadb://u@127.0.0.1:1001/simba?ttl=1s"},
        {"mysql://u@db1/simba?tls=off", "db1 3306", "mysql://u@127.0.0.1:1001/simba?tls=off"},
        {"mysql://u@db1/simba?tls_verify=off", "db1 3306",
         "mysql://u@127.0.0.1:1001/simba?tls_verify=off&tls=on"},
        {"mysql://u@localhost/simba?tls_ca=/ca", "localhost 3306",
         "mysql://u@localhost:1001/simba?tls_ca=/ca&tls=on"},
        {"postgresql://u:p@db1/simba", "db1 5432",
         "postgresql://u:p@db1:1001/simba?hostaddr=127.0.0.1"},
        {"postgres://a:1,[::2]:3/simba?sslmode=verify-full", "a 1, ::2 3",
         "postgres://a:1001,[::2]:1002/simba?sslmode=verify-full&hostaddr=127.0.0.1,127.0.0.1"},
        {"postgresql://u@/simba?host=/run/pg&port=7&ttl=1s", "/run/pg/.s.PGSQL.7",
         "postgresql://u@127.0.0.1:1001/simba?ttl=1s"},
        {"postgresql://u@%2Frun%2Fpg/simba", "/run/pg/.s.PGSQL.5432",
         "postgresql://u@127.0.0.1:1001/simba"},
        {"zookeeper://u:p@a,b:7,c/test", "a 2181, b 7, c 2181",
         "zookeeper://u:p@127.0.0.1:1001,127.0.0.1:1002,127.0.0.1:1003/test"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(servers(cases[i].url), cases[i].servers);
        assert_string_equal(through(cases[i].url), cases[i].through);
    }
}

static void some_stores_have_no_server(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"sqlite:/a/b:c@d?ttl=1s", "no network faults: sqlite: has no server that is known here"},
        {"memory:x", "no network faults: memory: has no server that is known here"},
        {"dir:/tmp/x", "no network faults: dir: has no server that is known here"},
        {"rediss://db1/0",
         "no network faults: TLS expects a certificate for db1, and a proxy is at 127.0.0.1; add "
         "tls_verify=off to the URL of a test server"},
        {"rediss+sentinel://db1/0?master=main",
         "no network faults: TLS expects a certificate for db1, and a proxy is at 127.0.0.1; add "
         "tls_verify=off to the URL of a test server"},
        {"mysql://u@db1/simba",
         "no network faults: TLS expects a certificate for db1, and a proxy is at 127.0.0.1; add "
         "tls_verify=off to the URL of a test server"},
        {"postgresql:///simba", "no network faults: the URL names no host"},
        {"postgresql:///simba?service=x",
         "no network faults: options host, hostaddr and service hide where the server is"},
        {"postgresql://a/simba?host=b",
         "no network faults: options host, hostaddr and service hide where the server is"},
        {"postgresql://%2Frun,b/simba",
         "no network faults: options host, hostaddr and service hide where the server is"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(servers(cases[i][0]), cases[i][1]);
        assert_string_equal(through(cases[i][0]), cases[i][0]);
    }
}

static void limits_are_named(void **state)
{
    (void)state;
    struct endpoints e;
    endpoints_find("redis+sentinel://a/0?master=main", &e);
    assert_int_equal(e.count, 1);
    assert_string_equal(e.limit, "network faults reach the sentinels alone: the servers are where "
                                 "these say");
    endpoints_find("redis://a/0", &e);
    assert_string_equal(e.limit, "");
}

static void a_small_buffer_is_noticed(void **state)
{
    (void)state;
    const uint16_t port = 1001;
    const char url[] = "redis://127.0.0.1:1001/0";
    char out[64];
    assert_int_equal(endpoints_rewrite("redis://a/0", &port, out, sizeof url), 0);
    assert_string_equal(out, url);
    assert_int_equal(endpoints_rewrite("redis://a/0", &port, out, sizeof url - 1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_found_and_replaced),
        cmocka_unit_test(some_stores_have_no_server),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(a_small_buffer_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
