/* test_zookeeper_parts.c: names of nodes, how long a session stands, what servers say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/zookeeper/ensemble.h"
#include "backend/zookeeper/path.h"
#include "backend/zookeeper/session_deadline.h"
#include "base/rng.h"

/* ---- names --------------------------------------------------------------------------------- */

static void names_stay_where_they_can(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"job", "job"},
        {"a b", "a b"},
        {"50%", "50%"},
        {"%s%n", "%s%n"},
        {"\xe7\xae\x80", "\xe7\xae\x80"},
        {"...", "..."},
        {"a/0", "a%2F0"}, /* T50 */
        {"/", "%2F"},
        {".", "%2E"},
        {"..", "%2E%2E"},
        {"%2F", "%252F"},
        {"%%2f", "%%252f"},
        {"%/", "%%2F"},
        {"%2/", "%2%2F"},
        {"a\tb", "a%09b"},
        {"\x7f", "%7F"},
        {"\xc2\x80", "%C2%80"},
        {"\xee\x80\x80", "%EE%80%80"},        /* private use */
        {"\xef\xbf\xbd", "%EF%BF%BD"},        /* U+FFFD */
        {"\xf0\x9f\xa6\x81", "%F0%9F%A6%81"}, /* a lion */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char node[PATH_NODE_SIZE], back[SIMBA_MUTEX_MAX + 1];
        zk_path_encode(node, rows[i][0]);
        assert_string_equal(node, rows[i][1]);
        assert_true(zk_path_decode(back, node));
        assert_string_equal(back, rows[i][0]);
    }
}

static void longest_name(void **state)
{
    (void)state;
    char name[SIMBA_MUTEX_MAX + 1], node[PATH_NODE_SIZE], back[SIMBA_MUTEX_MAX + 1];
    memset(name, '/', SIMBA_MUTEX_MAX);
    name[SIMBA_MUTEX_MAX] = '\0';
    zk_path_encode(node, name);
    assert_int_equal(strlen(node), 3 * SIMBA_MUTEX_MAX);
    assert_true(zk_path_decode(back, node));
    assert_string_equal(back, name);
}

static void nodes_of_others_are_no_mutexes(void **state)
{
    (void)state;
    char back[SIMBA_MUTEX_MAX + 1], node[SIMBA_MUTEX_MAX + 2];
    static const char *const others[] = {"", "%00", "%41", "%2f", "a\tb", "."};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(zk_path_decode(back, others[i]));
    memset(node, 'x', sizeof node);
    node[sizeof node - 1] = '\0';
    assert_false(zk_path_decode(back, node));
}

/* What other clients write is shown, whatever it is. */
static void ids_of_others(void **state)
{
    (void)state;
    char id[SIMBA_ID_MAX + 1];
    zk_path_show_id(id, "nightly@web1", 12);
    assert_string_equal(id, "nightly@web1");
    zk_path_show_id(id, NULL, -1);
    assert_string_equal(id, "?");
}

/* ---- how long a session stands ------------------------------------------------------------- */

static void two_thirds_after_the_last_write(void **state)
{
    (void)state;
    struct session_deadline s;
    zk_session_deadline_begin(&s, 6000, 1000);
    assert_int_equal(zk_session_deadline_until(&s), 5000);
    assert_int_equal(zk_session_deadline_write_at(&s), 2000);
    for (int64_t t = 2000; t < 100000; t += 1000) {
        zk_session_deadline_wrote(&s, t, t + 3);
        assert_int_equal(zk_session_deadline_until(&s),
                         t + 4000 < s.counted + 6000 ? t + 4000 : s.counted + 6000);
        assert_true(zk_session_deadline_until(&s) >= t + 3000);
    }
    assert_int_equal(zk_session_deadline_until(&s), 99000 + 4000);
}

