/* database_open.c: opening and closing the database. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sqlite/database.h"
#include "backend/sqlite/harden.h"

#define OPEN_WAL_PAGES 64

static const char *const sql[DATABASE_STATEMENTS] = {
    [DATABASE_BEGIN] = "BEGIN IMMEDIATE",
    [DATABASE_BEGIN_READ] = "BEGIN",
    [DATABASE_COMMIT] = "COMMIT",
    [DATABASE_ROLLBACK] = "ROLLBACK",
    [DATABASE_SELECT] =
        "SELECT owner, token, client, live, acquired, until, contended, evicted FROM "
        "mutex WHERE name = ?1",
    [DATABASE_TAKE] = "REPLACE INTO mutex VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6 + ?7, ?7, 0, ?8)",
    [DATABASE_FREE] = "UPDATE mutex SET owner = '', until = 0, contended = 0 WHERE name = ?1",
    [DATABASE_CONTEND] = "UPDATE mutex SET contended = 1 WHERE name = ?1 AND contended = 0",
    [DATABASE_RENEW] =
        "UPDATE mutex SET until = ?4 + ?5, lease = ?5, client = ?6, live = ?7 WHERE name = "
        "?1 AND owner = ?2 AND token = ?3 AND until > ?4 AND evicted = 0",
    [DATABASE_EVICT] = "UPDATE mutex SET evicted = 1 WHERE name = ?1",
    [DATABASE_LIST] =
        "SELECT name, owner, token, client, live, acquired, until, evicted FROM mutex "
        "WHERE owner <> '' AND until > ?2 AND substr(name, 1, length(?1)) = ?1",
    [DATABASE_OWN] = "SELECT token, acquired, until, lease FROM mutex WHERE name = ''",
    [DATABASE_SET_OWN] = "REPLACE INTO mutex VALUES ('', '', ?1, 0, 0, ?2, ?3, ?4, 0, 0)",
    [DATABASE_READ_NOTE] = "SELECT text, token, written, wall, boot FROM note WHERE mutex = ?1",
    [DATABASE_PUBLISH] =
        "INSERT INTO note VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (mutex) DO UPDATE SET "
        "text = excluded.text, token = excluded.token, serial = excluded.serial, written = "
        "excluded.written, wall = excluded.wall, boot = excluded.boot "
        "WHERE token <> excluded.token OR serial < excluded.serial",
};

static int on_busy(void *arg, int times)
{
    return database_wait(arg, times);
}

/* Instead of SQLite's own, which would write the log back, and sync, within a commit. */
static int on_commit(void *arg, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    struct database *d = arg;
    if (pages < d->wal_pages)
        d->tidy_at = DATABASE_WAL_PAGES;
    d->wal_pages = pages;
    return SQLITE_OK;
}

/* Most processes need a few of them. NULL if it cannot be prepared: then its step fails, and SQLite
 * knows why. */
sqlite3_stmt *database_statement(struct database *d, enum database_statement which)
{
    if (d->statement[which] == NULL)
        sqlite3_prepare_v3(d->handle, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                           &d->statement[which], NULL);
    return d->statement[which];
}

/* Before anything is made beside it: is this ours, or empty? Read through SQLite, since to close
 * a descriptor of our own would drop its locks. A database whose first page is only in the log
 * yet has no sign of ours, and one page at most. */
static int check_head(struct database *d)
{
    unsigned char head[100];
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file == NULL || file->pMethods == NULL || file->pMethods->xFileSize(file, &size) != 0)
        return database_fail_text(d, SIMBA_ESTORE, "cannot read the database file");
    if (size == 0)
        return 0;
    if (size < (int)sizeof head)
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s is not a database: move it away, or name another file",
                                  d->paths->db);
    if (file->pMethods->xRead(file, head, sizeof head, 0) != SQLITE_OK)
        return database_fail_text(d, SIMBA_ESTORE, "cannot read the database file: disk I/O error");
    uint32_t id =
        (uint32_t)head[68] << 24 | (uint32_t)head[69] << 16 | (uint32_t)head[70] << 8 | head[71];
    uint32_t page = (uint32_t)head[16] << 8 | head[17];
    if (memcmp(head, "SQLite format 3", 16) != 0)
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s is not a database: move it away, or name another file",
                                  d->paths->db);
    if (id != DATABASE_APPLICATION_ID && (id != 0 || size > (page == 1 ? 65536 : page)))
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s is a database of another program: name another file",
                                  d->paths->db);
    return 0;
}

/* Members of the group may write to a shared database, but not make us run what they put there. And
 * only we write the log back: see files.h. */
