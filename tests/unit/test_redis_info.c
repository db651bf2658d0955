/* test_redis_info.c: what INFO says, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <simba.h>
#include <cmocka.h>

#include "backend/redis/info.h"

#define INFO(version, uptime, more)                                                    \
    "# Server\r\nredis_version:" version "\r\nrun_id:abc\r\nuptime_in_seconds:" uptime \
    "\r\nmaxmemory_human:0B\r\n# Replication\r\nrole:master\r\n" more

static struct info parse(const char *info)
{
    struct info h;
    assert_true(info_parse(&h, info));
    return h;
}

static void reads_what_it_needs(void **state)
{
    (void)state;
    struct info h = parse(INFO("7.0.15", "12",
                               "aof_enabled:1\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n"
                               "connected_slaves:2\r\nmaster_replid2:000a0\r\n"));
    assert_string_equal(h.version, "7.0.15");
    assert_string_equal(h.run_id, "abc");
    assert_int_equal(h.major, 7);
    assert_int_equal(h.uptime_ms, 11000);
    assert_int_equal(parse(INFO("7.0.15", "1", "")).uptime_ms, 0);
    assert_int_equal(parse(INFO("7.0.15", "-9", "")).uptime_ms, 0);
    assert_int_equal(parse(INFO("7.0.15", "9223372036854775807", "")).uptime_ms, 0);
    assert_int_equal(h.memory_limit, 1000);
    assert_int_equal(h.replicas, 2);
    assert_true(h.append_only);
    assert_true(h.promoted);
    assert_false(h.replica);
    assert_false(parse(INFO("7.0.15", "12", "master_replid2:0000\r\n")).promoted);
    assert_false(info_parse(&h, "HTTP/1.1 400 Bad Request"));
    assert_false(info_parse(&h, ""));
    assert_false(info_parse(&h, "redis_version:"));
}

static void refuses(void **state)
{
    (void)state;
    char why[256];
    struct info h = parse(INFO("7.0.15", "12", ""));
    assert_int_equal(info_refuses(&h, why, sizeof why), 0);
    h = parse(INFO("7.0.15", "12", "cluster_enabled:1\r\n"));
    assert_int_equal(info_refuses(&h, why, sizeof why), SIMBA_EUNSUPPORTED);
    h = parse(INFO("4.0.14", "12", ""));
    assert_int_equal(info_refuses(&h, why, sizeof why), SIMBA_EUNSUPPORTED);
    assert_non_null(strstr(why, "4.0.14"));
    h = parse(INFO("7.0.15", "12", "loading:1\r\n"));
    assert_int_equal(info_refuses(&h, why, sizeof why), SIMBA_ESTORE);
    assert_true(
        info_parse(&h, "redis_version:7\nrun_id:a\nrole:slave\nmaster_host:h\nmaster_port:1"));
    assert_int_equal(info_refuses(&h, why, sizeof why), 0); /* it can be read */
    assert_true(info_is_read_only(&h, why, sizeof why));
    assert_non_null(strstr(why, "replica of h:1"));
}

/* T36. */
static void warns(void **state)
{
    (void)state;
    char line[256];
    struct simba_finding f;
    struct info h =
        parse(INFO("7.0.15", "12", "aof_enabled:1\r\nmaxmemory_policy:volatile-lru\r\n"));
    assert_false(info_warns(&h, true, 0, &f, line, sizeof line)); /* no limit: none is evicted */
    h = parse(INFO("7.0.15", "12",
                   "maxmemory:9\r\nmaxmemory_policy:volatile-lru\r\nconnected_slaves:1\r\n"));
    assert_true(info_warns(&h, true, 0, &f, line, sizeof line));
    assert_int_equal(f.level, SIMBA_LOG_ERROR);
    assert_non_null(strstr(f.text, "volatile-lru"));
    assert_true(info_warns(&h, true, 1, &f, line, sizeof line));
    assert_int_equal(f.level, SIMBA_LOG_WARN);
    assert_int_equal(f.kind, SIMBA_FINDING_OTHER);
    assert_non_null(strstr(f.text, "appendonly"));
    assert_true(info_warns(&h, false, 1, &f, line, sizeof line));
    assert_int_equal(f.kind, SIMBA_FINDING_TWO_OWNERS);
    assert_true(info_warns(&h, true, 2, &f, line, sizeof line));
    assert_non_null(strstr(f.text, "1 replica:"));
    assert_false(info_warns(&h, true, 3, &f, line, sizeof line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_needs),
        cmocka_unit_test(refuses),
        cmocka_unit_test(warns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
