/* simba/backend.h: for authors of stores, and for tests that want a store to misbehave.
 *
 * A store keeps, per mutex, at most one tenure {id, token, end of the lease} and applies one
 * operation at a time to it. The runtime hands it batches of requests; it answers each request
 * exactly once, in any order, from any thread, also from within submit(). What it cannot answer
 * in time it answers with SIMBA_ESTORE: "I don't know whether it was applied" is always allowed.
 *
 * The rules that make two owners impossible:
 *   CONTEND  grants only if there is no tenure or its lease has ended on the store's own clock
 *            (ttl + transition after the last grant or renewal); a new tenure's token is greater
 *            than every earlier one of this mutex, for ever.
 *   RENEW    only if id and token both match and the lease has not ended; keeps the token.
 *   RELEASE  only if id and token both match. A token is never granted twice.
 *   PUBLISH  sets the note of the mutex, if RENEW would succeed, in one step with that check. The note
 *            stays when the tenure has ended, until a later owner sets another. If the note is of the
 *            same token, and its serial is not smaller, this one was overtaken: nothing is written,
 *            and the answer is 0.
 *   LEAVE    ends no tenure by the id alone: a late one would hit a later tenure. (It may, where
 *            requests are sure to arrive in the order in which they were sent.)
 * A store that can lose its memory grants nothing for one lease after that, and begins its tokens
 * above all that it can have given, for example at its clock.
 * Lengths of time are the store's own, measured on its clock. Nothing about who owns a mutex compares
 * clocks; wall_ms is for schedules by the time of day, of which all leaders should know the same. */
#ifndef SIMBA_BACKEND_H
#define SIMBA_BACKEND_H

#include <simba.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 3: examine, say; 4: evicted; 5: interest, watched, work lends, findings are values; 6: findings
 * have room to grow; 7: notes; 8: wall_ms */
#define SIMBA_BACKEND_VERSION 8u

enum simba_op {
    SIMBA_CONTEND, /* take it if it is free; answer who owns it */
    SIMBA_RENEW,   /* LOST if id and token are not the current tenure's */
    SIMBA_RELEASE, /* LOST likewise: then nothing was changed */
    SIMBA_READ,    /* answer who owns it */
    SIMBA_LEAVE,   /* the contender waits no longer; answer who owns it (comes from all stores'
                      contenders, as a last look at what became of a request) */
    SIMBA_LIST,    /* found() for each mutex that is owned or waited for and whose name begins with
                      `mutex`; then answer */
    SIMBA_EVICT,   /* end the tenure of `id` ("": whoever owns it) with `token` (0: whichever): its
                      renewals fail from now on and the lease runs out; forced: it is free at once.
                      LOST: there is none such. `id` is as an answer showed it */
    SIMBA_PUBLISH /* set the note; LOST as for RENEW: then nothing was changed. A store that keeps no
                      notes answers SIMBA_EUNSUPPORTED, or SIMBA_ESCHEMA where something is missing,
                      with a text that says what to do */
};

/* What somebody wants to be hinted of. */
enum simba_interest {
    SIMBA_NO_INTEREST,
    SIMBA_WAITS,   /* that the mutex may have become free */
    SIMBA_OBSERVES /* any change of its owner */
};

/* A mutex that somebody in this client waits for, owns (SIMBA_WAITS as well: it may be evicted) or
 * observes. */
struct simba_watched {
    const char *mutex;
    enum simba_interest interest;
    int64_t seen[4]; /* the store's own: what it last saw of it. 0 at first */
};
typedef void simba_watched_fn(void *data, struct simba_watched *watched);

/* Given to the store by submit(), given back by answer(). All fields but `next` and `store` are
 * the runtime's; the strings live as long as the request. */
struct simba_request {
    enum simba_op op;
    const char *mutex;
    const char *id;                /* the contender; EVICT: the owner; "" for READ and LIST */
    uint64_t token;                /* RENEW, RELEASE, EVICT, PUBLISH */
    bool forced;                   /* EVICT */
    bool others;                   /* CONTEND: others of this client wait for the mutex, too, and do
                                      not ask by themselves: push when it is free again */
    int64_t ttl_ms, transition_ms; /* CONTEND, RENEW: the lease asked for */
    struct simba_request *next;    /* the rest of the batch; then for the store's own lists */
    void *store;                   /* for the store's own use */
    const char *note;              /* PUBLISH: UTF-8, at most SIMBA_NOTE_MAX bytes */
    uint64_t serial;               /* PUBLISH: greater than of every earlier one of the tenure */
    bool with_note;                /* READ, LIST: answer with the note, if notes are kept */
    bool needs_note;               /* READ: and fail as PUBLISH does if they are not */
};

/* A note, as the store knows it. All borrowed for the call. */
struct simba_noted {
    const char *text;
    uint64_t token; /* of the tenure that wrote it; not 0 */
    int64_t
        age_ms; /* since it was written, on the store's clock: never more than it is, as long as that
                       clock does not step */
};

