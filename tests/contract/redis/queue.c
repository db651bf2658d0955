/* queue.c: what is in the server, who is woken, and what messages are worth. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

/* Long before anybody looks behind the messages, which is every five seconds. */
#define BY_MESSAGE_MS 4000

static struct server server;

static void begin(void)
{
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
}

static void end(void)
{
    server_end(&server);
    folder_remove();
}

static struct peer start(struct simba_handle_options like)
{
    struct peer p = {.url = server.url, .mutex = "m", .like = like};
    peer_start(&p);
    return p;
}

static uint64_t own(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
    return peer_await_owner(p);
}

static long long waiting(void)
{
    return run_number(&server, "ZCARD simba:{m}:contender");
}

/* In the queue, and it hears. */
static void wait_for(struct peer *p)
{
    long long before = waiting();
    CHECK(peer_number(p, "start") == 0);
    AWAIT(waiting() == before + 1);
    AWAIT(run_number(&server, "EVAL %s 0",
                     "return #redis.call('PUBSUB', 'CHANNELS', 'simba:{m}:*')") > before);
}

/* ---- the wire ------------------------------------------------------------------------------ */

/* As the JVM's Simba finds it. */
static void redis_wire(void)
{
    begin();
    char id[SIMBA_ID_MAX + 1];
    struct peer a = start(lease(30000, 20000)), b = start(lease_long());
    redisContext *subscriber = redisConnectUnix(server.socket);
    CHECK(subscriber != NULL && subscriber->err == 0);
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE simba:{m}"));
    uint64_t token = own(&a);
    const redisReply *r = run(&server, "GET simba:{m}");
    CHECK(r->type == REDIS_REPLY_STRING && r->len <= SIMBA_ID_MAX);
    snprintf(id, sizeof id, "%s", r->str);
    long long left = run_number(&server, "PTTL simba:{m}");
    CHECK(left > 30000 && left <= 50000);
    CHECK((uint64_t)run_number(&server, "GET simba:{m}:token") == token);
    CHECK((uint64_t)run_number(&server, "GET simba:{m}:fence") == token);
    CHECK(run_number(&server, "PTTL simba:{m}:fence") == -1);
    CHECK(run_number(&server, "PTTL simba:{m}:token") > 30000);
    wait_for(&b);
    r = run(&server, "ZRANGE simba:{m}:contender 0 -1 WITHSCORES");
    CHECK(r->elements == 2 && strcmp(r->element[0]->str, id) != 0);
    CHECK(strchr(r->element[1]->str, '.') != NULL);                 /* T38: not whole seconds */
    CHECK(run_number(&server, "PTTL simba:{m}:contender") > 60000); /* T31 */
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    CHECK(waiting() == 0); /* T30 */
    static const char *const heard[] = {"acquired@@", "released@@", "acquired@@"};
    for (int i = 0; i < 3; i++) {
        redisReply *m = NULL;
        CHECK(redisGetReply(subscriber, (void **)&m) == REDIS_OK && m->elements == 3);
        CHECK(strncmp(m->element[2]->str, heard[i], 10) == 0);
        CHECK((strcmp(m->element[2]->str + 10, id) == 0) == (i < 2));
        freeReplyObject(m);
    }
    redisFree(subscriber);
    peer_end(&a);
    peer_end(&b);
    end();
}

/* A JVM of 3.x owns it, and renews without knowing of tokens; then it releases as those do. */
static void redis_jvm_owner(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 30000");
    struct peer a = start(lease_long());
    wait_for(&a);
    for (int i = 0; i < 4; i++) {
        nap(300);
        run(&server, "SET simba:{m} 0:1@jvm XX PX 30000");
        CHECK(peer_number(&a, "token") == 0);
    }
    run(&server, "DEL simba:{m}");
    const redisReply *r = run(&server, "ZPOPMIN simba:{m}:contender");
    char channel[256];
    snprintf(channel, sizeof channel, "simba:{m}:%s", r->element[0]->str);
    CHECK(run_number(&server, "PUBLISH %s released@@0:1@jvm", channel) == 1);
    peer_await_owner(&a);
    CHECK(peer_number(&a, "stop") == 0);
    /* And 4.x, which tells all. */
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    wait_for(&a);
    AWAIT(run(&server, "PUBSUB NUMSUB simba:{m}")->element[1]->integer == 1);
    run(&server, "DEL simba:{m}");
    CHECK(run_number(&server, "PUBLISH simba:{m} released@@0:1@jvm") == 1);
    peer_await_owner(&a);
    peer_end(&a);
    end();
}

