/* handle.c: the machine of handle.h. A step is: deadlines that have passed, the event, what
 * follows from both, and last the request that is due. */
#include "core/handle.h"

#include <assert.h>

#include "core/planted.h"

void handle_init(struct handle *h, enum handle_kind kind, int64_t drain,
                 const struct period *period, const char *id, bool unique, bool queues,
                 uint64_t seed)
{
    assert(drain >= 0);
    *h = (struct handle){
        .kind = (uint8_t)kind,
        .drain = drain,
        .drain_at = NEVER,
        .wait_until = NEVER,
    };
    bool contends = kind != HANDLE_OBSERVER;
    lease_init(&h->lease, period, contends ? LEASE_CONTENDER : LEASE_OBSERVER, id,
               contends && unique, contends && queues, seed);
}

static bool user_code_runs(const struct handle *h)
{
    return h->callback != CALLBACK_NONE || h->acquired_ran || h->held;
}

bool handle_is_idle(const struct handle *h)
{
    return h->lease.state == LEASE_IDLE && !user_code_runs(h);
}

static void move(struct handle *h, enum status_event event)
{
    int next = status_next((enum simba_status)h->status, event);
    assert(next >= 0);
    h->status = (uint8_t)next;
}

static void set_result(struct handle *h, int code, struct handle_update *up)
{
    assert(h->waiting != h->leaving);
    h->waiting = false;
    h->leaving = false;
    h->wait_until = NEVER;
    up->has_result = true;
    up->code = code;
}

bool handle_gives_up(int code)
{
    return code == SIMBA_EINVAL || code == SIMBA_EUNSUPPORTED;
}

/* Why the store could not be asked; a request without an answer means that it does not answer. */
static int failure(const struct handle *h)
{
    return h->lease.code == SIMBA_ETIMEOUT ? SIMBA_ESTORE : h->lease.code;
}

static void end_wait(struct handle *h, int64_t now, int code, struct handle_update *up)
{
    lease_stop(&h->lease, now);
    set_result(h, code, up);
}

static void heard(struct handle *h, int64_t now, enum lease_news news, struct handle_update *up)
{
    if (news == LEASE_NOTHING)
        return;
    up->news = news;
    if (news == LEASE_FAILED)
        up->failure = h->lease.code;
    if (news == LEASE_ANSWERED || news == LEASE_BEGAN) {
        h->answered = true;
        if (h->status == SIMBA_STARTING)
            move(h, STATUS_ANSWERED);
    }
    if (news == LEASE_ANSWERED && h->waiting && h->once)
        end_wait(h, now, SIMBA_EHELD, up);
    if (news == LEASE_FAILED && h->waiting && (h->once || handle_gives_up(h->lease.code)))
        end_wait(h, now, failure(h), up);
    if (news == LEASE_FAILED && h->status == SIMBA_STARTING && handle_gives_up(h->lease.code)) {
        lease_stop(&h->lease, now);
        move(h, STATUS_FAILED);
    }
    if (h->leaving) {
        assert(news == LEASE_GIVEN || news == LEASE_GONE || news == LEASE_FAILED);
        set_result(h,
                   news == LEASE_GIVEN  ? 0
                   : news == LEASE_GONE ? SIMBA_ELOST
                                        : SIMBA_ESTORE,
                   up);
    }
}

static void stop(struct handle *h, int64_t now)
{
    move(h, STATUS_STOP);
    lease_stop(&h->lease, now);
    if (h->lease.state == LEASE_HOLDING)
        h->drain_at = now > NEVER - h->drain ? NEVER : now + h->drain;
}

static void release(struct handle *h, int64_t now, struct handle_update *up)
{
    assert(h->held);
    h->held = false;
    h->leaving = true;
    h->lost = false;
    lease_stop(&h->lease, now);
    if (h->lease.state != LEASE_HOLDING)
        set_result(h, SIMBA_ELOST, up);
}

/* Nobody waits for a result: what a locker's caller wanted, or has got, is given back. */
static void abandon(struct handle *h, int64_t now)
{
    h->waiting = false;
    h->wait_until = NEVER;
    h->held = false;
    h->lost = false;
    if (!PLANTED(ABANDONED_IS_KEPT) || h->lease.state != LEASE_HOLDING)
        lease_stop(&h->lease, now);
}

static void close_handle(struct handle *h, int64_t now, bool destroy, struct handle_update *up)
{
    h->closing = true;
    if (h->status == SIMBA_STARTING || h->status == SIMBA_RUNNING)
        stop(h, now);
    if (h->waiting)
        end_wait(h, now, SIMBA_ECANCELED, up);
    if (h->held && destroy)
        abandon(h, now);
}

static void done(struct handle *h, bool ran)
{
    assert(h->callback != CALLBACK_NONE);
    if (h->callback == CALLBACK_ACQUIRED) {
        h->acquired_ran = ran || PLANTED(UNPAIRED_RELEASE);
        h->acquired_submitted = ran || lease_is_over(&h->lease);
    } else if (h->callback == CALLBACK_RELEASED) {
        h->acquired_ran = false;
    } else if (h->callback == CALLBACK_CLOSED) {
        h->closed = true;
    }
    h->callback = CALLBACK_NONE;
}