/* The tenure that the store knows after the operation. */
struct simba_answer {
    int code;         /* 0, or SIMBA_ELOST, SIMBA_ESTORE (outcome unknown), SIMBA_EDENIED, …
                         SIMBA_ETIMEOUT, SIMBA_ESTATE: as SIMBA_ESTORE, because it has not answered
                         in time, or lets nobody in for now: see struct simba_trouble */
    bool granted;     /* CONTEND: the tenure began by this very request, or the store knows by
                         other means than the id that it is this contender's */
    const char *id;   /* its owner; NULL or "": nobody. Borrowed for the call */
    uint64_t token;   /* its token; 0: the store does not know (a foreign client's) */
    int64_t left_ms;  /* until its lease ends, never rounded up; 0 without an owner: come again when
                         you like; more: nobody can be granted before */
    int64_t age_ms;   /* since it began; -1: unknown */
    const char *text; /* a failure, or why nobody can be granted yet, in words; without secrets;
                         may be NULL. Borrowed for the call */
    bool more;        /* the next answer comes at once: both can be acted on together */
    bool evicted;     /* this tenure was evicted, and its lease runs out */
    const struct simba_noted *note; /* READ with_note; NULL: there is none. Borrowed for the call */
    int64_t wall_ms; /* READ with_note: the time of day by the store's clock, in ms since
                                       1970 UTC, also if there is no note; 0: unknown */
};

/* What LIST finds. All borrowed for the call. */
struct simba_found {
    const char *mutex;
    const char *id;                 /* NULL or "": nobody owns it */
    uint64_t token;                 /* 0: unknown */
    int64_t left_ms;                /* until the lease ends */
    int64_t age_ms;                 /* since the tenure began; -1: unknown */
    int64_t waiters;                /* how many wait; -1: unknown */
    bool evicted;                   /* this tenure was evicted, and its lease runs out */
    const struct simba_noted *note; /* with_note; NULL: there is none */
};

/* What a program may decide by. The text is for people, and may be said otherwise at any time. */
enum simba_finding_kind {
    SIMBA_FINDING_OTHER,      /* for people only */
    SIMBA_FINDING_TWO_OWNERS, /* two may own a mutex, under the condition that the text names */
    SIMBA_FINDING_TABLE,      /* what the table is like that mutexes are kept in */
    SIMBA_FINDING_LEASE       /* the store keeps leases in a way of its own: the figures */
};

/* What examine() finds. All borrowed for the call. */
struct simba_finding {
    enum simba_finding_kind kind;
    enum simba_level level; /* ERROR: a guarantee does not hold; WARN: it holds under conditions, or
                               is weaker; INFO: why it holds */
    const char *text;
    int64_t lease_ms;  /* LEASE: after a crash it lasts so long from the last renewal */
    int64_t outage_ms; /* LEASE: the store may be away for so long, and no tenure ends */
    uint64_t reserved[4];
};

struct uv_loop_s;
struct simba_url; /* simba_url_* below */

/* What the runtime offers a store. Every function may be called from any thread. */
struct simba_host {
    unsigned version;
    struct uv_loop_s *loop; /* the client's loop; touch it on the loop's thread only */
    int64_t connect_timeout_ms, command_timeout_ms;
    void (*answer)(struct simba_host *host, struct simba_request *request,
                   const struct simba_answer *answer);
    void (*found)(struct simba_host *host, struct simba_request *list,
                  const struct simba_found *found); /* before the answer to that request */
    /* Something may have changed: a reason to ask, never a truth. Of all who wait for the mutex in
     * this client the first one asks. NULL: any mutex; "": of one that is not watched by its name.
     * A store that lends submit and watch: with no lock that these take. */
    void (*hint)(struct simba_host *host, const char *mutex);
    void (*log)(struct simba_host *host, enum simba_level level, const char *line);
    void (*reconnected)(struct simba_host *host); /* for the metrics */
    void (*closed)(struct simba_host *host);      /* after close(): the store is gone, once */
    /* As hint, but only for those who contend under this id. */
    void (*hint_one)(struct simba_host *host, const char *mutex, const char *id);
    void (*say)(struct simba_host *host, struct simba_request *examine,
                const struct simba_finding *finding); /* before the answer to that request */
    /* What anybody wants to hear of the mutex; "": of one that is not watched by its name, that is
     * whether all are observed; NULL: the most of any. For stores that have watch(); SIMBA_WAITS
     * only for those that ask (struct simba_backend). */
    enum simba_interest (*interest)(struct simba_host *host, const char *mutex);
    /* each() for the mutex, if anybody wants to hear of it, or (NULL) for all of which anybody
     * does. Under a lock: each() must not call the host. */
    void (*watched)(struct simba_host *host, const char *mutex, simba_watched_fn *each, void *data);
};

