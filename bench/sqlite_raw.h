/* sqlite_raw.h: the sqlite: store by hand: a program that blocks, with the same tables, statements
 * and settings. What it leaves out is what the library adds: renewal, deadlines, liveness, waiting
 * that survives whatever others do. */
#ifndef BENCH_SQLITE_RAW_H
#define BENCH_SQLITE_RAW_H

#include <dirent.h>
#include <sqlite3.h>

#include "rival.h"

#define RAW_LEASE_NS INT64_C(16000000000)
#define RAW_BUSY_MAX 100000

enum raw_statement { RAW_BEGIN, RAW_COMMIT, RAW_TAKE, RAW_FREE, RAW_STATEMENTS };

struct raw_sqlite {
    sqlite3 *db;
    sqlite3_stmt *statement[RAW_STATEMENTS];
    char mutex[SIMBA_MUTEX_MAX + 1];
    char id[64];
    int64_t token;
    _Atomic uint32_t *futex;
};

static const char *const raw_sql[RAW_STATEMENTS] = {
    [RAW_BEGIN] = "BEGIN IMMEDIATE",
    [RAW_COMMIT] = "COMMIT",
    [RAW_TAKE] = "INSERT INTO mutex VALUES (?1, ?2, 1, 0, 0, ?3, ?3 + ?4, ?4, 0, 0) "
                 "ON CONFLICT (name) DO UPDATE SET owner = ?2, token = token + 1, client = 0, "
                 "live = 0, acquired = ?3, until = ?3 + ?4, lease = ?4, evicted = 0, contended = 0 "
                 "WHERE until <= ?3 RETURNING token",
    [RAW_FREE] = ("UPDATE mutex SET owner = '', until = 0, contended = 0 "
                  "WHERE name = ?1 AND owner = ?2 AND token = ?3"),
};

/* As short as the library's; sqlite3_busy_timeout() sleeps so long that processes at once become
 * processes one after the other, of which some get nothing. */
static inline int raw_sqlite_on_busy(void *data, int times)
{
    (void)data;
    bench_sleep(100000);
    return times < RAW_BUSY_MAX;
}

static inline void *raw_sqlite_open(const char *location, const char *mutex,
                                    _Atomic uint32_t *futex)
{
    struct raw_sqlite *r = calloc(1, sizeof *r);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (r == NULL || sqlite3_open_v2(strchr(location, ':') + 1, &r->db, flags, NULL) != SQLITE_OK)
        bench_die("cannot open %s by hand", location);
    sqlite3_busy_handler(r->db, raw_sqlite_on_busy, NULL);
    sqlite3_exec(r->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
    for (int i = 0; i < RAW_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(r->db, raw_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &r->statement[i],
                               NULL) != SQLITE_OK)
            bench_die("%s", sqlite3_errmsg(r->db));
    }
    snprintf(r->mutex, sizeof r->mutex, "%s", mutex);
    snprintf(r->id, sizeof r->id, "0:%d@127.0.0.1-3f9a2c7e", (int)getpid()); /* as long as ours */
    r->futex = futex;
    return r;
}

static inline void raw_sqlite_do(struct raw_sqlite *r, enum raw_statement which)
{
    if (sqlite3_step(r->statement[which]) != SQLITE_DONE)
        bench_die("%s: %s", raw_sql[which], sqlite3_errmsg(r->db));
    sqlite3_reset(r->statement[which]);
}

static inline bool raw_sqlite_take(struct raw_sqlite *r)
{
    struct timespec t;
    sqlite3_stmt *s = r->statement[RAW_TAKE];
    raw_sqlite_do(r, RAW_BEGIN);
    clock_gettime(CLOCK_BOOTTIME, &t);
    sqlite3_bind_text(s, 1, r->mutex, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, r->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    sqlite3_bind_int64(s, 4, RAW_LEASE_NS);
    int rc = sqlite3_step(s);
    bool taken = rc == SQLITE_ROW;
    if (taken) {
        r->token = sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s);
    }
    sqlite3_reset(s);
    if (rc != SQLITE_DONE)
        bench_die("cannot take: %s", sqlite3_errmsg(r->db));
    raw_sqlite_do(r, RAW_COMMIT);
    return taken;
}

static inline void raw_sqlite_acquire(void *one)
{
    struct raw_sqlite *r = one;
    for (;;) {
        uint32_t seen = r->futex != NULL ? atomic_load(r->futex) : 0;
        if (raw_sqlite_take(r))
            return;
        if (r->futex == NULL)
            bench_die("the mutex is not free");
        syscall(SYS_futex, r->futex, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
}

static inline void raw_sqlite_release(void *one)
{
    struct raw_sqlite *r = one;
    sqlite3_stmt *s = r->statement[RAW_FREE];
    raw_sqlite_do(r, RAW_BEGIN);
    sqlite3_bind_text(s, 1, r->mutex, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, r->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, r->token);
    raw_sqlite_do(r, RAW_FREE);
    if (sqlite3_changes(r->db) != 1)
        bench_die("the mutex was lost");
    raw_sqlite_do(r, RAW_COMMIT);
    if (r->futex != NULL)
        bench_add(r->futex);
}

static inline void raw_sqlite_close(void *one)
{
    struct raw_sqlite *r = one;
    for (int i = 0; i < RAW_STATEMENTS; i++)
        sqlite3_finalize(r->statement[i]);
    sqlite3_close(r->db);
    free(r);
}

/* ---- the place: a database in a folder of its own ------------------------------------------ */

/* The library makes the tables, for both. */
static inline void sqlite_make(void *location)
{
    void *one = library.open(location, "first", NULL);
    library.acquire(one);
    library.release(one);
    library.close(one);
}

static inline void sqlite_begin(char location[LOCATION_MAX])
{
    const char *where = getenv("TMPDIR");
    char folder[LOCATION_MAX - 32];
    snprintf(folder, sizeof folder, "%.200s/simba-bench-XXXXXX", where != NULL ? where : "/tmp");
    if (mkdtemp(folder) == NULL)
        bench_die("cannot make %s: %s", folder, strerror(errno));
    snprintf(location, LOCATION_MAX, "sqlite:%s/locks.db", folder);
    bench_run(&(struct bench){.core = -1}, sqlite_make, location);
}

static inline void sqlite_end(const char *location)
{
    char folder[LOCATION_MAX], path[2 * LOCATION_MAX];
    snprintf(folder, sizeof folder, "%s", strchr(location, ':') + 1);
    *strrchr(folder, '/') = '\0';
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%.250s", folder, e->d_name);
        unlink(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(folder);
}

static const struct contest sqlite_contest = {
    .raw = {raw_sqlite_open, raw_sqlite_acquire, raw_sqlite_release, raw_sqlite_close},
    .begin = sqlite_begin,
    .end = sqlite_end,
};
#endif