static void accept_event(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    switch (e->kind) {
    case HANDLE_START:
        move(h, STATUS_START);
        h->answered = false;
        lease_start(&h->lease, e->now, e->at);
        break;
    case HANDLE_STOP:
        /* A start that failed for good has ended by itself meanwhile. */
        if (h->status == SIMBA_STARTING || h->status == SIMBA_RUNNING)
            stop(h, e->now);
        break;
    case HANDLE_ACQUIRE:
        assert(h->kind == HANDLE_LOCKER);
        assert(!h->waiting && !h->held && !h->leaving);
        h->answered = false;
        h->waiting = true;
        h->once = e->once;
        h->wait_until = e->at;
        lease_start(&h->lease, e->now, e->now);
        break;
    case HANDLE_RELEASE:
        release(h, e->now, up);
        break;
    case HANDLE_ABANDON:
        assert(h->kind == HANDLE_LOCKER);
        abandon(h, e->now);
        break;
    case HANDLE_CANCEL:
        assert(h->kind == HANDLE_LOCKER);
        if (h->waiting) /* a grant, a timeout or a close may have been first */
            end_wait(h, e->now, SIMBA_ECANCELED, up);
        break;
    case HANDLE_CLOSE:
    case HANDLE_DESTROY:
        close_handle(h, e->now, e->kind == HANDLE_DESTROY, up);
        break;
    case HANDLE_REPLY:
        heard(h, e->now, lease_reply(&h->lease, e->now, e->reply), up);
        break;
    case HANDLE_HINT:
        lease_hint(&h->lease, e->now);
        break;
    case HANDLE_CHANGED:
        h->changed = true;
        break;
    case HANDLE_DONE:
        done(h, e->ran);
        break;
    default: /* HANDLE_TICK: the time is all that counts */
        break;
    }
}

static void submit(struct handle *h, enum handle_callback callback, enum simba_reason reason,
                   struct handle_update *up)
{
    assert(h->callback == CALLBACK_NONE);
    h->callback = (uint8_t)callback;
    up->callback = callback;
    up->reason = reason;
}

/* What follows, for a contender, from the state of its lease. */
static void follow_contender(struct handle *h, struct handle_update *up)
{
    bool over = lease_is_over(&h->lease);
    if (h->callback != CALLBACK_NONE)
        return;
    if (h->acquired_ran && over)
        submit(h, CALLBACK_RELEASED,
               h->lease.state == LEASE_ENDED ? (enum simba_reason)h->lease.reason : SIMBA_RELEASED,
               up);
    else if (!h->acquired_submitted && h->lease.state == LEASE_HOLDING) {
        assert(!over);
        h->acquired_submitted = true;
        submit(h, CALLBACK_ACQUIRED, SIMBA_ACQUIRED, up);
    }
}

static void follow_locker(struct handle *h, struct handle_update *up)
{
    if (h->waiting && h->lease.state == LEASE_HOLDING) {
        h->held = true;
        set_result(h, 0, up);
    }
    if (h->held && !h->lost && h->lease.state == LEASE_ENDED) {
        h->lost = true;
        submit(h, CALLBACK_RELEASED, (enum simba_reason)h->lease.reason, up);
    }
}

/* Changes that come while it is being told become one. */
static void follow_observer(struct handle *h, struct handle_update *up)
{
    if (!h->changed || h->callback != CALLBACK_NONE || h->status != SIMBA_RUNNING)
        return;
    h->changed = false;
    submit(h, CALLBACK_CHANGED, SIMBA_UNCHANGED, up);
}

void handle_step(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    *up = (struct handle_update){.send = false};
    int64_t now = e->now;

    heard(h, now, lease_tick(&h->lease, now), up);
    if (h->waiting && now >= h->wait_until)
        end_wait(h, now, h->answered || h->lease.code == 0 ? SIMBA_ETIMEOUT : failure(h), up);
    if (now >= h->drain_at) {
        if (PLANTED(DRAIN_RELEASES))
            lease_user_code_done(&h->lease, now);
        else
            lease_abandon(&h->lease);
        h->drain_at = NEVER;
    }
    accept_event(h, e, up);

    if (h->kind == HANDLE_LOCKER)
        follow_locker(h, up);
    else if (h->kind == HANDLE_OBSERVER)
        follow_observer(h, up);
    else
        follow_contender(h, up);
    bool drained = !user_code_runs(h) || PLANTED(RELEASE_BEFORE_DRAIN);
    if (lease_is_over(&h->lease) && drained) {
        lease_user_code_done(&h->lease, now);
        h->acquired_submitted = false;
        h->drain_at = NEVER;
    }
    if (h->status == SIMBA_STOPPING && handle_is_idle(h))
        move(h, STATUS_IDLE);
    if (h->closing && !h->closed && handle_is_idle(h))
        submit(h, CALLBACK_CLOSED, SIMBA_UNCHANGED, up);
    up->send = lease_poll(&h->lease, now, &up->request);
}

int64_t handle_next_wake(const struct handle *h)
{
    int64_t at = lease_next_wake(&h->lease);
    if (h->drain_at < at)
        at = h->drain_at;
    return h->wait_until < at ? h->wait_until : at;
}
