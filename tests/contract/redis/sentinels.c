/* sentinels.c: masters that come and go, as sentinels say. */
#include <signal.h>
#include <simba/backend.h>
#include <stdio.h>
#include <string.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define SENTINELS 3
#define GRACE "restart_guard=3s"

/* A master that nobody can make a replica, its replica, and those who watch them. */
struct scene {
    struct server master, replica, sentinel[SENTINELS];
    char port[16], url[256];
    simba_client *client;
};

static bool knows(struct server *sentinel, const char *field, long long value)
{
    const redisReply *r = run(sentinel, "SENTINEL MASTER main");
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (strcmp(r->element[i]->str, field) == 0)
            return strcmp(r->element[i + 1]->str, text) == 0;
    }
    return false;
}

static void begin(struct scene *s, const char *query)
{
    static const char *const names[] = {"s0", "s1", "s2"};
    folder_make();
    signal(SIGPIPE, SIG_IGN); /* a sentinel ends our connections to whom it promotes */
    *s = (struct scene){.master = {.name = "master",
                                   .options = {"--rename-command", "SLAVEOF", "hidden",
                                               "--rename-command", "REPLICAOF", "hidden2"}}};
    server_start(&s->master);
    snprintf(s->port, sizeof s->port, "%d", s->master.port);
    s->replica =
        (struct server){.name = "replica", .options = {"--replicaof", "127.0.0.1", s->port}};
    server_start(&s->replica);
    for (int i = 0; i < SENTINELS; i++) {
        s->sentinel[i] = (struct server){.name = names[i], .watches = &s->master};
        server_start(&s->sentinel[i]);
    }
    snprintf(s->url, sizeof s->url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/0?%s",
             s->sentinel[0].port, s->sentinel[1].port, s->sentinel[2].port, query);
    AWAIT_FOR(SERVER_MS,
              strstr(run(&s->replica, "INFO replication")->str, "master_link_status:up") != NULL);
    for (int i = 0; i < SENTINELS; i++)
        AWAIT_FOR(SERVER_MS, knows(&s->sentinel[i], "num-slaves", 1) &&
                                 knows(&s->sentinel[i], "num-other-sentinels", SENTINELS - 1));
    CHECK_OK(simba_open(s->url, NULL, &s->client));
}

static void end(struct scene *s)
{
    client_close(s->client);
    for (int i = 0; i < SENTINELS; i++) {
        if (s->sentinel[i].pid > 0)
            server_end(&s->sentinel[i]);
    }
    server_end(&s->replica);
    server_end(&s->master);
    folder_remove();
}

/* By hand, while the master is well; it stays a master. */
static void fail_over(struct scene *s)
{
    const char *said;
    /* It refuses while it takes a replica that it has not heard of lately for a bad one. */
    AWAIT_FOR(SERVER_MS, (said = run(&s->sentinel[0], "SENTINEL FAILOVER main")->str,
                          strcmp(said, "OK") == 0 || strstr(said, "INPROG") != NULL));
    AWAIT_FOR(SERVER_MS, strstr(run(&s->replica, "INFO replication")->str, "role:master") != NULL);
    for (int i = 0; i < SENTINELS; i++)
        AWAIT_FOR(SERVER_MS, knows(&s->sentinel[i], "port", s->replica.port));
    CHECK(strstr(run(&s->master, "INFO replication")->str, "role:master") != NULL);
}

static simba_locker *locker_of(simba_client *client, struct simba_handle_options like)
{
    simba_locker *l;
    CHECK_OK(simba_locker_create(client, "m", &like, &l));
    return l;
}

/* The master is killed, and the tenure goes on at the replica. Of the sentinels one is not there. */
static void redis_sentinel_failover(void)
{
    struct scene s;
    begin(&s, "master=main&restart_guard=off");
    struct peer a = {.url = s.url, .mutex = "m", .like = lease_long()}, b = a;
    peer_start(&a);
    peer_start(&b);
    CHECK(peer_number(&a, "start") == 0);
    uint64_t token = peer_await_owner(&a);
    CHECK(peer_number(&b, "start") == 0);
    CHECK(peer_number(&b, "wait") == 0);
    AWAIT((uint64_t)run_number(&s.replica, "GET simba:{m}:token") == token);
    server_kill(&s.sentinel[0]);
    server_kill(&s.master);
    /* A sentinel that stood still for two seconds does nothing for thirty. */
    AWAIT_FOR(SERVER_MS, strstr(run(&s.replica, "INFO replication")->str, "role:master") != NULL);
    AWAIT(peer_ask(&a, "read")[0] == '0');
    CHECK((uint64_t)peer_number(&a, "token") == token);
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    server_start(&s.master);
    end(&s);
}

