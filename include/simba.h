/* simba.h: at most one owner of a named mutex, in any number of processes, on any machines.
 *
 * One client (struct simba) talks to one store. On it you create
 *   a contender   leader election by callbacks,
 *   a locker      a blocking lock with a timeout.
 *
 * Threads: every function may be called from any thread. [blocks] marks those that may wait, at
 *   most their timeout; called where waiting could never end (from a callback of the same handle)
 *   they return SIMBA_EDEADLOCK instead.
 * Memory: strings and options are copied. `data` is borrowed until on_closed. The state given to
 *   a callback is borrowed for the call. destroy(NULL) does nothing.
 * Results: 0, or a negative enum simba_error; simba_error_text() then says in words what failed in
 *   this thread's last call, on which mutex and store, and what to do.
 * Times: milliseconds. Points in time are on simba_now(), which goes on while the machine sleeps.
 * fork: in the child every handle of the parent is not-owner and refuses with SIMBA_EFORKED. */
#ifndef SIMBA_H
#define SIMBA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMBA_VERSION 0x000100      /* 0.1.0 */
#define SIMBA_DEFAULT (-1)          /* a duration: as the URL says, else the default; 0 is zero */
#define SIMBA_FOREVER INT64_MAX     /* a timeout that never comes */
#define SIMBA_MUTEX_MAX 66          /* bytes in the name of a mutex */
#define SIMBA_ID_MAX 128            /* bytes in the id of a contender */
#define SIMBA_TTL_MS 10000          /* default ttl */
#define SIMBA_TRANSITION_MS 6000    /* default transition */
#define SIMBA_LEASE_MIN_MS 50       /* ttl + transition: not below */
#define SIMBA_LEASE_MAX_MS 86400000 /* ttl + transition: not above one day */

/* ---- errors ------------------------------------------------------------------------------- */

#define SIMBA_ERRORS(X)                              \
    X(INVAL, -1, "invalid argument")                 \
    X(STATE, -2, "not allowed in this status")       \
    X(TIMEOUT, -3, "not in time")                    \
    X(HELD, -4, "held by another")                   \
    X(LOST, -5, "the lease was lost")                \
    X(STORE, -6, "store unreachable or failing")     \
    X(DENIED, -7, "refused by the store")            \
    X(SCHEMA, -8, "table, key or node is not ours")  \
    X(MODULE, -9, "no module for this URL")          \
    X(UNSUPPORTED, -10, "this store cannot do that") \
    X(LIMIT, -11, "out of memory or over a limit")   \
    X(FORKED, -12, "handle of the parent process")   \
    X(DEADLOCK, -13, "would wait for itself")        \
    X(CANCELED, -14, "ended by close")

#define SIMBA_X(name, code, text) SIMBA_E##name = code,
enum simba_error { SIMBA_ERRORS(SIMBA_X) SIMBA_OK = 0 };
#undef SIMBA_X

const char *simba_strerror(int code);
const char *simba_error_text(void); /* valid until this thread's next failing call */

/* ---- values -------------------------------------------------------------------------------- */

enum simba_status { SIMBA_INITIAL, SIMBA_STARTING, SIMBA_RUNNING, SIMBA_STOPPING };
enum simba_level { SIMBA_LOG_ERROR, SIMBA_LOG_WARN, SIMBA_LOG_INFO, SIMBA_LOG_DEBUG };

/* Why a state came about. */
enum simba_reason {
    SIMBA_UNCHANGED,
    SIMBA_ACQUIRED, /* a tenure began */
    SIMBA_RELEASED, /* its owner ended it: stop, release, destroy */
    SIMBA_EXPIRED,  /* it could not be renewed in time */
    SIMBA_EVICTED   /* the store said that it is over */
};

/* A tenure of a mutex. A plain value; all zero means nobody. The layout is frozen. */
struct simba_owner {
    char id[136];          /* at most SIMBA_ID_MAX bytes and a NUL */
    uint64_t token;        /* fencing token: greater than that of every earlier tenure */
    int64_t acquired_at;   /* when it began */
    int64_t ttl_at;        /* the owner means to renew before this */
    int64_t transition_at; /* from here on another may own the mutex */
    uint64_t reserved[4];
};

