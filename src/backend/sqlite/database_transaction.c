/* database_transaction.c: a transaction, and what makes it safe to believe in.
 *
 * SQLite excludes writers by locks in PATH-shm, and each opener takes the files that are at the
 * paths then. When somebody deletes or replaces one of them, clients with older and with newer
 * files do not see each other. So writers take turns by a lock in PATH-live as well, and each
 * leaves the serial number of its transaction in the database and in PATH-live. A writer that
 * finds a lower one in the database than in PATH-live has not seen the last transaction, and
 * begins anew (database_open.c).
 *
 * That leaves the case that PATH-live itself is another, which is looked for once in a millisecond,
 * long before the end of any lease; and with it, what else may have happened to the files. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/sqlite/database.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "base/time.h"

#define NAP_NS 100000
#define TURN_NS (20 * NS_PER_MS) /* a wakeup for it may be lost */
#define SHORT_WAIT_NS (5 * NS_PER_MS)
#define CHECK_NS NS_PER_MS
#define INDEX_HEAD 96 /* bytes: two copies of the header of SQLite's index of the log */
#define INDEX_PART 32768

/* ---- failures ------------------------------------------------------------------------------ */

/* Out of descriptors, or a folder that is gone for a moment: not a refusal. */
static int code_of_errno(int error)
{
    bool refused = error == EACCES || error == EROFS || error == EPERM || error == ELOOP;
    return refused ? SIMBA_EDENIED : SIMBA_ESTORE;
}

/* SQLite does not say which of its files it may not open. NULL: none of them, as it seems now. */
static const char *closed_file(const struct database *d)
{
    const char *const paths[] = {d->paths->db, d->paths->wal, d->paths->shm};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (euidaccess(paths[i], R_OK) != 0 && errno == EACCES)
            return paths[i];
    return NULL;
}

#define TO_SHARE "; for several users: simba init --shared --group G"

int database_fail(struct database *d, const char *what)
{
    int full = sqlite3_extended_errcode(d->handle), error = sqlite3_system_errno(d->handle);
    const char *closed = error == EACCES ? closed_file(d) : NULL;
    int code = SIMBA_ESTORE;
    d->is_busy = (full & 0xff) == SQLITE_BUSY;
    d->is_broken = !d->is_busy;
    d->is_full = (full & 0xff) == SQLITE_FULL || error == ENOSPC || error == EDQUOT;
    switch (full & 0xff) {
    case SQLITE_CANTOPEN:
        code = error != 0 ? code_of_errno(error) : SIMBA_EDENIED;
        break;
    case SQLITE_BUSY:
        code = SIMBA_ETIMEOUT;
        break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        code = SIMBA_EDENIED;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
    case SQLITE_ERROR:
        code = SIMBA_ESCHEMA;
        break;
    default:
        break;
    }
    if (d->is_full)
        snprintf(d->why, sizeof d->why, "%s: the disk of %.160s is full", what, d->paths->db);
    else if ((full & 0xff) == SQLITE_CANTOPEN && closed != NULL)
        snprintf(d->why, sizeof d->why, "cannot open %.160s: %s" TO_SHARE, closed,
                 errno_text(error));
    else if ((full & 0xff) == SQLITE_CANTOPEN && error != 0)
        snprintf(d->why, sizeof d->why, "%s: %.120s: %s", what, sqlite3_errmsg(d->handle),
                 errno_text(error));
    else
        snprintf(d->why, sizeof d->why, "%s: %.120s (%d)", what, sqlite3_errmsg(d->handle), full);
    return code;
}

int database_fail_text(struct database *d, int code, const char *format, ...)
{
    va_list args;
    d->is_busy = d->is_full = false;
    d->is_broken = true;
    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
    return code;
}

int database_fail_errno(struct database *d, const char *path)
{
    int error = errno;
    return database_fail_text(d, code_of_errno(error), "cannot open %.160s: %s%s", path,
                              errno_text(error), error == EACCES ? TO_SHARE : "");
}

