/* database_setup.c: what has to be put right when the database is opened.
 *
 * The first writer of a boot, of a copy of the file, or of an older database than the one last
 * written, raises the base of all tokens and syncs that: under synchronous=NORMAL a power cut
 * may have lost the last commits, a copy is old, and a token must not be given twice. What an
 * owner held before is then honoured for one lease from now on. If clients are alive whose
 * tenures the database may have forgotten, it grants nothing until the longest of them has
 * ended: they cannot renew, since every writer looks first whether its files are still the
 * store's.
 *
 * Our number and the lock on it belong to the client, not to the connection: they outlive errors
 * after which the database is opened again, as long as PATH-live is the same file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/sqlite/database.h"
#include "backend/sqlite/schema.h"
#include "base/errno_text.h"

#define SCHEMA_VERSION 1
#define TOKENS_PER_BOOT 1000000

/* The one number that the query gives. */
static bool number(struct database *d, const char *query, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    bool found = sqlite3_prepare_v2(d->handle, query, -1, &s, NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW;
    if (found)
        *out = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return found;
}

static bool execute(struct database *d, const char *statements)
{
    return sqlite3_exec(d->handle, statements, NULL, NULL, NULL) == SQLITE_OK;
}

/* Before anything is changed: is this ours, or empty? */
int database_check_owner(struct database *d, int64_t *tables)
{
    int64_t application, version;
    if (!number(d, "SELECT count(*) FROM sqlite_schema", tables) ||
        !number(d, "PRAGMA application_id", &application) ||
        !number(d, "PRAGMA user_version", &version))
        return database_fail(d, "cannot read");
    if (*tables != 0 && application != DATABASE_APPLICATION_ID)
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s is a database of another program: name another file",
                                  d->paths->db);
    if (*tables != 0 && version > SCHEMA_VERSION)
        return database_fail_text(
            d, SIMBA_ESCHEMA, "%.160s was made by a newer Simba: update this one", d->paths->db);
    return 0;
}

/* How the database that we find relates to the last one that was written here. */
struct found_database {
    bool is_new;        /* there are no tables yet */
    bool same_boot;     /* deadlines in it are on our clock */
    bool same_file;     /* it is where its last writer had it, … */
    bool same_live;     /* … beside the same PATH-live */
    int64_t other;      /* the greatest number of another client that is alive; 0: none is */
    int64_t clients;    /* the greatest number given */
    int64_t last_token; /* of any mutex */
};

static bool is_continued(const struct found_database *f, const struct database *d)
{
    return !f->is_new && f->same_boot && f->same_file && f->same_live && !database_is_behind(d);
}

/* A container may have a boot id of its own. Where another client is alive beside the same
 * PATH-live it is our kernel, whatever the id says. */
static int read_meta(struct database *d, struct found_database *f)
{
    sqlite3_stmt *s = NULL;
    char here[64];
    snprintf(here, sizeof here, "%llx.%llx.", (unsigned long long)d->files.db.device,
             (unsigned long long)d->files.db.inode);
    const char *query = "SELECT boot = ?1, substr(file, 1, length(?2)) = ?2, substr(file, "
                        "length(?2) + 1) = ?3, clients, (SELECT max(token) FROM mutex WHERE name "
                        "<> ''), base, (SELECT max(lease) FROM mutex) FROM meta";
    char live[32];
    snprintf(live, sizeof live, "%llx", (unsigned long long)d->lock.file);
    if (sqlite3_prepare_v2(d->handle, query, -1, &s, NULL) != SQLITE_OK)
        return database_fail(d, "cannot open");
    sqlite3_bind_text(s, 1, d->boot.id, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, here, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, live, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s) == SQLITE_ROW ? 0 : database_fail(d, "cannot open");
    if (rc == 0) {
        f->same_file = sqlite3_column_int(s, 1) != 0;
        f->same_live = f->same_file && sqlite3_column_int(s, 2) != 0;
        f->same_boot = sqlite3_column_int(s, 0) != 0 || (f->same_live && f->other != 0);
        f->clients = client_lock_bound(sqlite3_column_int64(s, 3), CLIENT_LOCK_NUMBER_MAX);
        f->last_token = client_lock_bound(sqlite3_column_int64(s, 4), CLIENT_LOCK_COUNT_MAX);
        if (d->own.serial == 0) { /* made by an older Simba, which keeps no row of its own */
            d->own.base = client_lock_bound(sqlite3_column_int64(s, 5), CLIENT_LOCK_COUNT_MAX);
            d->own.longest = client_lock_bound(sqlite3_column_int64(s, 6), CLIENT_LOCK_LEASE_MAX);
        }
    }
    sqlite3_finalize(s);
    return rc;
}

