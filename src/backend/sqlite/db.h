/* db.h: the database: opening it, and what each request means in it. One thread at a time. */
#ifndef BACKEND_SQLITE_DB_H
#define BACKEND_SQLITE_DB_H

#include <simba/backend.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "backend/sqlite/boot.h"
#include "backend/sqlite/files.h"
#include "backend/sqlite/live.h"
#include "backend/sqlite/paths.h"

#define DB_TEXT_MAX 256
#define DB_APPLICATION_ID 0x53494d42 /* "SIMB" */
#define DB_WAL_PAGES 1000            /* then the log is written back, as SQLite does by default */

enum db_statement {
    DB_BEGIN,
    DB_BEGIN_READ,
    DB_COMMIT,
    DB_ROLLBACK,
    DB_SELECT,
    DB_TAKE,
    DB_FREE,
    DB_CONTEND,
    DB_RENEW,
    DB_EVICT,
    DB_LIST,
    DB_OWN,
    DB_SET_OWN,
    DB_STATEMENTS
};

/* What the store keeps about itself, in the row of the mutex ''. */
struct db_own {
    int64_t serial;      /* counts the write transactions */
    int64_t base;        /* tokens are above this */
    int64_t quiet_until; /* nobody is granted anything before: tenures may be on that the database
                            has forgotten */
    int64_t longest;     /* the longest lease that was granted or renewed, ns */
};

struct db {
    const struct paths *paths; /* borrowed */
    int64_t busy_ms;           /* how long to wait for another writer */
    bool is_patient;           /* if not: hardly at all */
    struct boot boot;
    struct live live;
    sqlite3 *handle; /* NULL: not open */
    sqlite3_stmt *statement[DB_STATEMENTS];
    struct files files;
    int64_t checked;       /* when they were looked at, ns */
    bool is_reader;        /* we may only read, and have neither a number nor a turn */
    bool has_turn;         /* to write; see live.h */
    struct db_own own;     /* as of the current or last transaction */
    struct live_mark mark; /* likewise */
    int64_t serial;        /* of the last transaction that we know was committed */
    int64_t last_until;    /* the latest end of a lease that we were granted */
    int64_t busy_since;
    int wal_pages; /* after the last commit … */
    int tidy_at;   /* … and when they are so many that the log should be written back */

    bool is_busy;          /* the last failure: there is another writer */
    bool is_broken;        /* by the last failure: close and open again */
    bool is_stale;         /* likewise, and at once: our files are not the store's any more */
    char why[DB_TEXT_MAX]; /* that failure in words */
};

/* What a request did. */
struct db_result {              /* q->store of the request */
    struct simba_answer answer; /* its id or text is the one below */
    char text[DB_TEXT_MAX];
    int64_t owner_client; /* whose death would free the mutex; 0: nobody's */
    bool ring;            /* somebody waits who should look now */
    bool changed;         /* another owner, or none */
};

void db_init(struct db *d, const struct paths *paths, const struct boot *boot, int64_t busy_ms);
int db_open(struct db *d);              /* 0, or a code and d->why; nothing to do if it is open */
int db_open_reader(struct db *d);       /* likewise, where we may not write */
void db_close(struct db *d);            /* the connection only: we are still there */
void db_end(struct db *d);              /* everything */
int db_begin(struct db *d, bool write); /* 0, or a code and d->why */
int db_commit(struct db *d);            /* likewise; after a failure nothing was done */
void db_rollback(struct db *d);
bool db_needs_tidying(const struct db *d);
void db_tidy(struct db *d); /* takes as long as the disk does */
int db_list(struct db *d, struct simba_host *host, struct simba_request *request);
int db_apply(struct db *d, const struct simba_request *request, struct db_result *result);
bool db_client_is_gone(const struct db *d, int64_t client); /* for certain */

/* Within the store: */
sqlite3_stmt *db_statement(struct db *d, enum db_statement which);
bool db_run(struct db *d, enum db_statement which);         /* one that gives no rows */
int db_fail(struct db *d, const char *what);                /* from what SQLite says */
int db_fail_errno(struct db *d, const char *path);          /* from what the system says */
int db_fail_text(struct db *d, int code, const char *text); /* close, and open again */
int db_check_owner(struct db *d, int64_t *tables);          /* is this ours, or empty? */
int db_set_up(struct db *d);                                /* in our turn */
int db_take_turn(struct db *d);                             /* 0, or a code and d->why */
void db_give_turn(struct db *d);
bool db_wait(struct db *d, int times); /* for another writer, the times-th time; false: too long */
int db_check_files(struct db *d);      /* 0, or a code and d->why */
int db_read_own(struct db *d);         /* own, and mark; likewise */
bool db_is_behind(const struct db *d); /* it is an older database than the one last written */
bool db_write_own(struct db *d);
void db_set_mark(struct db *d); /* it is committed */
void db_rebuild_index(struct db *d);
#endif
