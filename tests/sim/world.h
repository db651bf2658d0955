/* world.h: a small world in which clients contend for mutexes in a store, with every fault that we
 * can name. The clients run the shipped machines of src/core; everything around them is simulated:
 * time, network, store, threads, users. One seed decides all of it.
 *
 * Time: `now` is true time, in nanoseconds. Each client has a clock of its own that runs a little
 * fast or slow; the store's clock is true time.
 *
 * A world can also be scripted (scenarios/): then nothing is left to chance, every length of time
 * is the least possible, and a fault strikes only when the script has called for it. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "core/handle.h"
#include "core/view.h"
#include "ticker.h"

#define NODES_MAX 16
#define MUTEXES 2
#define MEMBERS_MAX 64 /* of a session store's queue; more are refused */
#define MS NS_PER_MS
#define NAME(n) ('A' + (n)->index) /* of a client, in traces */

/* ---- faults -------------------------------------------------------------------------------- */

#define FAULTS(X)                               \
    X(LOSE_REQUEST, "request lost")             \
    X(LOSE_REPLY, "reply lost")                 \
    X(DELAY_REQUEST, "request late")            \
    X(DELAY_REPLY, "reply late")                \
    X(DUPLICATE, "request duplicated")          \
    X(REPEAT_REPLY, "reply duplicated")         \
    X(FAIL, "error instead of an answer")       \
    X(LOSE_HINT, "push lost")                   \
    X(LATE_HINT, "push late")                   \
    X(FORGE_HINT, "push forged")                \
    X(PAUSE, "client stopped")                  \
    X(SUSPEND, "machine suspended")             \
    X(CRASH, "client killed")                   \
    X(LAG, "loop delayed")                      \
    X(SLOW_CALLBACK, "callback slow")           \
    X(HANG_CALLBACK, "callback hangs")          \
    X(LATE_CALLBACK, "callback queued long")    \
    X(REENTER, "callback calls stop or start")  \
    X(STOP, "stopped by its user")              \
    X(LEAVE, "caller gone without a result")    \
    X(EVICT, "evicted")                         \
    X(FORCE, "evicted by force")                \
    X(RESTART, "store restarted")               \
    X(FORGET, "store restarted without memory") \
    X(PREEMPT, "reader of is_owner preempted")  \
    X(STALL, "worker stalls")                   \
    X(OLD_WORKER, "worker of an old tenure")    \
    X(RESIGN, "resigned by its user")           \
    X(KEEP_NODE, "node deleted but still there")

#define FAULT_X(name, text) FAULT_##name,
enum fault { FAULTS(FAULT_X) FAULT_COUNT };
#undef FAULT_X

enum column { /* the state of the machine that a fault hits */
              COLUMN_IDLE,
              COLUMN_CONTENDING,
              COLUMN_HOLDING,
              COLUMN_DRAINING,
              COLUMN_ENDED,
              COLUMN_RETURNING,
              COLUMN_COUNT
};

struct tally {
    uint64_t fault[FAULT_COUNT][COLUMN_COUNT];
    uint64_t events, faults, tenures, handovers, adoptions, losses, reads, takeovers;
    uint64_t stalls, stall_takeovers, resignations, warnings;
    uint64_t ticks, claims; /* runs of ticks; notes that the store has taken */
    int64_t simulated;      /* ns */
};

/* ---- messages ------------------------------------------------------------------------------ */

/* Between a client and the server of zookeeper.h. */
enum packet_op {
    PACKET_CONNECT,
    PACKET_CREATE,
    PACKET_STAT,
    PACKET_DELETE,
    PACKET_LIST,
    PACKET_GET,
    PACKET_WRITE, /* what keeps a session */
    PACKET_TOUCH, /* a read, which does not */
    PACKET_READ,
    PACKET_WATCH,  /* a watch from before, on a new connection */
    PACKET_GONE,   /* a watch fires: that node is deleted */
    PACKET_CHANGED /* a watch fires: the data of that node is another */
};

#define PACKET_NAME_SIZE 64

struct packet {
    uint8_t op, rc; /* enum latch_reply */
    bool watch;
    uint32_t serial, connection, list;
    int64_t session, owner, czxid;
    char name[PACKET_NAME_SIZE], data[32];
};

struct message {
    struct lease_request request;
    uint32_t life; /* of the client that sent it */
    uint8_t mutex;
    char id[24];
    int64_t lease;
    uint32_t node_number; /* session store: the node that it is about */
    /* the answer */
    int code;
    bool granted;
    char owner[24];
    uint64_t token;
    int64_t left;
    struct packet packet;
};