struct simba_state {
    struct simba_owner before, after;
    enum simba_reason reason;
    uint32_t reserved[7];
};

bool simba_owner_is(const struct simba_owner *o, const char *id);
bool simba_owner_exists(const struct simba_owner *o, int64_t now); /* before transition_at */
bool simba_owner_in_ttl(const struct simba_owner *o, int64_t now);
bool simba_owner_in_transition(const struct simba_owner *o, int64_t now); /* past ttl, exists */
bool simba_state_changed(const struct simba_state *s);                    /* another tenure */
bool simba_state_acquired(const struct simba_state *s, const char *id);
bool simba_state_released(const struct simba_state *s, const char *id);

/* ---- helpers ------------------------------------------------------------------------------- */

const char *simba_version(void);
int64_t simba_now(void);                /* CLOCK_BOOTTIME */
int64_t simba_wall_ms(int64_t boot_ms); /* that point as milliseconds since 1970, for display */

/* "500ms", "10s", "5m", "1h"; a bare number, also "0.5", is in seconds. */
int simba_duration_parse(const char *text, int64_t *ms);

/* Ids for contenders: 0:12345@192.168.1.10-3f9a2c7e, or 32 random hex digits. The size of out
 * is at least SIMBA_ID_MAX + 1. */
int simba_id_host(char *out, size_t size);
int simba_id_uuid(char *out, size_t size);

/* ---- client -------------------------------------------------------------------------------- */

typedef struct simba simba;

/* Where callbacks run: submit returns 0 once it has taken run(arg), to be called exactly once, on
 * any thread but the caller's. */
struct simba_executor {
    void *data;
    int (*submit)(void *data, void (*run)(void *arg), void *arg);
};

struct simba_options {
    size_t size; /* set by the INIT macro */
    int64_t ttl_ms, transition_ms;
    int64_t connect_timeout_ms, command_timeout_ms;
    int64_t drift_ppm; /* how far two clocks may run apart, in millionths; default 10000 */
    const struct simba_executor *executor; /* copied; NULL: our own elastic threads */
    /* NULL: silent. Called for one line at a time, on a thread of ours. */
    void (*log)(void *data, enum simba_level level, const char *line);
    void *log_data;
};
#define SIMBA_OPTIONS_INIT                                                 \
    {                                                                      \
        sizeof(struct simba_options), -1, -1, -1, -1, -1, NULL, NULL, NULL \
    }

/* Opens a client. url NULL: $SIMBA_URL (ignored when setuid), else the default store, whose folder
 * is made. Does not wait for the store. */
int simba_open(const char *url, const struct simba_options *options, simba **out);

/* The URL of the default store: for root /var/lib/simba/simba.db, else in $STATE_DIRECTORY,
 * $XDG_STATE_HOME/simba or ~/.local/state/simba. SIMBA_EINVAL: there is no such place. */
int simba_default_url(char *out, size_t size);

const char *simba_store_text(const simba *s); /* the URL, to show: secrets blanked */

/* A descriptor to hand on to processes that act for the owner: while any of them has it open, a store
 * that can tell dead clients from living ones does not take this client for dead. It stays the
 * client's. -1: none yet (there is one after the first exchange), or the store has none. */
int simba_liveness_fd(simba *s);

/* Who owns the mutex now; all zero when nobody does. [blocks] */
int simba_read(simba *s, const char *mutex, int64_t timeout_ms, struct simba_owner *out);

/* Stops every handle, hands over in order, then frees the client and its handles. [blocks]
 * A lock that the calling thread has acquired is released.
 * SIMBA_ETIMEOUT: a callback or the log still runs, or another thread holds a lock: nothing is freed
 * yet, call it again. */
int simba_close(simba *s, int64_t timeout_ms);

/* ---- handles ------------------------------------------------------------------------------- */

typedef void simba_state_fn(void *data, const char *mutex, const struct simba_state *state);