/* An index of the log that is older than the log, or damaged, is no reason to begin anew. */
static int find_out(struct database *d, struct found_database *f)
{
    int64_t tables = 0;
    int rc = database_check_owner(d, &tables);
    if (rc < 0)
        return rc;
    *f = (struct found_database){.is_new = tables == 0, .other = client_lock_last(&d->lock)};
    d->own = (struct database_own){.serial = 0};
    d->watermark = client_lock_watermark(&d->lock);
    if (f->other < 0)
        return database_fail_text(d, SIMBA_ESTORE, "another program has %.160s locked to its end",
                                  d->paths->live);
    if (f->is_new)
        return 0;
    rc = database_read_own(d);
    if (rc == 0 && d->own.serial != 0 && database_is_behind(d)) {
        database_rebuild_index(d);
        rc = database_read_own(d);
    }
    return rc == 0 ? read_meta(d, f) : rc;
}

static int make_tables(struct database *d)
{
    char text[192];
    snprintf(text, sizeof text,
             "INSERT INTO meta VALUES (1, '', '', 0, 0, 1);"
             "PRAGMA application_id = %d; PRAGMA user_version = %d",
             DATABASE_APPLICATION_ID, SCHEMA_VERSION);
    return execute(d, schema_sql) && execute(d, text) ? 0
                                                      : database_fail(d, "cannot make the tables");
}

static int64_t greatest(int64_t a, int64_t b, int64_t c)
{
    int64_t most = a > b ? a : b;
    return most > c ? most : c;
}

/* Tokens begin at the clock, in microseconds: a database that was deleted and made again gives
 * none that was given before, and whoever checks tokens goes on accepting them. So they must not
 * get ahead of the clock, however often the store begins anew. A reboot, however, may have lost
 * tokens that were given, while the clock was set back: only without one it is enough to be
 * above the last. */
static int64_t new_base(const struct database *d, const struct found_database *f)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t clock = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    int64_t last = greatest(d->own.base, d->watermark.token, f->last_token);
    bool no_reboot = f->same_boot || f->other != 0 || d->serial != 0;
    if (clock > last && (no_reboot || last == 0))
        return clock;
    return greatest(last + TOKENS_PER_BOOT, clock, 0);
}

/* A row whose lease was counted anew once (its client is 0) is not prolonged again: containers with
 * boot ids of their own may take turns here. */
static int begin_anew(struct database *d, const struct found_database *f)
{
    char text[512];
    int64_t now = boot_clock_now(&d->boot);
    d->own.base = new_base(d, f);
    d->own.longest = greatest(d->own.longest, d->watermark.lease, 0);
    d->own.quiet_until = d->last_until; /* tenures of our own */
    if (f->other != 0 || (f->same_boot && !f->same_live && !f->is_new))
        d->own.quiet_until = greatest(now + d->own.longest, d->last_until, 0);
    snprintf(text, sizeof text,
             "UPDATE meta SET boot = '%s', file = '%llx.%llx.%llx', base = %lld;"
             "UPDATE mutex SET client = 0, lease = min(max(lease, 0), %lld), until = %lld + "
             "min(max(lease, 0), %lld) WHERE owner <> '' AND (client <> 0 OR until > %lld + lease)",
             d->boot.id, (unsigned long long)d->files.db.device,
             (unsigned long long)d->files.db.inode, (unsigned long long)d->lock.file,
             (long long)d->own.base, (long long)CLIENT_LOCK_LEASE_MAX, (long long)now,
             (long long)CLIENT_LOCK_LEASE_MAX, (long long)now);
    return execute(d, text) ? 0 : database_fail(d, "cannot begin anew");
}

/* A number of our own, and the lock on it before anybody can see it. Numbers of clients that are
 * alive are above all that an older database has given. */
