/* simba.h: at most one owner of a named mutex, in any number of processes, on any machines.
 *
 * One client (simba_client) talks to one store. On it you create
 *   a contender   leader election by callbacks,
 *   a locker      a lock with a timeout, blocking or not,
 *   a scheduler   work that runs again and again, on the leader only,
 *   an observer   who owns a mutex, without contending.
 *
 * Threads: every function may be called from any thread. [blocks] marks those that may wait, at
 *   most their timeout; called where waiting could never end (from a callback of the same handle)
 *   they return SIMBA_EDEADLOCK instead.
 *   Signals do not end a wait; its timeout does, and destroy or simba_close by another thread. None
 *   is a cancellation point.
 * Callbacks may block: leases are renewed meanwhile (but see SIMBA_NO_THREAD). pthread_exit counts
 *   as returned; no C++ exception may leave one (on a thread of ours: std::terminate).
 * Memory: strings and options are copied. The state given to a callback is borrowed for the call.
 *   `data` may be freed in on_closed, or after simba_close returned 0; close frees all handles.
 *   After the call of destroy only the handle's own callbacks may still use it.
 * Results: 0, or a negative enum simba_error; simba_error_text() then says in words what failed in
 *   this thread's last call, on which mutex and store, and what to do.
 * NULL for a client, a handle, a run, a value or a result: SIMBA_EINVAL, false, 0, "", NULL;
 *   should_stop says true; destroy and simba_close do nothing.
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
#define SIMBA_DEFAULT (-1)          /* in options: as the URL says, else the default; 0 is zero */
#define SIMBA_FOREVER INT64_MAX     /* a timeout that never comes; others are 0 or more */
#define SIMBA_MUTEX_MAX 66          /* bytes in the name of a mutex */
#define SIMBA_ID_MAX 128            /* bytes in the id of a contender */
#define SIMBA_NOTE_MAX 1024         /* bytes in a note */
#define SIMBA_TTL_MS 10000          /* default ttl */
#define SIMBA_TRANSITION_MS 6000    /* default transition */
#define SIMBA_LEASE_MIN_MS 50       /* ttl + transition: not below */
#define SIMBA_LEASE_MAX_MS 86400000 /* ttl + transition: not above one day */
#define SIMBA_PERIOD_MAX_MS INT64_C(31622400000) /* period of a schedule: not above 366 days */

/* A lease is ttl + transition: 10 s + 6 s. The owner renews it every ttl / 2. If it cannot, its
 * tenure ends by its own clock, 14.8 s after it sent the last renewal that succeeded: earlier than
 * the lease ends by 1 % (drift_ppm) and a margin of up to 1 s. After 16 s others may own the mutex;
 * they try around that moment, and one of them has it after 17.2 s at the latest. */

/* ---- errors -------------------------------------------------------------------------------- */

#define SIMBA_ERRORS(X)                                         \
    X(INVAL, -1, "invalid argument")                            \
    X(STATE, -2, "not allowed in this status")                  \
    X(TIMEOUT, -3, "not in time")                               \
    X(HELD, -4, "held by another")                              \
    X(LOST, -5, "the lease was lost")                           \
    X(STORE, -6, "store unreachable or failing")                \
    X(DENIED, -7, "refused by the store")                       \
    X(SCHEMA, -8, "table, key or node is not ours")             \
    X(MODULE, -9, "no module for this URL")                     \
    X(UNSUPPORTED, -10, "this store or version cannot do that") \
    X(LIMIT, -11, "out of memory or over a limit")              \
    X(FORKED, -12, "handle of the parent process")              \
    X(DEADLOCK, -13, "would wait for itself")                   \
    X(CANCELED, -14, "ended by cancel, destroy or close")       \
    X(NOTYET, -15, "nobody may own it yet")

#define SIMBA_X(name, code, text) SIMBA_E##name = code,
enum simba_error { SIMBA_ERRORS(SIMBA_X) SIMBA_OK = 0 };
#undef SIMBA_X

const char *simba_strerror(int code);
const char *simba_error_text(void); /* valid until this thread's next failing call */
/* The end of that text: without the mutex and the store that it begins with, where it does. For
 * messages that name them at another place. */
const char *simba_error_cause(void);

/* ---- values -------------------------------------------------------------------------------- */

/* RUNNING: the store has answered. That says nothing about who owns: on_acquired does. */
enum simba_status { SIMBA_INITIAL, SIMBA_STARTING, SIMBA_RUNNING, SIMBA_STOPPING };
enum simba_level { SIMBA_LOG_ERROR, SIMBA_LOG_WARN, SIMBA_LOG_INFO, SIMBA_LOG_DEBUG };

/* Why a state came about. */
enum simba_reason {
    SIMBA_UNCHANGED,
    SIMBA_ACQUIRED, /* a tenure began */
    SIMBA_RELEASED, /* its owner ended it: stop, release, destroy */
    SIMBA_EXPIRED,  /* it could not be renewed in time */
    SIMBA_EVICTED,  /* the store said that it is over */
    SIMBA_STALLED,  /* its owner reported no progress in time, see progress_ms */
    SIMBA_UNSEEN    /* an observer: it is over, and nobody saw why */
};

