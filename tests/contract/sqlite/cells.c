/* cells.c: every file of the sqlite: store, and everything that may happen to it while one
 * process owns a mutex, another waits and a third comes. A ledger shows whether two ever owned it at
 * once, or tokens fell; afterwards the store must work again. The table is in
 * docs/backends/sqlite.md. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"

static char url[192];

/* ---- what happens to a file ---------------------------------------------------------------- */

static char *in_folder(const char *file)
{
    static char path[4][160];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s", folder_path(file));
    return p;
}

/* The bytes of one file into another, which keeps its inode if it is there. */
static void copy(const char *from, const char *to)
{
    char bytes[65536];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        CHECK(write(out, bytes, (size_t)n) == n);
    CHECK(n == 0);
    close(in);
    close(out);
}

static const char *old_of(const char *file)
{
    static char name[64];
    snprintf(name, sizeof name, "old-%s", file);
    return name;
}

static void removed(const char *file)
{
    CHECK(unlink(folder_path(file)) == 0);
}

/* By its own older copy, as another file. */
static void replaced(const char *file)
{
    copy(in_folder(old_of(file)), in_folder("new"));
    CHECK(rename(in_folder("new"), in_folder(file)) == 0);
}

static void overwritten(const char *file)
{
    copy(in_folder(old_of(file)), in_folder(file));
}

static void truncated(const char *file)
{
    CHECK(truncate(folder_path(file), 0) == 0);
}

static void halved(const char *file)
{
    struct stat s;
    CHECK(stat(folder_path(file), &s) == 0);
    CHECK(truncate(folder_path(file), s.st_size / 2 / 4096 * 4096) == 0);
}

static void linked(const char *file)
{
    CHECK(link(in_folder(file), in_folder("second")) == 0);
}

/* ---- a cell -------------------------------------------------------------------------------- */

static const char *const files[] = {"a.db", "a.db-wal", "a.db-shm", "a.db-live", "a.db-bell"};

static void begin(void)
{
    folder_make();
    snprintf(url, sizeof url, "sqlite:%s", folder_path("a.db"));
}

static struct peer start(struct simba_handle_options like)
{
    struct peer p = {.url = url, .mutex = "m", .like = like};
    peer_start(&p);
    return p;
}

static void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
    peer_send(p, "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(p, PATIENCE_MS), "0") == 0);
}

static void check_and_remove(void)
{
    ledger_check(ledger_map(folder_path("ledger")));
    folder_remove();
}

/* The owner renews seldom, and so notices late. */
static struct simba_handle_options seldom(void)
{
    struct simba_handle_options like = lease(3000, 1000);
    like.renew_ms = 1500;
    return like;
}

