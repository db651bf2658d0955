/* sql.h: what the stores in SQL servers share. One table, one row per mutex, and this frame around it:
 *
 *   sql.c        the store as the runtime sees it: open, submit, diagnose, close
 *   jobs.c       requests become jobs
 *   link.c       jobs run one after another on one connection
 *   dial.c       a thread that connects, because looking up a name and greeting a server block
 *   outcome.c    what the end of a statement means; answers.c: the answers to requests
 *   interest.c   which mutexes are waited for or observed, and what a look at them means; look.c: looking
 *   statement.c  statements as text
 *   owner.c      ids of owners, also of those who were evicted
 *   health.c     what is known of a server and its table, for people
 *   options.c    what their URLs have in common
 *
 * A job is one statement for many requests of one kind, each for another mutex, in the order of their
 * names so that two clients lock rows in the same order. Everything but dialling happens on the loop's
 * thread, without blocking: a thread that waits for a server could be kept beyond its timeout, and a
 * worker would cost four changes of threads per request instead of two.
 *
 * There is no pipeline: one connection is one process of the server, which works through its statements
 * one by one anyway. What gathers meanwhile goes out together. */
#ifndef BACKEND_SQL_H
#define BACKEND_SQL_H

#include <simba/backend.h>
#include <uv.h>

#include "backend/sql/interest.h"
#include "backend/sql/statement.h"

#define SQL_WHY_MAX 512
#define SQL_MAKE_TABLE /* what to do about a missing one */ \
    "; make it: simba init URL, or have its statements printed: simba init --print URL"
#define SQL_OBSERVED_MS 15000 /* how long others go on telling an observer that is gone */
#define SQL_JOB_MAX 1000      /* mutexes in one statement */

/* Beyond enum simba_op. */
enum sql_op {
    SQL_POLL = 100, /* look at what is watched */
    SQL_DIGEST,     /* one number that changes when any owner does */
    SQL_RING,       /* tell owners who poll that one of them was evicted */
    SQL_LISTEN,     /* be told of what becomes free from now on */
    SQL_MARK,       /* leave a mark that somebody waits, so that a release is told */
    SQL_OBSERVE     /* and, for SQL_OBSERVED_MS, of what is taken */
};

/* What a statement tells of a mutex. */
struct sql_row {
    const char *mutex, *owner;
    uint64_t token; /* of the row whose name is empty, its version */
    int64_t left_ms, age_ms;
    bool changed;   /* by this very statement */
    bool unmarked;  /* nobody is known to wait for it, where that matters */
    bool evicted;   /* and then of the owner's id: */
    uint32_t first; /* the bytes of its first character, as one number; 0: unknown */
};

struct sql_item {
    const char *mutex;
    struct simba_request *request; /* NULL: of a poll */
    bool seen, changed, unmarked, evicted;
    uint64_t token;
    int64_t left_ms, age_ms;
    char owner[SIMBA_ID_MAX + 1]; /* "": nobody */
};

struct sql_job {
    struct sql_job *next;
    int op;
    bool impatient; /* waits for locks as little as it can */
    int tries;
    size_t count;
    char *names; /* of a poll */
    struct sql_item item[];
};

/* How a statement ended. */
enum sql_end {
    SQL_DONE,
    SQL_FAILED, /* for good, or until somebody does something */
    SQL_LOCKED, /* somebody else's transaction has the row */
    SQL_RETRY,  /* a deadlock: nothing was changed, try again */
    SQL_BROKEN  /* the connection is of no use any more */
};

struct sql;

/* A kind of server. `link` is a connection. */
struct sql_driver {
    const char *name;
    const char *needs_help; /* what to do about a table that cannot hold a name */
    bool rereads;           /* a CONTEND may tell nothing of a mutex: then it is read */

    /* On a thread of its own; blocks at most about the connect timeout. NULL: failed, with code and
     * why. */
    void *(*connect)(const void *config, int *code, char *why);
    void (*disconnect)(void *link); /* any thread; does not wait */
    void (*free_config)(void *config);

    int (*fd)(void *link);
    size_t (*group)(void *link, int op);  /* how many in one statement */
    bool (*tells)(void *link);            /* NULL, or: LISTEN works there */
    const char *(*remark)(void *link);    /* NULL, or something to warn of, once; NULL: nothing */
    const char *(*read_only)(void *link); /* NULL, or why nothing can be written; NULL: it can */

