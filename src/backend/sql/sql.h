/* sql.h: what the stores in SQL servers share. One table, one row per mutex, and this frame
 * around it:
 *
 *   sql.c          the store as the runtime sees it: open, submit, diagnose, close
 *   config.c       what their URLs have in common
 *   requests.c     requests become jobs
 *   connection.c   one connection, kept up; jobs run on it one after another
 *   replies.c      what the end of a statement means: rows, another statement
 *   answers.c      what a request is answered
 *   poller.c       polls what is waited for or observed
 *   pass.c         one handle gives a mutex to the next one of the same client
 *   queue.c        who comes next, among several processes, where the server can tell
 *   queue_waiter.c, queue_connection.c, queue_owned.c   of queue.c: one that waits; what we own
 *   statements.c   statements as text, as the stores' statements.sql has them
 *   owner.c        ids of owners, also of those who were evicted
 *   inspect.c      what is known of a server and its table, for people
 *
 * A job is one statement for many requests of one kind, each for another mutex, in the order of
 * their names so that two clients lock rows in the same order. Everything but connecting happens
 * on the loop's thread, without blocking: a thread that waits for a server could be kept beyond
 * its timeout, and a worker would cost four changes of threads per request instead of two.
 *
 * There is no pipeline: one connection is one process of the server, which works through its
 * statements one by one anyway. What gathers meanwhile goes out together. */
#ifndef BACKEND_SQL_H
#define BACKEND_SQL_H

#include <simba/backend.h>
#include <uv.h>

#include "backend/kit/handles.h"
#include "backend/kit/offload.h"
#include "backend/kit/options.h"
#include "backend/kit/pending.h"
#include "backend/kit/reconnect.h"
#include "backend/sql/inspect.h"
#include "backend/sql/pass.h"
#include "backend/sql/poller.h"
#include "backend/sql/queue.h"
#include "backend/sql/statements.h"

#define SQL_WHY_MAX 512
#define SQL_MAKE_TABLE /* what to do about a missing one */ \
    "; make it: simba init URL, or have its statements printed: simba init --print URL"
#define SQL_OBSERVED_MS 15000 /* how long others go on telling an observer that is gone */
#define SQL_QUEUE_WAIT_S 60
#define SQL_JOB_MAX 1000 /* mutexes in one statement */
#define SQL_NOTES_MS \
    30000 /* how long it is believed that there is no table of notes, or that it cannot be made */

/* Beyond enum simba_op. */
enum sql_op {
    SQL_READ_NOTE = 97, /* READ, with the note */
    SQL_LIST_NOTE,      /* LIST likewise */
    SQL_PASS,           /* release a mutex and begin the next tenure, see pass.h */
    SQL_POLL,           /* look at what is watched */
    SQL_DIGEST,         /* one number that changes when any owner does */
    SQL_COUNT_EVICTION, /* for owners who poll: one of them was evicted */
    SQL_LISTEN,         /* be told of what becomes free from now on */
    SQL_MARK,           /* leave a mark that somebody waits, so that a release is told */
    SQL_OBSERVE,        /* and, for SQL_OBSERVED_MS, of what is taken */
    SQL_MAKE_NOTES,     /* the table of notes */
    SQL_QUEUE_TRY,      /* the queue lock of a mutex: take it if it is free; the token is 1 then */
    SQL_QUEUE_ROOM,     /* 1: the server has room for a connection that only waits */
    SQL_QUEUE_WAIT,     /* wait for it, SQL_QUEUE_WAIT_S at most */
    SQL_QUEUE_END       /* give it back; left_ms is 0 if another has it now */
};

/* What a statement tells of a mutex. */
struct sql_row {
    const char *mutex, *owner;
    uint64_t
        token; /* of the row whose name is empty, its version; of SQL_READ_NOTE, the clock in ms */
    int64_t left_ms, age_ms;
    bool changed;   /* by this very statement */
    bool unmarked;  /* nobody is known to wait for it, where that matters */
    bool marked;    /* changed, and others do wait */
    bool evicted;   /* and then of the owner's id: */
    uint32_t first; /* the bytes of its first character, as one number; 0: unknown */
    const char
        *note; /* the note of the mutex: of SQL_READ_NOTE then nothing but that; NULL: none */
    uint64_t note_token;
    int64_t note_age_ms;
};