/* Then it is closed and opened again at once; only who looks at the log hears of it. */
static int fail_stale(struct database *d, const char *path, const char *what)
{
    d->is_stale = true;
    return database_fail_text(d, SIMBA_ESTORE, "%.160s %s", path, what);
}

/* ---- the turn and the files ---------------------------------------------------------------- */

/* How long there still is to wait for another writer, the times-th time. */
static int64_t wait_left(struct database *d, int times)
{
    int64_t now = clock_now();
    if (times == 0)
        d->busy_since = now;
    return d->busy_since + (d->may_wait ? d->busy_ms * NS_PER_MS : SHORT_WAIT_NS) - now;
}

/* Polite for a while, then failure; SQLite's own handler sleeps too long for a lock's hand-over. */
bool database_wait(struct database *d, int times)
{
    if (wait_left(d, times) < 0)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = times < 50 ? NAP_NS : 10 * NAP_NS}, NULL);
    return true;
}

/* Asleep, where whoever has written can wake us: many who try again and again would keep the one
 * that has the turn from the processor. */
static bool wait_for_turn(struct database *d, int times)
{
    if (d->wakeup->page == NULL)
        return database_wait(d, times);
    int64_t left = wait_left(d, times);
    if (left < 0)
        return false;
    if (times > 0)
        wakeup_await_turn(d->wakeup, left < TURN_NS ? left : TURN_NS);
    wakeup_want_turn(d->wakeup);
    return true;
}

int database_take_turn(struct database *d)
{
    for (int times = 0; !d->has_turn; times++) {
        d->has_turn = client_lock_take(&d->lock, CLIENT_LOCK_WRITE);
        if (!d->has_turn && !wait_for_turn(d, times)) {
            database_fail_text(d, SIMBA_ETIMEOUT,
                               "another process has %.160s locked, in the middle of a transaction",
                               d->paths->live);
            d->is_busy = true;
            d->is_broken = false;
            return SIMBA_ETIMEOUT;
        }
    }
    return 0;
}

void database_give_turn(struct database *d)
{
    if (d->has_turn)
        client_lock_give(&d->lock, CLIENT_LOCK_WRITE);
    d->has_turn = false;
}

/* SQLite's index of the log, in PATH-shm, is built again from the log by whoever finds its header
 * invalid. Outside of a transaction, in our turn. */
void database_rebuild_index(struct database *d)
{
    sqlite3_file *file = NULL;
    volatile void *head = NULL;
    sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, INDEX_PART, 0, &head) != SQLITE_OK || head == NULL)
        return;
    memset((void *)head, 0, INDEX_HEAD);
    file->pMethods->xShmBarrier(file);
}

/* It narrows the time in which a truncated file kills whoever reads it to that of a transaction. */
static int mend_shm(struct database *d)
{
    bool had_turn = d->has_turn;
    int rc = database_take_turn(d);
    if (rc < 0)
        return rc;
    files_mend_shm(&d->files, d->paths);
    database_rebuild_index(d);
    if (!had_turn)
        database_give_turn(d);
    return 0;
}

static int check_files(struct database *d)
{
    const char *which = NULL;
    int64_t now = clock_now();
    if (now - d->checked < CHECK_NS)
        return 0;
    switch (files_check(&d->files, d->paths, &d->lock, &which)) {
    case FILES_SAME:
        d->checked = now;
        return 0;
    case FILES_SHRUNK:
        return mend_shm(d);
    case FILES_OTHER:
        return fail_stale(d, which, "was deleted or replaced");
    case FILES_LINKED:
        return database_fail_text(d, SIMBA_ESTORE,
                                  "%.160s has another name now (a hard link): remove one of them",
                                  which);
    default:
        return database_fail_errno(d, which);
    }
}

/* ---- what the store keeps about itself ----------------------------------------------------- */

static int64_t column(sqlite3_stmt *s, int at, int64_t most)
{
    return client_lock_bound(sqlite3_column_int64(s, at), most);
}

