/* db_transaction.c: a transaction, and what makes it safe to believe in.
 *
 * SQLite excludes writers by locks in PATH-shm, and each opener takes the files that are at the paths
 * then. When somebody deletes or replaces one of them, clients with older and with newer files do not
 * see each other. So writers take turns by a lock in PATH-live as well, and each leaves the serial
 * number of its transaction in the database and in PATH-live. A writer that finds a lower one in the
 * database than in PATH-live has not seen the last transaction, and begins anew (db_open.c).
 *
 * That leaves the case that PATH-live itself is another, which is looked for once in a millisecond,
 * long before the end of any lease; and with it, what else may have happened to the files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/sqlite/db.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "core/period.h"

#define NAP_NS 100000
#define IMPATIENT_NS (5 * NS_PER_MS)
#define CHECK_NS NS_PER_MS
#define INDEX_HEAD 96 /* bytes: two copies of the header of SQLite's index of the log */
#define INDEX_PART 32768

/* ---- failures -------------------------------------------------------------------------------- */

/* Out of descriptors, or a folder that is gone for a moment: not a refusal. */
static int code_of_errno(int error)
{
    bool refused = error == EACCES || error == EROFS || error == EPERM || error == ELOOP;
    return refused ? SIMBA_EDENIED : SIMBA_ESTORE;
}

int db_fail(struct db *d, const char *what)
{
    int full = sqlite3_extended_errcode(d->handle), error = sqlite3_system_errno(d->handle);
    int code = SIMBA_ESTORE;
    d->is_busy = (full & 0xff) == SQLITE_BUSY;
    d->is_broken = !d->is_busy;
    switch (full & 0xff) {
    case SQLITE_CANTOPEN:
        code = error != 0 ? code_of_errno(error) : SIMBA_EDENIED;
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
    if ((full & 0xff) == SQLITE_CANTOPEN && error != 0)
        snprintf(d->why, sizeof d->why, "%s: %.120s: %s", what, sqlite3_errmsg(d->handle),
                 errno_text(error));
    else
        snprintf(d->why, sizeof d->why, "%s: %.120s (%d)", what, sqlite3_errmsg(d->handle), full);
    return code;
}

int db_fail_text(struct db *d, int code, const char *text)
{
    d->is_busy = false;
    d->is_broken = true;
    snprintf(d->why, sizeof d->why, "%s", text);
    return code;
}

int db_fail_errno(struct db *d, const char *path)
{
    int code = code_of_errno(errno);
    const char *reason = errno_text(errno);
    db_fail_text(d, code, "");
    snprintf(d->why, sizeof d->why, "cannot open %.160s: %s", path, reason);
    return code;
}

/* Then it is closed and opened again at once; only who looks at the log hears of it. */
static int fail_stale(struct db *d, const char *path, const char *what)
{
    db_fail_text(d, SIMBA_ESTORE, "");
    d->is_stale = true;
    snprintf(d->why, sizeof d->why, "%.160s %s", path, what);
    return SIMBA_ESTORE;
}

/* ---- the turn and the files ------------------------------------------------------------------ */

/* Polite for a while, then failure; SQLite's own handler sleeps too long for a lock's hand-over. */
bool db_wait(struct db *d, int times)
{
    if (times == 0)
        d->busy_since = clock_now();
    int64_t limit = d->is_patient ? d->busy_ms * NS_PER_MS : IMPATIENT_NS;
    if (clock_now() - d->busy_since > limit)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = times < 50 ? NAP_NS : 10 * NAP_NS}, NULL);
    return true;
}

int db_take_turn(struct db *d)
{
    for (int times = 0; !d->has_turn; times++) {
        d->has_turn = live_take(&d->live, LIVE_WRITE);
        if (!d->has_turn && !db_wait(d, times)) {
            db_fail_text(d, SIMBA_ESTORE, "");
            d->is_busy = true;
            d->is_broken = false;
            snprintf(d->why, sizeof d->why,
                     "another process has %.160s locked, in the middle of a transaction",
                     d->place->live);
            return SIMBA_ESTORE;
        }
    }
    return 0;
}

void db_give_turn(struct db *d)
{
    if (d->has_turn)
        live_give(&d->live, LIVE_WRITE);
    d->has_turn = false;
}

/* SQLite's index of the log, in PATH-shm, is built again from the log by whoever finds its header
 * invalid. Outside of a transaction, in our turn. */