static void jvm_changes(const char *what)
{
    if (strcmp(what, "acquired") == 0)
        run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    else
        run(&server, "DEL simba:{m}");
    CHECK(run_number(&server, "PUBLISH simba:{m} %s@@0:1@jvm", what) == 1);
}

static void nothing_more(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

/* An observer sees a JVM of 3.x come and go, though all its tenures seem to have one token: that
 * of an owner whose key somebody has deleted. */
/* shows: observers */
static void redis_jvm_observed(void)
{
    begin();
    run(&server, "SET simba:{m}:token 7 PX 60000");
    simba_client *s = NULL;
    simba_observer *w = NULL;
    struct simba_state seen;
    struct simba_handle_options o = lease_long();
    o.on_changed = nothing_more;
    CHECK_OK(simba_open(server.url, NULL, &s));
    CHECK_OK(simba_observer_create(s, "m", &o, &w));
    AWAIT(run(&server, "PUBSUB NUMSUB simba:{m}")->element[1]->integer == 1);
    for (int i = 0; i < 3; i++) {
        jvm_changes("acquired");
        AWAIT((simba_observer_state(w, &seen), strcmp(seen.after.id, "0:1@jvm") == 0));
        jvm_changes("released");
        AWAIT((simba_observer_state(w, &seen), seen.after.id[0] == '\0'));
    }
    client_close(s);
    end();
}

/* ---- who is woken -------------------------------------------------------------------------- */

/* T31: a thousand that are gone stand before the one who is not. */
static void redis_dead_waiters(void)
{
    begin();
    struct peer a = start(lease_long()), b = start(lease_long());
    own(&a);
    wait_for(&b);
    run(&server, "EVAL %s 1 simba:{m}:contender",
        "for i = 1, 1000 do redis.call('ZADD', KEYS[1], i, 'dead-' .. i) end");
    CHECK(waiting() == 1001);
    CHECK(peer_number(&a, "stop") == 0);
    int64_t released = simba_now();
    peer_await_owner(&b);
    CHECK(simba_now() - released < BY_MESSAGE_MS);
    CHECK(waiting() == 0);
    peer_end(&a);
    peer_end(&b);
    end();
}

/* T30: who takes over what has expired leaves the queue, so its release wakes another and not
 * itself. */
static void redis_takeover(void)
{
    begin();
    struct peer a = start(lease_steady()), b = start(lease_long()), c = start(lease_long());
    own(&a);
    wait_for(&b);
    peer_kill(&a);
    uint64_t token = peer_await_owner(&b);
    CHECK(waiting() == 0);
    wait_for(&c);
    CHECK(peer_number(&b, "stop") == 0);
    int64_t released = simba_now();
    CHECK(peer_await_owner(&c) > token);
    CHECK(simba_now() - released < BY_MESSAGE_MS);
    peer_end(&b);
    peer_end(&c);
    end();
}

/* Really stopped, and all that it has sent before is done. */
static void stop_process(const struct peer *p)
{
    int status;
    CHECK(kill(p->pid, SIGSTOP) == 0);
    CHECK(waitpid(p->pid, &status, WUNTRACED) == p->pid && WIFSTOPPED(status));
    CHECK(run_number(&server, "EXISTS simba:{m}") == 1);
}

/* The first in the queue is stopped: it hears, and does nothing. */
static void redis_stopped_waiter(void)
{
    begin();
    struct peer a = start(lease_long()), b = start(lease_long()), c = start(lease_long());
    uint64_t token = own(&a);
    wait_for(&b);
    wait_for(&c);
    stop_process(&b);
    CHECK(peer_number(&a, "stop") == 0);
    int64_t released = simba_now();
    CHECK(peer_await_owner(&c) > token);
    CHECK(simba_now() - released < BY_MESSAGE_MS); /* it waits for up to a second of that */
    CHECK(kill(b.pid, SIGCONT) == 0);
    CHECK(peer_number(&b, "token") == 0);
    CHECK(peer_number(&c, "stop") == 0);
    peer_await_owner(&b);
    peer_end(&a);
    peer_end(&b);
    peer_end(&c);
    end();
}

/* Whom the next wake-up is for. */
static void check_woken(redisContext *subscriber, const char *id)
{
    redisReply *m = NULL;
    CHECK(redisGetReply(subscriber, (void **)&m) == REDIS_OK && m->elements == 4);
    CHECK(strncmp(m->element[3]->str, "released@@", 10) == 0);
    CHECK(strcmp(m->element[2]->str + strlen("simba:{m}:"), id) == 0);
    freeReplyObject(m);
}

/* T38: in the order in which they came, though within one second. Those whose turn it is not are
 * stopped: they would step in for one that is late. */
static void redis_in_order(void)
{
    begin();
    enum { WAITING = 5 };
    char id[WAITING][SIMBA_ID_MAX + 1];
    struct peer a = start(lease_long()), p[WAITING];
    uint64_t token = own(&a);
    for (int i = 0; i < WAITING; i++) {
        p[i] = start(lease_long());
        wait_for(&p[i]);
        const redisReply *r = run(&server, "ZRANGE simba:{m}:contender -1 -1");
        snprintf(id[i], sizeof id[i], "%s", r->element[0]->str);
        CHECK(i == 0 || strcmp(id[i], id[i - 1]) != 0);
    }
    redisContext *subscriber = redisConnectUnix(server.socket);
    CHECK(subscriber != NULL && subscriber->err == 0);
    freeReplyObject(redisCommand(subscriber, "PSUBSCRIBE simba:{m}:*"));
    for (int i = 1; i < WAITING; i++)
        stop_process(&p[i]);
    CHECK(peer_number(&a, "stop") == 0);
    for (int i = 0; i < WAITING; i++) {
        check_woken(subscriber, id[i]);
        uint64_t next = peer_await_owner(&p[i]);
        CHECK(next > token);
        token = next;
        if (i + 1 < WAITING)
            CHECK(kill(p[i + 1].pid, SIGCONT) == 0);
        CHECK(peer_number(&p[i], "stop") == 0);
    }
    redisFree(subscriber);
    for (int i = 0; i < WAITING; i++)
        peer_end(&p[i]);
    peer_end(&a);
    end();
}

/* The wake-up was for one that gives up: it is passed on. */
static void redis_passed_on(void)
{
    begin();
    struct peer a = start(lease_long()), b = start(lease_long()), c = start(lease_long());
    own(&a);
    wait_for(&b);
    wait_for(&c);
    stop_process(&b);
    run(&server, "DEL simba:{m} simba:{m}:token");
    const redisReply *r = run(&server, "ZPOPMIN simba:{m}:contender");
    char channel[256];
    snprintf(channel, sizeof channel, "simba:{m}:%s", r->element[0]->str);
    peer_send(&b, "stop");
    CHECK(run_number(&server, "PUBLISH %s released@@x", channel) == 1);
    CHECK(kill(b.pid, SIGCONT) == 0);
    CHECK(peer_reply(&b, PATIENCE_MS)[0] == '0');
    AWAIT(peer_number(&c, "token") != 0 || peer_number(&a, "token") != 0);
    peer_end(&a);
    peer_end(&b);
    peer_end(&c);
    end();
}

/* ---- messages ------------------------------------------------------------------------------ */

/* T32: late, doubled, forged, of another database, or no message of ours at all. */
static void redis_forged_messages(void)
{
    begin();
    struct peer a = start(lease_long()), b = start(lease_long());
    uint64_t token = own(&a);
    wait_for(&b);
    char id[SIMBA_ID_MAX + 1], channel[256];
    snprintf(id, sizeof id, "%s", run(&server, "ZRANGE simba:{m}:contender 0 0")->element[0]->str);
    snprintf(channel, sizeof channel, "simba:{m}:%s", id);
    static const char *const forged[] = {
        "acquired@@", "released@@", "acquired@@@@", "released", "", "@@", "released@@released@@"};
    for (int db = 0; db < 2; db++) {
        run(&server, "SELECT %d", db);
        for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
            CHECK(run_number(&server, "PUBLISH %s %s%s", channel, forged[i], id) == 1);
            CHECK(run_number(&server, "PUBLISH simba:{m} %s%s", forged[i], id) >= 1);
            CHECK(run_number(&server, "PUBLISH %s %b", channel, "released@@\0\r\n$", (size_t)14) ==
                  1);
        }
        CHECK(peer_ask(&b, "read")[0] == '0');
        CHECK(peer_number(&b, "token") == 0);
        CHECK((uint64_t)peer_number(&a, "token") == token);
    }
    run(&server, "SELECT 0");
    CHECK(peer_number(&a, "stop") == 0);
    peer_await_owner(&b);
    peer_end(&a);
    peer_end(&b);
    end();
}