/* What a thread may do for the store in place of the loop's: one that would only wait for that. */
enum simba_lend {
    SIMBA_LEND_NOTHING, /* as without work() */
    SIMBA_LEND_STORE, /* submit and watch, one call at a time, and then work(). So it is from open to
                           close: submit and watch only queue, and never touch the loop */
    SIMBA_LEND_LOOP   /* it may drive the loop for a while, and all the store's functions and
                           callbacks run there. So it is just now: the store waits for nothing but
                           timers of libuv, and for descriptors to become readable that the loop
                           watches already */
};

/* One kind of store. The structure only grows; version says how far it is filled. */
struct simba_backend {
    unsigned version;
    const char *const *schemes; /* of the URLs it serves, NULL at the end */
    const char *const *options; /* query options that it knows, NULL at the end */
    bool queues; /* it remembers who waits: a contender that stops waiting says LEAVE */
    bool asks;   /* host->interest and host->watched know of who waits; else of who observes only */
    bool hands_over; /* where another of the client waits, its CONTEND comes right behind a RELEASE,
                        so that both can be one exchange */
    bool short_ids; /* of a table that others have made: there may be room for 32 bytes only, so ids
                        that are generated are without the host's name */

    /* Starts, without waiting for anything outside; on failure writes what is wrong with the URL
     * into why. On the thread that opens the client. */
    int (*open)(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                size_t why_size);

    /* Names that this store cannot hold get SIMBA_EINVAL and a reason. NULL: takes all. Any
     * thread. */
    int (*check)(void *store, const char *mutex, const char *id, char *why, size_t why_size);

    /* The next three on the loop's thread only, but see enum simba_lend. */
    void (*submit)(void *store, struct simba_request *batch);
    /* The interest in a mutex has changed to this, also in host->interest(); mutex NULL: in all.
     * The function NULL: cannot hint. */
    void (*watch)(void *store, const char *mutex, enum simba_interest interest);
    void (*close)(void *store); /* answers what is open with SIMBA_ECANCELED, then closed() */

    /* NULL, or: what submit has queued may be done now; returns what the store lends. Follows
     * each submit, on the same thread, with no lock of the runtime's; comes at other times, too,
     * on the thread that drives the loop. here: the thread has nothing else to do, so the store
     * may use it, as long as it needs not wait. */
    enum simba_lend (*work)(void *store, bool here);

    /* NULL, or a descriptor, -1: none yet. While any process has it open, the store does not take
     * this client for dead. Any thread. */
    int (*liveness)(void *store);

    /* NULL, or: what an operator should know about this store: say() for each finding, then an
     * answer to the request, which carries the lease that contenders ask for by default. As submit;
     * also when nothing could be exchanged with the store, and to say why. */
    void (*examine)(void *store, struct simba_request *request);
};

/* A store in a file of its own: simba-NAME.so, where NAME is the scheme of its URLs up to a +,
 * defines
 *     const struct simba_backend *simba_module(void); */
#define SIMBA_MODULE_ENTRY "simba_module"

/* Parts of the URL, already checked and decoded; NULL where there is none. */
const char *simba_url_scheme(const struct simba_url *u);
const char *simba_url_user(const struct simba_url *u);
const char *simba_url_password(const struct simba_url *u);
const char *simba_url_path(const struct simba_url *u); /* "" if none */
bool simba_url_host(const struct simba_url *u, size_t n, const char **host, int *port); /* n-th */
const char *simba_url_option(const struct simba_url *u, const char *name);
const char *simba_url_text(const struct simba_url *u); /* to show: secrets blanked */

/* ---- for programs that decide by what a store says of itself ------------------------------- */

/* As simba_diagnose() of simba.h, which shows the levels and the texts of these. */
typedef void simba_examined_fn(void *data, const struct simba_finding *finding);
int simba_examine(simba_client *s, int64_t timeout_ms, simba_examined_fn *each, void *data);

/* ---- for tests: a memory: store that misbehaves -------------------------------------------- */

struct simba_memory_faults {
    size_t size;
    bool hang;             /* requests wait, unapplied and unanswered, until this is false */
    bool fail;             /* every request fails at once with SIMBA_ESTORE, unapplied */
    int64_t delay_ms;      /* answers come this much later */
    unsigned lose_request; /* in a hundred: never applied, fails after the command timeout */
    unsigned lose_answer;  /* in a hundred: applied, but fails after the command timeout */
    unsigned lose_hint;    /* in a hundred */
    unsigned duplicate;    /* in a hundred: applied and answered twice */
    uint64_t seed;         /* of the random numbers for those */
};
#define SIMBA_MEMORY_FAULTS_INIT                                           \
    {                                                                      \
        sizeof(struct simba_memory_faults), false, false, 0, 0, 0, 0, 0, 1 \
    }

/* From now on the store of this URL ("memory:NAME", in this process) behaves so. It exists while a
 * client of it is open. */
int simba_memory_set_faults(const char *url, const struct simba_memory_faults *faults);

#ifdef __cplusplus
}
#endif
#endif