struct sql_item {
    char mutex[SIMBA_MUTEX_MAX + 1];
    struct simba_request *request; /* NULL: of a poll */
    struct simba_request *release; /* of a pass, by the owner before */
    bool seen, changed, unmarked, marked, evicted;
    uint64_t token;
    int64_t left_ms, age_ms;
    char owner[SIMBA_ID_MAX + 1]; /* "": nobody */
    char *note;                   /* allocated; NULL: none */
    uint64_t note_token;
    int64_t note_age_ms;
    int64_t wall_ms; /* the server's clock, in ms; 0: unknown */
};

struct sql_job {
    struct sql_job *next;
    int op;
    bool short_lock_wait; /* waits for locks as little as it can */
    int tries;
    size_t count;
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

/* A connection that a dialect has made. */
struct sql_session {
    void *handle; /* the dialect's */
    int fd;
    bool notifies;       /* LISTEN works there */
    bool passes;         /* it has SQL_PASS, and others get their turn all the same */
    bool makes_tables;   /* that of notes is made when it is missing */
    bool one_by_one;     /* a statement that changes something is for one mutex */
    const char *warning; /* something to warn of, once; NULL: nothing */
    const struct sql_inspection *inspection;
};

/* What differs between the kinds of servers. */
struct sql_dialect {
    /* A CONTEND that tells nothing of a mutex has met a row whose name the table takes for the
     * same: what to do about such a table. NULL: the mutex is read then. */
    const char *same_names_help;
    const char *see_locks; /* shows who has locked a row */
    bool can_notify;       /* LISTEN works at some servers */
    bool has_queue;        /* SQL_QUEUE_TRY and its like do, at most servers: queue.h */

    /* On a thread of its own; blocks at most about the connect timeout. False: failed, with code
     * and why. */
    bool (*connect)(const void *config, struct sql_session *out, int *code, char *why);
    void (*disconnect)(void *handle); /* any thread; does not wait */

    /* What the URL says, in memory of config_size bytes, all 0 at first. 0, or as in kit/options.h. */
    int (*read_config)(const struct options *o, const struct simba_host *host, void *config);
    void (*free_config)(void *config);
    size_t config_size;

    /* Begins a job, goes on with it: returns the events to wait for, as of uv_poll; 0: it has
     * ended, see *end. Rows go to sql_found(). */
    int (*begin)(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end);
    int (*go_on)(struct sql *s, void *handle, struct sql_job *job, int events, enum sql_end *end);
    /* There is something to read while nothing was asked. False: the connection has ended. */
    bool (*idle)(struct sql *s, void *handle);
};

#define SQL_LOCKED_MAX 16
#define SQL_LOCKED_MS 5000      /* how long a row that was locked is not waited for */
#define SQL_LOCKED_AGAIN_MS 500 /* and when whoever wants its mutex asks again */

struct sql_connection {
    struct sql *store;
    struct sql_session session;
    uv_poll_t poll;
    bool is_armed; /* the kernel watches what we wait for */
    int64_t since; /* simba_now() */
};

struct sql {
    struct simba_host *host;
    const struct sql_dialect *dialect;
    struct handles handles;
    struct offload *offload; /* for connecting; shares the dialect's config */
    struct reconnect reconnect;
    struct sql_connection *connection; /* NULL: none */
    struct sql_job *job;               /* under way; the first of: */
    struct sql_job *jobs, **jobs_last;
    struct pending waiting;
    struct sql_poller poller;
    struct sql_queue queue;
    struct sql_passes passes;
    struct {
        uint32_t mutex; /* its hash: a mistake costs little */
        int64_t until;  /* simba_now() */
    } locked[SQL_LOCKED_MAX];
    size_t locked_next;
    struct statement statement;

    uv_timer_t timeout; /* of the job, or until the next attempt to connect */
    int events;         /* that the connection waits for */
    bool connecting, resting, closing, listens, has_warned;
    int64_t
        no_notes_until; /* simba_now(): their table is missing, or may not be read; until then it
                                 is not asked for by those who can do without */
    int64_t make_notes_after; /* likewise: before that it is not tried again to make it */
    int reconnections;        /* so far */

