/* history.c: the file of tenures, and who may write it.
 *
 * Who records holds a lock (flock) on the file by a descriptor of its own, to its end: so there is one, and
 * readers see whether it lives. That descriptor is opened before SQLite opens the file and is never
 * closed while SQLite has it open, because closing any descriptor of a database drops SQLite's
 * own locks. The first bytes are read by it, too: a file that is not ours is not even opened as a database,
 * and of one that is, nothing but our own tables and indexes is accepted.
 *
 * A row is written when a tenure begins and again when it ends, under a number of ours: writing it twice
 * does no harm. Durability is that of WAL with synchronous=NORMAL: after a power failure the last seconds
 * may be missing, and the file is whole. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sqlite/harden.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "serve/history_file.h"

#define APPLICATION_ID 0x53494d48 /* "SIMH", at byte 68 of the file */
#define FORMAT 2                  /* user_version, at byte 60 */
#define HEADER_BYTES 100
#define BUSY_MS 2000
#define READER_MS 200 /* a reader has the lock for a moment */
#define READER_PAUSE_MS 10
#define PURGE_ROWS 50000
#define JOURNAL_BYTES 4194304

/* As SQLite keeps their texts: whatever else is in a file was put there by others. The indexes from
 * SCHEMA_ADDED on are missing in files of before. */
static const char *const schema[] = {
    "CREATE TABLE store(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE recording(id INTEGER PRIMARY KEY, store INTEGER NOT NULL, began_ms INTEGER NOT "
    "NULL, last_ms INTEGER NOT NULL, pid INTEGER NOT NULL)",
    "CREATE TABLE recorded_name(recording INTEGER NOT NULL, mutex TEXT NOT NULL, "
    "PRIMARY KEY(recording, mutex)) WITHOUT ROWID", /* none of a recording: all mutexes */
    "CREATE TABLE tenure(id INTEGER PRIMARY KEY, store INTEGER NOT NULL, mutex TEXT NOT NULL, "
    "holder "
    "TEXT NOT NULL, token INTEGER NOT NULL, began_ms INTEGER NOT NULL, began_known INTEGER NOT "
    "NULL, "
    "ended_ms INTEGER, reason TEXT, over_by_ms INTEGER, note TEXT)",
    "CREATE INDEX tenure_by_end ON tenure(ended_ms)",
    "CREATE INDEX tenure_by_mutex ON tenure(mutex, ended_ms)",
    "CREATE INDEX tenure_by_store ON tenure(store, ended_ms)",
    "CREATE INDEX tenure_by_store_mutex ON tenure(store, mutex, ended_ms)",
};
#define SCHEMA_COUNT (sizeof schema / sizeof *schema)
#define SCHEMA_ADDED 6

/* ---- errors -------------------------------------------------------------------------------- */

const char *history_why(const struct history *h)
{
    return h->why;
}

const char *history_path(const struct history *h)
{
    return h->path;
}

int history_fail(struct history *h)
{
    int code = sqlite3_errcode(h->db);
    bool is_damaged = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
    snprintf(h->why, sizeof h->why, "%.300s: %s%s", h->path, sqlite3_errmsg(h->db),
             is_damaged ? "; the file is damaged: move it away, and record a new one" : "");
    return -1;
}

static int run_sql(struct history *h, const char *sql)
{
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : history_fail(h);
}

sqlite3_stmt *history_prepare(struct history *h, const char *sql)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(h->db, sql, -1, &s, NULL) != SQLITE_OK)
        history_fail(h);
    return s;
}

/* Runs a statement that gives nothing, and makes it ready again. */
static int run_statement(struct history *h, sqlite3_stmt *s)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : history_fail(h);
    sqlite3_reset(s);
    return rc;
}

