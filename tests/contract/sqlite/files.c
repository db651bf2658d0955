/* files.c: files of the sqlite: store that are deleted, replaced or damaged while it is in
 * use. Whatever happens to them, never two owners, and it works again afterwards. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "help.h"

/* A notices at last and lets go; B gets it although A lives on. Had both owned at any time, the
 * ledger shows it. */
static void end_both(struct peer *a, struct peer *b)
{
    AWAIT(peer_number(a, "token") == 0);
    CHECK(peer_number(a, "stop") == 0);
    peer_await_owner(b);
    peer_end(a);
    peer_end(b);
    sqlite_end();
}

static void delete_database(void)
{
    unlink(folder_path("a.db"));
    unlink(folder_path("a.db-wal"));
    unlink(folder_path("a.db-shm"));
}

/* The one that owned lets go when it sees that its row is gone; the other one comes after that. */
static void deleted_while_owned(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short()), b = sqlite_peer(lease_short());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite_contend(&b);
    delete_database();
    AWAIT((uint64_t)peer_number(&a, "token") != token);
    AWAIT(peer_number(&a, "token") != 0 || peer_number(&b, "token") != 0);
    CHECK(strstr(peer_ask(&a, "log"), "deleted or replaced") != NULL);
    peer_end(&a);
    peer_await_owner(&b);
    peer_end(&b);
    sqlite_end();
}

/* Each time tokens go on from the clock. Were they ahead of it after that, they would fall when
 * all is deleted, and nobody is left who knows them. */
static void deleted_often(void)
{
    uint64_t last = 0, token;
    sqlite_begin();
    for (int life = 0; life < 2; life++) {
        struct peer p = sqlite_peer(lease(60, 40));
        for (int i = 0; i < 10; i++) {
            CHECK(peer_number(&p, "acquire 20000") == 0);
            token = (uint64_t)peer_number(&p, "held");
            CHECK(token == 0 || token > last); /* 0: its lease is over already */
            last = token > last ? token : last;
            peer_number(&p, "release");
            delete_database();
        }
        peer_end(&p);
        delete_database();
        unlink(folder_path("a.db-live"));
        unlink(folder_path("a.db-bell"));
    }
    folder_remove();
}

/* It renews seldom, so it does not notice for long: a newcomer must not be faster. */
static void deleted_while_unnoticed(void)
{
    sqlite_begin();
    struct simba_handle_options seldom = lease(5000, 1000);
    seldom.renew_ms = 3000;
    struct peer a = sqlite_peer(seldom);
    sqlite_contend(&a);
    peer_await_owner(&a);
    delete_database();
    struct peer b = sqlite_peer(lease_short());
    sqlite_contend(&b);
    end_both(&a, &b);
}

/* It opens the new one because of something else, and still owns by the old one. */
static void deleted_while_half_noticed(void)
{
    sqlite_begin();
    struct simba_handle_options seldom = lease(5000, 1000);
    seldom.renew_ms = 3000;
    struct peer a = sqlite_peer(seldom);
    sqlite_contend(&a);
    peer_await_owner(&a);
    delete_database();
    CHECK(peer_ask(&a, "read")[0] == '0');
    struct peer b = sqlite_peer(lease_short());
    sqlite_contend(&b);
    end_both(&a, &b);
}

/* As before, but its owner stands still: it is alive, so nobody else may own. */
static void deleted_while_stopped(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    sqlite_contend(&a);
    peer_await_owner(&a);
    peer_stop(&a);
    delete_database();
    struct peer b = sqlite_peer(lease_short());
    sqlite_contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    CHECK(peer_number(&b, "token") == 0);
    CHECK(kill(a.pid, SIGCONT) == 0);
    AWAIT(peer_number(&a, "token") != 0 || peer_number(&b, "token") != 0);
    peer_kill(&a);
    peer_await_owner(&b);
    peer_end(&b);
    sqlite_end();
}

/* Another good database comes in its place, made later than the first. */
static void replaced_while_owned(void)
{
    sqlite_begin();
    struct simba_handle_options seldom = lease(5000, 1000);
    seldom.renew_ms = 3000;
    struct peer a = sqlite_peer(seldom);
    sqlite_contend(&a);
    peer_await_owner(&a);
    char other[192];
    snprintf(other, sizeof other, "sqlite:%s", folder_path("other.db"));
    struct peer maker = {.url = other, .mutex = "m", .like = lease_short()};
    peer_start(&maker);
    CHECK(peer_ask(&maker, "read")[0] == '0');
    peer_end(&maker);
    delete_database();
    CHECK(rename(folder_path("other.db"), folder_path("a.db")) == 0);
    struct peer b = sqlite_peer(lease_short());
    sqlite_contend(&b);
    end_both(&a, &b);
}

/* The locks of the clients are in the file that is gone: whether the owner lives cannot be told, so
 * its lease is waited for, to the end that it has in the database. */
static void deleted_locks(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease(5000, 1000));
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    struct ledger *l = ledger_map(folder_path("ledger"));
    AWAIT(atomic_load(&l->tenure[0].from) != 0);
    peer_stop(&a); /* it would notice, and show itself alive in a new file */
    CHECK(unlink(folder_path("a.db-live")) == 0);
    struct peer b = sqlite_peer(lease_short());
    sqlite_contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    int64_t asked = simba_now();
    long long code, held, left; /* left: rounded down, and counted after that */
    CHECK(sscanf(peer_ask(&b, "read"), "%lld %lld %lld", &code, &held, &left) == 3);
    CHECK(code == 0 && (uint64_t)held == token && left > 0);
    peer_kill(&a);
    CHECK(peer_await_owner(&b) > token);
    AWAIT(atomic_load(&l->tenure[1].from) != 0);
    CHECK(atomic_load(&l->tenure[1].from) >= asked + left);
    peer_end(&b);
    sqlite_end();
}

static void overwrite(const char *file, off_t from)
{
    char noise[4096];
    memset(noise, 0x5a, sizeof noise);
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END);
    for (off_t at = from; at < end; at += (off_t)sizeof noise)
        CHECK(pwrite(fd, noise, sizeof noise, at) > 0);
    close(fd);
}

/* Damage shows when it is read, at the latest by the next process. */
static void damaged_while_owned(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(folder_path("a.db"), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    overwrite(folder_path("a.db-wal"), 0);
    overwrite(folder_path("a.db"), 4096);
    struct peer b = sqlite_peer(lease_short());
    const char *said = peer_ask(&b, "read");
    CHECK(strncmp(said, "-8 ", 3) == 0 && strstr(said, "malformed") != NULL);
    sqlite_contend(&b);
    delete_database();
    AWAIT((uint64_t)peer_number(&a, "token") != token);
    AWAIT(peer_number(&a, "token") != 0 || peer_number(&b, "token") != 0);
    peer_end(&a);
    peer_await_owner(&b);
    peer_end(&b);
    sqlite_end();
}

const struct test sqlite_file_tests[] = {
    {"deleted_while_owned", deleted_while_owned, SQLITE_ONLY, 0},
    {"deleted_often", deleted_often, SQLITE_ONLY, 0},
    {"deleted_while_unnoticed", deleted_while_unnoticed, SQLITE_ONLY, 0},
    {"deleted_while_half_noticed", deleted_while_half_noticed, SQLITE_ONLY, 0},
    {"deleted_while_stopped", deleted_while_stopped, SQLITE_ONLY, 0},
    {"deleted_locks", deleted_locks, SQLITE_ONLY, 0},
    {"replaced_while_owned", replaced_while_owned, SQLITE_ONLY, 0},
    {"damaged_while_owned", damaged_while_owned, SQLITE_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
