/* db_open.c: opening the database, and what has to be put right when it is.
 *
 * The first writer of a boot, or of a copy of the file, raises the base of all tokens and syncs that:
 * under synchronous=NORMAL a power cut may have lost the last commits, a copy is old, and a token
 * must not be given twice. What an owner held before is then honoured for one lease from now on.
 *
 * Our number and the lock on it belong to the client, not to the connection: they outlive errors
 * after which the database is opened again. A database that is made or moved in where clients of
 * another are alive grants nothing until they are gone: their locks are in the file beside it. */
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
#define NAP_NS 100000
#define IMPATIENT_NS (5 * NS_PER_MS)
#define OPEN_WAL_PAGES 64

static const char *const sql[DB_STATEMENTS] = {
    [DB_BEGIN] = "BEGIN IMMEDIATE",
    [DB_BEGIN_READ] = "BEGIN",
    [DB_COMMIT] = "COMMIT",
    [DB_ROLLBACK] = "ROLLBACK",
    [DB_SELECT] = "SELECT owner, token, client, live, acquired, until, contended FROM mutex "
                  "WHERE name = ?1",
    [DB_TAKE] = "REPLACE INTO mutex VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6 + ?7, ?7, 0, ?8)",
    [DB_FREE] = "UPDATE mutex SET owner = '', until = 0, contended = 0 WHERE name = ?1",
    [DB_CONTEND] = "UPDATE mutex SET contended = 1 WHERE name = ?1 AND contended = 0",
    [DB_RENEW] = "UPDATE mutex SET until = ?4 + ?5, lease = ?5 WHERE name = ?1 AND owner = ?2 AND "
                 "token = ?3 AND until > ?4 AND evicted = 0",
    [DB_EVICT] = "UPDATE mutex SET evicted = 1 WHERE name = ?1",
    [DB_LIST] = "SELECT name, owner, token, client, live, acquired, until FROM mutex WHERE "
                "owner <> '' AND until > ?2 AND substr(name, 1, length(?1)) = ?1",
};

/* Polite for a while, then failure; SQLite's own handler sleeps too long for a lock's hand-over. */
static int on_busy(void *arg, int times)
{
    struct db *d = arg;
    if (times == 0)
        d->busy_since = clock_now();
    int64_t limit = d->is_patient ? d->busy_ms * NS_PER_MS : IMPATIENT_NS;
    if (clock_now() - d->busy_since > limit)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = times < 50 ? NAP_NS : 10 * NAP_NS}, NULL);
    return 1;
}