/* ---- what is not ours ---------------------------------------------------------------------- */

/* T35. */
static void redis_foreign_value(void)
{
    begin();
    struct peer a = start(lease_long());
    run(&server, "SET simba:{m} something");
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(atoi(peer_ask(&a, "read")) == SIMBA_ESCHEMA);
    CHECK(waiting() == 0);
    CHECK(strcmp(run(&server, "GET simba:{m}")->str, "something") == 0);
    run(&server, "DEL simba:{m}");
    run(&server, "RPUSH simba:{m} something");
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(atoi(peer_ask(&a, "read")) == SIMBA_ESCHEMA);
    CHECK(waiting() == 0);
    CHECK(run_number(&server, "LLEN simba:{m}") == 1);
    run(&server, "DEL simba:{m}");
    run(&server, "SET simba:{m}:fence many");
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(run_number(&server, "EXISTS simba:{m} simba:{m}:token") == 0);
    run(&server, "SET simba:{m}:fence 9007199254740992"); /* scripts cannot count higher */
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(run_number(&server, "EXISTS simba:{m} simba:{m}:token") == 0);
    run(&server, "DEL simba:{m}:fence");
    run(&server, "RPUSH simba:{m}:fence something");
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(run_number(&server, "LLEN simba:{m}:fence") == 1);
    run(&server, "DEL simba:{m}:fence");
    run(&server, "SET simba:{m}:contender something");
    CHECK(peer_number(&a, "acquire 0") == SIMBA_ESCHEMA);
    CHECK(run_number(&server, "EXISTS simba:{m}") == 0);
    run(&server, "DEL simba:{m}:contender");
    CHECK(peer_number(&a, "start") == 0);
    peer_await_owner(&a);
    run(&server, "SET simba:{m}:contender something"); /* it can let go all the same */
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(run_number(&server, "EXISTS simba:{m}") == 0);
    peer_end(&a);
    end();
}

