/* forgets.c: servers that have forgotten owners or tokens, and do not say so. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define GRACE "restart_guard=5s" /* whoever is late by two or three is still guarded */
#define GRACE_OVER_S \
    8 /* the server's uptime is in whole seconds, and is trusted from the second on */

/* Of the mutex "m": a client and its locker. */
struct user {
    simba_client *client;
    simba_locker *locker;
};

static struct user user_at(const char *url)
{
    struct user u;
    struct simba_handle_options o = lease_long();
    CHECK_OK(simba_open(url, NULL, &u.client));
    CHECK_OK(simba_locker_create(u.client, "m", &o, &u.locker));
    return u;
}

static struct user user_of(const struct server *s, const char *query)
{
    char url[256];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?%s", s->port, query);
    return user_at(url);
}

static uint64_t take(const struct user *u)
{
    AWAIT(simba_locker_acquire(u->locker, PATIENCE_MS) == 0);
    return simba_locker_token(u->locker);
}

/* It is free, as far as the server knows, and is not granted. */
static void expect_grace(const struct user *u)
{
    int code;
    AWAIT((code = simba_locker_acquire(u->locker, 0)) != SIMBA_ESTORE); /* it connects */
    if (code != SIMBA_ENOTYET || strstr(simba_error_text(), "restart_guard") == NULL)
        suite_fail(__FILE__, __LINE__, code != 0 ? simba_error_text() : "granted at once");
}

/* At once. */
static void expect_grant(const struct user *u)
{
    int code;
    AWAIT((code = simba_locker_acquire(u->locker, 0)) != SIMBA_ESTORE); /* it connects */
    CHECK_OK(code);
}

static void await_uptime(struct server *s)
{
    AWAIT(run_number(s, "EVAL %s 0",
                     "return tonumber(string.match(redis.call('INFO', 'server'), "
                     "'uptime_in_seconds:(%d+)'))") >= GRACE_OVER_S);
}

/* An owner, who learns of nothing for long, and one who found everything in order. */
struct scene {
    struct server server;
    struct user owner, other;
    uint64_t token;
};

/* beside: NULL, or another server, which is as old as the scene's. */
static void begin_beside(struct scene *s, const char *const *options, struct server *beside)
{
    folder_make();
    *s = (struct scene){.server = {.name = "a"}};
    for (int i = 0; options != NULL && options[i] != NULL; i++)
        s->server.options[i] = options[i];
    server_start(&s->server);
    if (beside != NULL) {
        server_start(beside);
        await_uptime(beside);
    }
    await_uptime(&s->server);
    s->other = user_of(&s->server, GRACE);
    expect_grant(&s->other);
    CHECK_OK(simba_locker_release(s->other.locker));
    s->owner = user_of(&s->server, "restart_guard=off");
    s->token = take(&s->owner);
}

static void begin(struct scene *s, const char *const *options)
{
    begin_beside(s, options, NULL);
}

static void expect_grace_and_end(struct scene *s)
{
    CHECK(run_number(&s->server, "EXISTS simba:{m}") == 0);
    expect_grace(&s->other);
    struct user late = user_of(&s->server, GRACE);
    expect_grace(&late);
    client_close(s->owner.client);
    CHECK(take(&late) > s->token);
    client_close(s->other.client);
    client_close(late.client);
    server_end(&s->server);
    folder_remove();
}

static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

/* T86: its volume is gone. */
static void redis_aof_lost(void)
{
    struct scene s;
    char command[256];
    begin(&s, aof);
    server_kill(&s.server);
    snprintf(command, sizeof command, "rm -r %s", folder_path("appendonlydir"));
    CHECK(system(command) == 0);
    server_start(&s.server);
    expect_grace_and_end(&s);
}

/* T86: the server begins to keep a file, and has loaded nothing. */
static void redis_aof_switched_on(void)
{
    struct scene s;
    begin(&s, NULL);
    server_kill(&s.server);
    for (int i = 0; aof[i] != NULL; i++)
        s.server.options[i] = aof[i];
    server_start(&s.server);
    expect_grace_and_end(&s);
}

/* The first who comes long after a restart does not wait. */
static void redis_restarted_long_ago(void)
{
    struct scene s;
    begin(&s, aof);
    client_close(s.owner.client);
    client_close(s.other.client);
    server_kill(&s.server);
    server_start(&s.server);
    await_uptime(&s.server);
    s.other = user_of(&s.server, GRACE);
    expect_grant(&s.other);
    CHECK(simba_locker_token(s.other.locker) > s.token);
    client_close(s.other.client);
    server_end(&s.server);
    folder_remove();
}

/* Its owner is forgotten, and the connections stay. */
static void redis_emptied(void)
{
    struct scene s;
    begin(&s, NULL);
    run(&s.server, "FLUSHALL");
    expect_grace_and_end(&s);
}