/* A tenure of a mutex. A plain value; all zero means nobody. The layout is frozen. */
struct simba_owner {
    char id[136];          /* at most SIMBA_ID_MAX bytes and a NUL; as it is, not escaped */
    uint64_t token;        /* fencing token: greater than of every earlier tenure of this mutex */
    int64_t acquired_at;   /* when it began */
    int64_t ttl_at;        /* the owner means to renew before this */
    int64_t transition_at; /* from here on another may own the mutex */
    uint32_t flags;        /* SIMBA_OWNER_* */
    uint32_t reserved32;
    uint64_t reserved[3];
};

#define SIMBA_OWNER_EVICTED \
    1u /* an operator ends this tenure: its renewals fail, its lease runs out */

struct simba_state {
    struct simba_owner before, after;
    enum simba_reason reason;
    uint32_t reserved[7];
};

/* What an owner of the mutex published last: the store keeps it, also when nobody owns the mutex. A
 * plain value; all zero means none. The layout is frozen. */
struct simba_note {
    char text[1032]; /* at most SIMBA_NOTE_MAX bytes of UTF-8 and a NUL; as it is, not escaped */
    uint64_t token;  /* of the tenure that wrote it; 0: there is none */
    int64_t
        written_at; /* on simba_now(): now minus its age on the store's clock. It may be older */
    uint64_t reserved[3];
};

/* What keeps a handle from owning its mutex, or from renewing, apart from another owner. A plain value;
 * all zero means nothing. The layout is frozen. */
struct simba_trouble {
    int32_t code; /* SIMBA_ENOTYET: nobody owns the mutex, and the store grants it to nobody before
                     `until`. Any other: exchanges with the store fail with it; 0: nothing. Of what
                     calls return as SIMBA_ESTORE it says more: SIMBA_ETIMEOUT: it has not answered in
                     time, it may be busy; SIMBA_ESTATE: it is there, and says that it lets nobody in
                     for now, it is full or starting; SIMBA_ESTORE: it is not there, or fails */
    uint32_t reserved32;
    int64_t since;  /* it has been so, with whatever code and text */
    int64_t until;  /* ENOTYET */
    char text[384]; /* why, in words, as far as the store says; a NUL is in it */
    uint64_t reserved[4];
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

/* "500ms", "10s", "5m", "1h", "1d"; a bare number, also "0.5", is in seconds. */
int simba_duration_parse(const char *text, int64_t *ms);

/* Ids for contenders: 0:12345@web1/192.168.1.10-3f9a2c7e, or 32 random hex digits. The size of out
 * is at least SIMBA_ID_MAX + 1. */
int simba_id_host(char *out, size_t size);
int simba_id_uuid(char *out, size_t size);

/* ---- client -------------------------------------------------------------------------------- */

typedef struct simba_client simba_client;
struct simba_event;

/* Options of any size are taken: what an older program does not have is unset. A newer one may have
 * more than this library knows, as long as it does not set it: else SIMBA_EUNSUPPORTED. */

/* Where callbacks run: submit takes run(arg), to be called exactly once, on another thread, and
 * returns 0; it must not block. If it calls run itself, or refuses, a thread of ours does it. */
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
    uint32_t flags; /* SIMBA_NO_THREAD */
    uint32_t reserved32;
    /* NULL: none. Called for one event at a time, on a thread of ours: see "events" below. */
    void (*trace)(void *data, const struct simba_event *event);
    void *trace_data;
    /* Labels of every metric of this client, as Prometheus writes them: app="web",zone="b". NULL:
     * none; 16 and 1024 bytes at most. Clients of one page differ in them. */
    const char *labels;
    uint64_t trace_kinds; /* which events trace is told: SIMBA_EVENT_BIT(kind) of each; 0: all */
};
/* clang-format off */
#define SIMBA_OPTIONS_INIT                                                     \
    {                                                                          \
        sizeof(struct simba_options), -1, -1, -1, -1, -1, NULL, NULL, NULL, 0, \
        0, NULL, NULL, NULL, 0                                                 \
    }
/* clang-format on */

#define SIMBA_NO_THREAD 1u /* you drive the client with simba_poll(), see there */

/* Opens a client. url NULL: $SIMBA_URL (ignored when setuid), else the default store, whose folder
 * is made. Does not wait for the store. */
int simba_open(const char *url, const struct simba_options *options, simba_client **out);

/* The URL of the default store: for root /var/lib/simba/simba.db, else in $STATE_DIRECTORY,
 * $XDG_STATE_HOME/simba or ~/.local/state/simba. SIMBA_EINVAL: there is no such place. */
int simba_default_url(char *out, size_t size);

const char *simba_store_text(const simba_client *s); /* the URL, to show: secrets blanked */