/* T34, T39. */
static void redis_names_refused(void)
{
    simba_client *s = client_open();
    simba_locker *l = NULL;
    static const char *const ids[] = {"a@@b", "@@", "a@", "@"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct simba_handle_options o = lease_long();
        o.id = ids[i];
        CHECK_REFUSED(simba_locker_create(s, "m", &o, &l), SIMBA_EINVAL, "'@@'");
    }
    CHECK_REFUSED(simba_locker_create(s, "}m", NULL, &l), SIMBA_EINVAL, "'}'");
    client_close(s);
}

static void redis_urls_refused(void)
{
    static const struct {
        const char *url, *part;
    } bad[] = {
        {"redis://h/x", "number"},
        {"redis://h/-1", "number"},
        {"redis://h/99999999999999999999", "number"},
        {"redis://a,b", "several hosts"},
        {"redis://user@h", "password"},
        {"redis://h?master=x", "sentinel"},
        {"redis://h?tls_ca=/x", "rediss"},
        {"redis://h?restart_guard=maybe", "restart_guard"},
        {"redis://h?restart_gard=off", "restart_guard"},
        {"redis://h?password_file=/does/not/exist", "password_file"},
        {"redis://:secret@h?password_file=/dev/null", "twice"},
        {"redis://h?db=1", "db"},
        {"rediss://h?tls_ca=/does/not/exist", "tls_ca"},
        {"rediss://h?tls_cert=/x", "tls_key"},
        {"rediss://h?tls_verify=maybe", "tls_verify"},
        {"redis+unix://", "redis+unix:///"},
        {"redis+unix:///s?db=x", "number"},
        {"redis+sentinel://h", "master"},
        {"rediss+sentinel://h", "master"},
        {"redis+sentinel://h?master=x&sentinel_tls=on", "rediss+sentinel"},
        {"redis+sentinel://h?master=x&tls_name=y", "rediss+sentinel"},
        {"rediss://h?sentinel_tls=off", "sentinel"},
        {"redis+tcp://h", "redis+tcp"},
    };
    simba_client *s = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int code = simba_open(bad[i].url, NULL, &s);
        if ((code != SIMBA_EINVAL && code != SIMBA_EMODULE) ||
            strstr(simba_error_text(), bad[i].part) == NULL ||
            strstr(simba_error_text(), "secret") != NULL)
            suite_fail(__FILE__, __LINE__, simba_error_text());
    }
}

