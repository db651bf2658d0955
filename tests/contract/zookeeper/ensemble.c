/* ensemble.c: three servers, some of which fail. Each case has its own three. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define PEERS 3

static struct ensemble e;
static struct peer p[PEERS];
static struct ledger *ledger;

static void begin(bool isolates, int sync_ticks)
{
    folder_make();
    e = (struct ensemble){.servers = 3, .isolates = isolates, .sync_ticks = sync_ticks};
    ensemble_start(&e);
    ledger = ledger_map(folder_path("ledger"));
}

static void end(void)
{
    for (int i = 0; i < PEERS; i++) {
        if (p[i].pid != 0)
            peer_kill(&p[i]);
    }
    ledger_check(ledger);
    ensemble_end(&e);
    folder_remove();
}

static void start(int n, const char *url, struct simba_handle_options like)
{
    p[n] = (struct peer){.url = url, .mutex = "m", .like = like};
    peer_start(&p[n]);
    CHECK(peer_number(&p[n], "start") == 0);
    peer_send(&p[n], "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(&p[n], PATIENCE_MS), "0") == 0);
    CHECK(peer_number(&p[n], "wait") == 0);
}

/* Whoever owns it, with a token above this one. */
static uint64_t await_token_above(uint64_t token)
{
    uint64_t found = 0;
    for (int64_t until = simba_now() + PATIENCE_MS; found == 0;) {
        CHECK(simba_now() < until);
        for (int i = 0; i < PEERS; i++) {
            uint64_t now = p[i].pid != 0 ? (uint64_t)peer_number(&p[i], "token") : 0;
            if (now > token)
                found = now;
        }
        nap(5);
    }
    return found;
}

static int owner_of(uint64_t token)
{
    for (int i = 0; i < PEERS; i++) {
        if ((uint64_t)peer_number(&p[i], "token") == token)
            return i;
    }
    suite_fail(__FILE__, __LINE__, "somebody owns it");
}

/* The tenure outlives the servers' leader, and the queue as well. */
static void zookeeper_leader_killed(void)
{
    begin(false, 0);
    for (int i = 0; i < PEERS; i++)
        start(i, e.url, lease(2000, 38000)); /* longer than they may need for an election */
    uint64_t token = await_token_above(0);
    int owner = owner_of(token), leader = ensemble_leader(&e);
    ensemble_kill(&e, leader);
    ensemble_leader(&e); /* there is another */
    CHECK((uint64_t)peer_number(&p[owner], "token") == token);
    CHECK(peer_number(&p[owner], "stop") == 0);
    uint64_t next = await_token_above(token);
    ensemble_launch(&e, leader);
    ensemble_await(&e, leader);
    CHECK(peer_number(&p[owner_of(next)], "stop") == 0);
    await_token_above(next);
    end();
}

/* T57: the server of the owner is cut off from the others. It goes on answering reads and pings;
 * but the others end the session, and give the mutex away. */
static void zookeeper_follower_cut_off(void)
{
    begin(true, 150);
    CHECK(ensemble_leader(&e) != 2);
    const char *cut = ensemble_url(&e, 4, NULL), *rest = ensemble_url(&e, 3, NULL);
    start(0, cut, lease(1000, 1000));
    uint64_t token = peer_await_owner(&p[0]);
    start(1, rest, lease(1000, 1000));
    start(2, rest, lease(1000, 1000));
    e.raw_mask = 4;
    CHECK(raw_children(&e, "/simba/m", NULL, 0) == 3);
    for (int i = 0; i < 3; i++)
        atomic_store(&e.cutter[i].frozen, true);
    uint64_t next = await_token_above(token);
    CHECK(raw_children(&e, "/simba/m", NULL, 0) == 3); /* it still answers, and does not know */
    CHECK(peer_number(&p[0], "token") == 0);
    for (int i = 0; i < 3; i++)
        atomic_store(&e.cutter[i].frozen, false);
    CHECK(peer_number(&p[owner_of(next)], "stop") == 0);
    await_token_above(next);
    end();
}

/* A note that is needed is the last one that was written, or none is told: not what a server knows
 * that lags behind. */
