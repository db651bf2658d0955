/* damage.c: every file of the sqlite: store, and everything that may happen to it while one
 * process owns a mutex, another waits and two come. A ledger shows whether two ever owned it at
 * once, or tokens fell; afterwards the store must work again. The table is in
 * docs/guides/sqlite.md.
 *
 * Version 0.1 compared the identity of the database file only, and fails in most of these cases. It
 * was right in the others, which guard against a step back:
 * - db_removed, db_replaced, db_truncated, all_but_live_go: it saw that the database was another or
 *   empty, and that clients of before were alive, and granted nothing.
 * - live_*: in another PATH-live nobody is seen alive, so leases are waited for. What is in the file
 *   meant nothing to it.
 * - tree_*: it had no PATH-tree.
 * - wakeup_removed, wakeup_replaced, wakeup_overwritten: that file only wakes.
 * - *_linked, but of the database: whoever opens the store finds them by its name.
 * - shm_truncated: the newcomer makes it as long as it was, if nobody reads there before;
 *   truncated_index is the case without a newcomer. */
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

#include "help.h"

/* ---- what happens to a file ---------------------------------------------------------------- */

static const char *path_in(const char *folder, const char *file)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    return folder_path(name);
}

/* A file of the store, and its copy of before. */
static const char *now(const char *file)
{
    return path_in("now", file);
}

static const char *before(const char *file)
{
    return path_in("before", file);
}

static bool was_cut; /* PATH-shm: it became shorter, under those who use it */

static void note_cut(const char *path)
{
    was_cut = was_cut || strcmp(path, now("a.db-shm")) == 0;
}

