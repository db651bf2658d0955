/* lease.c: the machine of lease.h. The runtime and the simulator drive it in the same way:
 * lease_expire first (deadlines count before news), then one event, then poll for the request that
 * is due. */
#include "core/lease.h"

#include <assert.h>
#include <string.h>

#define RELEASE_TRIES 3 /* then the lease may run out by itself */
#define LEAVE_TRIES 1   /* to find out what became of a CONTEND that nobody wants any more */
#define LIST_TIMES 256  /* as long as another request a list of all may take */

/* Allowed moves; every change of state goes through enter(). */
#define MOVE(to) (1u << LEASE_##to)
static const uint8_t moves[] = {
    [LEASE_IDLE] = MOVE(CONTENDING) | MOVE(RETURNING),
    [LEASE_CONTENDING] = MOVE(HOLDING) | MOVE(RETURNING) | MOVE(IDLE),
    [LEASE_HOLDING] = MOVE(ENDED) | MOVE(RETURNING),
    [LEASE_ENDED] = MOVE(RETURNING),
    [LEASE_RETURNING] = MOVE(CONTENDING) | MOVE(IDLE) | MOVE(RETURNING),
};

static void enter(struct lease *l, enum lease_state to, int64_t wake_at)
{
    assert(moves[l->state] & (1u << to));
    if (l->state == LEASE_CONTENDING && l->in_flight)
        l->outcome_unknown = true;
    l->state = (uint8_t)to;
    l->wake_at = wake_at;
    l->in_flight = false;
    l->hinted = false;
    l->failures = 0;
}

void lease_init(struct lease *l, const struct period *period, enum lease_role role, const char *id,
                bool unique, bool queues, uint64_t seed)
{
    assert(role == LEASE_CONTENDER || (!unique && !queues)); /* an observer is nobody's owner */
    *l = (struct lease){
        .period = period,
        .role = (uint8_t)role,
        .id = id,
        .unique = unique,
        .queues = queues,
        .random = seed,
        .wake_at = NEVER,
    };
}

/* Where to go when no tenure is ours any more and no user code runs. */
static void go_on(struct lease *l, int64_t now)
{
    if (l->to_release != 0)
        enter(l, LEASE_RETURNING, now);
    else if (l->wanted)
        enter(l, LEASE_CONTENDING, now);
    else if (l->queued || (l->outcome_unknown && l->unique))
        enter(l, LEASE_RETURNING, now);
    else
        enter(l, LEASE_IDLE, NEVER);
}

/* A tenure of ours in the store that must be given back, and never taken up. */
static void keep_to_release(struct lease *l, uint64_t token)
{
    if (token > l->to_release)
        l->to_release = token;
    if (token > l->token)
        l->token = token;
    if (l->state == LEASE_RETURNING && !l->in_flight)
        l->wake_at = 0;
}

void lease_start(struct lease *l, int64_t now, int64_t first_at)
{
    assert(!l->wanted);
    assert(l->state != LEASE_HOLDING);
    l->wanted = true;
    l->start_seq = l->seq;
    l->code = 0;
    if (l->state == LEASE_IDLE)
        enter(l, LEASE_CONTENDING, first_at > now ? first_at : now);
}

void lease_stop(struct lease *l, int64_t now)
{
    l->wanted = false;
    if (l->state == LEASE_CONTENDING && !l->in_flight)
        go_on(l, now);
}

void lease_abandon(struct lease *l)
{
    assert(!l->wanted);
    assert(l->state == LEASE_HOLDING);
    l->reason = SIMBA_EXPIRED;
    enter(l, LEASE_ENDED, NEVER);
}

void lease_user_code_done(struct lease *l, int64_t now)
{
    assert(lease_is_over(l));
    /* Also a lost tenure is given back: of an expired one a renewal may have kept the store's side
     * alive, and one that was evicted without force stays there to the end of its lease. */
    keep_to_release(l, l->token);
    enter(l, LEASE_RETURNING, now);
}

static enum lease_news lose(struct lease *l, enum simba_reason reason)
{
    l->reason = (uint8_t)reason;
    enter(l, LEASE_ENDED, NEVER);
    return LEASE_LOST;
}

enum lease_news lease_stall(struct lease *l)
{
    return lose(l, SIMBA_STALLED);
}

enum lease_news lease_evicted(struct lease *l)
{
    return lose(l, SIMBA_EVICTED);
}