enum event_kind {
    EVENT_ARRIVE,        /* a request reaches the store */
    EVENT_REPLY,         /* an answer reaches the client */
    EVENT_HINT,          /* a push reaches the client */
    EVENT_TICK,          /* a client's alarm */
    EVENT_DISPATCH,      /* the executor begins a callback */
    EVENT_RETURN,        /* a callback returns */
    EVENT_USER,          /* a user does something */
    EVENT_NOTE,          /* the loop sees that the user has stopped the handle */
    EVENT_REBOOT,        /* a killed client starts again */
    EVENT_READ_CLOCK,    /* a reader of is_owner, after loading the deadline, reads the clock */
    EVENT_READ_END,      /* and then looks at the deadline again */
    EVENT_REPORT,        /* a worker says that it gets on; message: the token of its tenure */
    EVENT_REPORTED,      /* and has stored that; message.left: the time that it read */
    EVENT_WARN,          /* the executor begins on_endangered */
    EVENT_WARNED,        /* it returns */
    EVENT_FAULT,         /* some fault strikes */
    EVENT_EXPIRE,        /* the store looks whether a session has ended */
    EVENT_AT_SERVER,     /* zookeeper: a request reaches the server */
    EVENT_AT_CLIENT,     /* zookeeper: an answer or a watch reaches the client */
    EVENT_BEAT,          /* zookeeper: a timer of the client's connection or session */
    EVENT_TICKER,        /* ticks: an alarm of a leader */
    EVENT_NOTE_AT_STORE, /* ticks: a request about the note reaches the store */
    EVENT_NOTE_REPLY     /* ticks: its answer reaches the client */
};

struct event {
    struct event *link; /* in the list of spare ones */
    int64_t at;
    uint64_t order; /* breaks ties: first posted, first done */
    uint8_t kind, node;
    uint32_t life;
    struct message message;
};

/* ---- a client ------------------------------------------------------------------------------ */

struct node {
    struct handle machine;
    struct handle_extra extra;
    struct view view;            /* what is_owner() reads */
    _Atomic int64_t reported_at; /* progress */
    char id[24];
    uint8_t index, mutex, kind;
    const char *chosen;     /* the id that its user gave it; NULL: a generated one */
    bool alive, frozen;     /* frozen: suspended, so that messages are lost */
    int64_t stopped_until;  /* the whole process */
    uint32_t life;          /* counts crashes: what belongs to an earlier one is void */
    int64_t skew, rate_ppm; /* local = skew + true * (1 + rate) */
    int64_t drain;          /* its limit for user code that does not end */
    int64_t tick_at;        /* true time of the alarm that counts; NEVER: none */
    int64_t lag_until;      /* the loop is busy until then */
    bool hanging;           /* its callback ends only when the faults do */

    /* what it asks for beyond what all have; 0 and false: nothing */
    bool has_extra, tells_danger, tells_stopped, has_note;
    int64_t progress, at_least;

    /* its worker, and on_endangered */
    int64_t silent_until;       /* true time; it is stuck until then */
    int64_t progress_at;        /* local time of what counts: its last report, or its beginning */
    bool warning, warning_runs; /* queued or running; running */
    bool warned;                /* since the last renewal */
    uint64_t warning_token;
    int64_t halted_at; /* until when its process or loop stood still last */

    /* the executor */
    enum handle_callback callback;      /* queued or running */
    bool running;                       /* begun */
    bool skipped;                       /* outdated when its turn came */
    int64_t callback_at;                /* when it began */
    enum simba_reason reason;           /* that it is told */
    enum handle_callback last_callback; /* that really ran */
    uint64_t callback_token;

    /* its user has stopped, closed or left it, which the loop has not seen; HANDLE_EXPIRE: has not */
    enum handle_event_kind note;
    int64_t note_pause; /* of a resignation: local length */
    uint64_t note_token;

    /* the user of a locker */
    bool user_waits, user_holds, user_leaves;

    /* a reader of is_owner */
    bool reading, read_truth;
    struct view_reading reader;
    int64_t read_clock;

    uint64_t noted;     /* token of its last note in the store */
    uint64_t published; /* token of the tenure that is_owner shows; 0: none */
    bool forced;        /* that tenure was ended by force: only its token protects */