/* A descriptor for children that act for the owner: while one has it open, a store that notices
 * dead clients does not take this one for dead. It stays the client's and is closed on exec: in the
 * child, between fork and exec, dup() it. It can only be read; at its offset is the byte that it has
 * locked: a child that is not trusted gets another open of the file, with the same shared lock.
 * -1: none before the first exchange, or never. */
int simba_liveness_fd(simba_client *s);

/* Who owns the mutex now; all zero when nobody does. [blocks] */
int simba_read(simba_client *s, const char *mutex, int64_t timeout_ms, struct simba_owner *out);

/* The note of the mutex, also when nobody owns it, and with it, in one exchange, who does. owner may
 * be NULL. [blocks] SIMBA_EUNSUPPORTED, SIMBA_ESCHEMA: this store keeps no notes, or not yet. */
int simba_read_note(simba_client *s, const char *mutex, int64_t timeout_ms, struct simba_note *note,
                    struct simba_owner *owner);

/* What the store knows of a mutex. */
struct simba_entry {
    const char *mutex;
    struct simba_owner owner;      /* all zero: nobody */
    int64_t waiters;               /* how many wait for it; -1: the store does not know */
    const struct simba_note *note; /* borrowed for the call; NULL: none */
    uint64_t reserved[3];
};
typedef void simba_entry_fn(void *data, const struct simba_entry *entry);

/* Calls each for every mutex that is owned or waited for and whose name begins with prefix
 * (NULL: all), in no order, on the calling thread, after the store has answered. [blocks] */
int simba_list(simba_client *s, const char *prefix, int64_t timeout_ms, simba_entry_fn *each,
               void *data);

/* Ends a tenure, as an operator: this one, as simba_read or simba_list showed it (its id and
 * token count), or with NULL whichever is on. [blocks] Its renewals fail from now on: a Simba
 * owner that is alive hears of it, ends its work in order and releases; else the lease runs out.
 * forced: the mutex is free at once, so that only whoever checks tokens is safe from the old
 * owner. SIMBA_ELOST: that tenure is over, or nobody owns the mutex. */
int simba_evict(simba_client *s, const char *mutex, const struct simba_owner *tenure, bool forced,
                int64_t timeout_ms);

/* What the store says about itself and how it is set up: ERROR where a guarantee does not hold,
 * WARN where one is weaker or has conditions, INFO for why it holds. Calls each for every line,
 * on the calling thread. Ask after a first exchange. [blocks] SIMBA_EUNSUPPORTED: it has nothing
 * to say. */
typedef void simba_finding_fn(void *data, enum simba_level level, const char *line);
int simba_diagnose(simba_client *s, int64_t timeout_ms, simba_finding_fn *each, void *data);

/* ---- metrics (the functions are below, with all else of the client) */

struct simba_histogram {
    uint64_t count, sum_us, max_us;
    uint64_t bucket[32]; /* bucket[i]: how many took less than 2^i us and did not fit before */
};

/* What has happened since the client was opened. */
struct simba_metrics {
    size_t size;       /* set by the INIT macro: so much is written, 0 where it is not known */
    uint64_t handles;  /* contenders, lockers, schedulers and observers, now */
    uint64_t owned;    /* mutexes that they own, now */
    uint64_t attempts; /* to acquire, asked of the store */
    uint64_t acquisitions;
    uint64_t renewals;                /* asked of the store */
    uint64_t failures;                /* of requests: no answer in time, or an error */
    uint64_t expired;                 /* tenures lost because they could not be renewed in time */
    uint64_t evicted;                 /* tenures lost because the store said so */
    uint64_t reconnects;              /* to the store */
    struct simba_histogram operation; /* from a request to its answer */
    struct simba_histogram handoff;   /* from a push to the acquisition that it led to */
    struct simba_histogram callback_delay; /* how long a callback waited for a thread */
    struct simba_histogram callback;       /* how long it ran */
    uint64_t stalled;                      /* tenures lost because no progress was reported */
    uint64_t runs, runs_failed;            /* of scheduled work; failed: did not return 0 */
    uint64_t events_dropped;               /* because trace did not take them in time */
    struct simba_histogram wait;           /* from start, acquire or the last tenure to the next */
    struct simba_histogram hold;           /* from the beginning of a tenure to its end */
    struct simba_histogram run;            /* how long a run of the work took */
    /* Schedules with ticks that lead, now: */
    uint64_t
        schedules_blocked; /* nothing runs: a tick is claimed that is more than two minutes ahead */
    uint64_t schedules_apart; /* the clock of this machine is so far off that of the store */
};
/* Every INIT macro names no field: C++ before 20 knows no designated initialisers. */
#define SIMBA_HISTOGRAM_INIT \
    {                        \
        0, 0, 0,             \
        {                    \
            0                \
        }                    \
    }