int database_read_own(struct database *d)
{
    sqlite3_stmt *s = database_statement(d, DATABASE_OWN);
    int rc = sqlite3_step(s);
    d->own = (struct database_own){.serial = 0};
    if (rc == SQLITE_ROW)
        d->own = (struct database_own){.serial = column(s, 0, CLIENT_LOCK_COUNT_MAX),
                                       .base = column(s, 1, CLIENT_LOCK_COUNT_MAX),
                                       .quiet_until = column(s, 2, CLIENT_LOCK_COUNT_MAX),
                                       .longest = column(s, 3, CLIENT_LOCK_LEASE_MAX)};
    sqlite3_reset(s);
    d->watermark = client_lock_watermark(&d->lock);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : database_fail(d, "cannot read");
}

bool database_is_behind(const struct database *d)
{
    return d->own.serial < d->watermark.serial || d->own.serial < d->serial;
}

bool database_write_own(struct database *d)
{
    sqlite3_stmt *s = database_statement(d, DATABASE_SET_OWN);
    sqlite3_bind_int64(s, 1, d->own.serial);
    sqlite3_bind_int64(s, 2, d->own.base);
    sqlite3_bind_int64(s, 3, d->own.quiet_until);
    sqlite3_bind_int64(s, 4, d->own.longest);
    return database_run(d, DATABASE_SET_OWN);
}

void database_set_watermark(struct database *d)
{
    d->serial = d->watermark.serial = d->own.serial;
    if (d->own.longest > d->watermark.lease)
        d->watermark.lease = d->own.longest;
    if (d->own.base > d->watermark.token)
        d->watermark.token = d->own.base;
    client_lock_set_watermark(&d->lock, &d->watermark);
}

/* ---- transactions -------------------------------------------------------------------------- */

bool database_run(struct database *d, enum database_statement which)
{
    sqlite3_stmt *s = database_statement(d, which);
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    return rc == SQLITE_DONE;
}

int database_begin(struct database *d, bool write)
{
    int rc = write ? database_take_turn(d) : 0;
    if (rc == 0 && !d->is_reader)
        rc = check_files(d);
    if (rc == 0 && !database_run(d, write ? DATABASE_BEGIN : DATABASE_BEGIN_READ))
        rc = database_fail(d, "cannot begin");
    if (rc == 0 && write)
        rc = database_read_own(d);
    if (rc == 0 && write && (database_is_behind(d) || d->own.serial == 0))
        rc = fail_stale(d, d->paths->db, "was replaced by an older one");
    if (rc < 0)
        database_rollback(d);
    return rc;
}

int database_commit(struct database *d)
{
    d->own.serial++;
    if ((!d->has_turn || database_write_own(d)) && database_run(d, DATABASE_COMMIT)) {
        if (d->has_turn)
            database_set_watermark(d);
        database_give_turn(d);
        return 0;
    }
    int code = database_fail(d, "cannot commit");
    database_rollback(d);
    return code;
}

/* The table of notes may have been made in this transaction, and goes with it: what was prepared for it
 * is no use then. */
void database_rollback(struct database *d)
{
    if (sqlite3_get_autocommit(d->handle) == 0)
        (void)database_run(d, DATABASE_ROLLBACK);
    if (d->has_turn) {
        sqlite3_finalize(d->statement[DATABASE_PUBLISH]);
        d->statement[DATABASE_PUBLISH] = NULL;
    }
    database_give_turn(d);
}

bool database_needs_tidying(const struct database *d)
{
    return d->wal_pages >= d->tidy_at;
}

/* Whether another is at it, or the files are not ours any more: then the next time. What was written
 * back is written over next, so this also makes room on a disk that is full. */
void database_tidy(struct database *d)
{
    d->tidy_at = d->wal_pages + DATABASE_WAL_PAGES; /* unless the log begins anew */
    if (check_files(d) < 0 || !client_lock_take(&d->lock, CLIENT_LOCK_CHECKPOINT))
        return;
    files_begin_writing(&d->lock);
    int rc = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK)
        files_end_writing(&d->files, d->paths, &d->lock);
    client_lock_give(&d->lock, CLIENT_LOCK_CHECKPOINT);
}
