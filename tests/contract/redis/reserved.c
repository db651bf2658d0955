/* reserved.c: whose turn it is. What is freed while somebody waits is reserved, for a moment, for the
 * one that is woken; or for another of the same client, which then need not be woken. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define ROUNDS 20

static struct server server;
static simba_client *client;

static void begin(void)
{
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    struct simba_options o = suite_options();
    CHECK_OK(simba_open(server.url, &o, &client));
}

static void end(void)
{
    client_close(client);
    server_end(&server);
    folder_remove();
}

static simba_locker *locker(const char *id)
{
    struct simba_handle_options o = lease_long();
    simba_locker *l = NULL;
    o.id = id;
    CHECK_OK(simba_locker_create(client, "m", &o, &l));
    return l;
}

static bool is_free(void)
{
    return run_number(&server, "EXISTS simba:{m}") == 0;
}

static void *wait_for_it(void *l)
{
    CHECK_CODE(simba_locker_acquire(l, PATIENCE_MS), SIMBA_ECANCELED);
    return NULL;
}

/* Nobody but the one it is reserved for gets it; the next grant writes over the reservation. */
static void redis_reserved(void)
{
    begin();
    simba_locker *a = locker("a"), *b = locker("b");
    run(&server, "SET simba:{m}:token next:a PX 60000");
    CHECK_CODE(acquire_until_refused(b, 0), SIMBA_ENOTYET);
    CHECK(is_free());
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    CHECK((uint64_t)run_number(&server, "GET simba:{m}:token") == simba_locker_token(a));
    CHECK_OK(simba_locker_release(a));
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    CHECK_OK(simba_locker_release(b));
    /* Of one that never ends, or is no reservation, nothing is believed. */
    run(&server, "SET simba:{m}:token next:a");
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    CHECK_OK(simba_locker_release(b));
    run(&server, "SET simba:{m}:token something PX 60000");
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    CHECK_OK(simba_locker_release(b));
    end();
}

/* Also where many are asked for at once, and where nobody is in a queue. */
static void redis_reserved_of_many(void)
{
    begin();
    enum { MANY = 8 };
    struct simba_handle_options o = lease_long();
    simba_contender *c[MANY];
    run(&server, "SET simba:{m3}:fence 4000000000000000"); /* else it is asked for alone */
    run(&server, "SET simba:{m3}:token next:another PX 60000");
    for (int i = 0; i < MANY; i++) {
        char mutex[8];
        snprintf(mutex, sizeof mutex, "m%d", i);
        CHECK_OK(simba_contender_create(client, mutex, &o, &c[i]));
        CHECK_OK(simba_contender_start(c[i]));
    }
    for (int i = 0; i < MANY; i++)
        AWAIT(simba_contender_is_owner(c[i]) ||
              (i == 3 && run_number(&server, "ZCARD simba:{m3}:contender") == 1));
    CHECK(!simba_contender_is_owner(c[3]));
    run(&server, "PEXPIRE simba:{m3}:token 1");
    AWAIT(simba_contender_is_owner(c[3]));
    end();
}

/* It is reserved for one that is stopped, and then gives up instead of taking it: so it is passed on,
 * here to nobody. */
static void redis_reserved_passed_on(void)
{
    begin();
    int status;
    simba_locker *b = locker("b");
    struct peer a = {.url = server.url, .mutex = "m", .like = lease_long()};
    peer_start(&a);
    run(&server, "SET simba:{m} another PX 60000");
    CHECK(peer_number(&a, "start") == 0);
    AWAIT(run_number(&server, "EVAL %s 0",
                     "return #redis.call('PUBSUB', 'CHANNELS', 'simba:{m}:*')") == 1);
    CHECK(kill(a.pid, SIGSTOP) == 0);
    CHECK(waitpid(a.pid, &status, WUNTRACED) == a.pid && WIFSTOPPED(status));
    run(&server, "EVAL %s 2 simba:{m}:contender simba:{m}:token",
        "redis.call('SET', KEYS[2], 'next:' .. redis.call('ZPOPMIN', KEYS[1])[1], 'PX', 60000)");
    run(&server, "DEL simba:{m}");
    CHECK_CODE(acquire_until_refused(b, 0), SIMBA_ENOTYET);
    peer_send(&a, "stop");
    CHECK(kill(a.pid, SIGCONT) == 0);
    CHECK(peer_reply(&a, PATIENCE_MS)[0] == '0');
    AWAIT(run_number(&server, "EXISTS simba:{m} simba:{m}:token") == 0);
    CHECK_OK(simba_locker_acquire(b, PATIENCE_MS));
    peer_end(&a);
    end();
}

