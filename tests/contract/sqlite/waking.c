/* waking.c: who is woken when a mutex is released, and what becomes of a wakeup that is of no use
 * where it comes to. Leases are long: only a wakeup, or the poll twice a second, is in time. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "backend/sqlite/wakeup.h"
#include "help.h"

static struct peer begin_waiting(void)
{
    struct peer p = sqlite_peer(lease_long());
    sqlite_contend(&p);
    CHECK(peer_number(&p, "wait") == 0);
    return p;
}

/* As many as are woken at once are stopped, or killed. */
static void waiters_are_lost(bool killed)
{
    sqlite_begin();
    struct peer a = begin_waiting(), lost[WAKEUP_FEW];
    uint64_t token = peer_await_owner(&a);
    for (int i = 0; i < WAKEUP_FEW; i++)
        lost[i] = begin_waiting();
    struct peer last = begin_waiting();
    for (int i = 0; i < WAKEUP_FEW; i++)
        peer_stop(&lost[i]);
    CHECK(peer_number(&a, "stop") == 0);
    for (int i = 0; killed && i < WAKEUP_FEW; i++)
        peer_kill(&lost[i]);
    CHECK(peer_await_owner(&last) > token);
    for (int i = 0; !killed && i < WAKEUP_FEW; i++) {
        CHECK(kill(lost[i].pid, SIGCONT) == 0);
        CHECK(peer_number(&lost[i], "token") == 0);
        peer_end(&lost[i]);
    }
    peer_end(&a);
    peer_end(&last);
    sqlite_end();
}

static void waiters_stopped(void)
{
    waiters_are_lost(false);
}

static void waiters_killed(void)
{
    waiters_are_lost(true);
}

/* Nobody is forgotten, although each release wakes a few only. */
static void all_get_their_turn(void)
{
    enum { WAITERS = 2 * WAKEUP_FEW, EACH = 10 };
    sqlite_begin();
    struct peer owner = begin_waiting(), p[WAITERS];
    peer_await_owner(&owner);
    for (int i = 0; i < WAITERS; i++) {
        p[i] = sqlite_peer(lease_long());
        CHECK(peer_is_up(&p[i]));
        peer_send(&p[i], "count %d %s", EACH, folder_path("count"));
    }
    CHECK(peer_number(&owner, "stop") == 0);
    for (int i = 0; i < WAITERS; i++) {
        CHECK(strcmp(peer_reply(&p[i], PATIENCE_MS), "0") == 0);
        peer_end(&p[i]);
    }
    peer_end(&owner);
    sqlite_end();
}

/* ---- a wakeup that nobody got -------------------------------------------------------------- */

static int contended(const char *statement)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    CHECK(sqlite3_open(folder_path("a.db"), &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, PATIENCE_MS);
    CHECK(sqlite3_prepare_v2(db, statement, -1, &s, NULL) == SQLITE_OK);
    int value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int(s, 0) : -1;
    CHECK(sqlite3_finalize(s) == SQLITE_OK);
    sqlite3_close(db);
    return value;
}

/* As when all who were woken have ended: the words have changed, and nobody wakes us. */
static void wakeup_lost(void)
{
    sqlite_begin();
    struct peer a = begin_waiting();
    uint64_t token = peer_await_owner(&a);
    struct peer b = begin_waiting();
    AWAIT(contended("SELECT contended FROM mutex WHERE name = 'm'") == 1);
    contended("UPDATE mutex SET contended = 0 WHERE name = 'm'");
    CHECK(peer_number(&a, "stop") == 0);
    static struct wakeup_page other = {.any = 1};
    memset(other.slot, 1, sizeof other.slot);
    int fd = open(folder_path("a.db-bell"), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, &other, sizeof other, 0) == sizeof other);
    close(fd);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    sqlite_end();
}

/* Who has waited for it wakes others when it releases, whether it knows of them or not. */
static void waiter_wakes_others(void)
{
    sqlite_begin();
    struct peer a = begin_waiting();
    uint64_t token = peer_await_owner(&a);
    struct peer b = begin_waiting();
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    CHECK(contended("SELECT contended FROM mutex WHERE name = 'm'") == 1);
    peer_end(&a);
    peer_end(&b);
    sqlite_end();
}

const struct test sqlite_waking_tests[] = {
    {"waiters_stopped", waiters_stopped, SQLITE_ONLY, 0},
    {"waiters_killed", waiters_killed, SQLITE_ONLY, 0},
    {"all_get_their_turn", all_get_their_turn, SQLITE_ONLY, 0},
    {"wakeup_lost", wakeup_lost, SQLITE_ONLY, 0},
    {"waiter_wakes_others", waiter_wakes_others, SQLITE_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