void db_rebuild_index(struct db *d)
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
static int mend_shm(struct db *d)
{
    bool had_turn = d->has_turn;
    int rc = db_take_turn(d);
    if (rc < 0)
        return rc;
    files_mend_shm(&d->files, d->place);
    db_rebuild_index(d);
    if (!had_turn)
        db_give_turn(d);
    return 0;
}

int db_check_files(struct db *d)
{
    const char *which = NULL;
    int64_t now = clock_now();
    if (now - d->checked < CHECK_NS)
        return 0;
    switch (files_check(&d->files, d->place, &d->live, &which)) {
    case FILES_SAME:
        d->checked = now;
        return 0;
    case FILES_SHRUNK:
        return mend_shm(d);
    case FILES_OTHER:
        return fail_stale(d, which, "was deleted or replaced");
    case FILES_LINKED:
        db_fail_text(d, SIMBA_ESTORE, "");
        snprintf(d->why, sizeof d->why,
                 "%.160s has another name now (a hard link): remove one of them", which);
        return SIMBA_ESTORE;
    default:
        return db_fail_errno(d, which);
    }
}

/* ---- what the store keeps about itself ------------------------------------------------------- */

int db_read_own(struct db *d)
{
    sqlite3_stmt *s = db_statement(d, DB_OWN);
    int rc = sqlite3_step(s);
    d->own = (struct db_own){.serial = 0};
    if (rc == SQLITE_ROW)
        d->own = (struct db_own){.serial = sqlite3_column_int64(s, 0),
                                 .base = sqlite3_column_int64(s, 1),
                                 .quiet_until = sqlite3_column_int64(s, 2),
                                 .longest = sqlite3_column_int64(s, 3)};
    sqlite3_reset(s);
    d->mark = live_mark(&d->live);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : db_fail(d, "cannot read");
}

bool db_is_behind(const struct db *d)
{
    return d->own.serial < d->mark.serial || d->own.serial < d->serial;
}

bool db_write_own(struct db *d)
{
    sqlite3_stmt *s = db_statement(d, DB_SET_OWN);
    sqlite3_bind_int64(s, 1, d->own.serial);
    sqlite3_bind_int64(s, 2, d->own.base);
    sqlite3_bind_int64(s, 3, d->own.quiet_until);
    sqlite3_bind_int64(s, 4, d->own.longest);
    return db_run(d, DB_SET_OWN);
}

void db_set_mark(struct db *d)
{
    d->serial = d->mark.serial = d->own.serial;
    if (d->own.longest > d->mark.lease)
        d->mark.lease = d->own.longest;
    if (d->own.base > d->mark.token)
        d->mark.token = d->own.base;
    live_set_mark(&d->live, &d->mark);
}

/* ---- transactions ---------------------------------------------------------------------------- */

bool db_run(struct db *d, enum db_statement which)
{
    sqlite3_stmt *s = db_statement(d, which);
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    return rc == SQLITE_DONE;
}

int db_begin(struct db *d, bool write)
{
    int rc = write ? db_take_turn(d) : 0;
    if (rc == 0 && !d->is_reader)
        rc = db_check_files(d);
    if (rc == 0 && !db_run(d, write ? DB_BEGIN : DB_BEGIN_READ))
        rc = db_fail(d, "cannot begin");
    if (rc == 0 && write)
        rc = db_read_own(d);
    if (rc == 0 && write && (db_is_behind(d) || d->own.serial == 0))
        rc = fail_stale(d, d->place->db, "was replaced by an older one");
    if (rc < 0)
        db_rollback(d);
    return rc;
}

int db_commit(struct db *d)
{
    d->own.serial++;
    if ((!d->has_turn || db_write_own(d)) && db_run(d, DB_COMMIT)) {
        if (d->has_turn)
            db_set_mark(d);
        db_give_turn(d);
        return 0;
    }
    int code = db_fail(d, "cannot commit");
    db_rollback(d);
    return code;
}

void db_rollback(struct db *d)
{
    if (sqlite3_get_autocommit(d->handle) == 0)
        (void)db_run(d, DB_ROLLBACK);
    db_give_turn(d);
}

bool db_needs_tidying(const struct db *d)
{
    return d->wal_pages >= d->tidy_at;
}

/* Whether another is at it, or the files are not ours any more: then the next time. */
void db_tidy(struct db *d)
{
    d->tidy_at = d->wal_pages + DB_WAL_PAGES; /* unless the log begins anew */
    if (db_check_files(d) < 0 || !live_take(&d->live, LIVE_CHECKPOINT))
        return;
    files_begin_writing(&d->live);
    int rc = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK)
        files_end_writing(&d->files, d->place, &d->live);
    live_give(&d->live, LIVE_CHECKPOINT);
}
