/* lease.pml: the lease protocol of src/core/lease.c with a store like src/backend/memory/space.c,
 * small enough that Spin visits every state of it. model/run checks it; README.md says what is
 * modelled, what is left out, and how to read a counterexample.
 *
 * Time has no absolute clock: all that matters is how much is left of something. The store has
 * `left`, a contender has `hold`, and a message carries `right`: what its sender may hold, counted
 * from the sending, if the answer is yes. All are in ticks of the store and fall together in one
 * step of the clock. A contender pauses by taking no step; time and network do not wait for it.
 *
 * Drift: during one lease the owner's clock misses one tick of the store's. Its right therefore
 * ends one tick later than it should, and the allowance is used up: there is no slack, and no
 * margin either, since exclusion must not need one. An owner whose clock misses nothing ends
 * earlier, which is like stopping earlier.
 *
 * No step waits for a timer: an attempt may time out, and be repeated, at any moment. That includes
 * the moments at which lease.c does so. */

#ifndef CONTENDERS
#define CONTENDERS 3 /* 2 or 3 */
#endif
#ifndef TENURES
#define TENURES 4 /* the store grants this many, then no more */
#endif
#ifndef LEASE
#define LEASE 4
#endif
#ifndef FLIGHT
#define FLIGHT 3 /* messages in flight: all together */
#endif
#define LINE 2 /* and of one contender, both ways */

#ifdef NO_DRIFT
#define ALLOWANCE 0
#else
#define ALLOWANCE 1
#endif
#define MISSED 1                           /* ticks that a clock misses during one lease */
#define RIGHT (LEASE - ALLOWANCE + MISSED) /* of a request at the moment of sending */
#define NOBODY CONTENDERS

#if defined(NO_SELF_FENCING) || defined(FROM_REPLY) || defined(NO_TOKEN) || defined(NO_DRIFT) || \
    defined(ADOPT_SPENT) || defined(ADOPT_WHOLE) || defined(EARLY_RELEASE)
#define ABLATION /* exclusion itself has to break, not only what it rests on */
#endif

/* STOPPING is lease.c's HOLDING after stop(): no longer owner, renewed while user code runs. */
mtype = { CONTENDING, HOLDING, STOPPING, ENDED, RETURNING };

/* Requests and answers. "Another owns it" changes nothing, and after a RELEASE the contender goes
 * on with or without an answer: these two are not modelled. */
#define EMPTY 0
#define CONTEND 1
#define RENEW 2
#define RELEASE 3
#define MINE 4 /* to CONTEND: granted, or owned by you since an earlier request */
#define RENEWED 5
#define LOST 6

typedef message {
    byte kind;
    byte token;
    byte right;
}

typedef contender_t {
    mtype state = CONTENDING;
    byte token; /* of the tenure; after it: the greatest token that is spent */
    byte hold;  /* until the right ends */
    bool busy;  /* user code runs */
    message m[LINE];
}

contender_t c[CONTENDERS];

byte owner = NOBODY; /* the store's record; an expired one stays until somebody takes it */
byte fence;
byte left;
bool evicted; /* the tenure is not renewed any more, and runs out */

byte winners; /* contenders that ever won: 0, 1, ... in this order, others are the same renamed */
byte last;    /* token of the newest tenure that a contender took up */

byte answer, token, right; /* scratch within one step, 0 between steps */

#define IS_HOLDING(i) (c[i].state == HOLDING || c[i].state == STOPPING)
#define IS_OWNER(i) (c[i].state == HOLDING && c[i].hold > 0)
#define MAY_ACT(i) (IS_HOLDING(i) && c[i].hold > 0)
#define IS_WITHIN_LEASE(i) \
    (!MAY_ACT(i) || (owner == i && c[i].token == fence && c[i].hold <= left))
/* Only user code that overstayed its lease may still run when that of another begins. */
#define HAS_HANDED_OVER(j) (j == i || !c[j].busy || c[j].state == ENDED)
#define IS_QUIET(j) (j == i || !c[j].busy)
#define IN_FLIGHT(i) ((c[i].m[0].kind != EMPTY) + (c[i].m[1].kind != EMPTY))

#if CONTENDERS == 2
#define COUNT(p) (p(0) + p(1))
#else
#define COUNT(p) (p(0) + p(1) + p(2))
#endif
#define ALL(p) (COUNT(p) == CONTENDERS)