/* T106: after a failover the old master runs on, as a master. Who is still connected to it gets
 * nothing there. */
static void redis_old_master_grants(void)
{
    struct scene s;
    simba_client *other;
    begin(&s, "master=main&" GRACE);
    simba_locker *early = locker_of(s.client, lease_long());
    CHECK_OK(simba_locker_acquire(early, SERVER_MS));
    CHECK_OK(simba_locker_release(early));
    fail_over(&s);
    CHECK_OK(simba_open(s.url, NULL, &other));
    simba_locker *late = locker_of(other, lease_long());
    CHECK_OK(simba_locker_acquire(late, SERVER_MS));
    CHECK(run_number(&s.master, "EXISTS simba:{m}") == 0); /* there it is free */
    int code;
    AWAIT((code = simba_locker_acquire(early, 0)) != SIMBA_ESTORE); /* it connects anew */
    CHECK(code == SIMBA_EHELD);
    CHECK_OK(simba_locker_release(late));
    CHECK_OK(simba_locker_acquire(early, PATIENCE_MS));
    client_close(other);
    end(&s);
}

/* T106: and who owns a mutex, of which the new master knows nothing, does not own it for longer
 * than its lease. */
static void redis_old_master_renews(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease_short());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    fail_over(&s);
    AWAIT((run(&s.replica, "DEL simba:{m} simba:{m}:token"), !simba_locker_is_held(l)));
    CHECK(strstr(run(&s.master, "INFO replication")->str, "role:master") != NULL);
    end(&s);
}

/* Who was told that a note is written finds it at the new master. */
static void redis_old_master_publishes(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease_long());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    fail_over(&s);
    int code = simba_locker_publish(l, "done", SERVER_MS);
    CHECK(code != 0 || run_number(&s.replica, "EXISTS simba:{m}:note") == 1);
    CHECK(strstr(run(&s.master, "INFO replication")->str, "role:master") != NULL);
    end(&s);
}

/* Without a majority of the sentinels nobody knows whether the master still is one. */
static void redis_sentinels_gone(void)
{
    struct scene s;
    struct simba_owner o;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease_short());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    uint64_t token = simba_locker_token(l);
    server_kill(&s.sentinel[0]);
    server_kill(&s.sentinel[1]);
    AWAIT(!simba_locker_is_held(l));
    CHECK(simba_locker_release(l) == SIMBA_ELOST);
    AWAIT(simba_locker_acquire(l, 0) == SIMBA_ESTORE &&
          strstr(simba_error_text(), "1 of 3 sentinels") != NULL);
    server_start(&s.sentinel[1]);
    AWAIT(simba_read(s.client, "m", PATIENCE_MS, &o) == 0);
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    CHECK(simba_locker_token(l) > token);
    end(&s);
}

static void signal_sentinels(struct scene *s, int number)
{
    for (int i = 0; i < SENTINELS; i++)
        CHECK(kill(s->sentinel[i].pid, number) == 0);
}

/* What a master grants counts when the sentinels have answered, and not before. */
static void redis_sentinels_silent(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease_long());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    CHECK_OK(simba_locker_release(l));
    signal_sentinels(&s, SIGSTOP);
    CHECK(simba_locker_acquire(l, 500) != 0);
    signal_sentinels(&s, SIGCONT);
    AWAIT(simba_locker_acquire(l, SERVER_MS) == 0);
    end(&s);
}

static void *acquire(void *l)
{
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    return NULL;
}