/* One that leaves and is not meant changes nothing. */
static void redis_reserved_for_another(void)
{
    begin();
    simba_locker *c = locker("c");
    run(&server, "SET simba:{m} another PX 60000");
    pthread_t waits = spawn(wait_for_it, c);
    AWAIT(run_number(&server, "ZCARD simba:{m}:contender") == 1);
    redisContext *last = redisConnectUnix(server.socket);
    CHECK(last != NULL && last->err == 0);
    freeReplyObject(redisCommand(last, "SUBSCRIBE simba:{m}:last"));
    run(&server, "ZADD simba:{m}:contender 9999999999.5 last");
    run(&server, "SET simba:{m}:token next:z PX 60000");
    run(&server, "DEL simba:{m}");
    CHECK_OK(simba_locker_cancel(c));
    join(waits);
    AWAIT(run(&server, "ZSCORE simba:{m}:contender c")->type == REDIS_REPLY_NIL);
    CHECK(run_number(&server, "ZCARD simba:{m}:contender") == 1);
    CHECK(strcmp(run(&server, "GET simba:{m}:token")->str, "next:z") == 0);
    redisFree(last);
    end();
}

/* What a release leaves behind, as the server saw it. */
static void redis_reserved_by_release(void)
{
    begin();
    simba_locker *a = locker("a");
    redisContext *monitor = redisConnectUnix(server.socket);
    CHECK(monitor != NULL && monitor->err == 0);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    redisContext *subscriber = redisConnectUnix(server.socket);
    CHECK(subscriber != NULL && subscriber->err == 0);
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE simba:{m}:jvm"));
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE simba:{m}:c"));
    static const struct {
        const char *waits, *score, *seen;
    } cases[] = {{"c", "7.25", "\"next:c\" \"PX\" \"100\""}, {"jvm", "7", NULL}};
    for (int i = 0; i < 2; i++) {
        bool is_reserved = false, is_released = false;
        CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
        run(&server, "ZADD simba:{m}:contender %s %s", cases[i].score, cases[i].waits);
        CHECK_OK(simba_locker_release(a));
        while (!is_released) {
            redisReply *m = NULL;
            CHECK(redisGetReply(monitor, (void **)&m) == REDIS_OK);
            is_reserved = is_reserved || strstr(m->str, "\"next:") != NULL;
            CHECK(strstr(m->str, "\"next:") == NULL || cases[i].seen == NULL ||
                  strstr(m->str, cases[i].seen) != NULL);
            is_released = strstr(m->str, "\"released@@a\"") != NULL &&
                          strstr(m->str, "\"simba:{m}\"") != NULL;
            freeReplyObject(m);
        }
        CHECK(is_reserved == (cases[i].seen != NULL)); /* a JVM's does not know of it */
        run(&server, "DEL simba:{m}:token");
    }
    redisFree(subscriber);
    redisFree(monitor);
    end();
}

/* One comes back at once, another has waited: who is first? A waiter that needs longer than the
 * reservation lasts may be overtaken. */
static void redis_not_overtaken(void)
{
    begin();
    int overtaken = 0;
    struct peer p[2];
    for (int i = 0; i < 2; i++) {
        p[i] = (struct peer){.url = server.url, .mutex = "m", .like = lease_long()};
        peer_start(&p[i]);
    }
    struct peer *owner = &p[0], *waiter = &p[1];
    CHECK(peer_number(owner, "start") == 0);
    uint64_t token = peer_await_owner(owner);
    CHECK(peer_number(waiter, "start") == 0);
    for (int i = 0; i < ROUNDS; i++) {
        AWAIT(run_number(&server, "ZCARD simba:{m}:contender") == 1);
        peer_send(owner, "stop");
        peer_send(owner, "start");
        CHECK(peer_reply(owner, PATIENCE_MS)[0] == '0');
        CHECK(peer_reply(owner, PATIENCE_MS)[0] == '0');
        AWAIT((uint64_t)run_number(&server, "GET simba:{m}:fence") > token);
        token = (uint64_t)run_number(&server, "GET simba:{m}:fence");
        AWAIT((uint64_t)peer_number(owner, "token") == token ||
              (uint64_t)peer_number(waiter, "token") == token);
        if ((uint64_t)peer_number(owner, "token") == token) {
            overtaken++;
        } else {
            struct peer *was = owner;
            owner = waiter;
            waiter = was;
        }
    }
    CHECK(overtaken <= ROUNDS / 4);
    peer_end(&p[0]);
    peer_end(&p[1]);
    end();
}

/* ---- within one client --------------------------------------------------------------------- */

/* Takes its turns, each of which ends at once, and remembers their tokens. */
struct turns {
    simba_locker *locker;
    int count;
    uint64_t token[2];
    pthread_t thread;
};

static void *take_turns(void *arg)
{
    struct turns *t = arg;
    for (int i = 0; i < t->count; i++) {
        CHECK_OK(simba_locker_acquire(t->locker, PATIENCE_MS));
        t->token[i] = simba_locker_token(t->locker);
        CHECK_OK(simba_locker_release(t->locker));
    }
    return NULL;
}

static long long waiting(void)
{
    return run_number(&server, "ZCARD simba:{m}:contender");
}

/* In the queue, and it hears. */
static void begin_turns(struct turns *t)
{
    long long before = waiting();
    t->thread = spawn(take_turns, t);
    AWAIT(waiting() == before + 1);
    AWAIT(run(&server, "PUBSUB NUMSUB simba:{m}:%s", simba_locker_id(t->locker))
              ->element[1]
              ->integer == 1);
}

