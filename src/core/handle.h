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
 *   held          a locker's caller is inside its critical section,
 *   warning       on_endangered is with the executor; it alone may run beside another one. */
#ifndef CORE_HANDLE_H
#define CORE_HANDLE_H

#include "core/lease.h"
#include "core/status.h"
#include "core/watchdog.h"

enum handle_kind { HANDLE_CONTENDER, HANDLE_LOCKER, HANDLE_OBSERVER };
enum handle_callback {
    CALLBACK_NONE,
    CALLBACK_ACQUIRED,
    CALLBACK_RELEASED,
    CALLBACK_CHANGED,
    CALLBACK_STOPPED,
    CALLBACK_CLOSED
};

enum handle_event_kind {
    HANDLE_EXPIRE,  /* a timer has: the time is all that counts */
    HANDLE_START,   /* contender, observer: from at on */
    HANDLE_STOP,    /* contender, observer */
    HANDLE_RESIGN,  /* contender: this tenure, and for `at` no other */
    HANDLE_ACQUIRE, /* locker: until at; once: not for the end of another's tenure */
    HANDLE_RELEASE, /* locker */
    HANDLE_ABANDON, /* locker: its caller has gone without a result */
    HANDLE_CANCEL,  /* locker: its caller, if one waits for a grant, is to wait no longer */
    HANDLE_CLOSE, /* either: end in order, then CALLBACK_CLOSED; a held lock waits for its holder */
    HANDLE_DESTROY, /* the same by its owner, who thereby ends a held lock */
    HANDLE_REPLY,
    HANDLE_HINT,
    HANDLE_CHANGED, /* observer: what is known of the mutex has changed */
    HANDLE_WARNED,  /* on_endangered returned */
    HANDLE_DONE     /* the outstanding callback returned; ran: it was not skipped as outdated */
};

struct handle_event {
    enum handle_event_kind kind;
    int64_t now;
    int64_t at;
    int64_t reported_at; /* when the owner last reported progress; NEVER: that is not asked for */
    uint64_t token;      /* of the tenure that is resigned */
    bool once, ran;
    const struct lease_reply *reply; /* borrowed for the call */
};

/* What few handles ask for, apart from the others, who need no memory for it. */
struct handle_extra {
    int64_t at_least;   /* so long the mutex is kept, unless the tenure is lost */
    int64_t keep_until; /* by that; 0: the time is over */
    struct watchdog watchdog;
    bool tells_danger;   /* on_endangered is wanted */
    bool tells_stopped;  /* on_stopped is */
    bool warning;        /* on_endangered is with the executor */
    bool failing;        /* renewals fail, or bring nothing */
    bool stopped;        /* on_stopped is due */
    bool postponed;      /* a locker's caller waits until what it had before is given back */
    bool has_note;       /* to be published with each tenure: */
    bool to_publish;     /* it is not yet written, as far as is known */
    bool holds_back;     /* on_acquired, or the caller's result, waits for the first attempt */
    bool publish_failed; /* an attempt of this tenure has */
    uint8_t publishing;  /* enum handle_publishing */
    uint64_t publish_seq;
    int64_t publish_at; /* DUE: since when; SENT: when to give up waiting */
    uint8_t dangers;    /* not told yet: enum handle_danger */
};

/* What the store has said to a locker's caller since it began to wait; the last counts. */
enum handle_refusal {
    REFUSED_NOT,    /* it has not answered */
    REFUSED_HELD,   /* another owns the mutex */
    REFUSED_NOT_YET /* nobody does, and nobody may yet */
};

enum handle_publishing { PUBLISHING_NOT, PUBLISHING_DUE, PUBLISHING_SENT };
enum handle_danger { DANGER_RENEWALS = 1, DANGER_SILENCE = 2 };

/* Of one who resigned or stalled: its tenure ends; then it leaves the mutex to others. */
enum handle_resigned { RESIGNED_NOT, RESIGNED_LEAVING, RESIGNED_PAUSED };

struct handle {
    struct lease lease;
    struct handle_extra *extra; /* borrowed; NULL: nothing of that is asked for */
    int64_t drain;              /* how long to renew for user code that does not end after stop */
    int64_t drain_at;           /* NEVER: no drain is on */
    union {
        int64_t wait_until; /* of a locker's caller */
        int64_t pause;      /* LEAVING: how long it is to be; PAUSED: until when it lasts */
    };
    uint8_t kind, status, callback, resigned;
    uint8_t refusal;             /* enum handle_refusal */
    bool acquired_submitted : 1; /* on_acquired was submitted for this tenure */
    bool acquired_ran : 1;       /* it ran, so on_released is due */
    bool held : 1;               /* a locker's caller works under the lock */
    bool lost : 1;               /* a locker's lock ended under it */
    bool waiting : 1;            /* a locker's caller waits for a grant */
    bool leaving : 1;            /* a locker's caller waits for the release */
    bool once : 1;               /* it does not wait for another owner */
    bool answered : 1;           /* the store has answered since start or acquire */
    bool changed : 1;            /* an observer has not been told yet */
    bool closing : 1;
    bool closed : 1; /* on_closed has run: the handle can go when it is idle */
};

/* What the runtime must do after a step; all of it, in any order. It also publishes lease_deadline,
 * the token and the status. */
struct handle_update {
    bool send;
    struct lease_request request;
    enum handle_callback callback; /* submit this callback to the executor */
    enum simba_reason reason;      /* why, for that callback */
    bool endangered;               /* submit on_endangered, beside what else may run */
    int64_t left;                  /* of the tenure, for on_endangered */
    bool has_result;               /* a locker's caller returns with code */
    int code;
    enum lease_news news; /* for the log */
    int failure;          /* the code that goes with LEASE_FAILED */
    int unpublished;      /* the first attempt of this tenure to publish its note has failed so */
    bool published_late;  /* the note was written after that; both for the log */
};

/* extra: given for the handle's life, with what is wanted filled in; or NULL. */
void handle_init(struct handle *h, enum handle_kind kind, int64_t drain,
                 const struct period *period, const char *id, bool unique, bool queues,
                 uint64_t seed, struct handle_extra *extra);

void handle_step(struct handle *h, const struct handle_event *event, struct handle_update *update);

int64_t handle_next_wake(const struct handle *h); /* NEVER: idle, or user code runs */
bool handle_is_idle(const struct handle *h);      /* nothing runs, nothing is to be released */
bool handle_warns(const struct handle *h);        /* on_endangered is with the executor */
bool handle_keeps(const struct handle *h);        /* only at_least holds back its end */
#endif