/* One number; -1: an error. */
int64_t history_ask_number(struct history *h, const char *sql)
{
    sqlite3_stmt *s = history_prepare(h, sql);
    int64_t value = -1;
    if (s != NULL && sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    else if (s != NULL)
        history_fail(h);
    sqlite3_finalize(s);
    return value;
}

/* ---- opening ------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* What is wrong with the file, by its first bytes; NULL: nothing. Empty: it is to be made. */
static const char *check_header(int fd, bool *is_empty)
{
    unsigned char head[HEADER_BYTES];
    struct stat s;
    if (fstat(fd, &s) != 0)
        return strerror(errno);
    if (!S_ISREG(s.st_mode))
        return "it is no regular file: name a file for the history alone";
    *is_empty = s.st_size == 0;
    if (*is_empty)
        return NULL;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return strerror(errno);
    if (n < HEADER_BYTES || memcmp(head, "SQLite format 3", 16) != 0)
        return "it is no history of simba, but some other file: name another";
    if (big_endian(head + 68) != APPLICATION_ID)
        return "it is a database, but no history of simba: name another file";
    if (big_endian(head + 60) != FORMAT)
        return "it was written by another version of simba: read it with that one, or name another "
               "file";
    return NULL;
}

static struct step refuse(const struct cli *c, const char *path, const char *why)
{
    return print_error(c, "%s: %s", path, why);
}

static struct history *make(const char *path)
{
    struct history *h = calloc(1, sizeof *h);
    if (h != NULL) {
        h->fd = -1;
        h->path = strdup(path);
    }
    if (h != NULL && h->path == NULL) {
        free(h);
        return NULL;
    }
    return h;
}

static int open_database(struct history *h, int flags)
{
    /* The name as it is: "file:x" names a file of that name. */
    char *path = sqlite3_mprintf(h->path[0] == '/' ? "%s" : "./%s", h->path);
    int rc = path != NULL ? sqlite3_open_v2(path, &h->db, flags | SQLITE_OPEN_FULLMUTEX, NULL)
                          : SQLITE_NOMEM;
    sqlite3_free(path);
    if (rc != SQLITE_OK)
        return history_fail(h);
    harden_database(h->db);
    sqlite3_busy_timeout(h->db, BUSY_MS);
    return 0;
}

/* Who may not write beside the file cannot read it as a database with a log. While nobody writes and there is no
 * log, it can be read as a file that does not change. */
static int open_unchanging(struct history *h)
{
    struct stat s;
    sqlite3_str *uri = sqlite3_str_new(NULL);
    char *log = sqlite3_mprintf("%s-wal", h->path);
    bool has_log = log == NULL || (stat(log, &s) == 0 && s.st_size > 0);
    sqlite3_free(log);
    sqlite3_str_appendall(uri, h->path[0] == '/' ? "file:" : "file:./");
    for (const char *at = h->path; *at != '\0'; at++)
        sqlite3_str_appendf(uri, strchr("?#%", *at) != NULL ? "%%%02x" : "%c", (unsigned char)*at);
    sqlite3_str_appendall(uri, "?immutable=1");
    char *text = sqlite3_str_finish(uri);
    if (has_log || text == NULL) {
        sqlite3_free(text);
        return -1; /* with what was said before */
    }
    sqlite3_close(h->db);
    int rc = sqlite3_open_v2(text, &h->db,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX, NULL);
    sqlite3_free(text);
    if (rc == SQLITE_OK)
        harden_database(h->db);
    return rc == SQLITE_OK ? 0 : history_fail(h);
}

/* Before anything else is asked: constraints and indexes that others have added are run as well. */
static int check_tables(struct history *h)
{
    const char *alien = NULL;
    int step = SQLITE_ERROR;
    sqlite3_stmt *s = history_prepare(h, "SELECT name, sql FROM sqlite_schema WHERE sql NOTNULL");
    while (s != NULL && alien == NULL && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(s, 1);
        alien = (const char *)sqlite3_column_text(s, 0);
        for (size_t i = 0; i < SCHEMA_COUNT; i++)
            alien = sql != NULL && strcmp(sql, schema[i]) == 0 ? NULL : alien;
    }
    if (alien != NULL)
        snprintf(h->why, sizeof h->why,
                 "%.300s: it has '%.60s', which is not simba's: move the file away, and record a "
                 "new one",
                 h->path, alien);
    else if (s != NULL && step != SQLITE_DONE)
        history_fail(h);
    sqlite3_finalize(s);
    return alien == NULL && step == SQLITE_DONE ? 0 : -1;
}

/* Made in one transaction with a journal of its own, so that the header says what the file is before the
 * log of WAL is there. */
static int make_tables(struct history *h)
{
    char sql[128];
    if (run_sql(h, "BEGIN IMMEDIATE") != 0)
        return -1;
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", APPLICATION_ID,
             FORMAT);
    int rc = run_sql(h, sql);
    for (size_t i = 0; rc == 0 && i < SCHEMA_COUNT; i++)
        rc = run_sql(h, schema[i]);
    if (rc == 0 && run_sql(h, "COMMIT") == 0)
        return 0;
    sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

/* The indexes that files of before have not. */
static int add_indexes(struct history *h)
{
    int rc = 0;
    for (size_t i = SCHEMA_ADDED; rc == 0 && i < SCHEMA_COUNT; i++) {
        char *sql = sqlite3_mprintf("SELECT count(*) FROM sqlite_schema WHERE sql=%Q", schema[i]);
        int64_t found = sql != NULL ? history_ask_number(h, sql) : -1;
        sqlite3_free(sql);
        rc = found != 0 ? found < 0 ? -1 : 0 : run_sql(h, schema[i]);
    }
    return rc;
}

static int prepare_to_write(struct history *h, bool is_empty)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA journal_size_limit=%d", JOURNAL_BYTES);
    if (check_tables(h) != 0 || (is_empty && make_tables(h) != 0) || add_indexes(h) != 0 ||
        run_sql(h, "PRAGMA journal_mode=WAL") != 0 ||
        run_sql(h, "PRAGMA synchronous=NORMAL") != 0 || run_sql(h, sql) != 0)
        return -1;
    h->write = history_prepare(
        h,
        "INSERT INTO tenure(id,store,mutex,holder,token,began_ms,began_known,ended_ms,reason,"
        "over_by_ms,note) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11) ON CONFLICT(id) DO UPDATE SET "
        "ended_ms=excluded.ended_ms,reason=excluded.reason,over_by_ms=excluded.over_by_ms,"
        "note=coalesce(excluded.note,note)");
    h->alive = history_prepare(h, "UPDATE recording SET last_ms=?1 WHERE id=?2");
    h->last_row = history_ask_number(h, "SELECT coalesce(max(id),0) FROM tenure");
    return h->write != NULL && h->alive != NULL && h->last_row >= 0 ? 0 : -1;
}