/* Instead of SQLite's own, which would write the log back, and sync, within a commit. */
static int on_commit(void *arg, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    struct db *d = arg;
    if (pages < d->wal_pages)
        d->tidy_at = DB_WAL_PAGES;
    d->wal_pages = pages;
    return SQLITE_OK;
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

/* The one number that the query gives. */
static bool number(struct db *d, const char *query, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    bool found = sqlite3_prepare_v2(d->handle, query, -1, &s, NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW;
    if (found)
        *out = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return found;
}

static bool execute(struct db *d, const char *statements)
{
    return sqlite3_exec(d->handle, statements, NULL, NULL, NULL) == SQLITE_OK;
}

/* Before anything is changed: is this ours, or empty? */
static int check_owner(struct db *d, int64_t *tables)
{
    int64_t application, version;
    if (!number(d, "SELECT count(*) FROM sqlite_schema", tables) ||
        !number(d, "PRAGMA application_id", &application) ||
        !number(d, "PRAGMA user_version", &version))
        return db_fail(d, "cannot read");
    if (*tables != 0 && application != APPLICATION_ID)
        return fail(d, SIMBA_ESCHEMA, "this is a database of something else");
    if (*tables != 0 && version > SCHEMA_VERSION)
        return fail(d, SIMBA_ESCHEMA, "this database was made by a newer Simba: update this one");
    return 0;
}

/* Makes the tables in an empty database, or finds ours. Tokens begin at the clock, in microseconds: a
 * database that was deleted and made again gives none that was given before, and whoever checks
 * tokens goes on accepting them. */
static int find_schema(struct db *d)
{
    char text[256];
    int64_t tables = 0;
    int rc = check_owner(d, &tables);
    if (rc == 0 && tables == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        int64_t base = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        snprintf(text, sizeof text,
                 "INSERT INTO meta VALUES (1, '', '', %lld, 0, 1);"
                 "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 (long long)base, APPLICATION_ID, SCHEMA_VERSION);
        return execute(d, schema_sql) && execute(d, text) ? 0
                                                          : db_fail(d, "cannot make the tables");
    }
    return rc;
}

/* Is this the boot and the file of the last writer? False also for an empty database. */
static bool is_continued(struct db *d)
{
    char text[256];
    int64_t same = 0;
    snprintf(text, sizeof text, "SELECT boot = '%s' AND file = '%llx.%llx.%llx' FROM meta",
             d->boot.id, (unsigned long long)d->device, (unsigned long long)d->inode,
             (unsigned long long)d->live.file);
    return number(d, text, &same) && same == 1;
}

static int begin_anew(struct db *d)
{
    char text[512];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(text, sizeof text,
             "UPDATE meta SET boot = '%s', file = '%llx.%llx.%llx', base = max(base + %d, %lld, "
             "(SELECT coalesce(max(token), 0) + %d FROM mutex));"
             "UPDATE mutex SET client = 0, until = %lld + lease WHERE owner <> ''",
             d->boot.id, (unsigned long long)d->device, (unsigned long long)d->inode,
             (unsigned long long)d->live.file, TOKENS_PER_BOOT, (long long)t.tv_sec * 1000000,
             TOKENS_PER_BOOT, (long long)boot_now(&d->boot));
    return execute(d, text) ? 0 : db_fail(d, "cannot begin anew");
}

/* A number of our own, and the lock on it before anybody can see it. Nobody can hold a greater number
 * than the last one given, but a client of a database that was here before; in a database that is
 * new here, nobody can hold any. */
static int enrol(struct db *d, bool continued)
{
    char text[128];
    int64_t clients, first;
    if (!number(d, "SELECT clients FROM meta", &clients) ||
        !number(d, "SELECT first FROM meta", &first) ||
        !number(d, "SELECT base FROM meta", &d->base))
        return db_fail(d, "cannot enrol");
    int64_t foreign = d->live.number != 0 ? 0 : live_last(&d->live, continued ? clients + 1 : 1);
    if (foreign != 0) {
        clients = foreign > clients ? foreign : clients;
        first = clients + 1;
    }
    d->first = first;
    d->guarded = true;
    if (d->live.number != 0)
        return 0;
    snprintf(text, sizeof text, "UPDATE meta SET clients = %lld, first = %lld",
             (long long)clients + 1, (long long)first);
    if (!execute(d, text))
        return db_fail(d, "cannot enrol");
    return live_hold(&d->live, clients + 1) == 0 ? 0 : fail_errno(d, d->place->live);
}

/* Most processes need a few of them. NULL if it cannot be prepared: then its step fails, and SQLite
 * knows why. */
sqlite3_stmt *db_statement(struct db *d, enum db_statement which)
{
    if (d->statement[which] == NULL)
        sqlite3_prepare_v3(d->handle, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                           &d->statement[which], NULL);
    return d->statement[which];
}

/* Which file it is that we have opened; -1: it is already another's place. */
static int identify(struct db *d)
{
    struct stat s;
    int moved = 0;
    if (stat(d->place->db, &s) != 0)
        return fail_errno(d, d->place->db);
    if (s.st_size == 0 &&
        chmod(d->place->db, place_mode(d->place->db)) != 0) /* -wal and -shm get the same mode */
        return fail_errno(d, d->place->db);
    d->device = s.st_dev;
    d->inode = s.st_ino;
    sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved == 0 ? 0 : fail(d, SIMBA_ESTORE, "the database was replaced while it was opened");
}

static int use_wal(struct db *d)
{
    sqlite3_stmt *s = NULL;
    bool asked =
        sqlite3_prepare_v2(d->handle, "PRAGMA journal_mode = WAL", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW;
    bool wal = asked && strcmp((const char *)sqlite3_column_text(s, 0), "wal") == 0;
    sqlite3_finalize(s);
    if (!asked)
        return db_fail(d, "cannot open");
    return wal ? 0 : fail(d, SIMBA_EUNSUPPORTED, "SQLite cannot use its WAL mode here");
}

/* Everything that a process does once, in one transaction; synced where tokens depend on it. */
static int set_up(struct db *d)
{
    sqlite3_busy_handler(d->handle, on_busy, d);
    sqlite3_wal_hook(d->handle, on_commit, d);
    int rc = identify(d);
    if (rc < 0)
        return rc;
    int64_t tables = 0;
    rc = check_owner(d, &tables);
    if (rc == 0)
        rc = use_wal(d);
    if (rc < 0)
        return rc;
    if (!d->is_patient && !is_continued(d)) {
        d->is_busy = true; /* what follows has to be synced */
        return fail(d, SIMBA_ESTORE, "the database has to be set up first");
    }
    if (!execute(d, is_continued(d) ? "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE"
                                    : "PRAGMA synchronous = FULL; BEGIN IMMEDIATE"))
        return db_fail(d, "cannot open");
    rc = find_schema(d);
    bool continued = rc == 0 && is_continued(d);
    if (rc == 0 && !continued)
        rc = begin_anew(d);
    if (rc == 0)
        rc = enrol(d, continued);
    if (rc < 0) {
        execute(d, "ROLLBACK");
        return rc;
    }
    if (!execute(d, "COMMIT; PRAGMA synchronous = NORMAL"))
        return db_fail(d, "cannot open");
    /* Whoever opens a database that nobody has open reads the whole log first. Where processes come
     * and go (the command) it is therefore kept short, and they pay for that in turns. */
    if (d->wal_pages >= OPEN_WAL_PAGES)
        db_tidy(d);
    return 0;
}

void db_init(struct db *d, const struct place *place, const struct boot *boot, int64_t busy_ms)
{
    *d = (struct db){.place = place,
                     .boot = *boot,
                     .busy_ms = busy_ms,
                     .is_patient = true,
                     .tidy_at = DB_WAL_PAGES};
    d->live.fd = d->retired.fd = -1;
}

int db_open(struct db *d)
{
    if (d->retired.fd >= 0 && boot_now(&d->boot) > d->retired_until)
        live_close(&d->retired);
    if (d->handle != NULL)
        return 0;
    if (d->live.fd < 0 && live_open(&d->live, d->place->live) != 0)
        return fail_errno(d, d->place->live);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(d->place->db, &d->handle, flags, NULL) == SQLITE_OK
                 ? set_up(d)
                 : db_fail(d, "cannot open");
    if (rc < 0)
        db_close(d);
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
}

bool db_is_replaced(struct db *d)
{
    struct stat s;
    return stat(d->place->db, &s) != 0 || s.st_ino != d->inode || s.st_dev != d->device;
}

/* Tenures from the old database may still be on, and whoever looks must see that we are alive. One
 * old lock is enough: while it is held, the new database grants us nothing. */
void db_retire(struct db *d)
{
    db_close(d);
    if (d->retired.fd >= 0) {
        live_close(&d->live);
        return;
    }
    d->retired = d->live;
    d->retired_until = d->last_until;
    d->live.fd = -1;
    d->live.number = 0;
}

void db_end(struct db *d)
{
    db_close(d);
    live_close(&d->live);
    live_close(&d->retired);
}