static int enrol(struct database *d, const struct found_database *f)
{
    char text[96];
    const char *which;
    int64_t last = greatest(f->clients, f->other, d->lock.number);
    if (d->lock.number == 0 && last >= CLIENT_LOCK_NUMBER_MAX)
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s has no number left for another client: another program "
                                  "wrote to it; move the store's files away",
                                  d->paths->db);
    if (d->lock.number == 0 && client_lock_hold(&d->lock, d->paths, ++last, &which) != 0)
        return database_fail_errno(d, which);
    snprintf(text, sizeof text, "UPDATE meta SET clients = %lld", (long long)last);
    return last == f->clients || execute(d, text) ? 0 : database_fail(d, "cannot enrol");
}

/* Which file it is that we have opened. */
static int identify(struct database *d)
{
    struct stat s;
    int moved = 0;
    if (stat(d->paths->db, &s) != 0)
        return database_fail_errno(d, d->paths->db);
    if (s.st_size == 0 &&
        chmod(d->paths->db, paths_mode(d->paths->db)) != 0) /* -wal and -shm get the same mode */
        return database_fail_errno(d, d->paths->db);
    d->files.db = (struct file_id){s.st_dev, s.st_ino};
    sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved == 0 ? 0
                      : database_fail_text(d, SIMBA_ESTORE,
                                           "the database was replaced while it was opened");
}

static int use_wal(struct database *d)
{
    sqlite3_stmt *s = NULL;
    bool asked =
        sqlite3_prepare_v2(d->handle, "PRAGMA journal_mode = WAL", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW;
    bool wal = asked && strcmp((const char *)sqlite3_column_text(s, 0), "wal") == 0;
    sqlite3_finalize(s);
    if (!asked)
        return database_fail(d, "cannot open");
    return wal ? 0
               : database_fail_text(d, SIMBA_EUNSUPPORTED, "SQLite cannot use its WAL mode here");
}

/* In a transaction. */
static int put_right(struct database *d, const struct found_database *f, bool continued)
{
    int rc = f->is_new ? make_tables(d) : 0;
    if (rc == 0 && !continued)
        rc = begin_anew(d, f);
    if (rc == 0)
        rc = enrol(d, f);
    d->own.serial = greatest(d->own.serial, d->watermark.serial, d->serial) + 1;
    if (rc == 0 && !database_write_own(d))
        rc = database_fail(d, "cannot enrol");
    if (rc == 0 && files_record(&d->files, d->paths) != 0)
        rc = errno_is_limit(errno)
                 ? database_fail_errno(d, "/proc/self/fd")
                 : database_fail_text(d, SIMBA_ESTORE,
                                      "files of the database were replaced while it was opened, or "
                                      "another client of this process still has the old ones");
    return rc;
}

/* Everything that a process does once, in one transaction; synced where tokens depend on it. */
int database_set_up(struct database *d)
{
    struct found_database f = {.is_new = false};
    int rc = identify(d);
    int64_t tables = 0;
    if (rc == 0)
        rc = database_check_owner(d, &tables);
    if (rc == 0)
        rc = use_wal(d);
    if (rc == 0)
        rc = find_out(d, &f);
    if (rc < 0)
        return rc;
    bool continued = is_continued(&f, d) && files_is_as_written(&d->files, d->paths, &d->lock);
    if (!d->may_wait && !continued) {
        database_fail_text(d, SIMBA_ESTORE, "the database has to be set up first");
        d->is_busy = true; /* what follows has to be synced */
        return SIMBA_ESTORE;
    }
    int64_t number = d->lock.number;
    if (!execute(d, continued ? "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE"
                              : "PRAGMA synchronous = FULL; BEGIN IMMEDIATE"))
        return database_fail(d, "cannot open");
    rc = put_right(d, &f, continued);
    if (rc == 0 && !execute(d, "COMMIT"))
        rc = database_fail(d, "cannot open");
    if (rc < 0) {
        execute(d, "ROLLBACK");
        if (number == 0)
            client_lock_drop(&d->lock); /* nobody knows of it */
        return rc;
    }
    database_set_watermark(d);
    if (!continued) {
        files_end_writing(&d->files, d->paths, &d->lock);
        d->tidy_at =
            0; /* a database whose log is lost must not look like one that was never used */
    }
    return execute(d, "PRAGMA synchronous = NORMAL") ? 0 : database_fail(d, "cannot open");
}