/* The process that records, as it has written down; 0: unknown. */
static long long recorder_of(struct history *h)
{
    int64_t pid = 0;
    if (open_database(h, SQLITE_OPEN_READONLY) == 0 && check_tables(h) == 0)
        pid = history_ask_number(h, "SELECT pid FROM recording ORDER BY id DESC LIMIT 1");
    return pid > 0 ? pid : 0;
}

static struct step refuse_second(const struct cli *c, struct history *h)
{
    long long pid = recorder_of(h);
    char who[64] = "another process";
    if (pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
        snprintf(who, sizeof who, "process %lld", pid);
    return print_error(c, "%s: %s records into it already: end that one, or name another file",
                       h->path, who);
}

/* The folder must not be everybody's: whoever can write there can put another file in the place of ours. */
static struct step check_folder(const struct cli *c, const char *path)
{
    char folder[PATH_MAX], why[PATH_MAX + 160];
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    snprintf(folder, sizeof folder, "%.*s", length, path);
    char *real = realpath(length == 0 ? "." : folder, NULL);
    if (real == NULL)
        return refuse(c, path, strerror(errno));
    int rc = harden_check_folder(real, why, sizeof why);
    free(real);
    return rc == 0 ? GO_ON : refuse(c, path, why);
}

static bool lock_to_write(int fd)
{
    int64_t until = simba_now() + READER_MS;
    bool is_locked;
    while (!(is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0) && simba_now() < until)
        poll(NULL, 0, READER_PAUSE_MS);
    return is_locked;
}

struct step history_open_to_write(const struct cli *c, const char *path, struct history **out)
{
    bool is_empty = false;
    *out = NULL;
    struct step step = check_folder(c, path);
    if (step.ends)
        return step;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return refuse(c, path,
                      errno == ELOOP ? "it is a symbolic link: name the file itself"
                                     : strerror(errno));
    /* First the lock: another recorder may be making the tables. */
    bool is_locked = lock_to_write(fd);
    const char *why = check_header(fd, &is_empty);
    struct history *h = why == NULL ? make(path) : NULL;
    if (why != NULL)
        step = refuse(c, path, why);
    else if (h == NULL)
        step = refuse(c, path, "out of memory");
    else if (!is_locked)
        step = refuse_second(c, h);
    else if (open_database(h, SQLITE_OPEN_READWRITE) != 0 || prepare_to_write(h, is_empty) != 0)
        step = print_error(c, "%s", h->why);
    if (step.ends || h == NULL) {
        history_close(h);
        close(fd);
        return step;
    }
    h->fd = fd;
    *out = h;
    return GO_ON;
}

/* Does somebody record? By a descriptor that is closed before SQLite opens the file. */
static bool is_recorded(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

struct step history_open_to_read(const struct cli *c, const char *path, struct history **out)
{
    bool is_empty = false;
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return refuse(
            c, path,
            "there is no such file: simba watch --record FILE makes one, and so does simba "
            "serve --history FILE");
    if (fd < 0)
        return refuse(c, path, strerror(errno));
    const char *why = check_header(fd, &is_empty);
    if (why == NULL && is_empty)
        why = "it is empty: nothing was ever recorded into it";
    struct history *h = why == NULL ? make(path) : NULL;
    if (h != NULL)
        h->is_recorded = is_recorded(fd);
    close(fd);
    if (h == NULL)
        return refuse(c, path, why != NULL ? why : "out of memory");
    static const char try[] = "SELECT count(*) FROM sqlite_schema";
    bool is_open = (open_database(h, SQLITE_OPEN_READONLY) == 0 && run_sql(h, try) == 0) ||
                   (!h->is_recorded && open_unchanging(h) == 0 && run_sql(h, try) == 0);
    if (!is_open || check_tables(h) != 0) {
        struct step step = print_error(c, "%s", h->why);
        history_close(h);
        return step;
    }
    *out = h;
    return GO_ON;
}

/* Without a descriptor of our own: to close it would drop the locks of the one that writes. */
struct step history_open_beside(const struct cli *c, const struct history *writer,
                                struct history **out)
{
    struct history *h = make(writer->path);
    *out = NULL;
    if (h == NULL)
        return refuse(c, writer->path, "out of memory");
    h->is_recorded = true;
    if (open_database(h, SQLITE_OPEN_READONLY) != 0) {
        struct step step = print_error(c, "%s", h->why);
        history_close(h);
        return step;
    }
    *out = h;
    return GO_ON;
}

void history_close(struct history *h)
{
    if (h == NULL)
        return;
    sqlite3_finalize(h->write);
    sqlite3_finalize(h->alive);
    sqlite3_close(h->db);
    if (h->fd >= 0)
        close(h->fd);
    free(h->path);
    free(h);
}

/* ---- writing ------------------------------------------------------------------------------- */

void history_interrupt(struct history *h)
{
    sqlite3_interrupt(h->db);
}

int64_t history_last_row(const struct history *h)
{
    return h->last_row;
}

static int begin_store(struct history *h, const char *store)
{
    sqlite3_stmt *s = history_prepare(
        h, "INSERT INTO store(name) VALUES(?1) ON CONFLICT(name) DO UPDATE SET name=name "
           "RETURNING id");
    int rc = -1;
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, store, -1, SQLITE_STATIC);
    if (sqlite3_step(s) == SQLITE_ROW) {
        h->store = sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : history_fail(h);
    } else {
        history_fail(h);
    }
    sqlite3_finalize(s);
    return rc;
}

static int add_names(struct history *h, char *const *names, size_t count)
{
    sqlite3_stmt *s =
        history_prepare(h, "INSERT OR IGNORE INTO recorded_name(recording,mutex) VALUES(?1,?2)");
    int rc = s != NULL ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        sqlite3_bind_int64(s, 1, h->recording);
        sqlite3_bind_text(s, 2, names[i], -1, SQLITE_STATIC);
        rc = run_statement(h, s);
    }
    sqlite3_finalize(s);
    return rc;
}