/* The bytes of one file into another, which keeps its inode if it is there. */
static void copy(const char *from, const char *to)
{
    char bytes[65536];
    note_cut(to);
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

/* As cp -p does. */
static void copy_with_times(const char *from, const char *to)
{
    struct stat s;
    copy(from, to);
    CHECK(stat(from, &s) == 0);
    CHECK(utimensat(AT_FDCWD, to, (struct timespec[]){s.st_atim, s.st_mtim}, 0) == 0);
}

static void copy_all(void)
{
    for (size_t i = 0; i < SQLITE_FILES; i++)
        copy_with_times(now(sqlite_files[i]), before(sqlite_files[i]));
}

static void removed(const char *file)
{
    CHECK(unlink(now(file)) == 0);
}

/* By its own older copy, as another file. */
static void replaced(const char *file)
{
    copy(before(file), now("new"));
    CHECK(rename(now("new"), now(file)) == 0);
}

static void overwritten(const char *file)
{
    copy(before(file), now(file));
}

static void truncated(const char *file)
{
    note_cut(now(file));
    CHECK(truncate(now(file), 0) == 0);
}

static void halved(const char *file)
{
    struct stat s;
    CHECK(stat(now(file), &s) == 0);
    note_cut(now(file));
    CHECK(truncate(now(file), s.st_size / 2 / 4096 * 4096) == 0);
}

static void linked(const char *file)
{
    CHECK(link(now(file), now("second")) == 0);
}

/* ---- a case -------------------------------------------------------------------------------- */

/* The owner renews seldom, and so notices late. */
static struct simba_handle_options seldom(void)
{
    struct simba_handle_options like = lease(2000, 500);
    like.renew_ms = 1500;
    return like;
}

static void begin(void)
{
    sqlite_begin_in("now");
    CHECK(mkdir(folder_path("before"), 0700) == 0);
}

/* Makes the log long enough for the next who opens the store to write it back: from then on the
 * database file has everything, until the next write. */
static void write_back(void)
{
    struct peer p = {.url = sqlite_url(), .mutex = "other", .like = lease_short()};
    peer_start(&p);
    peer_send(&p, "count 32 %s", folder_path("count"));
    CHECK(strcmp(peer_reply(&p, PATIENCE_MS), "0") == 0);
    peer_end(&p);
    p = sqlite_peer(lease_short());
    CHECK(peer_number(&p, "read") == 0);
    peer_end(&p);
}

struct group {
    struct peer peer[4];
    int peers;
    bool was_killed;
};

static struct peer *join_in(struct group *g, struct simba_handle_options like)
{
    struct peer *p = &g->peer[g->peers++];
    *p = sqlite_peer(like);
    sqlite_contend(p);
    return p;
}

static void drop(struct group *g, int i)
{
    g->peer[i] = g->peer[--g->peers];
}

/* A client that is within a transaction when PATH-shm is cut is killed by SIGBUS, as the guide says. One of them at
 * most: the others go on. */
static int owner_of(struct group *g)
{
    for (int i = 0; i < g->peers; i++) {
        if (!peer_asked(&g->peer[i], "token", SIGBUS)) {
            CHECK(was_cut && !g->was_killed);
            g->was_killed = true;
            drop(g, i--);
        } else if (strtoll(g->peer[i].line, NULL, 10) != 0) {
            return i;
        }
    }
    return -1;
}

/* Whoever owns is killed, so that it puts nothing right by leaving in order; another follows. */
static void kill_owner(struct group *g)
{
    int i;
    AWAIT((i = owner_of(g)) >= 0);
    peer_kill(&g->peer[i]);
    drop(g, i);
}

/* They renew, or fail to, and try. */
static void live_for(struct group *g, int64_t ms)
{
    for (int64_t end = simba_now() + ms; simba_now() < end; nap(50))
        owner_of(g);
}

/* After the fault two come: one before the owner renews again, one after that. All live together
 * for longer than the owner's lease, so that whoever does not see its renewals takes the mutex. */
static void newcomers(struct group *g)
{
    join_in(g, lease_short());
    live_for(g, 2500);
    join_in(g, lease_short());
    live_for(g, 1500);
}

static void take_turns(struct group *g)
{
    kill_owner(g);
    kill_owner(g);
    AWAIT(owner_of(g) >= 0);
    while (g->peers > 0)
        peer_end(&g->peer[--g->peers]);
}

/* The owner and the one that waits are older than the copies of the files, of when nobody owned the
 * mutex: an older database knows of both, and not that one of them owns. "": of several files. */
static void damage(const char *file, void (*happens)(const char *file))
{
    struct group g = {.peers = 0};
    begin();
    struct peer *a = join_in(&g, seldom());
    peer_await_owner(a);
    struct peer *b = join_in(&g, lease_short());
    CHECK(peer_number(a, "stop") == 0);
    peer_await_owner(b);
    CHECK(peer_number(b, "stop") == 0);
    if (file[0] == '\0' || strcmp(file, "a.db") == 0 || strcmp(file, "a.db-wal") == 0)
        write_back();
    copy_all();
    CHECK(peer_number(a, "start") == 0);
    peer_await_owner(a);
    CHECK(peer_number(b, "start") == 0 && peer_number(b, "wait") == 0);
    if (strcmp(file, "a.db") == 0)
        write_back();
    happens(file);
    newcomers(&g);
    take_turns(&g);
    sqlite_end();
}

#define DAMAGE(name, file, happens)             \
    static void damage_##name##_##happens(void) \
    {                                           \
        damage(file, happens);                  \
    }
DAMAGE(db, "a.db", removed)
DAMAGE(db, "a.db", replaced)
DAMAGE(db, "a.db", overwritten)
DAMAGE(db, "a.db", truncated)
DAMAGE(wal, "a.db-wal", removed)
DAMAGE(wal, "a.db-wal", replaced)
DAMAGE(wal, "a.db-wal", overwritten)
DAMAGE(wal, "a.db-wal", truncated)
DAMAGE(wal, "a.db-wal", linked)
DAMAGE(shm, "a.db-shm", removed)
DAMAGE(shm, "a.db-shm", replaced)
DAMAGE(shm, "a.db-shm", overwritten)
DAMAGE(shm, "a.db-shm", truncated)
DAMAGE(shm, "a.db-shm", halved)
DAMAGE(shm, "a.db-shm", linked)
DAMAGE(live, "a.db-live", removed)
DAMAGE(live, "a.db-live", replaced)
DAMAGE(live, "a.db-live", overwritten)
DAMAGE(live, "a.db-live", truncated)
DAMAGE(live, "a.db-live", linked)
DAMAGE(tree, "a.db-tree", removed)
DAMAGE(tree, "a.db-tree", replaced)
DAMAGE(tree, "a.db-tree", linked)
DAMAGE(wakeup, "a.db-bell", removed)
DAMAGE(wakeup, "a.db-bell", replaced)
DAMAGE(wakeup, "a.db-bell", overwritten)
DAMAGE(wakeup, "a.db-bell", truncated)
DAMAGE(wakeup, "a.db-bell", linked)

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
    removed("a.db-tree");
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
    for (size_t i = 0; i < SQLITE_FILES; i++)
        replaced(sqlite_files[i]);
}