/* After a long pause one write does not help much: the leader may not have heard of us since. */
static void after_a_pause_it_stands_less(void **state)
{
    (void)state;
    struct session_deadline s;
    zk_session_deadline_begin(&s, 6000, 0);
    zk_session_deadline_wrote(&s, 5500, 5510);
    assert_int_equal(zk_session_deadline_until(&s), 6000);
    zk_session_deadline_wrote(&s, 5600, 5610); /* too close behind it */
    assert_int_equal(zk_session_deadline_until(&s), 6000);
    zk_session_deadline_wrote(&s, 7100, 7110);
    assert_int_equal(zk_session_deadline_until(&s), 5500 + 6000 < 7100 + 4000 ? 11500 : 11100);
}

/* With little left the next write comes as soon as it shows that the leader counts from later. */
static void with_little_left_it_writes_sooner(void **state)
{
    (void)state;
    struct session_deadline s;
    zk_session_deadline_begin(&s, 12000, 0);
    for (int64_t t = 2000; t <= 20000; t += 2000) {
        zk_session_deadline_wrote(&s, t, t + 5);
        assert_int_equal(zk_session_deadline_write_at(&s), t + 2000);
    }
    zk_session_deadline_wrote(&s, 22000, 27000); /* a slow one */
    zk_session_deadline_wrote(&s, 27000, 27005);
    assert_int_equal(zk_session_deadline_until(&s), 20000 + 12000);
    assert_int_equal(zk_session_deadline_write_at(&s), 29000); /* nothing to show before */
    zk_session_deadline_wrote(&s, 29000, 29005);
    assert_int_equal(zk_session_deadline_write_at(&s),
                     30000); /* three seconds after the slow one's end */
    zk_session_deadline_wrote(&s, 30000, 30005);
    assert_int_equal(zk_session_deadline_until(&s), 22000 + 12000);
    assert_int_equal(zk_session_deadline_write_at(&s), 30005); /* and after the one behind it */
    zk_session_deadline_wrote(&s, 30005, 30010);
    assert_int_equal(zk_session_deadline_until(&s), 30005 + 8000);
    assert_int_equal(zk_session_deadline_write_at(&s), 32005);
}

/* Reads do not prolong anything, but make the first write after a long time worth it. */
static void reads_prepare_a_write(void **state)
{
    (void)state;
    struct session_deadline s;
    zk_session_deadline_begin(&s, 6000, 0);
    assert_int_equal(zk_session_deadline_idle_ms(&s), 1500);
    int64_t t = 0;
    for (; t < 600000; t += zk_session_deadline_idle_ms(&s)) {
        zk_session_deadline_heard(&s, t, t + 5);
        assert_int_equal(zk_session_deadline_until(&s), 4000);
    }
    zk_session_deadline_wrote(&s, t, t + 5);
    assert_true(zk_session_deadline_until(&s) >= t + 3000);
    assert_true(zk_session_deadline_until(&s) <= t + 4000);
}

/* A new connection is confirmed by the leader, but proves no majority. */
static void moving_is_no_write(void **state)
{
    (void)state;
    struct session_deadline s;
    zk_session_deadline_begin(&s, 6000, 0);
    zk_session_deadline_moved(&s, 6000, 3000);
    assert_int_equal(zk_session_deadline_until(&s), 4000);
    zk_session_deadline_wrote(&s, 3100, 3200);
    assert_int_equal(zk_session_deadline_until(&s), 7100);
    zk_session_deadline_moved(&s, 9000, 1000); /* nothing is taken back */
    assert_int_equal(zk_session_deadline_until(&s), 7100);
    zk_session_deadline_moved(&s, 3000, 3300); /* the servers' bounds differ: the shortest counts */
    assert_int_equal(zk_session_deadline_until(&s), 3100 + 2000);
}

/* A leader that hears of the client by pings of a follower, every quarter of the timeout, and a
 * follower that is cut off at any moment after an acknowledgement: it never ends the session
 * earlier than we think, whenever we write. */