static int add_recording(struct history *h)
{
    sqlite3_stmt *s =
        history_prepare(h, "INSERT INTO recording(store,began_ms,last_ms,pid) VALUES(?1,?2,?2,?3)");
    if (s == NULL)
        return -1;
    sqlite3_bind_int64(s, 1, h->store);
    sqlite3_bind_int64(s, 2, simba_wall_ms(simba_now()));
    sqlite3_bind_int64(s, 3, getpid());
    int rc = run_statement(h, s);
    sqlite3_finalize(s);
    h->recording = sqlite3_last_insert_rowid(h->db);
    return rc;
}

int history_go_on(struct history *h, char *const *names, size_t count)
{
    if (run_sql(h, "BEGIN IMMEDIATE") != 0)
        return -1;
    int64_t before = h->recording;
    if (add_recording(h) == 0 && add_names(h, names, count) == 0 && run_sql(h, "COMMIT") == 0)
        return 0;
    sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    h->recording = before;
    return -1;
}

int history_begin(struct history *h, const char *store, char *const *names, size_t count,
                  void (*resume)(void *data, const struct seen_tenure *t), void *data)
{
    struct seen_tenure t;
    int step;
    if (begin_store(h, store) != 0)
        return -1;
    sqlite3_stmt *open =
        history_prepare(h, "SELECT " HISTORY_ROW
                           ",(SELECT max(last_ms) FROM recording r WHERE r.store=t.store) FROM "
                           "tenure t WHERE t.ended_ms IS NULL AND t.store=?1");
    if (open == NULL)
        return -1;
    sqlite3_bind_int64(open, 1, h->store);
    while ((step = sqlite3_step(open)) == SQLITE_ROW) {
        history_take_row(open, &t);
        t.ended_ms = history_take_time(open, 10);
        resume(data, &t);
    }
    if (step != SQLITE_DONE)
        history_fail(h);
    sqlite3_finalize(open);
    if (step != SQLITE_DONE)
        return -1;
    return history_go_on(h, names, count);
}