static void all_are_overwritten(const char *file)
{
    (void)file;
    for (size_t i = 0; i < SQLITE_FILES; i++)
        overwritten(sqlite_files[i]);
}

/* By a backup's cp -p, tar or rsync --inplace, so that they look as if nobody had touched them. */
static void all_are_put_back(const char *file)
{
    (void)file;
    for (size_t i = 0; i < SQLITE_FILES; i++)
        copy_with_times(before(sqlite_files[i]), now(sqlite_files[i]));
}

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Whether SQLite's log has a header and a transaction that is complete: its last page says so. A log that is not
 * empty may be one that is just being begun. */
static bool has_transaction(const char *file)
{
    enum { HEADER = 32, FRAME = 24 };
    unsigned char head[HEADER], frame[FRAME];
    int fd = open(now(file), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bool found = false, is_whole = pread(fd, head, HEADER, 0) == HEADER && head[0] != 0;
    off_t size = is_whole ? (off_t)big_endian(head + 8) + FRAME : 0, at = HEADER;
    for (; is_whole && !found && pread(fd, frame, FRAME, at) == FRAME; at += size)
        found = big_endian(frame + 4) != 0;
    close(fd);
    return found;
}

/* A log that was truncated is of no use to whoever builds the index again. The one that waits looks
 * twice a second, notices, and begins anew, as long as PATH-live knows what was written. */
static void log_then_watermarks_go(const char *file)
{
    (void)file;
    truncated("a.db-wal");
    AWAIT(has_transaction("a.db-wal"));
    truncated("a.db-live");
    removed("a.db-shm");
}

/* Somebody was writing to it meanwhile: so it is as long as before. */
static void log_is_truncated_and_grows(const char *file)
{
    struct stat s;
    (void)file;
    CHECK(stat(now("a.db-wal"), &s) == 0 && s.st_size > 0);
    truncated("a.db-wal");
    CHECK(truncate(now("a.db-wal"), s.st_size) == 0);
}

/* As sqlite3's .restore does: a transaction like any other. */
static void restored(const char *file)
{
    (void)file;
    sqlite3 *from = NULL, *to = NULL;
    CHECK(sqlite3_open(before("a.db"), &from) == SQLITE_OK);
    CHECK(sqlite3_open(now("a.db"), &to) == SQLITE_OK);
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

/* The files in the copy know that they are copies. */
static void folder_is_older(const char *file)
{
    (void)file;
    CHECK(rename(folder_path("now"), folder_path("away")) == 0);
    CHECK(rename(folder_path("before"), folder_path("now")) == 0);
}

#define SEVERAL(happens)               \
    static void damage_##happens(void) \
    {                                  \
        damage("", happens);           \
    }
SEVERAL(log_and_index_go)
SEVERAL(all_beside_go)
SEVERAL(all_but_live_go)
SEVERAL(all_are_older)
SEVERAL(all_are_overwritten)
SEVERAL(all_are_put_back)
SEVERAL(log_then_watermarks_go)
SEVERAL(log_is_truncated_and_grows)
SEVERAL(restored)
SEVERAL(folder_is_older)

/* ---- what is refused ----------------------------------------------------------------------- */

static void refused(const char *path, const char *part)
{
    char text[224];
    simba_client *s = NULL;
    snprintf(text, sizeof text, "sqlite:%s", path);
    CHECK_REFUSED(simba_open(text, NULL, &s), SIMBA_EUNSUPPORTED, part);
}

/* Beside a second name there would be other locks: nobody gets in by either, the owner does not
 * stay, and it goes on when one of them is gone. */
static void damage_db_linked(void)
{
    begin();
    struct peer a = sqlite_peer(lease_short());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    linked("a.db");
    refused(now("second"), "hard link");
    refused(now("a.db"), "hard link");
    CHECK(access(now("second-live"), F_OK) != 0);
    AWAIT(peer_number(&a, "token") == 0);
    CHECK(strstr(peer_ask(&a, "log"), "hard link") != NULL);
    removed("second");
    CHECK(peer_await_owner(&a) > token);
    peer_end(&a);
    sqlite_end();
}

/* In a copy of the folder one file is the store's own. */
static void mounted(const char *file)
{
    begin();
    struct peer p = sqlite_peer(lease_short());
    CHECK(peer_number(&p, "read") == 0);
    copy_all();
    peer_end(&p);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(now(file), before(file), NULL, MS_BIND, NULL) != 0) {
        folder_remove();
        suite_skip("a file cannot be mounted here (not root?)");
    }
    refused(before("a.db"), "mounted by itself");
    CHECK(umount2(before(file), MNT_DETACH) == 0);
    folder_remove();
}

#define MOUNTED(name, file)                   \
    static void damage_##name##_mounted(void) \
    {                                         \
        mounted(file);                        \
    }
MOUNTED(db, "a.db")
MOUNTED(wal, "a.db-wal")
MOUNTED(shm, "a.db-shm")
MOUNTED(live, "a.db-live")
MOUNTED(tree, "a.db-tree")
MOUNTED(wakeup, "a.db-bell")

#define SQLITE_DAMAGE(name)                            \
    {                                                  \
        "damage_" #name, damage_##name, SQLITE_ONLY, 0 \
    }
const struct test sqlite_damage_tests[] = {
    SQLITE_DAMAGE(db_removed),
    SQLITE_DAMAGE(db_replaced),
    SQLITE_DAMAGE(db_overwritten),
    SQLITE_DAMAGE(db_truncated),
    SQLITE_DAMAGE(db_linked),
    SQLITE_DAMAGE(db_mounted),
    SQLITE_DAMAGE(wal_removed),
    SQLITE_DAMAGE(wal_replaced),
    SQLITE_DAMAGE(wal_overwritten),
    SQLITE_DAMAGE(wal_truncated),
    SQLITE_DAMAGE(wal_linked),
    SQLITE_DAMAGE(wal_mounted),
    SQLITE_DAMAGE(shm_removed),
    SQLITE_DAMAGE(shm_replaced),
    SQLITE_DAMAGE(shm_overwritten),
    SQLITE_DAMAGE(shm_truncated),
    SQLITE_DAMAGE(shm_halved),
    SQLITE_DAMAGE(shm_linked),
    SQLITE_DAMAGE(shm_mounted),
    SQLITE_DAMAGE(live_removed),
    SQLITE_DAMAGE(live_replaced),
    SQLITE_DAMAGE(live_overwritten),
    SQLITE_DAMAGE(live_truncated),
    SQLITE_DAMAGE(live_linked),
    SQLITE_DAMAGE(live_mounted),
    SQLITE_DAMAGE(tree_removed),
    SQLITE_DAMAGE(tree_replaced),
    SQLITE_DAMAGE(tree_linked),
    SQLITE_DAMAGE(tree_mounted),
    SQLITE_DAMAGE(wakeup_removed),
    SQLITE_DAMAGE(wakeup_replaced),
    SQLITE_DAMAGE(wakeup_overwritten),
    SQLITE_DAMAGE(wakeup_truncated),
    SQLITE_DAMAGE(wakeup_linked),
    SQLITE_DAMAGE(wakeup_mounted),
    SQLITE_DAMAGE(log_and_index_go),
    SQLITE_DAMAGE(all_beside_go),
    SQLITE_DAMAGE(all_but_live_go),
    SQLITE_DAMAGE(all_are_older),
    SQLITE_DAMAGE(all_are_overwritten),
    SQLITE_DAMAGE(all_are_put_back),
    SQLITE_DAMAGE(log_then_watermarks_go),
    SQLITE_DAMAGE(log_is_truncated_and_grows),
    SQLITE_DAMAGE(restored),
    SQLITE_DAMAGE(folder_is_older),
    {NULL, NULL, ANY_STORE, 0},
};