static void never_longer_than_the_leader_thinks(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int run = 0; run < 2000; run++) {
        struct session_deadline s;
        int64_t S = 6000, now = 0, follower = 0, leader = 0; /* when they heard of us last */
        int64_t ping = rng_between(&random, 0, S / 4);
        zk_session_deadline_begin(&s, S, 0);
        for (int i = 0; i < 30; i++) {
            now += rng_between(&random, 1, rng_between(&random, 0, 4) == 0 ? S : S / 5);
            for (; ping <= now; ping += S / 4) { /* it answers with what it knew then */
                if (follower <= ping)
                    leader = follower > leader ? follower : leader;
            }
            if (now >= leader + S)
                break; /* it has expired, and the write is refused */
            int64_t ended = now + rng_between(&random, 0, 50);
            follower = now;
            zk_session_deadline_wrote(&s, now, ended);
            assert_true(zk_session_deadline_until(&s) <= leader + S);
            now = ended;
        }
    }
}

/* ---- what servers say ---------------------------------------------------------------------- */

static char said[4096];

static struct simba_finding last;

static void note(struct simba_host *host, struct simba_request *q, const struct simba_finding *f)
{
    size_t used = strlen(said);
    (void)host;
    (void)q;
    last = *f;
    snprintf(said + used, sizeof said - used, "%d %s\n", (int)f->level, f->text);
}

static struct simba_host host = {.say = note};
static const struct findings findings = {.host = &host};

static bool says(enum simba_level level, const char *part)
{
    char *at = strstr(said, part);
    while (at != NULL && at > said && at[-1] != '\n')
        at--;
    return at != NULL && at[0] == '0' + (int)level;
}

