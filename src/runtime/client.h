/* client.h: one client, its loop, and the handles on it.
 *
 * Who owns what:
 *   the turn       everything not said otherwise: machines, timers, requests, the store. One
 *                  thread has it at a time: the loop's, or another that would only wait for the
 *                  loop (`turning`, loop.c)
 *   `lock`         the inbox, visible statuses, what contender_state() shows; held for a few
 *                  instructions, never while user code or a store runs
 *   atomics        the published deadline and token, read by is_owner() anywhere
 * API calls put a note into the inbox and wake the loop; see docs/threads.md. */
#ifndef RUNTIME_CLIENT_H
#define RUNTIME_CLIENT_H

#include <pthread.h>
#include <signal.h>
#include <simba/backend.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/table.h"
#include "core/url.h"
#include "runtime/actor.h"
#include "runtime/executor.h"
#include "runtime/interest.h"
#include "runtime/log.h"
#include "runtime/timers.h"

#define HINTS_MAX 1024       /* and one for each handle; more become "ask for everything" */
#define REQUESTS_MAX 1000000 /* waiting for answers; more are refused */
#define REQUESTS_SPARE 4096  /* kept for the next use */
#define NOTES_MAX 1024       /* of one round: then their requests go out */
#define ROUNDS_MAX 16        /* of one turn of the loop, before the store's own events get theirs */

/* A request on its way, with room for its answer. */
struct request {
    struct simba_request wire; /* first: the store hands this back */
    struct simba *client;
    struct actor *actor;     /* NULL: an inquiry */
    struct inquiry *inquiry; /* NULL: an actor's */
    struct lease_request sent;
    bool answered, granted, own; /* own: the owner is the contender itself */
    bool evicted;                /* as the answer says */
    int code;
    uint64_t token;
    int64_t left_ms, age_ms;
    char *owner, *text;  /* allocated; NULL: none */
    struct found *found; /* LIST: allocated */
};

/* A mutex that a LIST found. */
struct found {
    struct found *next;
    uint64_t token;
    int64_t left_ms, age_ms, waiters;
    bool evicted;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
};

struct hint {
    struct hint *next;
    const char *id; /* behind the mutex; NULL: for all who contend for it */
    char mutex[];   /* copied */
};

/* Who drives the loop (lend.c). */
struct loan {
    int gate;         /* where the loop's thread sleeps outside of libuv */
    uv_timer_t timer; /* whoever drives the loop: these three */
    bool is_long;
    struct call *call; /* the driving caller's; NULL: it is the loop's thread */

    enum { LOOP_RUNS, LOOP_RESTS, LOOP_LENT } state; /* under the client's lock, from here on */
    bool crowd;    /* several callers at once: the loop's thread serves them better */
    int64_t until; /* the loop's thread sleeps at most so long */
};

struct simba {
    struct simba_host host;
    const struct simba_backend *backend;
    void *store;
    struct simba_url url;
    struct period_options timing; /* defaults of the handles */
    struct period period;         /* from those, shared by handles that change nothing */
    struct simba_executor executor_user;
    bool has_executor_user, no_thread;
    struct executor executor;
    struct log log;
    uint32_t generation; /* process.h */
    struct metrics metrics;
    struct interests interests;

    /* loop thread */
    pthread_t thread;
    _Atomic(pthread_t) driver; /* no_thread: the user's thread that last polled, or opened it */
    uv_loop_t loop;
    uv_poll_t wake, alarm;
    uv_prepare_t before;
    uv_check_t after;

    /* whoever has the turn */
    int wake_fd, alarm_fd;
    int64_t alarm_at;
    struct timers timers;
    struct table actors; /* by mutex */
    uint32_t waits;      /* of all actors so far */
    size_t quiet;        /* actors that are closed and wait for nothing but answers */
    struct simba_request *batch, **batch_last;
    struct request *spare;
    size_t spares, in_flight;
    bool submitted;        /* in this turn */
    bool here;             /* no_thread: the driver has nothing else to do */
    bool progress;         /* no_thread: a turn had something to do */
    struct call *verdicts; /* of this turn */