/* Nor what a waiter is granted together with a release of its client. */
static void redis_sentinels_silent_successor(void)
{
    struct scene s;
    struct simba_owner o;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease_long()),
                 *successor = locker_of(s.client, lease_long());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    CHECK_OK(simba_locker_release(l)); /* the server knows the scripts */
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    pthread_t waits = spawn(acquire, successor);
    AWAIT(server_calls(&s.master, "zadd") == 2); /* it has asked, and again when it could hear */
    CHECK_OK(simba_read(s.client, "m", SERVER_MS, &o)); /* and that is answered */
    signal_sentinels(&s, SIGSTOP);
    CHECK_OK(simba_locker_release(l));
    const redisReply *owner;
    AWAIT(
        (owner = run(&s.master, "GET simba:{m}"),
         owner->type == REDIS_REPLY_STRING && strcmp(owner->str, simba_locker_id(successor)) == 0));
    CHECK(!simba_locker_is_held(successor));
    signal_sentinels(&s, SIGCONT);
    join(waits);
    end(&s);
}

/* ---- who counts as a sentinel --------------------------------------------------------------- */

static void restart_sentinel(struct scene *s, int number)
{
    server_kill(&s->sentinel[number]);
    server_start(&s->sentinel[number]); /* with a new file */
}

/* The first of them, by two addresses and once more: that is one vote. */
static void name_first_thrice(struct scene *s)
{
    int port = s->sentinel[0].port;
    snprintf(s->url, sizeof s->url,
             "redis+sentinel://127.0.0.1:%d,localhost:%d,127.0.0.1:%d/0?master=main&" GRACE, port,
             port, port);
    client_close(s->client);
    CHECK_OK(simba_open(s->url, NULL, &s->client));
}

/* said: of how many it is one. */
static void expect_one_vote(struct scene *s, const char *said)
{
    simba_locker *l = locker_of(s->client, lease_long());
    int64_t until = simba_now() + 2000;
    int code = simba_locker_acquire(l, 0);
    while (simba_now() < until || strstr(simba_error_text(), "the same sentinel") == NULL ||
           strstr(simba_error_text(), said) == NULL) {
        CHECK(code != 0);
        CHECK(simba_now() < until + PATIENCE_MS);
        nap(10);
        code = simba_locker_acquire(l, 0);
    }
}

/* T108: one sentinel that is named three times is not a majority of three. */
static void redis_sentinel_named_twice(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    name_first_thrice(&s);
    expect_one_vote(&s, "1 of 3 sentinels");
    end(&s);
}

/* T108, T109: nor where it has restarted without its file, and hears of no other one. */
static void redis_sentinel_named_twice_alone(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    for (int i = 1; i < SENTINELS; i++)
        server_kill(&s.sentinel[i]);
    restart_sentinel(&s, 0);
    name_first_thrice(&s);
    nap(5000); /* the guard is over */
    expect_one_vote(&s, "1 of 1 sentinels");
    end(&s);
}

/* Nor one that does not know SENTINEL MYID, as before Redis 6.2. */
static void redis_sentinel_without_id(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    s.sentinel[0].options[0] = "user default on nopass ~* &* +@all -sentinel|myid";
    restart_sentinel(&s, 0);
    AWAIT_FOR(SERVER_MS, knows(&s.sentinel[0], "num-other-sentinels", SENTINELS - 1));
    CHECK(run(&s.sentinel[0], "SENTINEL MYID")->type == REDIS_REPLY_ERROR);
    name_first_thrice(&s);
    expect_one_vote(&s, "1 of 3 sentinels");
    end(&s);
}

/* One that does not say the term has no vote: it may name a master of long ago. */
static void redis_sentinel_without_term(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    for (int i = 0; i < 2; i++) {
        s.sentinel[i].options[0] = "user default on nopass ~* &* +@all -sentinel|master";
        restart_sentinel(&s, i);
    }
    simba_locker *l = locker_of(s.client, lease_long());
    AWAIT(simba_locker_acquire(l, 0) == SIMBA_ESTORE &&
          strstr(simba_error_text(), "sentinel|master") != NULL);
    end(&s);
}

/* The third goes on, and the others hear of the later term. Nobody is granted at the new master what
 * is owned at the old one. */
static void expect_no_return(struct scene *s, simba_locker *owner)
{
    simba_locker *l = locker_of(s->client, lease(4000, 2000));
    CHECK(kill(s->sentinel[0].pid, SIGCONT) == 0);
    while (simba_locker_is_held(owner))
        CHECK(simba_locker_acquire(l, 0) != 0 || !simba_locker_is_held(owner));
    AWAIT_FOR(SERVER_MS, simba_locker_acquire(l, 0) == 0);
    CHECK(run_number(&s->replica, "EXISTS simba:{m}") == 1);
}

