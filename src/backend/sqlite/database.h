/* database.h: the database: opening it, and what each request means in it. One thread at a time. */
#ifndef BACKEND_SQLITE_DATABASE_H
#define BACKEND_SQLITE_DATABASE_H

#include <simba/backend.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "backend/sqlite/boot_clock.h"
#include "backend/sqlite/client_lock.h"
#include "backend/sqlite/files.h"
#include "backend/sqlite/paths.h"
#include "backend/sqlite/wakeup.h"

#define DATABASE_TEXT_MAX 320
#define DATABASE_APPLICATION_ID 0x53494d42 /* "SIMB" */
#define DATABASE_WAL_PAGES 1000 /* then the log is written back, as SQLite does by default */

enum database_statement {
    DATABASE_BEGIN,
    DATABASE_BEGIN_READ,
    DATABASE_COMMIT,
    DATABASE_ROLLBACK,
    DATABASE_SELECT,
    DATABASE_TAKE,
    DATABASE_FREE,
    DATABASE_CONTEND,
    DATABASE_RENEW,
    DATABASE_EVICT,
    DATABASE_LIST,
    DATABASE_OWN,
    DATABASE_SET_OWN,
    DATABASE_READ_NOTE,
    DATABASE_PUBLISH,
    DATABASE_STATEMENTS
};

/* What the store keeps about itself, in the row of the mutex ''. */
struct database_own {
    int64_t serial;      /* counts the write transactions */
    int64_t base;        /* tokens are above this */
    int64_t quiet_until; /* nobody is granted anything before: tenures may be on that the database
                            has forgotten */
    int64_t longest;     /* the longest lease that was granted or renewed, ns */
};

struct database {
    const struct paths *paths; /* borrowed */
    struct wakeup *wakeup;     /* likewise; it may be closed */
    int64_t busy_ms;           /* how long to wait for another writer */
    bool may_wait;             /* if not: hardly at all */
    struct boot_clock boot;
    struct client_lock lock;
    sqlite3 *handle; /* NULL: not open */
    sqlite3_stmt *statement[DATABASE_STATEMENTS];
    struct files files;
    int64_t checked;         /* when they were looked at, ns */
    bool is_reader;          /* we may only read, and have neither a number nor a turn */
    bool has_turn;           /* to write; see client_lock.h */
    struct database_own own; /* as of the current or last transaction */
    struct client_lock_watermark watermark; /* likewise */
    int64_t serial;                         /* of the last transaction that we know was committed */
    int64_t last_until;                     /* the latest end of a lease that we were granted */
    int64_t busy_since;
    int wal_pages; /* after the last commit … */
    int tidy_at;   /* … and when they are so many that the log should be written back */

    bool is_busy;                /* the last failure: there is another writer */
    bool is_broken;              /* by the last failure: close and open again */
    bool is_full;                /* the last failure: the disk has no room */
    bool is_stale;               /* likewise, and at once: our files are not the store's any more */
    char why[DATABASE_TEXT_MAX]; /* that failure in words */
};

/* What a request did. */
struct database_result {        /* q->store of the request */
    bool waited;                /* given: so others may wait, who were not woken with it */
    struct simba_answer answer; /* its id or text is the one below */
    char text[DATABASE_TEXT_MAX];
    int64_t owner_client; /* whose death would free the mutex; 0: nobody's */
    bool wake;            /* somebody waits who should ask now */
    bool changed;         /* another owner, or none; or another note */
    struct simba_noted noted;
    char *note; /* its text, allocated; NULL: none */
};

void database_init(struct database *d, const struct paths *paths, struct wakeup *wakeup,
                   const struct boot_clock *boot, int64_t busy_ms);
int database_find(struct database *d); /* the files, if they are ours; 0, or a code and d->why */
int database_open(struct database *d); /* after that; likewise */
int database_open_reader(struct database *d);       /* likewise, where we may not write */
void database_close(struct database *d);            /* the connection only: we are still there */
void database_end(struct database *d);              /* everything */
int database_begin(struct database *d, bool write); /* 0, or a code and d->why */
int database_commit(struct database *d);            /* likewise; after a failure nothing was done */
void database_rollback(struct database *d);
bool database_needs_tidying(const struct database *d);
void database_tidy(struct database *d); /* takes as long as the disk does */
int database_list(struct database *d, struct simba_host *host, struct simba_request *request);
int database_apply(struct database *d, const struct simba_request *request,
                   struct database_result *result);
int database_read_note(struct database *d, const char *mutex, struct simba_noted *out,
                       char **text); /* allocated; NULL: there is none */
int database_publish(struct database *d, const struct simba_request *request);
bool database_client_is_gone(const struct database *d, int64_t client); /* for certain */

/* Within the store: */
sqlite3_stmt *database_statement(struct database *d, enum database_statement which);
bool database_run(struct database *d, enum database_statement which); /* one that gives no rows */
int database_fail(struct database *d, const char *what);              /* from what SQLite says */
int database_fail_errno(struct database *d, const char *path); /* from what the system says */
__attribute__((format(printf, 3, 4))) int database_fail_text(struct database *d, int code,
                                                             const char *format,
                                                             ...); /* close, and open again */
int database_check_owner(struct database *d, int64_t *tables);     /* is this ours, or empty? */
int database_set_up(struct database *d);                           /* in our turn */
int database_take_turn(struct database *d);                        /* 0, or a code and d->why */
void database_give_turn(struct database *d);
bool database_wait(struct database *d,
                   int times); /* for another writer, the times-th time; false: too long */
int database_read_own(struct database *d); /* own, and watermark; likewise */
bool database_is_behind(
    const struct database *d); /* it is an older database than the one last written */
bool database_write_own(struct database *d);
void database_set_watermark(struct database *d); /* it is committed */
void database_rebuild_index(struct database *d);
#endif
