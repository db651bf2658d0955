/* db_open.c: opening the database, and what has to be put right when it is.
 *
 * The first writer of a boot raises the base of all tokens by a million and syncs that: under
 * synchronous=NORMAL a power cut may have lost the last commits, and a token must not be given twice.
 * What an owner of an earlier boot held is honoured for one lease from now on.
 *
 * A database that is made where clients of another one are still alive (it was deleted or replaced
 * under them) grants nothing until they are gone: their locks are still in the file beside it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/sqlite/db.h"
#include "backend/sqlite/schema.h"
#include "runtime/clock.h"

#define APPLICATION_ID 0x53494d42 /* "SIMB" */
#define SCHEMA_VERSION 1
#define TOKENS_PER_BOOT 1000000
#define BUSY_NAP_NS 100000

static const char *const sql[DB_STATEMENTS] = {
    [DB_BEGIN] = "BEGIN IMMEDIATE",
    [DB_COMMIT] = "COMMIT",
    [DB_ROLLBACK] = "ROLLBACK",
    [DB_SELECT] = "SELECT owner, token, client, live, acquired, until, contended FROM mutex "
                  "WHERE name = ?1",
    [DB_TAKE] = "INSERT INTO mutex VALUES (?1, ?2, ?3 + 1, ?4, ?5, ?6, ?6 + ?7, ?7, 0, 0) "
                "ON CONFLICT (name) DO UPDATE SET owner = ?2, token = max(token, ?3) + 1, "
                "client = ?4, live = ?5, acquired = ?6, until = ?6 + ?7, lease = ?7, evicted = 0, "
                "contended = 0 WHERE until <= ?6 RETURNING token",
    [DB_FREE] = "UPDATE mutex SET owner = '', until = 0, contended = 0 WHERE name = ?1",
    [DB_CONTEND] = "UPDATE mutex SET contended = 1 WHERE name = ?1 AND contended = 0",
    [DB_RENEW] = "UPDATE mutex SET until = ?4 + ?5, lease = ?5 WHERE name = ?1 AND owner = ?2 AND "
                 "token = ?3 AND until > ?4 AND evicted = 0",
    [DB_VERSION] = "PRAGMA data_version",
};

/* Polite for a while, then failure; SQLite's own handler sleeps too long for a lock's hand-over. */
static int on_busy(void *arg, int times)
{
    struct db *d = arg;
    if (times == 0)
        d->busy_since = clock_now();
    if (clock_now() - d->busy_since > d->busy_ms * NS_PER_MS)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = BUSY_NAP_NS}, NULL);
    return 1;
}

static int fail(struct db *d, int code, const char *what)
{
    snprintf(d->why, sizeof d->why, "%s", what);
    return code;
}

static int fail_errno(struct db *d, const char *path)
{
    int code = errno == EACCES || errno == EROFS || errno == EPERM || errno == ELOOP ? SIMBA_EDENIED
                                                                                     : SIMBA_ESTORE;
    snprintf(d->why, sizeof d->why, "cannot open %.160s: %s", path, strerror(errno));
    return code;
}