    pthread_mutex_t lock; /* and under it: */
    struct actor *inbox, **inbox_last;
    struct simba_request *answers, **answers_last;
    struct inquiry *inquiries;
    struct hint *hints;
    size_t hints_count, actors_count;
    bool hint_all, alarmed, close_asked;
    _Atomic bool closing; /* is_owner() reads it without the lock */
    bool turning;         /* somebody has the turn, and looks again before it ends */
    bool wanted;          /* a turn is, and nobody has been told yet: loop_unlock does */
    bool woken;           /* the loop has been told */
    unsigned guests; /* threads other than the loop's that have the turn, or work for the store */
    const struct holder *closer; /* the last thread that called simba_close; only to be compared */
    bool store_closing, store_closed, over; /* over: the loop takes nothing more */
    struct loan loan;

    _Atomic uint32_t wakers; /* threads that are about to wake the loop; futex */
    _Atomic uint32_t ended;  /* the loop has ended; futex */
};

/* Marks the thread as running code of this client: 'callback of' or 'loop of'. */
extern _Thread_local struct simba *thread_client;
extern _Thread_local struct actor *thread_actor;

bool client_is_forked(const struct simba *s);

bool client_drives(const struct simba *s); /* no_thread: this thread does */

/* futex_wait(); whoever drives the client goes on with that meanwhile. */
bool client_wait(struct simba *s, _Atomic uint32_t *word, uint32_t value, int64_t until);

/* Would waiting here, for the actor or (NULL) for the whole client, wait for this very thread? */
bool client_would_deadlock(const struct simba *s, const struct actor *a);

/* loop.c */
int loop_init(struct simba *s);                      /* 0 or an errno */
void loop_discard(struct simba *s, bool store_open); /* instead of loop_run, if opening fails */
int loop_run(struct simba *s);                       /* starts the thread */
bool loop_is_here(const struct simba *s);            /* this thread is inside it */
/* no_thread: all that can be done without waiting; here: also for the store. */
void loop_poll(struct simba *s, bool here);
void loop_notify(void *s); /* no_thread: there is something to poll for */
void loop_lock(struct simba *s);
void loop_unlock(struct simba *s);
/* The same; and if a turn is wanted, the calling thread may take it, and if it has nothing else to do
 * (here), work for the store as well. */
#define LOOP_HERE_MIN (100 * NS_PER_MS) /* who waits less must not be kept by the store */
void loop_unlock_turn(struct simba *s, bool here);
void loop_want_locked(struct simba *s);            /* a turn */
bool loop_is_wanted_locked(const struct simba *s); /* somebody has left something for a turn */
void loop_post_locked(struct simba *s, struct actor *a); /* a->notes says what */
void loop_close_wake(struct simba *s);                   /* after the loop has ended */
struct request *loop_request(struct simba *s);           /* NULL: over the limit */
void loop_send(struct simba *s, struct request *r);
void loop_free_request(struct simba *s, struct request *r);

const struct simba *loop_enter(const struct simba *s); /* returns whose loop this thread was */

/* lend.c */
bool lend_init(struct simba *s); /* false: see errno */
/* True: this thread has to lend_drive() after the unlock, until the call is done or another goes on. */
bool lend_take_locked(struct simba *s, struct call *call);
void lend_drive(struct simba *s, struct call *call);

/* The mask as it was, without a SIGPIPE that a write of ours has left. */
void lend_restore_signals(const sigset_t *before);
void lend_run(struct simba *s);            /* the loop's thread, until the loop has ended */
void lend_told(struct simba *s, int told); /* after a turn */

/* registry.c: 0, or a code and why: no store serves such URLs, or it cannot be loaded. */
int registry_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size);

/* module.c: the same for stores in files of their own. */
int module_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size);

/* inquiry.c */
void inquiry_send(struct simba *s); /* all that wait */
void inquiry_answered(struct request *r);
void inquiry_say(struct request *r, enum simba_level level, const char *line);
struct snapshot;
int inquiry_snapshot(struct simba *s, struct snapshot **out);
int metrics_take(struct simba *s, struct snapshot **out); /* metrics.c: whoever has the turn */
void metrics_free(struct snapshot *list);
void found_free(struct found *list); /* loop.c */

/* observer.c: an observer of all has the list. */
void observer_listed(struct actor *all, const struct found *list);
void observer_closing(struct actor *all);
#endif