#define M(k) c[i].m[k]
#define IS_REQUEST(k) (M(k).kind >= CONTEND && M(k).kind <= RELEASE)
#define IS_ANSWER(k) (M(k).kind >= MINE)
#define CAN_SEND (M(1).kind == EMPTY && COUNT(IN_FLIGHT) < FLIGHT)

/* Situations that must be possible, or the model would prove nothing. */
#ifndef REACH
#define REACH 0
#endif
#define REACHED(n, what) assert(REACH != n || !(what))

/* ---- messages -------------------------------------------------------------------------------- */

inline put(k, its_kind, its_token, its_right)
{
    M(k).kind = its_kind;
    M(k).token = its_token;
    M(k).right = its_right
}

#define CAN_RENEW(k) (owner == i && M(k).token == fence && left > 0 && !evicted)
#define OF_TENURE(k) (IS_HOLDING(i) && M(k).token == c[i].token)

/* Drops what has no effect any more, whenever it arrives: fewer states, the same behaviour. A
 * RELEASE stays, however old it is: that it has no effect is to be shown. */
inline forget(k)
{
    if
    :: (M(k).kind == RENEWED || M(k).kind == LOST) && !OF_TENURE(k) -> put(k, EMPTY, 0, 0)
    :: M(k).kind == RENEW && !OF_TENURE(k) && !CAN_RENEW(k) -> put(k, EMPTY, 0, 0)
    :: M(k).kind == RENEW && !OF_TENURE(k) && CAN_RENEW(k) -> M(k).right = 0
    :: M(k).kind == MINE && (M(k).token < c[i].token ||
           M(k).token == c[i].token && c[i].state != CONTENDING) -> put(k, EMPTY, 0, 0)
    :: else
    fi
}

#define KEY(k) ((M(k).kind * 16 + M(k).token) * 16 + M(k).right)

/* Messages overtake each other anyhow: one order of the slots stands for all, empty ones last. */
inline tidy()
{
#ifndef REMEMBER
    forget(0);
    forget(1);
    /* Nobody can tell any more which tokens of this contender are spent. */
    if
    :: c[i].state == CONTENDING && (owner != i || left == 0) && M(0).kind != MINE &&
           M(1).kind != MINE -> c[i].token = 0
    :: else
    fi;
#endif
    if
    :: KEY(0) < KEY(1) ->
        answer = M(0).kind;
        token = M(0).token;
        right = M(0).right;
        put(0, M(1).kind, M(1).token, M(1).right);
        put(1, answer, token, right)
    :: else
    fi;
    answer = 0;
    token = 0;
    right = 0
}

inline send(its_kind, its_token, its_right)
{
    put(1, its_kind, its_token, its_right);
    tidy()
}

/* ---- the store: one operation at a time ------------------------------------------------------ */

#ifdef NO_TOKEN
#define IS_TENURE(k) (owner == i)
#else
#define IS_TENURE(k) (owner == i && M(k).token == fence)
#endif
#ifdef REMEMBER
#define IN_TURN(i) true
#else
#define IN_TURN(i) (i <= winners)
#endif

inline apply(k)
{
    answer = EMPTY;
    token = 0;
    right = 0;
    if
    :: M(k).kind == CONTEND && left == 0 && fence < TENURES && IN_TURN(i) ->
        REACHED(1, owner != NOBODY && owner != i); /* a takeover after expiry */
        REACHED(2, owner == NOBODY && i > 0 && i == winners); /* after a release by another */
        owner = i;
        fence++;
        left = LEASE;
        evicted = false;
        winners = (i == winners -> winners + 1 : winners);
        token = fence;
        right = M(k).right;
        answer = (REACH == 5 -> EMPTY : MINE);
        printf("store: CONTEND of %d: granted, token %d\n", i, token)
    :: M(k).kind == CONTEND && left > 0 && owner == i ->
        token = fence;
#ifdef ADOPT_WHOLE
        right = M(k).right;
#else
        right = (M(k).right + left > LEASE -> M(k).right + left - LEASE : 0);
#endif
        answer = MINE;
        printf("store: CONTEND of %d: is its own already, token %d, left %d\n", i, token, left)
    :: M(k).kind == RENEW && CAN_RENEW(k) ->
        left = LEASE;
        token = M(k).token;
        right = M(k).right;
        answer = RENEWED;
        printf("store: RENEW of %d, token %d: renewed\n", i, token)
    :: M(k).kind == RENEW && !CAN_RENEW(k) ->
        token = M(k).token;
        answer = LOST;
        printf("store: RENEW of %d, token %d: lost\n", i, token)
    :: M(k).kind == RELEASE && IS_TENURE(k) ->
        printf("store: RELEASE of %d, token %d: freed, was token %d\n", i, M(k).token, fence);
        owner = NOBODY;
        left = 0
    :: M(k).kind == RELEASE && !IS_TENURE(k) ->
        /* a late one meets a later tenure of the same contender */
        REACHED(4, owner == i && IS_OWNER(i));
        printf("store: RELEASE of %d, token %d: refused\n", i, M(k).token)
    :: else ->
        printf("store: CONTEND of %d: not granted\n", i)
    fi
}