/* T109: two of three sentinels restart without their file, and name the master that they began
 * with. The third, which knows better, cannot say so. While somebody owns the mutex at the new
 * master, nobody is granted it at the old one; and tokens rise, though the old one has issued
 * lower ones. */
static void redis_sentinels_forget(void)
{
    struct scene s;
    simba_client *other;
    begin(&s, "master=main&restart_guard=6s");
    simba_locker *owner = locker_of(s.client, lease(4000, 2000));
    CHECK_OK(simba_locker_acquire(owner, SERVER_MS));
    CHECK_OK(simba_locker_release(owner));
    fail_over(&s);
    AWAIT_FOR(SERVER_MS, simba_locker_acquire(owner, 0) == 0);
    uint64_t token = simba_locker_token(owner);
    CHECK(run_number(&s.replica, "EXISTS simba:{m}") == 1);
    CHECK(kill(s.sentinel[0].pid, SIGSTOP) == 0);
    restart_sentinel(&s, 1);
    restart_sentinel(&s, 2);
    CHECK_OK(simba_open(s.url, NULL, &other));
    simba_locker *rival = locker_of(other, lease(4000, 2000));
    while (simba_locker_is_held(owner))
        CHECK(simba_locker_acquire(rival, 0) != 0 || !simba_locker_is_held(owner));
    AWAIT_FOR(SERVER_MS, simba_locker_is_held(rival) || simba_locker_acquire(rival, 0) == 0);
    CHECK(run_number(&s.master, "EXISTS simba:{m}") == 1);
    CHECK(simba_locker_token(rival) > token);
    expect_no_return(&s, rival);
    client_close(other);
    end(&s);
}

/* T109: the sentinels begin anew with this master, and the client has not heard of that when it asks for what
 * is free. It has to wait for a lease from then on, whatever they have said before. */
static void redis_sentinels_reset(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    simba_locker *l = locker_of(s.client, lease(4000, 2000));
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    CHECK_OK(simba_locker_release(l));
    int64_t since = simba_now();
    for (int i = 0; i < SENTINELS; i++)
        CHECK(run_number(&s.sentinel[i], "SENTINEL RESET main") == 1);
    AWAIT(simba_locker_acquire(l, 0) == 0);
    CHECK(simba_now() - since >= 2900);
    end(&s);
}

/* T109: and whoever has heard of the later term does not go back to an earlier one. */
static void redis_sentinels_forget_term(void)
{
    struct scene s;
    begin(&s, "master=main&restart_guard=off");
    fail_over(&s);
    simba_locker *l = locker_of(s.client, lease_long());
    CHECK_OK(simba_locker_acquire(l, SERVER_MS));
    CHECK_OK(simba_locker_release(l));
    uint64_t token = simba_locker_token(l);
    run(&s.sentinel[0], "SENTINEL DEBUG PUBLISH-PERIOD 3600000"); /* it tells the others nothing */
    restart_sentinel(&s, 1);
    restart_sentinel(&s, 2);
    AWAIT(simba_locker_acquire(l, 0) != 0 && strstr(simba_error_text(), "an earlier term") != NULL);
    for (int64_t until = simba_now() + 3000; simba_now() < until; nap(20))
        CHECK(simba_locker_acquire(l, 0) != 0);
    CHECK(run_number(&s.master, "EXISTS simba:{m}:fence") == 0);
    run(&s.sentinel[0], "SENTINEL DEBUG PUBLISH-PERIOD 2000");
    AWAIT_FOR(SERVER_MS, simba_locker_acquire(l, 0) == 0);
    CHECK(simba_locker_token(l) > token);
    CHECK(run_number(&s.replica, "EXISTS simba:{m}") == 1);
    end(&s);
}

/* ---- what the doctor says -------------------------------------------------------------------- */

struct expected {
    const char *text;
    bool two_may_own;
    char other[512]; /* another reason for which two may own a mutex; "": there is none */
};

static void on_finding(void *data, const struct simba_finding *f)
{
    struct expected *e = data;
    if (f->kind != SIMBA_FINDING_TWO_OWNERS)
        return;
    if (strstr(f->text, e->text) != NULL)
        e->two_may_own = true;
    else
        snprintf(e->other, sizeof e->other, "%s", f->text);
}