/* Nobody else was there, and the server says no more that it was emptied. */
static void redis_emptied_and_reset(void)
{
    struct scene s;
    begin(&s, NULL);
    client_close(s.other.client);
    run(&s.server, "FLUSHALL");
    run(&s.server, "CONFIG RESETSTAT");
    s.other = user_of(&s.server, GRACE);
    expect_grace_and_end(&s);
}

/* A server of long ago, to which nobody was connected when something was done to it. */
static void redis_emptied_unseen(void)
{
    static const char *const done[] = {"FLUSHALL ASYNC", "FLUSHDB",          "SWAPDB 0 1",
                                       "DEBUG SLEEP 0",  "CONFIG RESETSTAT", "PING"};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    enum { COUNT = sizeof done / sizeof *done };
    struct server each[COUNT];
    folder_make();
    for (int i = 0; i < COUNT; i++) {
        each[i] = (struct server){.name = names[i]};
        server_start(&each[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        await_uptime(&each[i]);
        if (i < COUNT - 1)
            CHECK(run(&each[i], done[i])->type == REDIS_REPLY_STATUS);
        struct user u = user_of(&each[i], GRACE);
        if (i < COUNT - 1)
            expect_grace(&u);
        else
            expect_grant(&u);
        client_close(u.client);
        server_end(&each[i]);
    }
    folder_remove();
}

/* ---- another database in the place of ours ------------------------------------------------- */

static void swap(struct server *s)
{
    run(s, "SWAPDB 0 1");
}

/* T126: away and back. Meanwhile somebody got the mutex, in the other database. */
static void redis_swapped_back(void)
{
    struct scene s;
    begin(&s, NULL);
    CHECK_OK(simba_locker_release(s.owner.locker));
    swap(&s.server);
    s.token = take(&s.owner);
    swap(&s.server);
    run(&s.server, "CONFIG RESETSTAT");
    expect_grace_and_end(&s);
}

/* T126: the same without the wait. Tokens still rise. */
static void redis_swapped_tokens(void)
{
    struct scene s;
    begin(&s, NULL);
    CHECK_OK(simba_locker_release(s.owner.locker));
    for (int i = 0; i < 4; i++) {
        swap(&s.server);
        uint64_t token = take(&s.owner);
        CHECK(token > s.token);
        s.token = token;
        CHECK_OK(simba_locker_release(s.owner.locker));
    }
    client_close(s.owner.client);
    client_close(s.other.client);
    server_end(&s.server);
    folder_remove();
}

/* T126: the database that comes is one that Simba has used. */
static void redis_swapped_with_used(void)
{
    char url[256];
    struct scene s;
    begin(&s, NULL);
    client_close(s.other.client);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d/1?" GRACE, s.server.port);
    s.other = user_at(url);
    nap(GRACE_OVER_S * 1000);
    take(&s.other);
    CHECK_OK(simba_locker_release(s.other.locker));
    client_close(s.other.client);
    swap(&s.server);
    run(&s.server, "CONFIG RESETSTAT");
    s.other = user_of(&s.server, GRACE);
    expect_grace_and_end(&s);
}

/* It expires, so nothing but a renewal makes it last longer than it did. */
static bool lasts_longer(struct server *s, long long *left)
{
    long long before = *left;
    *left = run_number(s, "PTTL simba:{m}");
    return *left > before;
}

static void await_renewal(struct server *s)
{
    long long left = run_number(s, "PTTL simba:{m}");
    AWAIT(lasts_longer(s, &left));
}

/* T126: away and back before the owner renews, and away for good. To those who come then, the other
 * database is the one that they know. */
static void redis_swapped_thrice(void)
{
    struct scene s;
    struct simba_handle_options o = lease(6000, 4000);
    begin(&s, NULL);
    CHECK_OK(simba_locker_release(s.owner.locker));
    simba_locker_destroy(s.owner.locker);
    o.renew_ms = 3000;
    CHECK_OK(simba_locker_create(s.owner.client, "m", &o, &s.owner.locker));
    s.token = take(&s.owner);
    await_renewal(&s.server);
    swap(&s.server);
    expect_grace(&s.other);
    swap(&s.server);
    nap(GRACE_OVER_S * 1000);
    await_renewal(&s.server);
    CHECK(simba_locker_is_held(s.owner.locker));
    swap(&s.server);
    expect_grace_and_end(&s);
}

/* ---- keys that are thrown away -------------------------------------------------------------- */

/* The owner's key goes right after a renewal, and somebody else owns the mutex at once. Since when. */
static int64_t take_evicted(struct scene *s)
{
    await_renewal(&s->server);
    int64_t since = simba_now();
    run(&s->server, "CONFIG SET maxmemory 1");
    CHECK(run_number(&s->server, "EXISTS simba:{m}") == 0);
    run(&s->server, "CONFIG SET maxmemory 0");
    expect_grant(&s->other);
    CHECK(simba_locker_token(s->other.locker) > simba_locker_token(s->owner.locker));
    return since;
}

/* T36: two owners, as docs/guides/redis.md says for how long. The first one learns of it by its next renewal; if
 * the server does not answer that, it goes on until its own deadline. */
static void redis_evicted_keys(void)
{
    struct scene s;
    struct simba_handle_options o = lease(6000, 2000);
    begin(&s, (const char *const[]){"--maxmemory-policy", "volatile-ttl", NULL});
    CHECK_OK(simba_locker_release(s.owner.locker));
    simba_locker_destroy(s.owner.locker);
    o.renew_ms = 1500;
    CHECK_OK(simba_locker_create(s.owner.client, "m", &o, &s.owner.locker));
    take(&s.owner);
    int64_t since = take_evicted(&s);
    AWAIT(!simba_locker_is_held(s.owner.locker));
    CHECK(simba_now() - since < 5500);
    CHECK(simba_locker_release(s.owner.locker) == SIMBA_ELOST);
    CHECK_OK(simba_locker_release(s.other.locker));
    take(&s.owner);
    since = take_evicted(&s);
    CHECK(kill(s.server.pid, SIGSTOP) == 0);
    AWAIT(!simba_locker_is_held(s.owner.locker));
    CHECK(simba_now() - since > 5500 && simba_now() - since <= 8000);
    CHECK(kill(s.server.pid, SIGCONT) == 0);
    client_close(s.owner.client);
    client_close(s.other.client);
    server_end(&s.server);
    folder_remove();
}

/* ---- another server in its place ----------------------------------------------------------- */

static void follow(struct server *s, const struct server *master)
{
    run(s, "REPLICAOF 127.0.0.1 %d", master->port);
    AWAIT(strstr(run(s, "INFO replication")->str, "master_link_status:up") != NULL);
}

/* T87: connections that stay open learn of a demotion and a promotion, though they sent nothing
 * meanwhile. */
static void redis_demoted_and_promoted(void)
{
    struct scene s;
    begin(&s, NULL);
    struct server second = {.name = "second"};
    server_start(&second);
    follow(&s.server, &second); /* it knows nothing of the grant */
    run(&s.server, "REPLICAOF NO ONE");
    expect_grace_and_end(&s);
}

/* T87: the same, with nothing new from the master in between; a partition's end may look so. */
static void redis_promoted_unchanged(void)
{
    struct scene s;
    begin(&s, NULL);
    client_close(s.owner.client);
    AWAIT(run_number(&s.server, "EXISTS simba:{m}") == 0);
    run(&s.server, "REPLICAOF 127.0.0.1 1");
    run(&s.server, "REPLICAOF NO ONE");
    expect_grace(&s.other);
    CHECK(take(&s.other) > s.token);
    client_close(s.other.client);
    server_end(&s.server);
    folder_remove();
}

/* T87: the new master has forgotten that it was a replica before anybody asked. */
static void redis_promotion_forgotten(void)
{
    struct scene s;
    struct server second = {.name = "second", .options = {"--repl-backlog-ttl", "1"}};
    begin_beside(&s, NULL, &second);
    CHECK_OK(simba_locker_release(s.owner.locker));
    follow(&second, &s.server);
    run(&second, "REPLICAOF 127.0.0.1 1"); /* it hears no more of its master */
    s.token = take(&s.owner);
    server_kill(&s.server);
    run(&second, "REPLICAOF NO ONE");
    AWAIT(strstr(run(&second, "INFO replication")->str, "master_replid2:00000000") != NULL);
    client_close(s.other.client);
    s.other = user_of(&second, GRACE);
    s.server = second;
    expect_grace_and_end(&s);
}

static long long term_of(struct server *sentinel)
{
    const redisReply *r = run(sentinel, "SENTINEL MASTER main");
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (strcmp(r->element[i]->str, "config-epoch") == 0)
            return strtoll(r->element[i + 1]->str, NULL, 10);
    }
    return -1;
}

/* What another sentinel says after two failovers: away from this master, and back to it. */
static void say_two_failovers(struct server *master)
{
    run(master, "PUBLISH __sentinel__:hello 127.0.0.1,1,%s,2,main,127.0.0.1,%d,2",
        "0123456789012345678901234567890123456789", master->port);
}

/* What was sent to the master before it hung it carries out when it goes on. The client has
 * given that up, and must not take it for its own: others have owned the mutex since. */
static void expect_no_old_grant(struct server *s, const struct user *u)
{
    int code;
    run(s, "SET simba:{m} %s PX 60000", simba_locker_id(u->locker));
    run(s, "SET simba:{m}:token 7 PX 60000");
    AWAIT((code = simba_locker_acquire(u->locker, 0)) != SIMBA_ESTORE);
    CHECK(code == SIMBA_EHELD);
    run(s, "DEL simba:{m} simba:{m}:token");
}

/* T87: the master hung and was replaced, and is used again before it could be made a replica. It
 * knows nothing of that, but the sentinels do. */
static void redis_used_again(void)
{
    char url[256];
    struct scene s;
    begin(&s, NULL);
    CHECK_OK(simba_locker_release(s.owner.locker));
    client_close(s.owner.client);
    struct server sentinel = {.name = "sentinel", .watches = &s.server};
    server_start(&sentinel);
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d?master=main&" GRACE, sentinel.port);
    struct user early = user_at(url);
    AWAIT(simba_locker_acquire(early.locker, 0) == 0); /* it connects, and waits for nothing */
    s.token = simba_locker_token(early.locker);
    CHECK_OK(simba_locker_release(early.locker));
    AWAIT((say_two_failovers(&s.server), term_of(&sentinel)) == 2);
    struct user late = user_at(url);
    expect_no_old_grant(&s.server, &late);
    expect_grace(&late);
    expect_grace(&s.other); /* who asks no sentinel finds what others have noted */
    expect_grace(&early);
    CHECK(take(&late) > s.token);
    CHECK_OK(simba_locker_release(late.locker));
    CHECK(simba_locker_acquire(s.other.locker, 0) == 0); /* all are of one mind */
    CHECK_OK(simba_locker_release(s.other.locker));
    CHECK(simba_locker_acquire(early.locker, 0) == 0);
    client_close(early.client);
    client_close(late.client);
    client_close(s.other.client);
    server_end(&sentinel);
    server_end(&s.server);
    folder_remove();
}

/* ---- the clock ----------------------------------------------------------------------------- */

static int64_t *map_step(void)
{
    int fd = open(folder_path("step"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0);
    int64_t *step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(step != MAP_FAILED);
    close(fd);
    return step;
}

/* T88: nothing was lost, only the clock is set back after the server's restart. */
static void redis_clock_set_back(void)
{
    char step_file[256];
    folder_make();
    struct server s = {.name = "a", .clock = step_file};
    snprintf(step_file, sizeof step_file, "%s", folder_path("step"));
    for (int i = 0; aof[i] != NULL; i++)
        s.options[i] = aof[i];
    int64_t *step_us = map_step();
    server_start(&s);
    struct user u = user_of(&s, "restart_guard=off");
    uint64_t token = take(&u), last = token;
    CHECK_OK(simba_locker_release(u.locker));
    client_close(u.client);
    server_kill(&s);
    server_start(&s);
    for (int round = 0; round < 3; round++) {
        struct simba_owner o;
        u = user_of(&s, "restart_guard=off");
        CHECK_OK(simba_read(u.client, "m", PATIENCE_MS, &o)); /* the connection is there */
        *step_us -= 3600000000;
        token = take(&u);
        CHECK(token > last);
        last = token;
        CHECK_OK(simba_locker_release(u.locker));
        client_close(u.client);
    }
    CHECK(munmap(step_us, sizeof *step_us) == 0);
    server_end(&s);
    folder_remove();
}

const struct test redis_forget_tests[] = {
    {"redis_aof_lost", redis_aof_lost, REDIS_ONLY, 0},
    {"redis_aof_switched_on", redis_aof_switched_on, REDIS_ONLY, 0},
    {"redis_restarted_long_ago", redis_restarted_long_ago, REDIS_ONLY, 0},
    {"redis_emptied", redis_emptied, REDIS_ONLY, 0},
    {"redis_emptied_and_reset", redis_emptied_and_reset, REDIS_ONLY, 0},
    {"redis_emptied_unseen", redis_emptied_unseen, REDIS_ONLY, 0},
    {"redis_swapped_back", redis_swapped_back, REDIS_ONLY, 0},
    {"redis_swapped_tokens", redis_swapped_tokens, REDIS_ONLY, 0},
    {"redis_swapped_with_used", redis_swapped_with_used, REDIS_ONLY, 0},
    {"redis_swapped_thrice", redis_swapped_thrice, REDIS_ONLY, 0},
    {"redis_evicted_keys", redis_evicted_keys, REDIS_ONLY, 0},
    {"redis_demoted_and_promoted", redis_demoted_and_promoted, REDIS_ONLY, 0},
    {"redis_promoted_unchanged", redis_promoted_unchanged, REDIS_ONLY, 0},
    {"redis_promotion_forgotten", redis_promotion_forgotten, REDIS_ONLY, 0},
    {"redis_used_again", redis_used_again, REDIS_ONLY, 0},
    {"redis_clock_set_back", redis_clock_set_back, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
