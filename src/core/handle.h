/* handle.h: what the user of one handle is told, and when the store may be told.
 *
 * On top of a lease (lease.h) this machine keeps the order of things: callbacks alternate and
 * never overlap, nothing is given back while user code runs, a waiting locker gets exactly one
 * result. It is the one door into src/core: handle_step() takes an event with its time and fills
 * in an update that says what the runtime must do. No clock, thread or memory in here; the
 * simulator runs this very code.
 *
 * User code runs, from the machine's point of view, while
 *   callback      a callback is with the executor (queued or running),
 *   acquired_ran  on_acquired has run and on_released is still due,
 *   held          a locker's caller is inside its critical section. */
#ifndef CORE_HANDLE_H
#define CORE_HANDLE_H

#include "core/lease.h"
#include "core/status.h"

enum handle_kind { HANDLE_CONTENDER, HANDLE_LOCKER, HANDLE_OBSERVER };
enum handle_callback {
    CALLBACK_NONE,
    CALLBACK_ACQUIRED,
    CALLBACK_RELEASED,
    CALLBACK_CHANGED,
    CALLBACK_CLOSED
};

enum handle_event_kind {
    HANDLE_TICK,
    HANDLE_START,   /* contender, observer: from at on */
    HANDLE_STOP,    /* contender, observer */
    HANDLE_ACQUIRE, /* locker: until at; once: no second try */
    HANDLE_RELEASE, /* locker */
    HANDLE_ABANDON, /* locker: its caller has gone without a result */
    HANDLE_CANCEL,  /* locker: its caller, if one waits for a grant, is to wait no longer */
    HANDLE_CLOSE, /* either: end in order, then CALLBACK_CLOSED; a held lock waits for its holder */
    HANDLE_DESTROY, /* the same by its owner, who thereby ends a held lock */
    HANDLE_REPLY,
    HANDLE_HINT,
    HANDLE_CHANGED, /* observer: what is known of the mutex has changed */
    HANDLE_DONE     /* the outstanding callback returned; ran: it was not skipped as outdated */
};

struct handle_event {
    enum handle_event_kind kind;
    int64_t now;
    int64_t at;
    bool once, ran;
    const struct lease_reply *reply; /* borrowed for the call */
};

struct handle {
    struct lease lease;
    int64_t drain;      /* how long to renew for user code that does not end after stop */
    int64_t drain_at;   /* NEVER: no drain is on */
    int64_t wait_until; /* of a locker's caller */
    uint8_t kind, status, callback;
    bool acquired_submitted; /* on_acquired was submitted for this tenure */
    bool acquired_ran;       /* it ran, so on_released is due */
    bool held;               /* a locker's caller works under the lock */
    bool lost;               /* a locker's lock ended under it */
    bool waiting;            /* a locker's caller waits for a grant */
    bool leaving;            /* a locker's caller waits for the release */
    bool once;               /* it wants one try only */
    bool answered;           /* the store has answered since start or acquire */
    bool changed;            /* an observer has not been told yet */
    bool closing;
    bool closed; /* on_closed has run: the handle can go when it is idle */
};

/* What the runtime must do after a step; all of it, in any order. It also publishes lease_deadline,
 * the token and the status. */
struct handle_update {
    bool send;
    struct lease_request request;
    enum handle_callback callback; /* submit this callback to the executor */
    enum simba_reason reason;      /* why, for that callback */
    bool has_result;               /* a locker's caller returns with code */
    int code;
    enum lease_news news; /* for the log */
    int failure;          /* the code that goes with LEASE_FAILED */
};

void handle_init(struct handle *h, enum handle_kind kind, int64_t drain,
                 const struct period *period, const char *id, bool unique, bool queues,
                 uint64_t seed);

void handle_step(struct handle *h, const struct handle_event *event, struct handle_update *update);

bool handle_gives_up(int code); /* a failure that no later attempt can turn into success */
int64_t handle_next_wake(const struct handle *h); /* NEVER: idle, or user code runs */
bool handle_is_idle(const struct handle *h);      /* nothing runs, nothing is to be released */
#endif
