/* actor.h: one handle at run time: its machine, what others may see of it, its callbacks.
 * Contender and locker are thin faces of it. */
#ifndef RUNTIME_ACTOR_H
#define RUNTIME_ACTOR_H

#include <stdatomic.h>

#include "base/hash_table.h"
#include "core/handle.h"
#include "core/tenure.h"
#include "core/view.h"
#include "runtime/executor.h"
#include "runtime/metrics.h"
#include "runtime/thread_ref.h"
#include "runtime/timers.h"
#include "runtime/trouble.h"

#define ACTOR_DRAIN_MS 30000
#define CALL_TEXT_MAX 384

/* What a caller asked for, until the loop has seen it. The order of the bits is the order in which
 * they can have been meant: nothing can be started before a stop has been seen. */
enum actor_post {
    POST_START = 1,
    POST_ABANDON = 2, /* a locker's caller has given up waiting for its result */
    POST_ACQUIRE = 4,
    POST_CANCEL = 8, /* of the call that is marked so; nobody may have any more */
    POST_RELEASE = 16,
    POST_RESIGN = 32,
    POST_STOP = 64,
    POST_CLOSE = 128,   /* by simba_close */
    POST_DESTROY = 256, /* by its owner */
    POST_WARNED = 512,  /* on_endangered has returned */
    POST_DONE = 1024,
    POST_LEFT = 2048 /* what kept a callback back is over: a scheduler's work, a locker's on_done */
};

enum locker_phase { LOCKER_FREE, LOCKER_WAITING, LOCKER_HELD, LOCKER_LEAVING };

/* What a locker's caller wants of the loop. Of one that waits it lives on the caller's stack; an
 * asynchronous one is allocated, and goes when on_done has been called. */
struct call {
    struct call *next;      /* of those whose result is known */
    simba_done_fn *on_done; /* NULL: the caller waits */
    void *data;             /* for that */
    _Atomic uint32_t done;  /* futex_await */
    uint32_t wait_slot;
    bool releases; /* else it acquires */
    bool once;
    uint8_t found;  /* refused: in this enum locker_phase */
    bool canceled;  /* under the client's lock until the result */
    bool said_held; /* likewise: in this wait the store said that another owns the mutex */
    bool parked;    /* likewise: another thread of this client has the mutex, and will drive */
    int64_t began, until;
    int64_t leave_at; /* without a thread of ours: the caller goes without a result */
    int code;
    char text[CALL_TEXT_MAX]; /* what the store last complained of */
};

struct simba_client;
struct latency;
struct request;
struct note;

#define SERIAL_OF_OPTION 1 /* what a caller publishes in the same tenure is newer than that */

/* What few handles ask for. Behind the actor, where anything of it is. */
struct actor_extra {
    struct handle_extra machine; /* first */
    _Atomic int64_t reported_at; /* progress; NEVER: it is not asked for now */
    simba_endangered_fn *on_endangered;
    void (*on_stopped)(void *data);
    const char *note; /* to be published with each tenure; NULL: none */

    /* Of the on_endangered that is with the executor. */
    struct job job;
    uint64_t job_token;
    int64_t job_at;
    int64_t ends_at; /* the tenure, unless something happens */
    bool job_moved;
};

struct actor {
    struct hash_node by_mutex; /* first; by_mutex.name is the mutex */
    uint32_t initial_delay_ms;
    uint32_t requests; /* unanswered; whoever has the baton */
    struct simba_client *client;
    simba_state_fn *on_acquired; /* an observer's on_changed */
    union {
        simba_state_fn *on_released; /* a locker's on_lost */
        struct note *note;           /* an observer, under the client's lock: allocated, or NULL */
    };
    void (*on_closed)(void *data);
    void *data;

    struct view view;         /* what is_owner() reads */
    _Atomic uint32_t status;  /* changed under the client's lock */
    _Atomic uint32_t changes; /* futex: counts what a waiting caller must look at */
    _Atomic uint32_t counted[METRICS_COUNTERS];
    uint32_t posts; /* under the client's lock */

    /* whoever has the baton */
    struct handle machine;
    struct timer timer;
    struct latency *latency; /* of its exchanges: metrics.c; NULL: it is not counted */
    int64_t since_at;        /* when its wait began, or its tenure if it has one */
    union {
        int64_t renewed_at; /* of an owner: when the last renewal was sent, or what began it */
        int64_t hinted_at;  /* of one that waits: it was pushed, and has no answer to what it
                               asked since; 0: was not */
    };
    uint32_t since; /* its order among those who wait: the client's count of waits then */
    bool is_registered, quiet; /* is_registered: in the client's hash table */
    bool is_failing_reported;  /* as an event and in the log; not yet that it works again */
    bool childless;   /* an observer of all: it may close when the last of its children has */
    uint8_t interest; /* enum simba_interest */