/* clang-format off */
#define SIMBA_METRICS_INIT                                              \
    {                                                                   \
        sizeof(struct simba_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0,        \
        SIMBA_HISTOGRAM_INIT, SIMBA_HISTOGRAM_INIT,                     \
        SIMBA_HISTOGRAM_INIT, SIMBA_HISTOGRAM_INIT, 0, 0, 0, 0,         \
        SIMBA_HISTOGRAM_INIT, SIMBA_HISTOGRAM_INIT, SIMBA_HISTOGRAM_INIT, 0, 0 \
    }
/* clang-format on */
int simba_metrics_read(simba_client *s, struct simba_metrics *out);

/* The same for one handle; its owner gauge and status as they are now. */
struct simba_handle_metrics {
    const char *mutex, *id;   /* borrowed for the call; id "": an observer */
    enum simba_status status; /* a locker: STARTING until it is answered, RUNNING also if held */
    uint32_t reserved32;
    uint64_t token; /* owned with this; 0: not owned */
    uint64_t attempts, acquisitions, renewals, failures, expired, evicted, stalled;
    uint64_t reserved[8];
};
typedef void simba_handle_metrics_fn(void *data, const struct simba_handle_metrics *metrics);

/* Calls each for every handle, in no order, on the calling thread. [blocks] shortly; SIMBA_ETIMEOUT
 * after 5 s, if a callback holds up the loop that must answer (SIMBA_NO_THREAD). */
int simba_metrics_each(simba_client *s, simba_handle_metrics_fn *each, void *data);

/* Writes the metrics of these clients as one page in the text format of Prometheus; returns the
 * length that it has, or would have with more room, or an error. The text is cut, and ends with a
 * NUL, if size is not greater than that. [blocks] shortly. SIMBA_EINVAL also for two clients with
 * the same labels. With SIMBA_PER_HANDLE, how long the exchanges of each handle take is counted from
 * the first such page on. */
#define SIMBA_PER_HANDLE UINT64_C(1) /* also what each handle counts, with its mutex as a label */
int64_t simba_metrics_prometheus(simba_client *const *clients, size_t count, uint64_t flags,
                                 char *out, size_t size);

/* ---- events: what a client does, one by one, for tracing */

enum simba_event_kind {
    SIMBA_EVENT_EXCHANGE, /* a request was answered: name "contend", "renew", "release", "leave",
                             "read", "list", "evict", "publish"; code: SIMBA_EHELD if contend was
                             refused */
    SIMBA_EVENT_ACQUIRED, /* a tenure began; duration: how long it was waited for */
    SIMBA_EVENT_ENDED,    /* is_owner turned false, with reason; duration: how long it lasted */
    SIMBA_EVENT_CALLBACK, /* name "on_acquired", …; duration: how long it ran */
    SIMBA_EVENT_RUN,      /* of scheduled work; code: what it returned, SIMBA_ECANCELED if it ended
                             its thread */
    /* What the log says in words, as facts for programs: */
    /* A handle's exchanges with the store begin to fail, or now fail in another way. text says why, code
     * is as in struct simba_trouble. until: an owner's tenure ends then, unless a renewal succeeds; 0: it is
     * no owner. */
    SIMBA_EVENT_FAILING,
    /* The first exchange after that which succeeded. duration: how long none did, of an owner since its
     * last renewal. until: as above, of an owner's tenure as it is now. */
    SIMBA_EVENT_WORKS,
    /* Nobody owns the mutex, and the store grants it to nobody before until. text: why, if it says so.
     * code: SIMBA_ENOTYET. Again if one of them changes. */
    SIMBA_EVENT_NOT_YET,
    /* The store has answered this client for the first time. duration: since simba_open. Of no mutex. */
    SIMBA_EVENT_REACHED,
    /* The note of the handle's options was not written with the tenure: code, text. Renewals try again,
     * but not after SIMBA_EINVAL and SIMBA_EUNSUPPORTED. */
    SIMBA_EVENT_NOTE_FAILED,
    /* It is written after all. duration: since the tenure began. */
    SIMBA_EVENT_NOTE_PUBLISHED
};
#define SIMBA_EVENT_BIT(kind) (UINT64_C(1) << (kind)) /* for trace_kinds */

/* A plain value, borrowed for the call with its strings. Events come in the order in which what
 * they tell of was over: of a tenure its grant, ACQUIRED, ENDED, its release. Up to 1024 wait for
 * the trace function; what does not fit is dropped and counted. It may call what a callback may. */
struct simba_event {
    enum simba_event_kind kind;
    int32_t code;             /* 0, or what went wrong */
    enum simba_reason reason; /* ENDED */
    uint32_t reserved32;
    const char *name;    /* a constant: what kind of exchange, which callback; else "" */
    const char *mutex;   /* "": all, an exchange of an observer or of simba_list */
    const char *id;      /* of the contender, or whom simba_evict names; "": none */
    uint64_t token;      /* 0: none */
    int64_t began_us;    /* on the clock of simba_now(), in microseconds */
    int64_t duration_us; /* from then on */
    uint64_t dropped;    /* before this one, because trace did not take them in time */
    const char *text;    /* a cause in words, as far as it is known; else "" */
    int64_t until;       /* a point in time, see the kinds; 0: none */
    uint64_t reserved[2];
};

/* Stops every handle, hands over in order, then frees the client and its handles. [blocks]
 * It releases locks that were acquired by the calling thread, or by a thread that has ended since;
 * it waits for locks of other living threads. SIMBA_ETIMEOUT: such a lock, a callback, the log
 * or the trace still goes on, or the store does not answer: nothing is freed yet, call it again. */
int simba_close(simba_client *s, int64_t timeout_ms);

/* ---- in a loop of yours -------------------------------------------------------------------- */

/* A client opened with SIMBA_NO_THREAD has no thread of its own (a store that must block has).
 * Instead, one thread of yours waits for the descriptor to become readable, or for the timeout, and
 * calls simba_poll(), which never waits. The thread that polled last drives the client; before the
 * first poll, the one that opened it. A call of that thread that waits drives the client meanwhile;
 * inside a callback it gets SIMBA_EDEADLOCK, also simba_locker_release: use
 * simba_locker_release_async. If there is no executor of yours, callbacks and the log run inside
 * simba_poll() and inside each such call; while one of them runs, nothing is renewed.
 * Calls of other threads depend on that thread: while nobody polls they return SIMBA_ETIMEOUT in
 * time (acquire, release: SIMBA_ESTORE), and what is granted after that is given back.
 * simba_close takes over, from any thread; stop polling first. */
int simba_poll_fd(simba_client *s); /* or an error; the same for the client's life */

/* Milliseconds from now; it may be more than an int. -1: none, also for a client that cannot be
 * used: simba_poll then says why. Ask after each poll. */
int64_t simba_poll_timeout(simba_client *s);
int simba_poll(simba_client *s);

/* ---- handles ------------------------------------------------------------------------------- */

typedef void simba_state_fn(void *data, const char *mutex, const struct simba_state *state);

/* The tenure ends in left_ms unless a renewal succeeds, or progress is reported. Once for each time
 * that this begins. It may come while on_acquired runs, or waits for a thread, never while
 * on_released runs or after it. */
typedef void simba_endangered_fn(void *data, const char *mutex, int64_t left_ms);

/* What is said of a contender holds for a scheduler, too. An option of another kind of handle is
 * refused, with SIMBA_EINVAL. */
struct simba_handle_options {
    size_t size;                   /* set by the INIT macro */
    const char *id;                /* NULL: as of simba_id_host(). Yours: unique among all that
                                      contend for the mutex, in all processes */
    int64_t ttl_ms, transition_ms; /* SIMBA_DEFAULT: as the client's */
    int64_t initial_delay_ms;      /* before the first try; default 0 */
    int64_t renew_ms;              /* renew this long after a renewal; default ttl / 2 */
    int64_t drain_ms;              /* after stop, and after at_least_ms, the lease is kept this
                                      long for a callback that has not ended; default 30000 */
    int64_t jitter_early_ms;       /* others try from this long before the end of a lease … */
    int64_t jitter_late_ms;        /* … to this long after it; default 200 and 1000 */
    simba_state_fn *on_acquired;   /* contender */
    simba_state_fn *on_released;   /* contender */
    simba_state_fn *on_changed;    /* observer */
    void (*on_closed)(void *data); /* the last callback; data may be freed in it */
    void *data;
    int64_t progress_ms; /* contender: see simba_contender_progress; default: none is asked for */
    int64_t at_least_ms; /* contender, locker: the mutex is kept this long from its
                            acquisition on, unless it is lost. Who ends it earlier does not wait,
                            but on_released and the release come only then, and so does the end of
                            simba_close, which needs a timeout to match; default 0 */
    simba_endangered_fn *on_endangered; /* contender, locker */
    void (*on_stopped)(void *data);     /* contender: a stop is through. Start it again here, or
                                           after a wait for INITIAL; not at both places */
    simba_state_fn *on_lost;            /* locker: the lock was lost while it was held */
    const char *note; /* contender, locker: published with each tenure, before on_acquired is called
                         or the acquire returns. If one attempt fails, that is logged, they come
                         even so, and renewals try again until it is written; default NULL: none */
};
/* clang-format off */
#define SIMBA_HANDLE_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(struct simba_handle_options), NULL, -1, -1, -1, -1, -1, -1, -1, \
        NULL, NULL, NULL, NULL, NULL, -1, -1, NULL, NULL, NULL, NULL           \
    }
