/* processes.c: what only real processes can show: they are killed, stopped, and share nothing but
 * the store. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peer.h"
#include "suite.h"

#define PEERS_MAX 16

/* Who is stopped in the middle of a transaction keeps all others from writing to a store in files
 * (docs/guides/sqlite.md). Cases that stop processes have a store of their own, in their folder. */
static const char *own_url(void)
{
    static char url[512];
    const char *options = strchr(suite_url(), '?');
    bool is_folder = strncmp(suite_url(), "dir:", 4) == 0;
    if (!is_folder && strncmp(suite_url(), "sqlite:", 7) != 0)
        return suite_url();
    const char *path = folder_path(is_folder ? "own" : "own.db");
    if (is_folder && mkdir(path, 0700) != 0)
        CHECK(errno == EEXIST);
    snprintf(url, sizeof url, "%s:%s%s", is_folder ? "dir" : "sqlite", path,
             options != NULL ? options : "");
    return url;
}

/* Peers on one fresh mutex of the store. */
static void start_peers(struct peer *p, int n, const char *url,
                        const struct simba_handle_options *like)
{
    const char *mutex = fresh("peers");
    for (int i = 0; i < n; i++) {
        /* No store fails here; a machine that stands still for a second or two is not one that
         * does. */
        p[i] = (struct peer){
            .url = url, .mutex = mutex, .like = *like, .command_timeout_ms = PATIENCE_MS / 2};
        peer_start(&p[i]);
    }
}

static void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
    CHECK(peer_number(p, "wait") == 0);
}