/* A store that has been used, and copies of its files of when nobody owned the mutex. */
static void use_before(void)
{
    struct peer p = start(lease_short());
    for (int i = 0; i < 3; i++)
        CHECK(peer_number(&p, "acquire 20000") == 0 && peer_number(&p, "release") == 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        copy(in_folder(files[i]), in_folder(old_of(files[i])));
    peer_end(&p);
}

static bool one_owns(struct peer *a, struct peer *b)
{
    return peer_number(a, "token") != 0 || peer_number(b, "token") != 0;
}

/* Long enough for the owner to have renewed, or failed to, and the others to have tried. */
static void live_with_it(struct peer *a, struct peer *b, struct peer *c)
{
    for (int64_t end = simba_now() + 3000; simba_now() < end; nap(50)) {
        peer_number(a, "token");
        peer_number(b, "token");
        peer_number(c, "token");
    }
}

static void cell(const char *file, void (*happens)(const char *file))
{
    begin();
    use_before();
    struct peer a = start(seldom()), b = start(lease_short());
    contend(&a);
    peer_await_owner(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    happens(file);
    struct peer c = start(lease_short());
    contend(&c);
    live_with_it(&a, &b, &c);
    AWAIT(one_owns(&a, &b) || peer_number(&c, "token") != 0);
    peer_end(&a);
    AWAIT(one_owns(&b, &c));
    peer_end(&b);
    peer_await_owner(&c);
    peer_end(&c);
    check_and_remove();
}

#define CELL(name, file, happens)             \
    static void cell_##name##_##happens(void) \
    {                                         \
        cell(file, happens);                  \
    }
CELL(db, "a.db", removed)
CELL(db, "a.db", replaced)
CELL(db, "a.db", overwritten)
CELL(db, "a.db", truncated)
CELL(wal, "a.db-wal", removed)
CELL(wal, "a.db-wal", replaced)
CELL(wal, "a.db-wal", overwritten)
CELL(wal, "a.db-wal", truncated)
CELL(wal, "a.db-wal", linked)
CELL(shm, "a.db-shm", removed)
CELL(shm, "a.db-shm", replaced)
CELL(shm, "a.db-shm", overwritten)
CELL(shm, "a.db-shm", truncated)
CELL(shm, "a.db-shm", halved)
CELL(shm, "a.db-shm", linked)
CELL(live, "a.db-live", removed)
CELL(live, "a.db-live", replaced)
CELL(live, "a.db-live", overwritten)
CELL(live, "a.db-live", truncated)
CELL(live, "a.db-live", linked)
CELL(bell, "a.db-bell", removed)
CELL(bell, "a.db-bell", replaced)
CELL(bell, "a.db-bell", overwritten)
CELL(bell, "a.db-bell", truncated)
CELL(bell, "a.db-bell", linked)

/* ---- several files at once ----------------------------------------------------------------- */

static void log_and_index_go(const char *file)
{
    (void)file;
    removed("a.db-wal");
    removed("a.db-shm");
}

static void all_beside_go(const char *file)
{
    log_and_index_go(file);
    removed("a.db-live");
    removed("a.db-bell");
}

static void all_but_live_go(const char *file)
{
    log_and_index_go(file);
    removed("a.db");
}

static void all_are_older(const char *file)
{
    (void)file;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        replaced(files[i]);
}

static void all_are_overwritten(const char *file)
{
    (void)file;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        overwritten(files[i]);
}

/* As sqlite3's .restore does: a transaction like any other. */
static void restored(const char *file)
{
    (void)file;
    sqlite3 *from = NULL, *to = NULL;
    CHECK(sqlite3_open(folder_path("old-a.db"), &from) == SQLITE_OK);
    CHECK(sqlite3_open(folder_path("a.db"), &to) == SQLITE_OK);
    sqlite3_busy_timeout(to, PATIENCE_MS);
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    CHECK(b != NULL);
    int rc;
    while ((rc = sqlite3_backup_step(b, -1)) == SQLITE_BUSY || rc == SQLITE_LOCKED)
        nap(1);
    CHECK(rc == SQLITE_DONE);
    CHECK(sqlite3_backup_finish(b) == SQLITE_OK);
    sqlite3_close(from);
    sqlite3_close(to);
}

static void folder_is_older(const char *file)
{
    (void)file;
    char old[160], now[160], away[160];
    snprintf(now, sizeof now, "%s/s", folder_path(""));
    snprintf(old, sizeof old, "%s/old", folder_path(""));
    snprintf(away, sizeof away, "%s/away", folder_path(""));
    CHECK(rename(now, away) == 0 && rename(old, now) == 0);
}

#define SEVERAL(happens)             \
    static void cell_##happens(void) \
    {                                \
        cell("", happens);           \
    }
SEVERAL(log_and_index_go)
SEVERAL(all_beside_go)
SEVERAL(all_but_live_go)
SEVERAL(all_are_older)
SEVERAL(all_are_overwritten)
SEVERAL(restored)

/* The whole folder gives way to a copy of before: the files in it know that they are copies. */
static void cell_folder_replaced(void)
{
    begin();
    CHECK(mkdir(folder_path("s"), 0700) == 0 && mkdir(folder_path("old"), 0700) == 0);
    snprintf(url, sizeof url, "sqlite:%s", folder_path("s/a.db"));
    struct peer p = start(lease_short());
    CHECK(peer_number(&p, "acquire 20000") == 0 && peer_number(&p, "release") == 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "s/%s", files[i]);
        snprintf(to, sizeof to, "old/%s", files[i]);
        copy(in_folder(from), in_folder(to));
    }
    struct peer a = start(seldom());
    contend(&a);
    peer_await_owner(&a);
    folder_is_older("");
    struct peer c = start(lease_short());
    contend(&c);
    live_with_it(&a, &a, &c);
    peer_end(&p);
    peer_end(&a);
    peer_await_owner(&c);
    peer_end(&c);
    check_and_remove();
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void refused(const char *at, const char *part)
{
    char text[224];
    simba *s = NULL;
    snprintf(text, sizeof text, "sqlite:%s", folder_path(at));
    CHECK_REFUSED(simba_open(text, NULL, &s), SIMBA_EUNSUPPORTED, part);
}

/* Beside a second name there would be other locks: nobody gets in by either, the owner does not stay,
 * and it goes on when one of them is gone. */
static void cell_db_linked(void)
{
    begin();
    use_before();
    struct peer a = start(lease_short());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    linked("a.db");
    refused("second", "hard link");
    refused("a.db", "hard link");
    CHECK(access(folder_path("second-live"), F_OK) != 0);
    AWAIT(peer_number(&a, "token") == 0);
    CHECK(strstr(peer_ask(&a, "log"), "hard link") != NULL);
    removed("second");
    CHECK(peer_await_owner(&a) > token);
    peer_end(&a);
    check_and_remove();
}

static void mounted(const char *file)
{
    begin();
    use_before();
    CHECK(mkdir(folder_path("other"), 0700) == 0);
    char at[64];
    snprintf(at, sizeof at, "other/%s", file);
    int fd = open(in_folder(at), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(in_folder(file), in_folder(at), NULL, MS_BIND, NULL) != 0) {
        folder_remove();
        suite_skip("a file cannot be mounted here (not root?)");
    }
    refused("other/a.db", "mounted by itself");
    CHECK(umount2(in_folder(at), MNT_DETACH) == 0);
    folder_remove();
}

#define MOUNTED(name, file)                 \
    static void cell_##name##_mounted(void) \
    {                                       \
        mounted(file);                      \
    }
MOUNTED(db, "a.db")
MOUNTED(wal, "a.db-wal")
MOUNTED(shm, "a.db-shm")
MOUNTED(live, "a.db-live")
MOUNTED(bell, "a.db-bell")

#define SQLITE_CELL(name)                          \
    {                                              \
        "cell_" #name, cell_##name, SQLITE_ONLY, 0 \
    }
const struct test sqlite_cell_tests[] = {
    SQLITE_CELL(db_removed),       SQLITE_CELL(db_replaced),      SQLITE_CELL(db_overwritten),
    SQLITE_CELL(db_truncated),     SQLITE_CELL(db_linked),        SQLITE_CELL(db_mounted),
    SQLITE_CELL(wal_removed),      SQLITE_CELL(wal_replaced),     SQLITE_CELL(wal_overwritten),
    SQLITE_CELL(wal_truncated),    SQLITE_CELL(wal_linked),       SQLITE_CELL(wal_mounted),
    SQLITE_CELL(shm_removed),      SQLITE_CELL(shm_replaced),     SQLITE_CELL(shm_overwritten),
    SQLITE_CELL(shm_truncated),    SQLITE_CELL(shm_halved),       SQLITE_CELL(shm_linked),
    SQLITE_CELL(shm_mounted),      SQLITE_CELL(live_removed),     SQLITE_CELL(live_replaced),
    SQLITE_CELL(live_overwritten), SQLITE_CELL(live_truncated),   SQLITE_CELL(live_linked),
    SQLITE_CELL(live_mounted),     SQLITE_CELL(bell_removed),     SQLITE_CELL(bell_replaced),
    SQLITE_CELL(bell_overwritten), SQLITE_CELL(bell_truncated),   SQLITE_CELL(bell_linked),
    SQLITE_CELL(bell_mounted),     SQLITE_CELL(log_and_index_go), SQLITE_CELL(all_beside_go),
    SQLITE_CELL(all_but_live_go),  SQLITE_CELL(all_are_older),    SQLITE_CELL(all_are_overwritten),
    SQLITE_CELL(restored),         SQLITE_CELL(folder_replaced),  {NULL, NULL, ANY_STORE, 0},
};