    int64_t began_at; /* its tenure */
    int64_t began_local;
    uint64_t last_token;   /* of its last tenure */
    bool lost;             /* that was */
    int64_t renewed_until; /* local time: its end as of the last renewal */
    bool was_short;        /* hardly an attempt to renew fitted into what that left */
    int64_t pause_until;   /* local time: who has resigned or stalled does not contend before */
    int64_t trouble_until; /* its exchanges with the store are disturbed until then */
    uint32_t node_number;  /* which node of ours is in the session store's queue; 0: none */
    uint32_t joins;        /* how often it joined */
    int64_t last_arrival;  /* session store: its requests keep their order */
    struct ticker ticker;
};

/* ---- stores -------------------------------------------------------------------------------- */

struct lease_record { /* as Redis and SQL keep it */
    char owner[24];
    uint64_t token, fence;
    int64_t until;
    bool evicted;
};

struct member { /* an ephemeral sequential node */
    char id[24];
    uint64_t token; /* czxid */
    uint8_t node;
    uint32_t life, node_number; /* the process that made it, and which of its nodes it is */
};

struct session { /* of a process */
    bool alive;
    uint32_t life;
    int64_t until;
};

struct store {
    bool sessions; /* which of the two */
    struct lease_record lease[MUTEXES];
    struct member member[MUTEXES][MEMBERS_MAX];
    size_t members[MUTEXES];
    struct session session[NODES_MAX];
    uint64_t zxid;
    uint64_t note[MUTEXES]; /* the token that the note was written with; 0: none */
    int64_t grace_until;    /* after it lost its memory: grants nothing before */
};

/* ---- the world ----------------------------------------------------------------------------- */

struct mix { /* of one run, drawn by the swarm; per 10,000 */
    unsigned rate[FAULT_COUNT];
    bool sessions, zookeeper;
    unsigned chosen_ids;
    int64_t ttl_ms, transition_ms, latency_ms, renew_ms;
    int64_t quickest; /* ns: the least latency */
};

struct armed { /* a fault that a script has called for */
    unsigned times;
    int64_t length;
};

struct world {
    uint64_t seed, random, hash;
    int64_t now, calm_at;
    uint64_t order, events, events_max;
    struct event **heap;
    size_t heap_count, heap_room;
    struct event *free;
    struct period period;
    struct mix mix;
    struct store store;
    struct node node[NODES_MAX];
    unsigned nodes;
    uint64_t greatest[MUTEXES];  /* token of a tenure so far */
    int64_t tenure_at[MUTEXES];  /* when the last one began */
    uint64_t forced[MUTEXES];    /* the last tenure that was ended by force */
    int64_t last_write[MUTEXES]; /* when the store last applied a grant or renewal */
    uint64_t same_time;          /* events since time last moved */
    bool calm;
    bool scripted;
    struct armed armed[FAULT_COUNT][NODES_MAX];
    bool tracing, failed;
    void (*trace)(void *data, int64_t now, const char *text);
    void *trace_data;
    char failure[200];
    struct tally *tally;
    struct tick_world ticks;
    struct zookeeper *zookeeper; /* NULL: the store is not of that kind */
};

/* world.c */
struct world *world_make(uint64_t seed, unsigned nodes, uint64_t events, struct tally *tally);
void world_free(struct world *w);
bool world_run(struct world *w); /* false: a promise was broken */
bool world_run_until(struct world *w, int64_t until, uint64_t events);
void world_post(struct world *w, int64_t at, enum event_kind kind, struct node *n,
                const struct message *m);
void world_note(struct world *w, uint64_t a, uint64_t b); /* into the hash */
int64_t world_local(const struct world *w, const struct node *n);
int64_t world_true(const struct world *w, const struct node *n, int64_t local);
bool world_chance(struct world *w, unsigned per_10000);
int64_t world_between(struct world *w, int64_t low, int64_t high);
bool world_fault(struct world *w, enum fault fault, const struct node *n); /* strikes, by the mix */
/* One with a length, below most; 0: it does not strike. */
int64_t world_fault_for(struct world *w, enum fault fault, const struct node *n, int64_t most);
void world_count_fault(struct world *w, enum fault fault, const struct node *n);
enum column world_column(const struct node *n);

__attribute__((format(printf, 2, 3))) void world_trace(struct world *w, const char *format, ...);
__attribute__((format(printf, 2, 3))) void world_fail(struct world *w, const char *format, ...);