/* One exchange failed: when to try again depends on what is at stake. */
static enum lease_news fail(struct lease *l, int64_t now, int code)
{
    assert(code < 0);
    l->in_flight = false;
    l->failures++;
    l->code = (int16_t)code;
    switch ((enum lease_state)l->state) {
    case LEASE_CONTENDING:
        l->outcome_unknown = true;
        l->wake_at = now + period_backoff(l->period, l->failures, &l->random);
        if (!l->wanted)
            go_on(l, now);
        break;
    case LEASE_RETURNING:
        l->wake_at = now + period_pause(l->period, l->failures, &l->random);
        if (l->failures >= (l->to_release != 0 ? RELEASE_TRIES : LEAVE_TRIES)) {
            l->to_release = 0;
            l->outcome_unknown = false;
            l->queued = false;
            go_on(l, now);
        }
        break;
    default:
        assert(l->state == LEASE_HOLDING);
        l->wake_at = now + period_pause(l->period, l->failures, &l->random);
        break;
    }
    return LEASE_FAILED;
}

enum lease_news lease_expire(struct lease *l, int64_t now)
{
    if (l->state == LEASE_HOLDING && now >= l->hold_until)
        return lose(l, SIMBA_EXPIRED);
    if (l->in_flight && now >= l->wake_at)
        return fail(l, now, SIMBA_ETIMEOUT);
    return LEASE_NOTHING;
}

/* Until when an answer lets us act. */
static int64_t right_until(const struct lease *l, const struct lease_reply *r)
{
    return period_hold_until(l->period, r->request.sent_at, r->left);
}

/* When to renew next; with little left, in time for one attempt. */
static int64_t renew_at(struct lease *l, int64_t now, const struct lease_reply *r)
{
    int64_t at = period_renew_at(l->period, r->request.sent_at, r->left, &l->random);
    if (at > l->hold_until - l->period->attempt)
        at = l->hold_until - l->period->attempt;
    return at > now ? at : now;
}

static void hold(struct lease *l, int64_t now, const struct lease_reply *r)
{
    l->in_flight = false;
    l->hold_until = right_until(l, r);
    enter(l, LEASE_HOLDING, renew_at(l, now, r));
    l->token = r->token;
    l->outcome_unknown = false;
    l->queued = false;
}

/* A tenure began in the store and is ours: take it, or see that it is given back. */
static enum lease_news granted(struct lease *l, int64_t now, const struct lease_reply *r,
                               bool current)
{
    bool in_time = now < right_until(l, r);
    /* After a stop the store may have been told that we left: an older grant may be over there. */
    bool fresh = current || r->request.seq > l->start_seq;
    if (current)
        l->in_flight = false;
    l->outcome_unknown = false; /* this was the answer that we missed */
    switch ((enum lease_state)l->state) {
    case LEASE_CONTENDING:
        if (l->wanted && in_time && fresh) {
            hold(l, now, r);
            return LEASE_BEGAN;
        }
        keep_to_release(l, r->token);
        go_on(l, now);
        return LEASE_NOTHING;
    case LEASE_HOLDING:
        /* The store can have given us a later tenure only after the end of this one. */
        keep_to_release(l, r->token);
        return lose(l, SIMBA_EVICTED);
    case LEASE_IDLE:
        keep_to_release(l, r->token);
        go_on(l, now);
        return LEASE_NOTHING;
    default:
        keep_to_release(l, r->token);
        return LEASE_NOTHING;
    }
}

/* The store says who owns the mutex; no tenure began by this request. */
static enum lease_news not_granted(struct lease *l, int64_t now, const struct lease_reply *r)
{
    bool hinted = l->hinted;
    l->in_flight = false;
    l->hinted = false;
    l->failures = 0;
    l->outcome_unknown = false;

    /* With an id that a user chose, a tenure that we know nothing of is somebody else's. */
    bool own = l->unique && strcmp(r->owner, l->id) == 0;
    if (own && r->token > l->token)
        return granted(l, now, r, true); /* ours since a request whose reply was lost */
    if ((own || r->granted) && r->token != 0) {
        keep_to_release(l, r->token); /* ours, but over: a tenure is never taken up again */
        if (l->state == LEASE_CONTENDING)
            go_on(l, now);
        return LEASE_NOTHING;
    }
    if (r->request.op == SIMBA_LEAVE)
        l->queued = false;
    if (l->state == LEASE_RETURNING || !l->wanted) {
        go_on(l, now);
        return LEASE_NOTHING;
    }
    if (r->request.seq <= l->start_seq) { /* asked before the start that wants to know: ask again */
        l->wake_at = now;
        return LEASE_NOTHING;
    }
    if (hinted)
        l->wake_at = now;
    else if (r->owner[0] == '\0' && r->left == 0)
        l->wake_at = now + (l->role == LEASE_OBSERVER ? l->period->ttl
                                                      : period_pause(l->period, 1, &l->random));
    else if (l->role == LEASE_OBSERVER)
        l->wake_at = period_observe_at(l->period, now, r->request.sent_at + r->left, &l->random);
    else
        l->wake_at = period_retry_at(l->period, now, r->request.sent_at + r->left, &l->random);
    return LEASE_ANSWERED;
}