static void bind_time(sqlite3_stmt *s, int at, int64_t ms)
{
    if (ms != 0)
        sqlite3_bind_int64(s, at, ms);
    else
        sqlite3_bind_null(s, at);
}

static int write_one(struct history *h, const struct seen_tenure *t)
{
    sqlite3_stmt *s = h->write;
    sqlite3_bind_int64(s, 1, t->row);
    sqlite3_bind_int64(s, 2, h->store);
    sqlite3_bind_text(s, 3, t->mutex, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, t->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, (int64_t)t->token);
    sqlite3_bind_int64(s, 6, t->began_ms);
    sqlite3_bind_int(s, 7, t->began_known);
    bind_time(s, 8, t->state != TENURE_ON ? t->ended_ms : 0);
    sqlite3_bind_text(s, 9, t->state == TENURE_ENDED ? reason_name(t->reason) : NULL, -1,
                      SQLITE_STATIC);
    bind_time(s, 10, t->state == TENURE_UNSEEN ? t->over_by_ms : 0);
    sqlite3_bind_text(s, 11, t->note, -1, SQLITE_STATIC);
    return run_statement(h, s);
}

bool history_is_gone(const struct history *h)
{
    struct stat ours, named;
    return fstat(h->fd, &ours) == 0 &&
           (stat(h->path, &named) != 0
                ? errno == ENOENT || errno == ENOTDIR
                : named.st_dev != ours.st_dev || named.st_ino != ours.st_ino);
}

int history_write(struct history *h, const struct seen_tenure *tenures, size_t count,
                  int64_t until_ms)
{
    if (run_sql(h, "BEGIN IMMEDIATE") != 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = write_one(h, &tenures[i]);
    if (rc == 0) {
        sqlite3_bind_int64(h->alive, 1, until_ms);
        sqlite3_bind_int64(h->alive, 2, h->recording);
        rc = run_statement(h, h->alive);
    }
    if (rc == 0)
        rc = run_sql(h, "COMMIT");
    if (rc != 0)
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* What ended before it may be deleted, so nobody may take that time for one in which nothing ended. */
static int forget(struct history *h, int64_t before_ms)
{
    char sql[320];
    snprintf(sql, sizeof sql,
             "DELETE FROM recording WHERE last_ms<%lld AND id<%lld;"
             "UPDATE recording SET began_ms=%lld WHERE began_ms<%lld",
             (long long)before_ms, (long long)h->recording, (long long)before_ms,
             (long long)before_ms);
    return run_sql(h, sql);
}

/* Of too many the oldest. */
static int purge_surplus(struct history *h)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "DELETE FROM tenure WHERE id IN (SELECT id FROM tenure WHERE ended_ms IS NOT NULL "
             "ORDER BY ended_ms LIMIT max(0,min(%d,(SELECT count(*) FROM tenure)-%d)))",
             PURGE_ROWS, HISTORY_ROWS_MAX);
    if (run_sql(h, sql) != 0)
        return -1;
    if (sqlite3_changes(h->db) == 0)
        return 0;
    int64_t oldest = history_ask_number(h, "SELECT coalesce(min(ended_ms),0) FROM tenure");
    return oldest < 0 ? -1 : forget(h, oldest + 1); /* others may have ended in that millisecond */
}

int history_purge(struct history *h, int64_t before_ms)
{
    char sql[320];
    snprintf(sql, sizeof sql,
             "DELETE FROM tenure WHERE id IN (SELECT id FROM tenure WHERE ended_ms<%lld LIMIT %d);"
             "DELETE FROM recording WHERE id<=(SELECT id FROM recording ORDER BY id DESC LIMIT 1 "
             "OFFSET %d);"
             "DELETE FROM recorded_name WHERE recording NOT IN (SELECT id FROM recording)",
             (long long)before_ms, PURGE_ROWS, HISTORY_RECORDINGS_MAX);
    return forget(h, before_ms) == 0 && purge_surplus(h) == 0 ? run_sql(h, sql) : -1;
}