/* ---- very many that begin at once ---------------------------------------------------------- */

#define MANY 9000
#define ASK_AT_ONCE 8192 /* as src/runtime/turn.c has it */

static uint64_t attempts(simba_client *s)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    return m.attempts;
}

static uint64_t owned(simba_client *s)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    return m.owned;
}

/* A server that does not answer yet is not asked by all of them. When it does, all get theirs. */
static void redis_many_begin(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct simba_handle_options h = lease_long();
    simba_client *s = NULL;
    simba_contender *c = NULL;
    begin();
    o.command_timeout_ms = PATIENCE_MS;
    CHECK_OK(simba_open(server.url, &o, &s));
    CHECK_OK(simba_contender_create(s, "first", &h, &c));
    CHECK_OK(simba_contender_start(c));
    AWAIT(simba_contender_is_owner(c)); /* it is connected */
    CHECK(kill(server.pid, SIGSTOP) == 0);
    for (int i = 0; i < MANY; i++) {
        char mutex[32];
        snprintf(mutex, sizeof mutex, "m%d", i);
        CHECK_OK(simba_contender_create(s, mutex, &h, &c));
        CHECK_OK(simba_contender_start(c));
    }
    AWAIT(attempts(s) >= ASK_AT_ONCE); /* and perhaps a renewal of the first */
    nap(300);
    CHECK(attempts(s) <= 1 + ASK_AT_ONCE);
    CHECK(kill(server.pid, SIGCONT) == 0);
    AWAIT(owned(s) == 1 + MANY);
    CHECK(attempts(s) == 1 + MANY);
    client_close(s);
    end();
}

const struct test redis_queue_tests[] = {
    {"redis_many_begin", redis_many_begin, REDIS_ONLY, 0},
    {"redis_wire", redis_wire, REDIS_ONLY, 0},
    {"redis_jvm_owner", redis_jvm_owner, REDIS_ONLY, 0},
    {"redis_jvm_observed", redis_jvm_observed, REDIS_ONLY, 0},
    {"redis_dead_waiters", redis_dead_waiters, REDIS_ONLY, 0},
    {"redis_takeover", redis_takeover, REDIS_ONLY, 0},
    {"redis_stopped_waiter", redis_stopped_waiter, REDIS_ONLY, 0},
    {"redis_in_order", redis_in_order, REDIS_ONLY, 0},
    {"redis_passed_on", redis_passed_on, REDIS_ONLY, 0},
    {"redis_forged_messages", redis_forged_messages, REDIS_ONLY, 0},
    {"redis_foreign_value", redis_foreign_value, REDIS_ONLY, 0},
    {"redis_names_refused", redis_names_refused, REDIS_ONLY, 0},
    {"redis_urls_refused", redis_urls_refused, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