static enum lease_news renewed(struct lease *l, int64_t now, const struct lease_reply *r,
                               bool current)
{
    if (l->state != LEASE_HOLDING || r->request.token != l->token)
        return LEASE_NOTHING;
    if (r->code == SIMBA_ELOST)
        return lose(l, SIMBA_EVICTED);
    if (r->code < 0)
        return current ? fail(l, now, r->code) : LEASE_NOTHING;

    /* Also a late answer counts: its request was sent at a time that we know. */
    int64_t until = right_until(l, r);
    if (until > l->hold_until)
        l->hold_until = until;
    if (current || !l->in_flight) {
        l->wake_at = l->hinted ? now : renew_at(l, now, r);
        /* With as little as before, from a store that answers at once: not in a circle. */
        if (current && !l->hinted && l->hold_until - l->period->attempt <= now)
            l->wake_at = now + period_pause(l->period, 1, &l->random);
        l->in_flight = false;
        l->hinted = false;
    }
    l->failures = 0;
    return LEASE_NOTHING;
}

static enum lease_news released(struct lease *l, int64_t now, const struct lease_reply *r,
                                bool current)
{
    if (l->state != LEASE_RETURNING)
        return LEASE_NOTHING;
    if (r->request.token !=
        l->to_release) { /* a later tenure became known meanwhile: that one too */
        if (current) {
            l->in_flight = false;
            l->wake_at = now;
        }
        return LEASE_NOTHING;
    }
    if (r->code < 0 && r->code != SIMBA_ELOST)
        return current ? fail(l, now, r->code) : LEASE_NOTHING;
    l->to_release = 0;
    l->queued = false; /* who releases does not wait either */
    go_on(l, now);
    if (r->code == 0)
        return LEASE_GIVEN;
    if (l->state == LEASE_CONTENDING)
        l->wake_at = now + period_pause(l->period, 1, &l->random); /* no hurry with such a store */
    return LEASE_GONE;
}

enum lease_news lease_reply(struct lease *l, int64_t now, const struct lease_reply *r)
{
    assert(r->owner != NULL);
    assert(r->left >= 0);
    bool current = l->in_flight && r->request.seq == l->seq;
    switch (r->request.op) {
    case SIMBA_RENEW:
        return renewed(l, now, r, current);
    case SIMBA_RELEASE:
        return released(l, now, r, current);
    default:
        break;
    }
    if (r->code < 0)
        return current ? fail(l, now, r->code) : LEASE_NOTHING;
    /* Grants that come twice or were overtaken are old. Tokens can fall only in a store that
     * lost its memory; the answer that we are waiting for is believed even so. */
    if (r->granted && (r->token > l->token || (current && r->token != 0 && r->token < l->token)))
        return granted(l, now, r, current);
    return current ? not_granted(l, now, r) : LEASE_NOTHING;
}

void lease_hint(struct lease *l, int64_t now)
{
    if (l->state != LEASE_CONTENDING && l->state != LEASE_HOLDING)
        return;
    if (l->seq == l->start_seq)
        return; /* the first try waits for its time */
    if (l->in_flight)
        l->hinted = true;
    else if (l->wake_at > now)
        l->wake_at = now;
}

bool lease_poll(struct lease *l, int64_t now, struct lease_request *out)
{
    if (l->in_flight || l->state == LEASE_IDLE || l->state == LEASE_ENDED || now < l->wake_at)
        return false;

    *out = (struct lease_request){.seq = ++l->seq, .sent_at = now};
    int64_t timeout = l->period->patience;
    switch ((enum lease_state)l->state) {
    case LEASE_HOLDING:
        out->op = SIMBA_RENEW;
        out->token = l->token;
        timeout = l->period->attempt;
        break;
    case LEASE_RETURNING:
        out->op = l->to_release != 0 ? SIMBA_RELEASE : SIMBA_LEAVE;
        out->token = l->to_release;
        break;
    default:
        out->op = l->role == LEASE_OBSERVER ? SIMBA_READ : SIMBA_CONTEND;
        if (l->lists)
            timeout *= LIST_TIMES;
        l->queued = l->queued || l->queues;
        break;
    }
    l->in_flight = true;
    l->wake_at = now + timeout;
    return true;
}

bool lease_is_over(const struct lease *l)
{
    return l->state == LEASE_ENDED || (l->state == LEASE_HOLDING && !l->wanted);
}

int64_t lease_deadline(const struct lease *l)
{
    return l->state == LEASE_HOLDING && l->wanted ? l->hold_until : 0;
}

int64_t lease_next_wake(const struct lease *l)
{
    if (l->state == LEASE_HOLDING && l->hold_until < l->wake_at)
        return l->hold_until;
    return l->wake_at;
}

const char *lease_state_name(enum lease_state state)
{
    static const char *const names[] = {"idle", "contending", "holding", "ended", "returning"};
    assert(state <= LEASE_RETURNING);
    return names[state];
}