/* clang-format on */

/* ---- contender: leader election by callbacks ----------------------------------------------- */

typedef struct simba_contender simba_contender;

int simba_contender_create(simba_client *s, const char *mutex,
                           const struct simba_handle_options *options, simba_contender **out);

/* Begins to contend; allowed in INITIAL only: after a stop in on_stopped, or after a wait for
 * INITIAL. Returns at once: STARTING until the store answers. */
int simba_contender_start(simba_contender *c);

/* Returns at once; allowed in STARTING and RUNNING. Then, in this order: on_released runs, the
 * store is told, the status is INITIAL again, on_stopped runs. It may be called in on_acquired. */
int simba_contender_stop(simba_contender *c);

/* Ends this tenure in order, as stop does, but stays a candidate: it does not try again for
 * pause_ms after the release, whatever the store pushes. Returns at once, also from a callback.
 * SIMBA_ESTATE: not owner. */
int simba_contender_resign(simba_contender *c, int64_t pause_ms);

/* As stop, but the tenure with this token counts as lost, for on_released and the metrics: the program
 * has had to end its work, because that hangs (SIMBA_STALLED), or because it could not act in time on
 * the lease (SIMBA_EXPIRED). SIMBA_ELOST: that tenure is over, and nothing was done. */
int simba_contender_fail(simba_contender *c, uint64_t token, enum simba_reason reason);