/* mix.c */
void mix_draw(struct world *w);
void inject_fault(struct world *w); /* a fault strikes somebody */

/* names.c: how things are called in traces */
extern const char *const fault_text[FAULT_COUNT];
const char *name_of_op(enum simba_op op);
const char *name_of_code(int code);
const char *name_of_reason(enum simba_reason reason);
const char *name_of_callback(enum handle_callback callback);
void trace_reply(struct world *w, const struct node *n, const struct message *m);

/* node.c: what the runtime does, in simulated time */
void node_boot(struct world *w, struct node *n);
void node_step(struct world *w, struct node *n, struct handle_event event);
void node_event(struct world *w, struct node *n, const struct event *e);
void node_crash(struct world *w, struct node *n);
void node_stop_process(struct world *w, struct node *n, int64_t how_long, bool frozen);
void node_lag(struct world *w, struct node *n, int64_t how_long); /* only its loop */
void node_calm(struct world *w, struct node *n);
void node_answer(struct world *w, struct node *n, bool yes); /* to a reader of is_owner */
bool node_owns(const struct world *w, const struct node *n); /* what is_owner would say now */

/* user.c: what users and their callbacks do */
void user_act(struct world *w, struct node *n);
void user_soon(struct world *w, struct node *n, int64_t most); /* acts within that time */
void user_ask(struct world *w, struct node *n);                /* is_owner */
void user_acquire(struct world *w, struct node *n, int64_t until, bool once);
void user_release(struct world *w, struct node *n);
void user_dispatch(struct world *w, struct node *n);
void user_return(struct world *w, struct node *n);
void user_take_note(struct world *w, struct node *n);
void user_result(struct world *w, struct node *n, int code);
void user_reenter(struct world *w, struct node *n); /* from a callback of its own */
void user_resign(struct world *w, struct node *n, int64_t pause);

/* worker.c: what an owner does beside its callbacks */
void worker_begin(struct world *w, struct node *n);
void worker_report(struct world *w, struct node *n, uint64_t token);
void worker_reported(struct node *n, uint64_t token, int64_t local);
void worker_warn(struct world *w, struct node *n);
void worker_dispatch_warning(struct world *w, struct node *n);
void worker_warned(struct world *w, struct node *n);

/* network.c */
void network_send(struct world *w, struct node *n, const struct lease_request *request);
void network_reply(struct world *w, const struct event *e); /* the store has answered e */
void network_hint(struct world *w, unsigned mutex);

/* store.c */
void store_apply(struct world *w, struct event *e);
void store_expire(struct world *w);
void store_evict(struct world *w, unsigned mutex, bool forced);
void store_restart(struct world *w, bool forget);
void store_note_forced(struct world *w, unsigned mutex, uint64_t token);

/* zookeeper_client.c: see zookeeper.h */
void zookeeper_request(struct world *w, struct node *n, const struct lease_request *request);
void zookeeper_event(struct world *w, struct node *n, const struct event *e); /* WIRED, BEAT */
void zookeeper_cut(struct world *w, struct node *n); /* what was on its way to it is lost */
void zookeeper_calm(struct world *w, struct node *n);
void zookeeper_restart(struct world *w);
void zookeeper_free(struct world *w);

/* zookeeper_server.c */
void zookeeper_make(struct world *w);
void zookeeper_arrive(struct world *w, const struct event *e);
void zookeeper_expire(struct world *w);
void zookeeper_evict(struct world *w, unsigned mutex, bool forced);

/* check.c: the promises */
void check_published(struct world *w, struct node *n, uint64_t token, int64_t deadline);
void check_sent(struct world *w, struct node *n, const struct lease_request *request);
void check_granted(struct world *w, const struct event *e);
void check_callback_begins(struct world *w, struct node *n, enum handle_callback callback);
void check_noted(struct world *w, const struct event *e, uint64_t last);
void check_acquired_note(struct world *w, const struct node *n);
void check_submitted(struct world *w, struct node *n, enum handle_callback callback);
void check_renewed(struct world *w, struct node *n);
void check_warns(struct world *w, struct node *n);
void check_warning_begins(struct world *w, struct node *n);
void check_lost(struct world *w, struct node *n);
void check_machine(struct world *w, struct node *n);
void check_read(struct world *w, struct node *n, bool yes);
void check_live(struct world *w, unsigned mutex, int64_t since); /* it had an owner, if wanted */
bool check_has_waiter(struct world *w, const struct node *owner);
#endif