/* Each has asked, and again when it could hear, and that is answered. */
static void await_asked(long long times)
{
    struct simba_owner owner;
    AWAIT(server_calls(&server, "zadd") == times);
    CHECK_OK(simba_read(client, "m", PATIENCE_MS, &owner));
}

/* Above the clock, which tokens are not below: each is the next number, so nobody came in between. */
static void count_tokens(void)
{
    run(&server, "SET simba:{m}:fence 4000000000000000");
}

/* It asks together with the release: nobody needs to be woken, and nobody is. */
static void redis_handed_over(void)
{
    begin();
    count_tokens();
    simba_locker *a = locker("a");
    struct turns b = {.locker = locker("b"), .count = 1};
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    CHECK_OK(simba_locker_release(a)); /* the server knows the scripts */
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    uint64_t token = simba_locker_token(a);
    begin_turns(&b);
    await_asked(2);
    run(&server, "CONFIG RESETSTAT");
    CHECK_OK(simba_locker_release(a));
    join(b.thread);
    CHECK(b.token[0] == token + 1);
    CHECK(server_calls(&server, "publish") == 3); /* to all: a released, b acquired and released */
    CHECK(server_calls(&server, "evalsha") == 3);
    end();
}

/* The release is sent once more when what asked behind it has been answered. */
static void redis_successor_forgotten(void)
{
    begin();
    simba_locker *a = locker("a");
    struct turns b = {.locker = locker("b"), .count = 1};
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    begin_turns(&b);
    run(&server, "SCRIPT FLUSH");
    CHECK_OK(simba_locker_release(a));
    join(b.thread);
    end();
}

/* But another has waited longer. */
static void redis_successor_in_order(void)
{
    begin();
    count_tokens();
    simba_locker *a = locker("a");
    struct turns b = {.locker = locker("b"), .count = 1};
    struct peer p = {.url = server.url, .mutex = "m", .like = lease_long()};
    peer_start(&p);
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    CHECK_OK(simba_locker_release(a)); /* the server knows the scripts */
    CHECK_OK(simba_locker_acquire(a, PATIENCE_MS));
    uint64_t token = simba_locker_token(a);
    CHECK(peer_number(&p, "start") == 0);
    AWAIT(run_number(&server, "EVAL %s 0",
                     "return #redis.call('PUBSUB', 'CHANNELS', 'simba:{m}:*')") == 1);
    AWAIT(waiting() == 1);
    begin_turns(&b);
    await_asked(4);
    CHECK_OK(simba_locker_release(a));
    CHECK(peer_await_owner(&p) == token + 1);
    CHECK(peer_number(&p, "stop") == 0);
    join(b.thread);
    CHECK(b.token[0] == token + 2);
    peer_end(&p);
    end();
}

/* One was woken and hands it over to another of its client, before a process that has waited
 * longer; but not again to one that has had it since. What takes too long on a busy machine is in
 * the order of the queue. */
static void redis_row(void)
{
    begin();
    int in_row = 0, twice = 0;
    struct peer first = {.url = server.url, .mutex = "m", .like = lease_long()}, other = first;
    struct turns a = {.locker = locker("a"), .count = 2}, b = {.locker = locker("b"), .count = 1};
    peer_start(&first);
    peer_start(&other);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(peer_number(&first, "start") == 0);
        peer_await_owner(&first);
        begin_turns(&a);
        CHECK(peer_number(&other, "start") == 0);
        AWAIT(waiting() == 2);
        begin_turns(&b);
        CHECK(peer_number(&first, "stop") == 0);
        uint64_t token = peer_await_owner(&other);
        CHECK(peer_number(&other, "stop") == 0);
        join(a.thread);
        join(b.thread);
        in_row += b.token[0] < token;
        twice += a.token[1] < token;
    }
    CHECK(in_row > 0);
    CHECK(twice <= ROUNDS / 4);
    peer_end(&first);
    peer_end(&other);
    end();
}

const struct test redis_reserved_tests[] = {
    {"redis_reserved", redis_reserved, REDIS_ONLY, 0},
    {"redis_reserved_of_many", redis_reserved_of_many, REDIS_ONLY, 0},
    {"redis_reserved_passed_on", redis_reserved_passed_on, REDIS_ONLY, 0},
    {"redis_reserved_for_another", redis_reserved_for_another, REDIS_ONLY, 0},
    {"redis_reserved_by_release", redis_reserved_by_release, REDIS_ONLY, 0},
    {"redis_not_overtaken", redis_not_overtaken, REDIS_ONLY, 0},
    {"redis_handed_over", redis_handed_over, REDIS_ONLY, 0},
    {"redis_successor_forgotten", redis_successor_forgotten, REDIS_ONLY, 0},
    {"redis_successor_in_order", redis_successor_in_order, REDIS_ONLY, 0},
    {"redis_row", redis_row, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