/* The owner is getting on with its work. With progress_ms set, the owner says so at least that
 * often, from the acquisition on; else the tenure ends, with SIMBA_STALLED: is_owner says false,
 * nothing is renewed, and others can own the mutex when the lease has ended, or when on_released
 * has returned. It then leaves the mutex to others for one lease. So a worker that hangs loses the
 * mutex, although its process lives.
 * Takes no lock. SIMBA_ELOST: that tenure is over. A scheduler asks for it during runs only. */
int simba_contender_progress(simba_contender *c, uint64_t token);

/* Sets the note of the mutex, in place of the one before: text is UTF-8 of at most SIMBA_NOTE_MAX
 * bytes. The store writes it only while this very tenure lasts, in one step with that check; so also
 * after a stop, until on_released has returned, or the work has. [blocks]
 * SIMBA_ELOST: that tenure is over, nothing was written. SIMBA_ESTORE: the outcome is unknown; it may
 * be written yet, while the tenure lasts, but never over a note of a later call. Any other error:
 * nothing was written, or SIMBA_ECANCELED, as with SIMBA_ESTORE, the client was closed meanwhile. */
int simba_contender_publish(simba_contender *c, uint64_t token, const char *text,
                            int64_t timeout_ms);

/* Waits for a status. [blocks] SIMBA_ECANCELED: destroyed or closed meanwhile. Where the store can
 * never take the start (a name that it refuses), its code. */
int simba_contender_wait(simba_contender *c, enum simba_status until, int64_t timeout_ms);

/* Returns at once, also from a callback; stops first. on_closed comes last. */
void simba_contender_destroy(simba_contender *c);

enum simba_status simba_contender_status(const simba_contender *c);

/* May I act as the owner now? Reads the clock, takes no lock, false the instant the lease ends,
 * whatever hangs, and from the call of stop, destroy or simba_close on, in all threads. owns() asks
 * about one tenure, so that work of an old one is not misled. on_released may come later: after
 * on_acquired has returned, and not while the process is stopped. */
bool simba_contender_is_owner(const simba_contender *c);
bool simba_contender_owns(const simba_contender *c, uint64_t token);
uint64_t simba_contender_token(const simba_contender *c); /* 0: not owner */
/* Time left to act if no renewal succeeds; 0: not owner. The end by progress_ms does not count here:
 * on_endangered tells it. */
int64_t simba_contender_remaining(const simba_contender *c);

const char *simba_contender_id(const simba_contender *c);
/* As the last answer, or the lack of one, has it. Does not ask the store. */
int simba_contender_trouble(const simba_contender *c, struct simba_trouble *out);
void simba_contender_state(const simba_contender *c, struct simba_state *out);

/* ---- locker: a lock ------------------------------------------------------------------------ */

typedef struct simba_locker simba_locker;

int simba_locker_create(simba_client *s, const char *mutex,
                        const struct simba_handle_options *options, simba_locker **out);

/* One thread at a time, not reentrant: SIMBA_ESTATE while it is held or awaited. [blocks]
 * Another thread may release it. simba_close waits for the thread that acquired it, while that
 * lives. timeout 0 does not wait for another owner: SIMBA_EHELD. It waits for the answer of the
 * store, command_timeout_ms at most, and as long for what ends soon: a mutex that has just been
 * released can be reserved for a moment.
 * Why it is not acquired: SIMBA_ETIMEOUT: in that time the store said that another owns it.
 * SIMBA_ENOTYET: nobody owns it, and nobody may yet: the store may have forgotten owners, see
 * simba_locker_trouble. SIMBA_ESTORE, SIMBA_EDENIED, …: the store never answered, or refuses. So only
 * EHELD and ETIMEOUT mean that another has the mutex. */
int simba_locker_acquire(simba_locker *l, int64_t timeout_ms);

/* The same without waiting: returns at once, and if that is 0, done is called exactly once with
 * what simba_locker_acquire would have returned; simba_error_text() in it says it in words. It
 * comes where callbacks do, before every other callback of this locker, never beside one (except
 * on_endangered), and may call all that a callback may, also the asynchronous calls of its own
 * locker. While it runs, destroy and simba_close do not give the lock back. For simba_close, the
 * thread of this call is the one that acquired; of a call in a callback none is, and simba_close
 * waits for the release. */