    int code; /* of the last failure */
    char why[SQL_WHY_MAX];
};

/* sql.c */
int sql_open(struct simba_host *host, const struct sql_dialect *dialect,
             const struct simba_url *url, void **store, char *why, size_t why_size);
void sql_submit(void *store, struct simba_request *batch);
void sql_examine(void *store, struct simba_request *q); /* says what is known */
void sql_close(void *store);
__attribute__((format(printf, 3, 4))) void sql_fail(struct sql *s, int code, const char *format,
                                                    ...);

/* config.c: all but the last as in kit/options.h. ?create=: what to do about a table that is
 * missing, or an old one. */
enum sql_create {
    SQL_CREATE_NEVER,  /* off */
    SQL_CREATE_TABLE,  /* on: if there is none */
    SQL_CREATE_UPGRADE /* upgrade: and make one of JVM Simba's one like ours */
};
int sql_config_create(const struct options *o, enum sql_create *out);
int sql_config_poll(const struct options *o, int64_t *ms);
int sql_config_password(const struct options *o, char **out); /* secrets_free() */
bool sql_config_is_local(const char *host);                   /* NULL: a unix socket */

/* requests.c */
void sql_requests_to_jobs(struct sql *s); /* all that wait */
void sql_requests_remember_locked(struct sql *s, const char *mutex);

struct sql_job *sql_job_new(int op, size_t room); /* for so many, to be freed; NULL: no memory */
void sql_job_add(struct sql_job *job, const char *mutex, struct simba_request *request);
void sql_job_append(struct sql *s, struct sql_job *job);
void sql_job_put_first(struct sql *s, struct sql_job *job);
struct sql_job *sql_job_take(struct sql *s); /* the first; NULL: there is none */
void sql_job_forget(struct sql_job *job);    /* what it was told */
void sql_job_free(struct sql_job *job);
bool sql_job_split(struct sql *s, const struct sql_job *job); /* false: it cannot be */
void sql_job_ring(struct sql *s, const struct sql_job *evict);
void sql_job_mark(struct sql *s, const struct sql_job *job); /* what is waited for */

/* connection.c. Begins to connect, unless there is a connection, or an attempt or a pause before
 * one. Pump: runs jobs until one has to wait for the server, or there is none. */
void sql_connection_begin(struct sql *s);
void sql_connection_pump(struct sql *s);
void sql_connection_close(struct sql *s); /* if there is one */
void sql_connection_go_on(struct sql *s); /* both: with what waits */
enum simba_lend sql_work(void *store, bool here);

/* replies.c. Of dialects: what a statement tells, and what is told unasked. Ended: the statement
 * of s->job has; true: the connection can be used on. */
void sql_found(struct sql *s, struct sql_job *job, const struct sql_row *row);
/* A statement about notes has failed: their table is missing, or rights to it are. */
void sql_fail_notes(struct sql *s, bool is_missing, const char *text);
void sql_notified(struct sql *s, const char *mutex); /* something about it has changed */
bool sql_replies_ended(struct sql *s, enum sql_end end);

/* answers.c: to the request of an item; more: another answer follows at once. */
void sql_answers_contend(struct sql *s, const struct sql_item *item, bool more);
void sql_answers_renew(struct sql *s, const struct sql_item *item, bool more);
void sql_answers_release(struct sql *s, const struct sql_item *item, bool more);
void sql_answers_read(struct sql *s, const struct sql_item *item, bool more);
void sql_answers_publish(struct sql *s, const struct sql_item *item, bool more);
void sql_answers_evict(struct sql *s, const struct sql_item *item);
void sql_answers_refuse(struct sql *s, struct simba_request *q, int code, const char *why,
                        bool more);
void sql_answers_refuse_job(struct sql *s, struct sql_job *job, int code, const char *why);
void sql_answers_refuse_locked(struct sql *s, struct sql_job *job);
void sql_answers_refuse_all(struct sql *s, int code, const char *why); /* in jobs or not */

/* owner.c: the id that the row of an evicted tenure has: its owner's with another first
 * character. And the other way, from the row's and that character: text of at most SIMBA_ID_MAX
 * bytes, "?" for what is no text, "…" at the end of what was too long. */
void sql_evicted_id(const char *id, char out[SIMBA_ID_MAX + 1]);
void sql_shown_id(const char *owner, uint32_t first, char out[SIMBA_ID_MAX + 1]);
size_t sql_cut_bytes(const char *id); /* that are before the "…" at its end; 0: there is none */
#endif