    /* Begins a job, goes on with it: returns the events to wait for, as of uv_poll; 0: it has ended,
     * see *end. Rows go to sql_found(). */
    int (*begin)(struct sql *s, void *link, struct sql_job *job, enum sql_end *end);
    int (*go_on)(struct sql *s, void *link, struct sql_job *job, int events, enum sql_end *end);
    /* There is something to read while nothing was asked. False: the connection has ended. */
    bool (*idle)(struct sql *s, void *link);
    void (*diagnose)(void *link, simba_finding_fn *say, void *data); /* from what is known */
};

#define SQL_LOCKED_MAX 16
#define SQL_LOCKED_MS 5000 /* how long a row that was locked is not waited for */

struct sql_link {
    struct sql *store;
    void *link;
    uv_poll_t poll;
    bool settled;  /* the kernel watches what we wait for */
    int64_t since; /* simba_now() */
};

struct sql {
    struct simba_host *host;
    const struct sql_driver *driver;
    struct sql_dial *dial;
    struct sql_link *link; /* NULL: none */
    struct sql_job *job;   /* under way; the first of: */
    struct sql_job *jobs, **jobs_last;
    struct simba_request *waiting, **waiting_last;
    struct interests interests;
    struct {
        uint32_t mutex; /* its hash: a mistake costs little */
        int64_t until;  /* simba_now() */
    } locked[SQL_LOCKED_MAX];
    size_t locked_next;
    struct statement statement;

    uv_timer_t timeout; /* of the job, or until the next attempt to connect */
    uv_timer_t look;    /* until the next poll */
    int64_t poll_ms;    /* 0: none */
    int64_t pause_ms;   /* between looks, at present; at most poll_ms */
    int handles;        /* of the loop */
    int events;         /* that the link waits for */
    bool dialing, resting, looking, closing, listens, polls, remarked;
    bool missed;  /* perhaps something, while nobody listened: look, even if that is not wanted */
    int failures; /* attempts to connect in a row */
    int reconnections; /* so far */
    uint64_t dice;

    int code; /* of the last failure */
    char why[SQL_WHY_MAX];
};

/* config: given; freed also on failure. poll_ms: -1: the driver's. */
int sql_open(struct simba_host *host, const struct sql_driver *driver, void *config,
             int64_t poll_ms, void **store, char *why, size_t why_size);
void sql_submit(void *store, struct simba_request *batch);
void sql_watch(void *store, const char *mutex, enum simba_interest interest);
void sql_close(void *store);
enum simba_lend sql_work(void *store, bool here);
void sql_diagnose(void *store, simba_finding_fn *say, void *data);

/* For drivers. */
void sql_found(struct sql *s, struct sql_job *job, const struct sql_row *row);
void sql_told(struct sql *s, const char *mutex); /* something about it has changed */
__attribute__((format(printf, 3, 4))) void sql_fail(struct sql *s, int code, const char *format,
                                                    ...);

/* owner.c: the id that the row of an evicted tenure has: its owner's with another first character. And the
 * other way, from the row's and that character: text of at most SIMBA_ID_MAX bytes, "?" for what is no text, "…"
 * at the end of what was too long. */
void sql_evicted_id(const char *id, char out[SIMBA_ID_MAX + 1]);
void sql_shown_id(const char *owner, uint32_t first, char out[SIMBA_ID_MAX + 1]);
size_t sql_cut_bytes(const char *id);  /* that are before the "…" at its end; 0: there is none */
#define SQL_EVICTED_BELOW "4294967296" /* a ttl_at below is no time, but the first character */

/* ?create=: what to do about a table that is missing, or an old one. */
enum sql_create {
    SQL_CREATE_NEVER,  /* off */
    SQL_CREATE_TABLE,  /* on: if there is none */
    SQL_CREATE_UPGRADE /* upgrade: and make one of JVM Simba's one like ours */
};
int sql_read_create(const struct simba_url *url, enum sql_create *out, char *why, size_t why_size);

bool sql_is_local(const char *host); /* NULL: a unix socket */

/* ?poll= and ?password_file=; -1: not given. */
int sql_read_poll(const struct simba_url *url, int64_t *ms, char *why, size_t why_size);
int sql_read_secret(const struct simba_url *url, char **out, char *why, size_t why_size);

/* dial.c: told() runs on the loop. */
struct sql_dial *sql_dial_open(uv_loop_t *loop, const struct sql_driver *driver, void *config,
                               void (*told)(void *data, void *link, int code, const char *why),
                               void *data);
int sql_dial_begin(struct sql_dial *d); /* 0, or SIMBA_ELIMIT; one at a time */
void sql_dial_close(struct sql_dial *d, void (*closed)(void *data));
#endif