static void servers_are_read(void **state)
{
    (void)state;
    struct ensemble_server s = {.address = "h:1"};
    zk_ensemble_read(
        &s,
        "Zookeeper version: 3.8.0-debian, built on 2023\nLatency min/avg/max: 0/0.0/0\n"
        "Outstanding: 3\nZxid: 0x0\nMode: follower\nNode count: 5\n",
        "minSessionTimeout=4000\nmaxSessionTimeout=40000\n");
    assert_int_equal(s.state, SERVER_SERVES);
    assert_string_equal(s.version, "3.8.0");
    assert_string_equal(s.mode, "follower");
    assert_int_equal(s.min_ms, 4000);
    assert_int_equal(s.max_ms, 40000);
    static const struct {
        const char *srvr;
        enum server_state state;
        const char *why;
    } rows[] = {
        {"srvr is not executed because it is not in the whitelist.\n", SERVER_HIDES, ""},
        {"This ZooKeeper instance is not currently serving requests\n", SERVER_IDLE, ""},
        {"", SERVER_SILENT, "it takes the connection and says nothing"},
        {"HTTP/1.1 400 Bad Request\r\n", SERVER_SILENT, "what answers there is no ZooKeeper"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        s = (struct ensemble_server){.address = "h:1"};
        zk_ensemble_read(&s, rows[i].srvr, "-ERR\r\n");
        assert_int_equal(s.state, rows[i].state);
        assert_string_equal(s.why, rows[i].why);
        assert_int_equal(s.max_ms, 0);
    }
}

static void voters_are_counted(void **state)
{
    (void)state;
    static const char config[] = "server.1=a:2888:3888:participant;0.0.0.0:2181\n"
                                 "server.2=b:2888:3888:observer;0.0.0.0:2181\n"
                                 "server.3=c:2888:3888\nversion=0";
    assert_int_equal(zk_ensemble_voters(config, strlen(config)), 2);
    assert_int_equal(zk_ensemble_voters("", 0), 0);
}

static void judge(const enum server_state *states, size_t count, int voters)
{
    struct ensemble_server s[5] = {{.address = "h"}, {.address = "h"}, {.address = "h"}};
    said[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        s[i].state = states[i];
        snprintf(s[i].mode, sizeof s[i].mode, "%s", i == 0 ? "leader" : "follower");
    }
    zk_ensemble_say_servers(&findings, s, count, voters);
}

static void majorities_are_counted(void **state)
{
    (void)state;
    judge((const enum server_state[]){SERVER_SERVES, SERVER_SERVES, SERVER_SERVES}, 3, 3);
    assert_true(says(SIMBA_LOG_INFO, "all 3 servers serve: 1 of them may fail"));
    judge((const enum server_state[]){SERVER_SERVES, SERVER_SERVES, SERVER_SILENT}, 3, 3);
    assert_true(says(SIMBA_LOG_WARN, "2 of 3 servers serve: when one more fails"));
    judge((const enum server_state[]){SERVER_SERVES, SERVER_IDLE, SERVER_SILENT}, 3, 0);
    assert_true(says(SIMBA_LOG_ERROR, "1 of 3 servers serve, and it takes 2"));
    judge((const enum server_state[]){SERVER_HIDES, SERVER_HIDES, SERVER_HIDES}, 3, 3);
    assert_true(says(SIMBA_LOG_INFO, "hidden"));
    assert_false(says(SIMBA_LOG_ERROR, "servers serve"));
    judge((const enum server_state[]){SERVER_SERVES}, 1, 5);
    assert_true(says(SIMBA_LOG_WARN, "names 1 of the 5 servers"));
    assert_false(says(SIMBA_LOG_ERROR, "servers serve"));
}

static void one_server(void **state)
{
    (void)state;
    struct ensemble_server s = {.address = "h:1", .state = SERVER_SERVES, .mode = "read-only"};
    said[0] = '\0';
    zk_ensemble_say_servers(&findings, &s, 1, 3);
    assert_true(says(SIMBA_LOG_WARN, "read-only"));
    snprintf(s.mode, sizeof s.mode, "standalone");
    zk_ensemble_say_servers(&findings, &s, 1, 0);
    assert_true(says(SIMBA_LOG_WARN, "a single server"));
}

static void timeouts_name_what_to_do(void **state)
{
    (void)state;
    struct ensemble_server s[2] = {{.min_ms = 4000, .max_ms = 40000}, {.min_ms = 0, .max_ms = 0}};
    said[0] = '\0';
    zk_ensemble_say_timeout(&findings, 16000, 16000, 2000);
    assert_true(says(SIMBA_LOG_INFO, "session timeout 16000 ms, as asked for: ttl + transition\n"));
    assert_true(says(SIMBA_LOG_INFO, "up to 3000 ms after its time: their tickTime is 2000 ms\n"));
    assert_int_equal(last.lease_ms, 19000);
    said[0] = '\0';
    zk_ensemble_say_timeout(&findings, 16000, 40000, 0);
    assert_true(says(SIMBA_LOG_WARN, "minSessionTimeout"));
    assert_int_equal(last.kind, SIMBA_FINDING_LEASE);
    assert_int_equal(last.lease_ms, 70000);
    zk_ensemble_say_timeout(&findings, 16000, 10000, 4000);
    assert_true(says(SIMBA_LOG_WARN, "maxSessionTimeout"));
    assert_int_equal(last.lease_ms, 16000);
    assert_int_equal(last.outage_ms, 3333);
    zk_ensemble_say_bounds(&findings, s, 2);
    assert_true(says(SIMBA_LOG_INFO, "from 4000 to 40000 ms"));
    zk_ensemble_say_bounds(&findings, s + 1, 1);
    assert_true(says(SIMBA_LOG_INFO, "they do not say"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_read),
        cmocka_unit_test(voters_are_counted),
        cmocka_unit_test(majorities_are_counted),
        cmocka_unit_test(one_server),
        cmocka_unit_test(names_stay_where_they_can),
        cmocka_unit_test(longest_name),
        cmocka_unit_test(nodes_of_others_are_no_mutexes),
        cmocka_unit_test(ids_of_others),
        cmocka_unit_test(two_thirds_after_the_last_write),
        cmocka_unit_test(after_a_pause_it_stands_less),
        cmocka_unit_test(with_little_left_it_writes_sooner),
        cmocka_unit_test(reads_prepare_a_write),
        cmocka_unit_test(moving_is_no_write),
        cmocka_unit_test(never_longer_than_the_leader_thinks),
        cmocka_unit_test(timeouts_name_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