static void keep_ledger(struct peer *p)
{
    peer_send(p, "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(p, PATIENCE_MS), "0") == 0);
}

static void expect(struct peer *p, const char *want)
{
    if (strcmp(peer_reply(p, PATIENCE_MS), want) != 0)
        suite_fail(__FILE__, __LINE__, p->line);
}

/* ---- killed and stopped -------------------------------------------------------------------- */

/* Whose end nobody sees but the store. Only some can before the lease is over. */
static void process_killed(void)
{
    struct simba_handle_options o = suite_is_sqlite() ? lease_long() : lease_short();
    struct peer p[3];
    start_peers(p, 3, suite_url(), &o);
    contend(&p[0]);
    uint64_t token = peer_await_owner(&p[0]);
    contend(&p[1]);
    contend(&p[2]);
    CHECK(peer_number(&p[1], "token") == 0);
    peer_kill(&p[0]);
    AWAIT(peer_number(&p[1], "token") != 0 || peer_number(&p[2], "token") != 0);
    struct peer *next = peer_number(&p[1], "token") != 0 ? &p[1] : &p[2];
    CHECK(peer_await_owner(next) > token);
    peer_end(&p[1]);
    peer_end(&p[2]);
}

/* T65: a child that the owner forked may be at work on what the mutex protects. */
static void process_killed_child_lives(void)
{
    struct simba_handle_options o = lease_long();
    struct peer p[2];
    start_peers(p, 2, suite_url(), &o);
    contend(&p[0]);
    uint64_t token = peer_await_owner(&p[0]);
    contend(&p[1]);
    pid_t child = (pid_t)peer_number(&p[0], "fork");
    CHECK(child > 0);
    int input = dup(p[0].to); /* the child's, too */
    CHECK(input >= 0);
    peer_kill(&p[0]);
    for (int64_t end = simba_now() + 1500; simba_now() < end; nap(20))
        CHECK(peer_number(&p[1], "token") == 0);
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(peer_await_owner(&p[1]) > token);
    close(input);
    peer_end(&p[1]);
}

/* T16: the first thing that it says when it runs again is that it owns nothing. The other one has a
 * lease that it does not lose. */
static void process_stopped(void)
{
    struct simba_handle_options brief = lease_tiny(), o = lease_long();
    struct peer p[2];
    folder_make();
    start_peers(p, 2, own_url(), &brief);
    peer_kill(&p[1]);
    p[1].like = o;
    peer_start(&p[1]);
    contend(&p[0]);
    keep_ledger(&p[0]);
    uint64_t token = peer_await_owner(&p[0]);
    contend(&p[1]);
    keep_ledger(&p[1]);
    peer_stop(&p[0]);
    uint64_t next = peer_await_owner(&p[1]);
    CHECK(next > token);
    peer_send(&p[0], "token");
    peer_send(&p[0], "owns %llu", (unsigned long long)token);
    CHECK(kill(p[0].pid, SIGCONT) == 0);
    CHECK(strcmp(peer_reply(&p[0], PATIENCE_MS), "0") == 0);
    CHECK(strcmp(peer_reply(&p[0], PATIENCE_MS), "0") == 0);
    for (int64_t end = simba_now() + 500; simba_now() < end; nap(5))
        CHECK(peer_number(&p[0], "token") == 0);
    CHECK((uint64_t)peer_number(&p[1], "token") == next);
    ledger_check(ledger_map(folder_path("ledger")));
    CHECK(peer_number(&p[1], "stop") == 0);
    CHECK(peer_await_owner(&p[0]) > next);
    peer_end(&p[0]);
    peer_end(&p[1]);
    folder_remove();
}

/* ---- taking turns -------------------------------------------------------------------------- */

static void process_count(void)
{
    int peers = suite_is_long() ? 16 : 8, cycles = suite_is_long() ? 200 : 50;
    struct simba_handle_options o = lease_long();
    struct peer p[PEERS_MAX];
    folder_make();
    const char *path = folder_path("count");
    start_peers(p, peers, suite_url(), &o);
    for (int i = 0; i < peers; i++)
        peer_send(&p[i], "count %d %s", cycles, path);
    for (int i = 0; i < peers; i++)
        CHECK(strcmp(peer_reply(&p[i], PEER_FOREVER), "0") == 0);
    for (int i = 0; i < peers; i++)
        peer_end(&p[i]);
    FILE *f = fopen(path, "re");
    int n = 0;
    CHECK(f != NULL && fscanf(f, "%d", &n) == 1);
    fclose(f);
    CHECK(n == peers * cycles);
    folder_remove();
}

/* A minute's lease and thousands of hand-overs: none of them was an expiry. Some requests come
 * before the release, some after, some at once. */
static void process_ping_pong(void)
{
    int times = suite_is_long() ? 10000 : 200;
    struct simba_handle_options o = lease_long();
    struct peer p[2];
    start_peers(p, 2, suite_url(), &o);
    CHECK(peer_number(&p[0], "acquire 20000") == 0);
    long long token = peer_number(&p[0], "held");
    for (int i = 0; i < times; i++) {
        struct peer *from = &p[i % 2], *to = &p[1 - i % 2];
        peer_send(to, "acquire 20000");
        if (i % 3 == 0)
            nap(i % 7);
        peer_send(from, "release");
        expect(from, "0");
        expect(to, "0");
        long long next = peer_number(to, "held");
        CHECK(next > token);
        token = next;
    }
    peer_end(&p[0]);
    peer_end(&p[1]);
}

/* Waits for the answer of any of the peers whose turn has not been. */
static int next_of(struct peer *p, int n, const bool *had_turn)
{
    struct pollfd ready[PEERS_MAX];
    for (int i = 0; i < n; i++)
        ready[i] = (struct pollfd){.fd = had_turn[i] ? -1 : p[i].from, .events = POLLIN};
    CHECK(poll(ready, (nfds_t)n, PATIENCE_MS) > 0);
    int i = 0;
    while (ready[i].revents == 0)
        i++;
    CHECK(strcmp(peer_reply(&p[i], PATIENCE_MS), "0") == 0);
    return i;
}

static void process_queue(void)
{
    enum { WAITING = 10 };
    struct simba_handle_options o = lease_long();
    struct peer p[WAITING + 1];
    bool had_turn[WAITING] = {false};
    start_peers(p, WAITING + 1, suite_url(), &o);
    struct peer *first = &p[WAITING];
    CHECK(peer_number(first, "acquire 20000") == 0);
    long long token = peer_number(first, "held");
    for (int i = 0; i < WAITING; i++) {
        CHECK(peer_number(&p[i], "now") != 0); /* its client is open */
        peer_send(&p[i], "acquire %lld", (long long)SIMBA_FOREVER);
    }
    CHECK(peer_number(first, "release") == 0);
    for (int i = 0; i < WAITING; i++) {
        int who = next_of(p, WAITING, had_turn);
        long long next = peer_number(&p[who], "held");
        CHECK(next > token);
        token = next;
        had_turn[who] = true;
        CHECK(peer_number(&p[who], "release") == 0);
    }
    for (int i = 0; i <= WAITING; i++)
        peer_end(&p[i]);
}

/* ---- everything at once -------------------------------------------------------------------- */

static void begin_one(struct peer *p)
{
    peer_start(p);
    peer_send(p, "start");
    peer_send(p, "ledger %s", folder_path("ledger"));
}

static void process_chaos(void)
{
    enum { CONTENDERS = 6 };
    struct simba_handle_options o = lease_tiny();
    struct peer p[CONTENDERS];
    bool is_stopped[CONTENDERS] = {false};
    unsigned seed = (unsigned)getpid();
    folder_make();
    struct ledger *ledger = ledger_map(folder_path("ledger"));
    const char *mutex = fresh("chaos");
    for (int i = 0; i < CONTENDERS; i++) {
        p[i] = (struct peer){.url = own_url(), .mutex = mutex, .like = o};
        begin_one(&p[i]);
    }
    AWAIT(atomic_load(&ledger->tenures) > 0);
    for (int64_t end = simba_now() + (suite_is_long() ? 30000 : 4000); simba_now() < end;) {
        int i = rand_r(&seed) % CONTENDERS;
        if (is_stopped[i] || rand_r(&seed) % 3 != 0) {
            CHECK(kill(p[i].pid, is_stopped[i] ? SIGCONT : SIGSTOP) == 0);
            is_stopped[i] = !is_stopped[i];
        } else {
            peer_kill(&p[i]);
            begin_one(&p[i]);
        }
        nap(rand_r(&seed) % 150);
    }
    for (int i = 0; i < CONTENDERS; i++)
        peer_kill(&p[i]);
    int before = atomic_load(&ledger->tenures);
    begin_one(&p[0]); /* and afterwards it works */
    AWAIT(atomic_load(&ledger->tenures) > before);
    peer_kill(&p[0]);
    ledger_check(ledger);
    folder_remove();
}

/* ---- scheduled work ------------------------------------------------------------------------ */

/* Whose work has run since the last call. */
static int find_worker(struct peer *p, int n, long long *runs)
{
    int64_t until = simba_now() + PATIENCE_MS;
    for (int i = 0; simba_now() < until; i = (i + 1) % n) {
        long long before = runs[i];
        runs[i] = peer_number(&p[i], "runs");
        if (runs[i] > before)
            return i;
    }
    suite_fail(__FILE__, __LINE__, "in time: somebody works");
}

/* Handed from one to the next, and once taken from the dead: their works never overlap. */
static void process_schedule(void)
{
    struct simba_handle_options o = suite_is_sqlite() ? lease_long() : lease_steady();
    struct peer p[3];
    long long runs[3] = {0};
    folder_make();
    start_peers(p, 3, suite_url(), &o);
    for (int i = 0; i < 3; i++) {
        peer_send(&p[i], "work %s", folder_path("works"));
        expect(&p[i], "0");
    }
    for (int turn = 0; turn < 12; turn++) {
        int i = find_worker(p, 3, runs);
        AWAIT(peer_number(&p[i], "runs") > runs[i] + 3);
        CHECK(peer_number(&p[i], "rest") == 0);
        runs[i] = peer_number(&p[i], "runs");
        peer_send(&p[i], "work %s", folder_path("works"));
        expect(&p[i], "0");
    }
    int dead = find_worker(p, 3, runs);
    peer_kill(&p[dead]);
    p[dead] = p[2];
    (void)find_worker(p, 2, (long long[2]){peer_number(&p[0], "runs"), peer_number(&p[1], "runs")});
    peer_end(&p[0]);
    peer_end(&p[1]);
    struct ledger *l = ledger_map(folder_path("works"));
    CHECK(l != NULL && atomic_load(&l->tenures) >= 13);
    ledger_check(l);
    folder_remove();
}

const struct test process_tests[] = {
    {"process_schedule", process_schedule, SEVERAL_PROCESSES, 0},
    {"process_killed", process_killed, SEVERAL_PROCESSES, 0},
    {"process_killed_child_lives", process_killed_child_lives, SQLITE_ONLY, 0},
    {"process_stopped", process_stopped, PROCESSES_PUSH, 0},
    {"process_count", process_count, PROCESSES_PUSH, 120},
    {"process_ping_pong", process_ping_pong, PROCESSES_PUSH, 240},
    {"process_queue", process_queue, PROCESSES_PUSH, 0},
    {"process_chaos", process_chaos, SEVERAL_PROCESSES, 60},
    {NULL, NULL, ANY_STORE, 0},
};