/* The one number that the query gives; fallback if it gives none. */
static int64_t number(struct db *d, const char *query, int64_t fallback)
{
    sqlite3_stmt *s = NULL;
    int64_t value = fallback;
    if (sqlite3_prepare_v2(d->handle, query, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

static bool run(struct db *d, const char *statements)
{
    return sqlite3_exec(d->handle, statements, NULL, NULL, NULL) == SQLITE_OK;
}

/* Makes the tables in an empty database, or finds ours. Tokens and client numbers begin at the clock,
 * in milliseconds: so a database that was deleted and made again gives none that was given before,
 * and whoever checks tokens goes on accepting them. */
static int find_schema(struct db *d)
{
    char text[256];
    if (number(d, "SELECT count(*) FROM sqlite_schema", -1) == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        int64_t first = (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
        snprintf(text, sizeof text,
                 "INSERT INTO meta VALUES (1, '', %lld, %lld, %lld);"
                 "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 (long long)first, (long long)first, (long long)first, APPLICATION_ID,
                 SCHEMA_VERSION);
        return run(d, schema_sql) && run(d, text) ? 0 : db_fail(d, "cannot make the tables");
    }
    if (number(d, "PRAGMA application_id", 0) != APPLICATION_ID)
        return fail(d, SIMBA_ESCHEMA, "this is a database of something else");
    if (number(d, "PRAGMA user_version", 0) > SCHEMA_VERSION)
        return fail(d, SIMBA_ESCHEMA, "this database was made by a newer Simba: update this one");
    return 0;
}

/* If the machine has started anew since the last write. */
static int begin_boot(struct db *d)
{
    char text[400];
    snprintf(text, sizeof text, "SELECT boot = '%s' FROM meta", d->boot.id);
    if (number(d, text, 0) == 1)
        return 0;
    snprintf(text, sizeof text,
             "UPDATE meta SET boot = '%s', base = %d + max(base, "
             "(SELECT coalesce(max(token), 0) FROM mutex));"
             "UPDATE mutex SET client = 0, until = %lld + lease WHERE owner <> ''",
             d->boot.id, TOKENS_PER_BOOT, (long long)boot_now(&d->boot));
    return run(d, text) ? 0 : db_fail(d, "cannot begin a new boot");
}

/* A number of our own, and the lock on it before anybody can see it. */
static int enrol(struct db *d)
{
    do {
        if (!run(d, "UPDATE meta SET clients = clients + 1"))
            return db_fail(d, "cannot enrol");
        if (live_hold(&d->live, number(d, "SELECT clients FROM meta", 1)) == 0)
            break;
    } while (errno == EAGAIN || errno == EACCES);
    if (d->live.number == 0)
        return fail_errno(d, d->place->live);
    d->base = number(d, "SELECT base FROM meta", 0);
    d->first = number(d, "SELECT first FROM meta", 1);
    d->guarded = true;
    return 0;
}

static int prepare(struct db *d)
{
    for (int i = 0; i < DB_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(d->handle, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &d->statement[i],
                               NULL) != SQLITE_OK)
            return db_fail(d, "cannot prepare");
    }
    return 0;
}

/* Everything that a process does once, in one synced transaction. */
static int set_up(struct db *d)
{
    struct stat s;
    sqlite3_busy_handler(d->handle, on_busy, d);
    if (stat(d->place->db, &s) != 0)
        return fail_errno(d, d->place->db);
    if (s.st_size == 0 && chmod(d->place->db, 0600) != 0) /* -wal and -shm get the same mode */
        return fail_errno(d, d->place->db);
    d->device = s.st_dev;
    d->inode = s.st_ino;
    if (!run(d, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE"))
        return db_fail(d, "cannot open");
    int rc = find_schema(d);
    if (rc == 0)
        rc = begin_boot(d);
    if (rc == 0)
        rc = enrol(d);
    if (rc < 0) {
        run(d, "ROLLBACK");
        return rc;
    }
    if (!run(d, "COMMIT; PRAGMA synchronous = NORMAL"))
        return db_fail(d, "cannot open");
    return prepare(d);
}

void db_init(struct db *d, const struct place *place, int64_t busy_ms)
{
    *d = (struct db){.place = place, .busy_ms = busy_ms, .live = {.fd = -1}, .retired = {.fd = -1}};
}

int db_open(struct db *d)
{
    if (d->retired.fd >= 0 && boot_now(&d->boot) > d->retired_until)
        live_close(&d->retired);
    if (d->handle != NULL)
        return 0;
    int rc = boot_read(&d->boot, d->why, sizeof d->why);
    if (rc < 0)
        return rc;
    if (live_open(&d->live, d->place->live) != 0)
        return fail_errno(d, d->place->live);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(d->place->db, &d->handle, flags, NULL) != SQLITE_OK)
        rc = db_fail(d, "cannot open");
    else
        rc = set_up(d);
    if (rc < 0) {
        d->last_until = 0;
        db_close(d);
    }
    return rc;
}

void db_close(struct db *d)
{
    for (int i = 0; i < DB_STATEMENTS; i++) {
        sqlite3_finalize(d->statement[i]);
        d->statement[i] = NULL;
    }
    sqlite3_close(d->handle);
    d->handle = NULL;
    /* Tenures from there may still be on: whoever looks must see that we are alive. */
    if (d->retired.fd < 0 && d->last_until > boot_now(&d->boot)) {
        d->retired = d->live;
        d->retired_until = d->last_until;
        d->live.fd = -1;
    }
    live_close(&d->live);
}

bool db_is_replaced(struct db *d)
{
    struct stat s;
    return stat(d->place->db, &s) != 0 || s.st_ino != d->inode || s.st_dev != d->device;
}