typedef void simba_done_fn(void *data, int code);
int simba_locker_acquire_async(simba_locker *l, int64_t timeout_ms, simba_done_fn *done,
                               void *data);

/* Ends a wait, from any thread, and returns at once. That acquire ends with SIMBA_ECANCELED, and
 * what the store grants meanwhile is given back; or with 0, because the grant was first, and the
 * lock is held. The locker can be acquired again.
 * SIMBA_ESTATE: nobody waits, or the outcome is known; nothing happens, the next acquire waits
 * as usual. Not for signal handlers (it takes a lock), but for a thread that calls sigwait. */
int simba_locker_cancel(simba_locker *l);

/* Ends the tenure and tells the store. [blocks] for command_timeout at most.
 * SIMBA_ELOST: it had ended before, the work was not protected to its end.
 * SIMBA_ESTORE: released here, but the store could not be told; it is tried twice more, and
 * gives the mutex to others at the end of the lease at the latest.
 * With at_least_ms: not held from now on, and 0; the store is told when that time is over. Until
 * then an acquire waits, and so does simba_close. */
int simba_locker_release(simba_locker *l);

/* The same without waiting; done as above, or NULL. Not held from the call on. */
int simba_locker_release_async(simba_locker *l, simba_done_fn *done, void *data);

/* As simba_contender_publish, for the lock that is held now. SIMBA_ESTATE: it is not held. [blocks] */
int simba_locker_publish(simba_locker *l, const char *text, int64_t timeout_ms);

bool simba_locker_is_held(const simba_locker *l);      /* reads the clock, takes no lock */
uint64_t simba_locker_token(const simba_locker *l);    /* 0: not held, or lost */
int64_t simba_locker_remaining(const simba_locker *l); /* time left to act; 0: as above */
const char *simba_locker_id(const simba_locker *l);
/* As that of a contender; of one that does not wait and is not held, as it was in its last wait. */
int simba_locker_trouble(const simba_locker *l, struct simba_trouble *out);
void simba_locker_destroy(simba_locker *l); /* returns at once; the release goes on behind it */

/* ---- observer: watches without contending -------------------------------------------------- */

typedef struct simba_observer simba_observer;

/* on_changed tells what is known first, also that nobody owns the mutex, and then every change. If
 * several changes come while it runs, you are told only the latest, and never an older token after
 * a newer one. It is as quick as the store can push, else it is told when the lease that it knows
 * of ends. A change from one owner to the next is told as two: an end, then a beginning. The reason
 * of an end is what can be seen from outside: SIMBA_EVICTED if the tenure was seen with
 * SIMBA_OWNER_EVICTED; SIMBA_RELEASED if it was found gone before its lease could end (also after a
 * stall whose on_released has returned, after an eviction by force, or a death that the store has
 * noticed); SIMBA_EXPIRED if its lease ran out, unrenewed, while it was looked at. SIMBA_UNSEEN if
 * nobody knows: the observer could not ask the store in the last tenth of the lease that it knew of.
 * mutex NULL: all of the store. Then it is first told of those that are owned, and calls for
 * different mutexes may come at the same time. */
int simba_observer_create(simba_client *s, const char *mutex,
                          const struct simba_handle_options *options, simba_observer **out);
void simba_observer_state(const simba_observer *w, struct simba_state *out); /* of one mutex */

/* The note as it was when the observer last asked the store, of one mutex; it asks again when the
 * owner changes, and when the lease that it knows of ends. Its token says whether the owner wrote it,
 * or one before. on_changed is not called for a note alone. SIMBA_ESTATE: this observer is of all
 * mutexes. */
int simba_observer_note(const simba_observer *w, struct simba_note *out);
void simba_observer_destroy(simba_observer *w); /* returns at once; on_closed comes last */

/* ---- scheduler: work that runs on the leader only ------------------------------------------ */

/* When a run is due. */
enum simba_pace {
    SIMBA_FIXED_RATE,  /* whole periods after the first. What falls into a run that takes longer is
                          skipped: nothing piles up, the phase stays. Every tenure begins anew, with
                          the initial delay; but see SIMBA_KEEP_PHASE */
    SIMBA_FIXED_DELAY, /* one period after the end of the last run; every tenure begins anew */
    SIMBA_CRON         /* by the wall clock, as a crontab says: ticks */
};

/* What becomes of ticks that nobody has run: nobody led, or the run before took too long. A tick for
 * which a leader has waited runs, even if its thread comes late; and so does the last one that came
 * up to two leases before a new leader. What is not run is logged. */
enum simba_missed {
    SIMBA_MISSED_SKIP, /* they are not run: the next is the first in the future */
    SIMBA_MISSED_ONCE, /* one run for all of them, with the time of the last */
    SIMBA_MISSED_ALL   /* each of them, in order; of more than 1,000 the last 1,000 */
};