static void zookeeper_note_current(void)
{
    struct simba_options o = suite_options();
    struct simba_handle_options like = lease_long();
    struct simba_note note;
    simba_client *writes = NULL, *reads = NULL;
    simba_locker *l = NULL;
    begin(true, 150);
    CHECK(ensemble_leader(&e) != 2);
    CHECK_OK(simba_open(ensemble_url(&e, 3, NULL), &o, &writes));
    CHECK_OK(simba_open(ensemble_url(&e, 4, NULL), &o, &reads));
    CHECK_OK(simba_locker_create(writes, "m", &like, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "old", PATIENCE_MS));
    CHECK_OK(simba_read_note(reads, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "old") == 0);
    for (int i = 0; i < 3; i++)
        atomic_store(&e.cutter[i].frozen, true);
    CHECK_OK(simba_locker_publish(l, "new", PATIENCE_MS));
    CHECK(simba_read_note(reads, "m", 1000, &note, NULL) != 0);
    for (int i = 0; i < 3; i++)
        atomic_store(&e.cutter[i].frozen, false);
    AWAIT(simba_read_note(reads, "m", 1000, &note, NULL) == 0);
    CHECK(strcmp(note.text, "new") == 0);
    client_close(reads);
    client_close(writes);
    end();
}

/* Without a majority nobody owns for longer than its lease; with it again somebody does. */
static void zookeeper_majority_lost(void)
{
    begin(false, 0);
    for (int i = 0; i < PEERS; i++)
        start(i, e.url, lease(2000, 1000));
    uint64_t token = await_token_above(0);
    int owner = owner_of(token);
    ensemble_kill(&e, 0);
    ensemble_kill(&e, 1);
    int64_t lost = simba_now();
    AWAIT(peer_number(&p[owner], "token") == 0);
    for (int i = 0; i < atomic_load(&ledger->tenures); i++) /* as its owner saw it, not as we ask */
        CHECK(atomic_load(&ledger->tenure[i].to) - lost < 3000);
    for (int i = 0; i < PEERS; i++)
        CHECK(peer_number(&p[i], "token") == 0);
    ensemble_launch(&e, 0);
    ensemble_launch(&e, 1);
    for (int i = 0; i < 2; i++)
        ensemble_await(&e, i);
    await_token_above(token);
    end();
}

/* Everything, one after the other, while the mutex goes round. */
static void zookeeper_ensemble_chaos(void)
{
    int rounds = suite_is_long() ? 20 : 2;
    begin(false, 0);
    for (int i = 0; i < PEERS; i++)
        start(i, e.url, lease(1500, 1500));
    for (int i = 0; i < rounds; i++) {
        int n = i % 2 == 0 ? ensemble_leader(&e) : (ensemble_leader(&e) + 1) % 3;
        await_token_above(0);
        CHECK(kill(e.pid[n], SIGSTOP) == 0);
        nap(700);
        CHECK(kill(e.pid[n], SIGCONT) == 0);
        int owner = 0; /* if there is none, any will do */
        while (owner < PEERS - 1 && peer_number(&p[owner], "token") == 0)
            owner++;
        peer_number(&p[owner], "stop");
        AWAIT(peer_number(&p[owner], "start") == 0);
        ensemble_kill(&e, n);
        nap(300);
        ensemble_launch(&e, n);
        ensemble_await(&e, n);
    }
    await_token_above(0);
    end();
}

const struct test zookeeper_ensemble_tests[] = {
    {"zookeeper_leader_killed", zookeeper_leader_killed, ZOOKEEPER_ONLY, 0},
    {"zookeeper_follower_cut_off", zookeeper_follower_cut_off, ZOOKEEPER_ONLY, 0},
    {"zookeeper_note_current", zookeeper_note_current, ZOOKEEPER_ONLY, 0},
    {"zookeeper_majority_lost", zookeeper_majority_lost, ZOOKEEPER_ONLY, 0},
    {"zookeeper_ensemble_chaos", zookeeper_ensemble_chaos, ZOOKEEPER_ONLY, 300},
    {NULL, NULL, ANY_STORE, 0},
};