/* Everything may be delayed for any time or lost, and a request may be applied twice. An answer
 * that comes twice is not worth modelling: the second is always forgotten. */
proctype network(byte i)
{
end:
    do
    :: d_step { IS_REQUEST(0) -> apply(0); put(0, answer, token, right); tidy() }
    :: d_step { IS_REQUEST(1) -> apply(1); put(1, answer, token, right); tidy() }
    /* applied, the answer is lost, and the request comes again */
    :: d_step { IS_REQUEST(0) -> apply(0); printf("    and comes again\n"); tidy() }
    :: d_step { IS_REQUEST(1) -> apply(1); printf("    and comes again\n"); tidy() }
    /* applied, and the request comes again (slot 0 is the only one in use) */
    :: d_step { IS_REQUEST(0) && CAN_SEND ->
           apply(0);
           put(1, answer, token, right);
           printf("    and comes again, answered\n");
           tidy() }
    /* lost */
    :: d_step { M(0).kind != EMPTY ->
           put(0, EMPTY, 0, 0);
           printf("a message of %d is lost\n", i);
           tidy() }
    :: d_step { M(1).kind != EMPTY ->
           put(1, EMPTY, 0, 0);
           printf("a message of %d is lost\n", i);
           tidy() }
    od
}

/* ---- the contender --------------------------------------------------------------------------- */

/* A tenure of c[i].token began in the store and is ours; `right` is what is left of it. In ENDED
 * and RETURNING the token alone says what has to be given back. */
inline take()
{
    if
    :: c[i].state == CONTENDING && right > 0 ->
        printf("%d: tenure %d begins, for %d ticks\n", i, c[i].token, right);
        c[i].state = HOLDING;
        c[i].hold = right;
        c[i].busy = true;
        REACHED(3, right < RIGHT && (M(0).kind == CONTEND || M(1).kind == CONTEND));
        REACHED(5, true);
        REACHED(7, !ALL(IS_QUIET));
        REACHED(9, fence == TENURES && winners == CONTENDERS);
#ifndef ABLATION
        assert(ALL(HAS_HANDED_OVER)); /* shows: C4, an owner begins when all others have handed over */
        assert(c[i].token > last); /* shows: C2, tokens rise */
#endif
        last = c[i].token
    :: c[i].state == CONTENDING && right == 0 ->
        printf("%d: told of tenure %d too late\n", i, c[i].token);
        c[i].state = RETURNING
    :: IS_HOLDING(i) -> /* so the store has ended the earlier one */
        printf("%d: told of tenure %d while in an earlier one\n", i, c[i].token);
        c[i].state = ENDED;
        c[i].hold = 0
    :: else ->
        printf("%d: told of tenure %d, which it does not want\n", i, c[i].token)
    fi
}

inline hear(k)
{
    answer = M(k).kind;
    token = M(k).token;
    right = M(k).right;
    put(k, EMPTY, 0, 0);
    if
    :: answer == MINE && token > c[i].token ->
        c[i].token = token;
        take()
    :: answer == MINE && token == c[i].token && c[i].state == CONTENDING ->
#ifdef ADOPT_SPENT
        take()
#else
        printf("%d: told of tenure %d, which is over\n", i, token);
        c[i].state = RETURNING
#endif
    :: answer == RENEWED && IS_HOLDING(i) && token == c[i].token && right > c[i].hold ->
        REACHED(6, c[i].state == STOPPING);
        printf("%d: renewed, for %d ticks\n", i, right);
        c[i].hold = right
    :: answer == LOST && IS_HOLDING(i) && token == c[i].token ->
        REACHED(10, true);
        printf("%d: tenure %d is lost\n", i, token);
        c[i].state = ENDED;
        c[i].hold = 0
    :: else
    fi;
    tidy()
}