/* That two may own a mutex, and in which case alone. */
static void expect_finding(struct scene *s, const char *text)
{
    struct expected e;
    AWAIT((e = (struct expected){.text = text},
           simba_examine(s->client, PATIENCE_MS, on_finding, &e) == 0 && e.two_may_own));
    if (e.other[0] != '\0')
        suite_fail(__FILE__, __LINE__, e.other);
}

static void name_first_alone(struct scene *s)
{
    snprintf(s->url, sizeof s->url, "redis+sentinel://127.0.0.1:%d/0?master=main&" GRACE,
             s->sentinel[0].port);
    client_close(s->client);
    CHECK_OK(simba_open(s->url, NULL, &s->client));
}

static void redis_sentinels_unnamed(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    name_first_alone(&s);
    expect_finding(&s, "1 of 3 sentinels");
    end(&s);
}

/* There is no other one. */
static void redis_sentinel_alone(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    for (int i = 1; i < SENTINELS; i++)
        server_kill(&s.sentinel[i]);
    restart_sentinel(&s, 0);
    name_first_alone(&s);
    expect_finding(&s, "one sentinel decides alone");
    end(&s);
}

/* Named twice, and then it is down. */
static void redis_sentinel_named_twice_down(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    snprintf(
        s.url, sizeof s.url,
        "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/0?master=main&" GRACE,
        s.sentinel[0].port, s.sentinel[0].port, s.sentinel[1].port, s.sentinel[2].port);
    client_close(s.client);
    CHECK_OK(simba_open(s.url, NULL, &s.client));
    expect_finding(&s, "the same sentinel");
    server_kill(&s.sentinel[0]);
    nap(1500); /* it is tried again */
    expect_finding(&s, "the same sentinel");
    end(&s);
}

/* One has restarted without its file, and hears nothing of the others. */
static void redis_sentinel_behind(void)
{
    struct scene s;
    begin(&s, "master=main&" GRACE);
    fail_over(&s);
    for (int i = 1; i < SENTINELS; i++)
        run(&s.sentinel[i], "SENTINEL DEBUG PUBLISH-PERIOD 3600000");
    restart_sentinel(&s, 0);
    expect_finding(&s, "in an earlier term");
    end(&s);
}

const struct test redis_sentinel_tests[] = {
    {"redis_sentinel_failover", redis_sentinel_failover, REDIS_ONLY, 0},
    {"redis_old_master_grants", redis_old_master_grants, REDIS_ONLY, 0},
    {"redis_old_master_renews", redis_old_master_renews, REDIS_ONLY, 0},
    {"redis_old_master_publishes", redis_old_master_publishes, REDIS_ONLY, 0},
    {"redis_sentinels_gone", redis_sentinels_gone, REDIS_ONLY, 0},
    {"redis_sentinels_silent", redis_sentinels_silent, REDIS_ONLY, 0},
    {"redis_sentinels_silent_successor", redis_sentinels_silent_successor, REDIS_ONLY, 0},
    {"redis_sentinel_named_twice", redis_sentinel_named_twice, REDIS_ONLY, 0},
    {"redis_sentinel_named_twice_alone", redis_sentinel_named_twice_alone, REDIS_ONLY, 0},
    {"redis_sentinel_without_id", redis_sentinel_without_id, REDIS_ONLY, 0},
    {"redis_sentinel_without_term", redis_sentinel_without_term, REDIS_ONLY, 0},
    {"redis_sentinels_forget", redis_sentinels_forget, REDIS_ONLY, 0},
    {"redis_sentinels_reset", redis_sentinels_reset, REDIS_ONLY, 0},
    {"redis_sentinels_forget_term", redis_sentinels_forget_term, REDIS_ONLY, 0},
    {"redis_sentinels_unnamed", redis_sentinels_unnamed, REDIS_ONLY, 0},
    {"redis_sentinel_alone", redis_sentinel_alone, REDIS_ONLY, 0},
    {"redis_sentinel_named_twice_down", redis_sentinel_named_twice_down, REDIS_ONLY, 0},
    {"redis_sentinel_behind", redis_sentinel_behind, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