struct simba_handle_options {
    size_t size;                   /* set by the INIT macro */
    const char *id;                /* NULL: simba_id_host(). Your own must be unique (docs) */
    int64_t ttl_ms, transition_ms; /* SIMBA_DEFAULT: as the client's */
    int64_t initial_delay_ms;      /* before the first try; default 0 */
    int64_t renew_ms;              /* renew this long after a renewal; default ttl / 2 */
    int64_t drain_ms;              /* how long a lease is kept for a callback that does not end
                                      after stop; default 30000 */
    int64_t jitter_early_ms;       /* others try from this long before the end of a lease … */
    int64_t jitter_late_ms;        /* … to this long after it; default 200 and 1000 */
    simba_state_fn *on_acquired;   /* contender */
    simba_state_fn *on_released;   /* contender; of a locker: the lock was lost while held */
    void (*on_closed)(void *data); /* the last callback; data may be freed in it */
    void *data;
};
/* clang-format off */
#define SIMBA_HANDLE_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(struct simba_handle_options), NULL, -1, -1, -1, -1, -1, -1, -1, \
        NULL, NULL, NULL, NULL                                                 \
    }
/* clang-format on */

/* ---- contender: leader election by callbacks ----------------------------------------------- */

typedef struct simba_contender simba_contender;

int simba_contender_create(simba *s, const char *mutex, const struct simba_handle_options *options,
                           simba_contender **out);

/* Begins to contend; allowed in INITIAL only. STARTING until the store has answered once. */
int simba_contender_start(simba_contender *c);

/* Returns at once; allowed in STARTING and RUNNING. Then, in this order: on_released runs, the
 * store is told, the status is INITIAL again. */
int simba_contender_stop(simba_contender *c);

/* Waits for a status. [blocks] SIMBA_ECANCELED: destroyed or closed meanwhile. Where the store can
 * never take the start (a name that it refuses), its code. */
int simba_contender_wait(simba_contender *c, enum simba_status until, int64_t timeout_ms);

/* Returns at once, also from a callback; stops first. on_closed comes last. */
void simba_contender_destroy(simba_contender *c);

enum simba_status simba_contender_status(const simba_contender *c);

/* May I act as the owner now? Reads the clock, takes no lock, false the instant the lease ends,
 * whatever hangs. owns() asks about one tenure, so that work of an old one is not misled. */
bool simba_contender_is_owner(const simba_contender *c);
bool simba_contender_owns(const simba_contender *c, uint64_t token);
uint64_t simba_contender_token(const simba_contender *c);    /* 0: not owner */
int64_t simba_contender_remaining(const simba_contender *c); /* time left to act; 0: not owner */

const char *simba_contender_id(const simba_contender *c);
void simba_contender_state(const simba_contender *c, struct simba_state *out);

/* ---- locker: a blocking lock --------------------------------------------------------------- */

typedef struct simba_locker simba_locker;

int simba_locker_create(simba *s, const char *mutex, const struct simba_handle_options *options,
                        simba_locker **out);

/* One thread at a time, not reentrant: SIMBA_ESTATE while it is held or awaited. [blocks]
 * timeout 0 asks the store once: SIMBA_EHELD if another owns the mutex.
 * SIMBA_ETIMEOUT: not in time. SIMBA_ESTORE, SIMBA_EDENIED, …: the store never answered. */
int simba_locker_acquire(simba_locker *l, int64_t timeout_ms);

/* Ends the tenure and tells the store. [blocks] for one exchange at most.
 * SIMBA_ELOST: it had ended before, the work was not protected to its end.
 * SIMBA_ESTORE: released here, but the store could not be told; it is tried twice more, and gives the
 * mutex to others at the end of the lease at the latest. */
int simba_locker_release(simba_locker *l);

bool simba_locker_is_held(const simba_locker *l); /* reads the clock, takes no lock */
uint64_t simba_locker_token(const simba_locker *l);
int64_t simba_locker_remaining(const simba_locker *l);
const char *simba_locker_id(const simba_locker *l);
void simba_locker_destroy(simba_locker *l); /* returns at once; releases first */

#ifdef __cplusplus
}
#endif
#endif