    /* Of the callback that is with the executor. */
    struct job job; /* run NULL: none is */
    uint64_t job_token;
    int64_t job_at;                   /* when it was submitted */
    uint8_t job_callback, job_reason; /* enum handle_callback, enum simba_reason */
    bool job_moved; /* the user's executor ran it where it must not: it is with ours */

    /* under the client's lock */
    bool in_inbox, done_ran;
    bool same_id;          /* the store named our id as the owner, and that is not this handle */
    bool abandoned;        /* POST_ABANDON is not through: no result is the present caller's */
    bool closing;          /* its owner has given it up: free it when it is quiet */
    uint8_t phase, reason; /* enum locker_phase; enum simba_reason of the change below */
    uint8_t failed_as; /* enum simba_reason that fail was told of this tenure; UNCHANGED: none */
    int16_t start_failure; /* the start failed for good, with this code; 0: it did not */
    uint16_t waiters;      /* callers inside that must find it when they go on */
    struct actor *inbox_next;
    union {
        struct {                   /* a contender, under the client's lock: what resign was told */
            int64_t resign_pause;  /* ns */
            uint64_t resign_token; /* of which tenure */
        };
        struct {                          /* a locker, under the client's lock: */
            struct thread_ref *locked_by; /* who acquired it last; NULL: nobody has */
            struct call *call;
            struct call *results; /* to be told by on_done: the last, whose next is the first */
            uint32_t wait_slot;   /* where its caller waits; constant */
        };
        struct {                  /* an observer, whoever has the baton: */
            struct actor *parent; /* the observer of all that it belongs to; NULL: none */
            uint32_t listed;      /* of all: lists so far; a child: the last one that has it */
            uint32_t children;    /* of all: how many are not closed */
            union {
                struct simba_state *to_report; /* what its callback tells */
                struct found *to_observe;      /* of all: listed, not yet observed */
            };
            struct tenure *next; /* to be told after the end of the one before */
            /* all allocated, or NULL */
        };
    };
    struct trouble trouble;
    char *failure;               /* the last one in words, allocated; NULL: none */
    struct tenure before, after; /* ns; their ids are the actor's own, or allocated */
    /* Behind it in the same memory: an actor_extra and its own period if it has them, the mutex,
     * the id. */
};

#define OBSERVER_OF_ALL "" /* the mutex of one */

/* A public handle is its actor, and so is a node of the client's table. */
static inline struct actor *actor_of(const void *handle)
{
    return (struct actor *)(uintptr_t)handle;
}

static inline const char *actor_id(const struct actor *a)
{
    return a->machine.lease.id;
}

static inline const struct period *actor_period(const struct actor *a)
{
    return a->machine.lease.period;
}

/* NULL: none. */
static inline struct actor_extra *actor_extra(const struct actor *a)
{
    return (struct actor_extra *)(void *)a->machine.extra;
}

static inline struct actor *actor_parent(const struct actor *a)
{
    return a->machine.kind == HANDLE_OBSERVER ? a->parent : NULL;
}

/* A contender or locker that does not own the mutex and wants to. */
static inline bool actor_waits(const struct actor *a)
{
    return a->machine.lease.state == LEASE_CONTENDING && a->machine.kind != HANDLE_OBSERVER;
}

/* API threads */
int actor_create(struct simba_client *s, const char *mutex, enum handle_kind kind,
                 const struct simba_handle_options *options, struct actor **out);
void actor_destroy(struct actor *a);
uint64_t actor_token(const struct actor *a, int64_t *left_ms); /* 0, and 0 ms: not owner */
bool actor_owns(const struct actor *a, uint64_t token);        /* that very tenure */
int64_t actor_owns_at(const struct actor *a, uint64_t token);  /* a time when; 0: does not */
enum simba_reason actor_end_reason(struct actor *a, enum simba_reason reason); /* or that of fail */
void actor_ask_progress(struct actor *a, bool on); /* from now on, or not */
int actor_check(const struct actor *a);            /* 0 or SIMBA_EFORKED */
const char *actor_store(const struct actor *a);    /* to show */
void actor_wait_over_locked(struct actor *a);      /* one of its waiters goes on */

/* whoever has the baton */
struct actor *actor_child(struct actor *parent, const char *mutex); /* NULL: out of memory */
void actor_take_posts(struct actor *a, uint32_t posts);
void actor_expire(struct timer *timer); /* of an actor */
void actor_hint(struct actor *a);
void actor_answered(struct actor *a, struct request *r);
void actor_free(struct hash_node *node); /* when the loop has ended */
#endif