/* However the tenure ended, it is given back: something of it may be left in the store. */
inline settle()
{
    c[i].hold = 0;
    c[i].state = RETURNING;
    tidy()
}

proctype contender(byte i)
{
end:
    do
    :: d_step { c[i].state == CONTENDING && CAN_SEND ->
           printf("%d: sends CONTEND\n", i);
           send(CONTEND, 0, RIGHT) }
    :: d_step { IS_HOLDING(i) && c[i].hold < RIGHT && CAN_SEND ->
           printf("%d: sends RENEW, token %d\n", i, c[i].token);
           send(RENEW, c[i].token, RIGHT) }
    :: d_step { c[i].state == RETURNING && CAN_SEND ->
           printf("%d: sends RELEASE, token %d\n", i, c[i].token);
           assert(!c[i].busy);
           send(RELEASE, c[i].token, 0) }
    :: d_step { c[i].state == RETURNING -> /* it was answered, or tried often enough */
           printf("%d: contends again\n", i);
           c[i].state = CONTENDING;
           tidy() }
    :: d_step { IS_ANSWER(0) -> hear(0) }
    :: d_step { IS_ANSWER(1) -> hear(1) }
    :: d_step { c[i].state == HOLDING ->
           printf("%d: stopped by its user\n", i);
           c[i].state = STOPPING }
    :: d_step { c[i].busy && (c[i].state == STOPPING || c[i].state == ENDED) ->
           printf("%d: user code ends\n", i);
           c[i].busy = false;
           settle() }
    :: d_step { c[i].state == STOPPING -> /* left to expire */
           printf("%d: drain limit\n", i);
           c[i].state = ENDED;
           c[i].hold = 0;
           tidy() }
#ifdef EARLY_RELEASE
    :: d_step { c[i].state == STOPPING -> settle() }
#endif
    od
}

/* ---- time ------------------------------------------------------------------------------------ */

inline less(n)
{
    n = (n > 0 -> n - 1 : 0)
}

/* is_owner() reads the clock, so that the end of a right is not a step of the contender. */
inline pass(j)
{
    i = j;
#ifndef NO_SELF_FENCING
    if
    :: c[i].hold == 1 ->
        c[i].state = ENDED
    :: else
    fi;
    less(c[i].hold);
#endif
#ifndef FROM_REPLY
    less(M(0).right);
    less(M(1).right);
#endif
    tidy()
}

#if CONTENDERS == 3
#define HOLD_OF_2 c[2].hold
#else
#define HOLD_OF_2 0
#endif

proctype clock()
{
    byte i;
end:
    do
    :: d_step {
        true ->
        less(left);
        pass(0);
        pass(1);
#if CONTENDERS == 3
        pass(2);
#endif
        i = 0;
        printf("tick: left %d, hold %d %d %d\n", left, c[0].hold, c[1].hold, HOLD_OF_2)
       }
    od
}

#ifdef EVICTION
proctype operator()
{
end:
    do
    :: d_step { left > 0 && !evicted -> evicted = true; printf("token %d is evicted\n", fence) }
    od
}
#endif

/* ---- what must hold in every state ----------------------------------------------------------- */

/* In a state where nothing is wrong there is nothing to do here. */
proctype monitor()
{
    bool exclusion, within_lease, no_slack;
end:
    do
    :: COUNT(IS_OWNER) > 1 -> assert(exclusion) /* shows: C1, exclusion */
#ifndef ABLATION
    :: !ALL(IS_WITHIN_LEASE) -> assert(within_lease)
#endif
#if REACH == 8
    :: IS_OWNER(0) && left == 1 -> assert(no_slack)
#endif
    od
}

init
{
    atomic {
        run contender(0);
        run network(0);
        run contender(1);
        run network(1);
#if CONTENDERS == 3
        run contender(2);
        run network(2);
#endif
#ifdef EVICTION
        run operator();
#endif
        run clock();
        run monitor()
    }
}