static void harden(struct database *d)
{
    harden_database(d->handle);
    sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_busy_handler(d->handle, on_busy, d);
    sqlite3_wal_hook(d->handle, on_commit, d);
}

void database_init(struct database *d, const struct paths *paths, struct wakeup *wakeup,
                   const struct boot_clock *boot, int64_t busy_ms)
{
    *d = (struct database){.paths = paths,
                           .wakeup = wakeup,
                           .boot = *boot,
                           .busy_ms = busy_ms,
                           .may_wait = true,
                           .tidy_at = DATABASE_WAL_PAGES};
    d->lock.fd = d->lock.turn = d->lock.tree = d->files.wal_fd = -1;
}

/* PATH-live must be the one that others find, too. The old one is closed after the new one was
 * opened: else that could get the same inode, and our tenures would look like those of a dead
 * client. Another PATH-tree is left alone, since children of ours have locks in the old one: newcomers
 * see in our rows that they know nothing of it, and wait for our leases. */
static int open_live(struct database *d)
{
    struct stat s;
    struct client_lock old = d->lock;
    const char *which;
    if (old.fd >= 0 && stat(d->paths->live, &s) == 0 && s.st_ino == old.id.inode &&
        s.st_dev == old.id.device)
        return 0;
    if (client_lock_open(&d->lock, d->paths, &which) != 0) {
        int rc = database_fail_errno(d, which);
        d->lock = old;
        return rc;
    }
    client_lock_close(&old);
    return 0;
}

/* A file that it may not make SQLite then tries to read, and says that it is not there. */
static int fail_to_open(struct database *d)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", d->paths->db);
    strrchr(folder, '/')[1] = '\0';
    if (sqlite3_system_errno(d->handle) == ENOENT && euidaccess(folder, W_OK | X_OK) != 0)
        return database_fail_errno(d, d->paths->db);
    return database_fail(d, "cannot open");
}

int database_find(struct database *d)
{
    assert(d->handle == NULL);
    if (d->is_reader && d->lock.number == 0)
        client_lock_close(&d->lock);
    d->is_reader = false;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(d->paths->db, &d->handle, flags, NULL) == SQLITE_OK ? check_head(d)
                                                                                 : fail_to_open(d);
    if (rc == 0)
        rc = open_live(d);
    if (rc == 0)
        harden(d);
    else
        database_close(d);
    return rc;
}

int database_open(struct database *d)
{
    int rc = database_take_turn(d); /* so nobody else makes files now */
    if (rc == 0)
        rc = database_set_up(d);
    if (rc < 0 && d->is_full) {
        database_tidy(d);
        rc = database_set_up(d);
    }
    database_give_turn(d);
    /* Whoever opens a database that nobody has open reads the whole log first. Where processes come
     * and go (the command) it is therefore kept short, and they pay for that in turns. */
    if (rc == 0 && (d->wal_pages >= OPEN_WAL_PAGES || d->tidy_at == 0))
        database_tidy(d);
    if (rc < 0)
        database_close(d);
    return rc;
}

/* Whoever may not write can read: SQLite reads a log also without writing to PATH-shm, and
 * whether a client is alive can be asked without a lock of one's own. (If we have one, because
 * we could write before, it stays: we may still own something.) It is closed after each
 * question, so there is nothing that could become old. */
int database_open_reader(struct database *d)
{
    int64_t tables = 0;
    const char *which;
    int flags =
        SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(d->paths->db, &d->handle, flags, NULL) == SQLITE_OK
                 ? check_head(d)
                 : database_fail(d, "cannot open");
    if (rc == 0) {
        harden(d);
        rc = database_check_owner(d, &tables);
    }
    if (rc == 0 && tables == 0)
        rc = database_fail_text(d, SIMBA_EDENIED, "the database is empty, and may not be written");
    if (rc == 0 && d->lock.fd < 0 && client_lock_open_reader(&d->lock, d->paths, &which) != 0)
        rc = database_fail_errno(d, which);
    d->is_reader = rc == 0;
    if (rc < 0)
        database_close(d);
    return rc;
}

void database_close(struct database *d)
{
    for (int i = 0; i < DATABASE_STATEMENTS; i++) {
        sqlite3_finalize(d->statement[i]);
        d->statement[i] = NULL;
    }
    sqlite3_close(d->handle);
    d->handle = NULL;
    d->checked = 0;
    files_forget(&d->files);
    database_give_turn(d);
}

void database_end(struct database *d)
{
    database_close(d);
    client_lock_close(&d->lock);
}