struct simba_schedule {
    size_t size;              /* set by the INIT macro */
    enum simba_pace pace;     /* default SIMBA_FIXED_RATE */
    int64_t period_ms;        /* must be set, but not with SIMBA_CRON; at least 1 */
    int64_t initial_delay_ms; /* from the end of on_acquired to the first run; default 0 */
    int64_t unused_ms;        /* leave it unset: programs of 0.1 have at_least_ms here */
    const char *cron;         /* SIMBA_CRON: "30 3 * * mon-fri": minute, hour, day of the month,
                                 month, day of the week; or "@daily" and the like */
    const char *zone;         /* of cron: "Europe/Berlin", below /usr/share/zoneinfo; NULL: UTC */
    enum simba_missed missed; /* of ticks; default SIMBA_MISSED_SKIP */
    uint32_t flags;           /* of ticks: SIMBA_KEEP_PHASE, SIMBA_AT_LEAST_ONCE */
};
#define SIMBA_SCHEDULE_INIT                                                      \
    {                                                                            \
        sizeof(struct simba_schedule), SIMBA_FIXED_RATE, -1, -1, -1, NULL, NULL, \
            SIMBA_MISSED_SKIP, 0                                                 \
    }

/* Ticks: with SIMBA_CRON, and with SIMBA_FIXED_RATE and SIMBA_KEEP_PHASE, every run has a nominal
 * time on the wall clock. The leader claims it in the note of the mutex, only upwards, and the next
 * leader goes on after that: no tick runs twice, and a change of leader shifts nothing. Ticks of cron
 * count from the first leader of all on. The first tick of a period is when that one begins; later
 * ones are whole periods after it. A schedule that was changed begins anew.
 * Wall clocks may differ and step: a leader whose clock is behind waits until its clock has passed
 * what is claimed. One whose clock is more than two minutes off the store's goes by the store's. A
 * claim that is so far ahead even so is logged as long as nothing runs, and counted
 * (schedules_blocked). If the note is not of a schedule, nothing runs: that is logged as an error, and
 * the contender stops. The note is the scheduler's: simba_contender_publish() is SIMBA_ESTATE. */
#define SIMBA_KEEP_PHASE 1u /* with SIMBA_FIXED_RATE: ticks */
/* The note also says when a run has ended: one that ends with its leader is repeated, whatever `missed`
 * says. Else a tick runs at most once. A work that returns SIMBA_ECANCELED was not done: its tick is
 * repeated, too, after half a second, or by the next leader. */
#define SIMBA_AT_LEAST_ONCE 2u

/* The first tick later than after_ms, in milliseconds since 1970 UTC: of a period, as if after_ms were
 * its last tick. offset_s, which may be NULL: how many seconds clocks in the zone are ahead of UTC then.
 * SIMBA_EINVAL: the schedule has no ticks, or is wrong: simba_error_text() says how. *tick_ms is
 * INT64_MAX: none before the year 10000. */
int simba_schedule_next(const struct simba_schedule *schedule, int64_t after_ms, int64_t *tick_ms,
                        int32_t *offset_s);

typedef struct simba_scheduler simba_scheduler;
typedef struct simba_run simba_run; /* one run of the work; borrowed for the call */

/* The work. It returns 0, or anything else if it has failed: that is logged, ends this run and not
 * the schedule, as do pthread_exit and cancellation. It may call all that a callback may, also stop
 * and destroy its own scheduler. It must not let a C++ exception escape. */
typedef int simba_work_fn(void *data, const simba_run *run);

/* A contender with work, which it does while it leads, on threads that all schedulers of the client
 * share (simba-work):
 *     on_acquired, work, work, …, on_released
 * in this order, never two at once, whatever is lost, stopped and started again. Work and
 * callbacks get the data of the options; the callbacks come where callbacks do. Each run begins
 * as the owner. When the tenure ends, no further run begins, one that is at work sees
 * simba_run_should_stop(), and on_released comes after it; before that the mutex is not released
 * (up to drain_ms, as for a callback).
 * If no thread can be had, that is logged and the contender stops, so that others can lead. */
int simba_scheduler_create(simba_client *s, const char *mutex,
                           const struct simba_schedule *schedule, simba_work_fn *work,
                           const struct simba_handle_options *options, simba_scheduler **out);

/* To start, stop, wait for and ask; it is the scheduler's, and goes with it. */
simba_contender *simba_scheduler_contender(simba_scheduler *x);

/* Returns at once, also from the work; stops first. on_closed comes last. */
void simba_scheduler_destroy(simba_scheduler *x);

/* Has the leadership of this run ended? Reads the clock, takes no lock; a work that takes long asks
 * often, and ends soon after it hears true. */
bool simba_run_should_stop(const simba_run *run);
uint64_t simba_run_token(const simba_run *run); /* of the tenure, for fencing */
int64_t simba_run_tick(const simba_run *run);   /* nominal, in ms since 1970 UTC; 0: has none */

/* Sleeps for ms, or until the run should stop; says what should_stop then says. */
bool simba_run_wait(const simba_run *run, int64_t ms);

#ifdef __cplusplus
}
#endif
#endif
