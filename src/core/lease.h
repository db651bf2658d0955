/* lease.h: who owns the mutex, and until when. One machine per contender (or observer).
 *
 *            start                granted        deadline passed, evicted,
 *   IDLE ----------> CONTENDING -----------> HOLDING ---------------------> ENDED
 *    ^ ^              |  ^   |                  | stalled, drain limit reached|
 *    | | stop,        |  |   | stop, or a grant | stop, and user              | user code
 *    | | nothing to   |  |   | that is too late | code has ended              | has ended
 *    | | release      |  |   |                  |                             |
 *    | +--------------+  |   v                  v                             |
 *    |                   +- RETURNING <---------+-----------------------------+
 *    +---------------------- (given back, or the store cannot be told)
 *
 * - The machine holds a right to act only until hold_until, whatever it hears later.
 * - stop() while HOLDING only takes the right away; the lease is still renewed, because user code
 *   may run. Nothing is given back before lease_user_code_done() says that none does.
 * - In ENDED nothing is sent at all.
 * - "Is it mine?" after a lost reply is never guessed: the next exchange finds out (adoption), and
 *   RELEASE always names the token, so that a late one cannot hit a later tenure. */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include <simba/backend.h>

#include "core/period.h"

enum lease_state { LEASE_IDLE, LEASE_CONTENDING, LEASE_HOLDING, LEASE_ENDED, LEASE_RETURNING };
enum lease_role { LEASE_CONTENDER, LEASE_OBSERVER };

/* What a call of this machine brought about. */
enum lease_news {
    LEASE_NOTHING,
    LEASE_ANSWERED, /* the store answered; another owns it, or nobody */
    LEASE_BEGAN,    /* a tenure of ours began */
    LEASE_LOST,     /* it ended against our will; see reason */
    LEASE_GIVEN,    /* what was to be released is given back */
    LEASE_GONE,     /* the store had ended it before */
    LEASE_FAILED    /* an exchange failed or took too long; see code */
};

struct lease {
    const struct period *period; /* borrowed */
    const char *id;              /* borrowed */
    uint64_t random;
    uint64_t seq;        /* of the newest request; rises through all lives */
    uint64_t start_seq;  /* seq at the last start: late answers to older ones begin no tenure */
    int64_t wake_at;     /* in flight: when to give up waiting; else when to send the next */
    int64_t hold_until;  /* in HOLDING: our right to act ends here */
    uint64_t token;      /* of the tenure; after it: the greatest token that is spent */
    uint64_t to_release; /* a tenure of ours in the store that nobody wants; 0: none */
    uint32_t failures;   /* in a row */
    uint8_t state, role, reason;
    bool unique;          /* the id is generated: nobody else can have it */
    bool wanted;          /* between start and stop */
    bool in_flight;       /* the newest request is neither answered nor given up */
    bool hinted;          /* a hint came while a request was in flight */
    bool outcome_unknown; /* a CONTEND's outcome is unknown */
    bool lists;           /* an observer of all mutexes: one request, as long as many */
    bool queues;          /* the store remembers who waits */
    bool queued;          /* it may remember us */
    int16_t code;         /* of the last failure since start; 0: none */
};

struct lease_request {
    enum simba_op op;
    uint64_t seq, token;
    int64_t sent_at;
};

/* The answer to a request; may come late, twice or never. */
struct lease_reply {
    struct lease_request request; /* as it was sent */
    int code;
    bool granted;      /* the tenure is ours beyond doubt, whatever the id says */
    const char *owner; /* borrowed for the call; "": nobody */
    uint64_t token;
    int64_t left; /* until the owner's lease ends, on the store's clock */
};

void lease_init(struct lease *l, const struct period *period, enum lease_role role, const char *id,
                bool unique, bool queues, uint64_t seed);

void lease_start(struct lease *l, int64_t now, int64_t first_at);
void lease_stop(struct lease *l, int64_t now);
void lease_abandon(struct lease *l);            /* HOLDING after stop: renew no more */
enum lease_news lease_stall(struct lease *l);   /* HOLDING: its owner does not get on */
enum lease_news lease_evicted(struct lease *l); /* HOLDING: the store says that it is over */
void lease_user_code_done(struct lease *l, int64_t now); /* lease_is_over, and no user code runs */

enum lease_news lease_expire(struct lease *l, int64_t now); /* before anything else in a step */
enum lease_news lease_reply(struct lease *l, int64_t now, const struct lease_reply *reply);
void lease_hint(struct lease *l, int64_t now);
bool lease_poll(struct lease *l, int64_t now, struct lease_request *out); /* last in a step */

bool lease_is_over(const struct lease *l); /* a tenure ended or must end, its user code has not */
int64_t lease_deadline(const struct lease *l);  /* is_owner is true before it; 0: not owner */
int64_t lease_next_wake(const struct lease *l); /* NEVER: waits for the user only */
const char *lease_state_name(enum lease_state state);
#endif
