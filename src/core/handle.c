/* handle.c: the machine of handle.h. A step is: deadlines that have passed, the event, what
 * follows from both, and last the request that is due. */
#include "core/handle.h"

#include <assert.h>

#include "core/failure.h"

void handle_init(struct handle *h, enum handle_kind kind, int64_t drain,
                 const struct period *period, const char *id, bool unique, bool queues,
                 uint64_t seed, struct handle_extra *extra)
{
    assert(drain >= 0);
    *h = (struct handle){
        .extra = extra,
        .kind = (uint8_t)kind,
        .drain = drain,
        .drain_at = NEVER,
        .wait_until = NEVER,
    };
    bool contends = kind != HANDLE_OBSERVER;
    lease_init(&h->lease, period, contends ? LEASE_CONTENDER : LEASE_OBSERVER, id,
               contends && unique, contends && queues, seed);
    if (extra != NULL)
        watchdog_end(&extra->watchdog);
}

static int64_t later(int64_t at, int64_t length)
{
    return at > NEVER - length ? NEVER : at + length;
}

bool handle_warns(const struct handle *h)
{
    return h->extra != NULL && h->extra->warning;
}

static bool user_code_runs(const struct handle *h)
{
    return h->callback != CALLBACK_NONE || h->acquired_ran || h->held || handle_warns(h);
}

/* at_least asks for more time. A tenure that is lost is not kept. */
static bool is_kept(const struct handle *h)
{
    return h->extra != NULL && h->extra->keep_until != 0 && h->lease.state == LEASE_HOLDING;
}

static bool is_postponed(const struct handle *h)
{
    return h->extra != NULL && h->extra->postponed;
}

/* Nothing but its own user code holds back on_released and the release. */
static bool may_end(const struct handle *h)
{
    return !is_kept(h) && !handle_warns(h);
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
    if (h->extra != NULL && h->extra->tells_stopped)
        h->extra->stopped = next == SIMBA_INITIAL;
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

/* Why the store could not be asked; a request without an answer means that it does not answer. */
static int failure(const struct handle *h)
{
    return h->lease.code == SIMBA_ETIMEOUT || h->lease.code == 0 ? SIMBA_ESTORE : h->lease.code;
}

/* The time of a caller is over. Only what the store has said within that time makes it a conflict. */
static int late_result(const struct handle *h)
{
    switch ((enum handle_refusal)h->refusal) {
    case REFUSED_HELD:
        return SIMBA_ETIMEOUT;
    case REFUSED_NOT_YET:
        return SIMBA_ENOTYET;
    default:
        return failure(h);
    }
}

static void end_wait(struct handle *h, int64_t now, int code, struct handle_update *up)
{
    lease_stop(&h->lease, now);
    if (h->extra != NULL)
        h->extra->postponed = false;
    set_result(h, code, up);
}

/* ---- the note of the options --------------------------------------------------------------- */

/* A request of its own, beside those of the lease: so a store that cannot take notes, or hangs over
 * one, keeps no renewal waiting. */
static void publish_begin(struct handle_extra *x, int64_t now)
{
    x->to_publish = x->has_note;
    x->holds_back = x->has_note;
    x->publish_failed = false;
    x->publishing = x->has_note ? PUBLISHING_DUE : PUBLISHING_NOT;
    x->publish_at = now;
}

/* One attempt is over. The next comes with a renewal, if that can help. */
static void publish_ended(struct handle_extra *x, int code, struct handle_update *up)
{
    assert(x != NULL);
    if (code == 0)
        up->published_late = x->publish_failed && x->to_publish;
    else if (!x->publish_failed)
        up->unpublished = code;
    x->publish_failed = x->publish_failed || code < 0;
    x->to_publish = code < 0 && !failure_is_ours(code);
    x->publishing = PUBLISHING_NOT;
    x->holds_back = false;
}

static void publish_again(struct handle_extra *x, int64_t now)
{
    if (!x->to_publish || x->publishing != PUBLISHING_NOT)
        return;
    x->publishing = PUBLISHING_DUE;
    x->publish_at = now;
}

static bool holds_back(const struct handle *h)
{
    return h->extra != NULL && h->extra->holds_back;
}

static bool publish_poll(struct handle *h, int64_t now, struct lease_request *out)
{
    struct handle_extra *x = h->extra;
    if (x->publishing != PUBLISHING_DUE || lease_deadline(&h->lease) == 0)
        return false;
    *out = (struct lease_request){
        .op = SIMBA_PUBLISH, .seq = ++x->publish_seq, .token = h->lease.token, .sent_at = now};
    x->publishing = PUBLISHING_SENT;
    x->publish_at = now + h->lease.period->attempt;
    return true;
}

/* ---- tenures and waits --------------------------------------------------------------------- */

/* A tenure begins: what counts from its acquisition. */
static void began(struct handle *h, int64_t now)
{
    if (h->extra == NULL)
        return;
    h->extra->failing = false;
    publish_begin(h->extra, now);
    watchdog_begin(&h->extra->watchdog, now);
    if (h->extra->at_least > 0)
        h->extra->keep_until = now + h->extra->at_least;
}

/* To be told when the tenure is the user's and on_endangered is not at work. */
static void endanger(struct handle *h, enum handle_danger danger)
{
    if (lease_deadline(&h->lease) != 0)
        h->extra->dangers |= (uint8_t)danger;
}

/* Told when it begins, and again only after one that succeeded. */
static void renewal_failed(struct handle *h)
{
    if (h->extra == NULL || h->extra->failing)
        return;
    h->extra->failing = true;
    endanger(h, DANGER_RENEWALS);
}

static void heard(struct handle *h, int64_t now, enum lease_news news, struct handle_update *up)
{
    if (news == LEASE_NOTHING)
        return;
    up->news = news;
    if (news == LEASE_FAILED)
        up->failure = h->lease.code;
    if (news == LEASE_FAILED && h->lease.state == LEASE_HOLDING)
        renewal_failed(h);
    if (news == LEASE_BEGAN)
        began(h, now);
    if (news == LEASE_ANSWERED || news == LEASE_BEGAN) {
        h->answered = true;
        if (h->status == SIMBA_STARTING)
            move(h, STATUS_ANSWERED);
    }
    bool refused = news == LEASE_FAILED && h->lease.state != LEASE_HOLDING;
    if (refused && h->waiting && (h->once || failure_is_ours(h->lease.code)))
        end_wait(h, now, failure(h), up);
    if (news == LEASE_FAILED && h->status == SIMBA_STARTING && failure_is_ours(h->lease.code)) {
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

/* Its user wants it no longer. User code gets its time to end after the time that it is kept. */
static void end_tenure(struct handle *h, int64_t now)
{
    lease_stop(&h->lease, now);
    if (h->lease.state == LEASE_HOLDING && h->drain_at == NEVER)
        h->drain_at = later(is_kept(h) ? h->extra->keep_until : now, h->drain);
}

static void stop(struct handle *h, int64_t now)
{
    move(h, STATUS_STOP);
    h->resigned = RESIGNED_NOT;
    end_tenure(h, now);
}

static void resign(struct handle *h, int64_t now, int64_t pause)
{
    h->resigned = RESIGNED_LEAVING;
    h->pause = pause;
    end_tenure(h, now);
}

/* Its caller does not wait until the store may be told. */
static void release(struct handle *h, int64_t now, struct handle_update *up)
{
    assert(h->held);
    h->held = false;
    h->leaving = true;
    h->lost = false;
    end_tenure(h, now);
    if (h->lease.state != LEASE_HOLDING)
        set_result(h, SIMBA_ELOST, up);
    else if (!may_end(h))
        set_result(h, 0, up);
}

/* What this locker had before is still to be given back: the acquire begins after that. */
static void acquire(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    assert(h->kind == HANDLE_LOCKER);
    assert(!h->waiting && !h->held && !h->leaving);
    bool postponed = h->lease.state == LEASE_HOLDING;
    h->answered = postponed; /* that it is not granted is not the store's fault */
    h->refusal = postponed ? REFUSED_HELD : REFUSED_NOT;
    h->waiting = true;
    h->once = e->once;
    h->wait_until = e->at;
    if (!postponed) {
        lease_start(&h->lease, e->now, e->now);
        return;
    }
    assert(h->extra != NULL); /* nobody else's is kept */
    h->extra->postponed = true;
    if (e->once)
        end_wait(h, e->now, SIMBA_EHELD, up);
}

/* Nobody waits for a result: what a locker's caller wanted, or has got, is given back. */
static void abandon(struct handle *h, int64_t now)
{
    h->waiting = false;
    h->wait_until = NEVER;
    h->held = false;
    h->lost = false;
    if (h->extra != NULL)
        h->extra->postponed = false;
    end_tenure(h, now);
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
        h->acquired_ran = ran;
        h->acquired_submitted = ran || lease_is_over(&h->lease);
    } else if (h->callback == CALLBACK_RELEASED) {
        h->acquired_ran = false;
    } else if (h->callback == CALLBACK_CLOSED) {
        h->closed = true;
    }
    h->callback = CALLBACK_NONE;
}

/* The answer to a PUBLISH; also a late one counts, if it says that the note is written. */
static void take_published(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    struct handle_extra *x = h->extra;
    const struct lease_request *r = &e->reply->request;
    int code = e->reply->code;
    assert(x != NULL);
    if (h->lease.state != LEASE_HOLDING || r->token != h->lease.token)
        return;
    if (code == SIMBA_ELOST) {
        heard(h, e->now, lease_evicted(&h->lease), up);
    } else if (code == 0 || (x->publishing == PUBLISHING_SENT && r->seq == x->publish_seq)) {
        publish_ended(x, code, up);
    }
}

/* It is not granted. Who does not wait for another owner yet waits for what is over soon: for another
 * attempt where two have met, and for the end of a reservation. */
static void take_refusal(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    const struct lease_reply *r = e->reply;
    bool is_held = r->owner[0] != '\0';
    h->refusal = is_held ? REFUSED_HELD : REFUSED_NOT_YET;
    bool is_soon = !is_held && r->request.sent_at + r->left < h->wait_until;
    if (h->waiting && h->once && !is_soon)
        end_wait(h, e->now, is_held ? SIMBA_EHELD : SIMBA_ENOTYET, up);
}

/* A renewal succeeds if it moves the end of the tenure on. Of a session that is not kept, a store
 * can say for a while that the tenure stands, with ever less left of it. */
static void take_reply(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    const struct lease *l = &h->lease;
    const struct lease_request *r = &e->reply->request;
    if (r->op == SIMBA_PUBLISH) {
        take_published(h, e, up);
        return;
    }
    int64_t until = l->hold_until;
    bool current = l->state == LEASE_HOLDING && l->in_flight && r->seq == l->seq;
    enum lease_news news = lease_reply(&h->lease, e->now, e->reply);
    heard(h, e->now, news, up);
    if (news == LEASE_ANSWERED)
        take_refusal(h, e, up);
    if (h->extra == NULL || l->state != LEASE_HOLDING)
        return;
    if (l->hold_until > until) {
        h->extra->failing = false;
        publish_again(h->extra, e->now);
    } else if (current && e->reply->code == 0) {
        renewal_failed(h);
    }
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
    case HANDLE_RESIGN:
        /* That tenure may have been lost meanwhile: then the pause is left. Not if another has
         * begun, or after a stop. */
        if (h->status == SIMBA_RUNNING && h->resigned == RESIGNED_NOT &&
            (h->lease.state != LEASE_HOLDING || e->token == h->lease.token))
            resign(h, e->now, e->at);
        break;
    case HANDLE_ACQUIRE:
        acquire(h, e, up);
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
        take_reply(h, e, up);
        break;
    case HANDLE_HINT:
        lease_hint(&h->lease, e->now);
        break;
    case HANDLE_CHANGED:
        h->changed = true;
        break;
    case HANDLE_WARNED:
        assert(handle_warns(h));
        h->extra->warning = false;
        break;
    case HANDLE_DONE:
        done(h, e->ran);
        break;
    default: /* HANDLE_EXPIRE */
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
    if (h->acquired_ran && over && may_end(h))
        submit(h, CALLBACK_RELEASED,
               h->lease.state == LEASE_ENDED ? (enum simba_reason)h->lease.reason : SIMBA_RELEASED,
               up);
    else if (!h->acquired_submitted && !over && h->lease.state == LEASE_HOLDING && !holds_back(h)) {
        h->acquired_submitted = true;
        submit(h, CALLBACK_ACQUIRED, SIMBA_ACQUIRED, up);
    }
}

static void follow_locker(struct handle *h, struct handle_update *up)
{
    if (h->waiting && h->lease.state == LEASE_HOLDING && !is_postponed(h) && !holds_back(h)) {
        h->held = true;
        set_result(h, 0, up);
    }
    if (h->held && !h->lost && h->lease.state == LEASE_ENDED && may_end(h)) {
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

/* Deadlines of the tenure that are not the lease's. */
static void check_extra(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    struct handle_extra *x = h->extra;
    if (e->now >= x->keep_until)
        x->keep_until = 0;
    if (x->publishing == PUBLISHING_SENT && e->now >= x->publish_at)
        publish_ended(x, SIMBA_ETIMEOUT, up);
    if (lease_deadline(&h->lease) == 0) {
        watchdog_end(&x->watchdog);
        return;
    }
    enum watchdog_result result = watchdog_check(&x->watchdog, e->now, e->reported_at);
    if (result == WATCHDOG_HALF)
        endanger(h, DANGER_SILENCE);
    if (result == WATCHDOG_STALLED) {
        heard(h, e->now, lease_stall(&h->lease), up);
        resign(h, e->now, h->lease.period->lease);
    }
}

/* What has passed meanwhile is not told. */
static void tell_danger(struct handle *h, int64_t now, struct handle_update *up)
{
    struct handle_extra *x = h->extra;
    int64_t deadline = lease_deadline(&h->lease);
    if (deadline == 0)
        x->dangers = 0;
    if (!x->failing)
        x->dangers &= (uint8_t)~DANGER_RENEWALS;
    if (!x->watchdog.is_half_over)
        x->dangers &= (uint8_t)~DANGER_SILENCE;
    if (x->dangers == 0 || x->warning || !x->tells_danger)
        return;
    if (x->watchdog.is_half_over && x->watchdog.ends_at < deadline)
        deadline = x->watchdog.ends_at;
    x->dangers = 0;
    x->warning = true;
    up->endangered = true;
    up->left = deadline - now;
}

/* Who has resigned is a candidate again after the pause; an acquire that was postponed begins. */
static void come_back(struct handle *h, int64_t now)
{
    if (h->resigned == RESIGNED_LEAVING && handle_is_idle(h)) {
        h->resigned = RESIGNED_PAUSED;
        h->pause = later(now, h->pause);
    }
    bool again = h->resigned == RESIGNED_PAUSED && now >= h->pause;
    bool postponed = is_postponed(h) && h->lease.state != LEASE_HOLDING;
    if (again)
        h->resigned = RESIGNED_NOT;
    if (postponed)
        h->extra->postponed = false;
    if (again || postponed)
        lease_start(&h->lease, now, now);
}

static void tell_end(struct handle *h, struct handle_update *up)
{
    bool stopped = h->extra != NULL && h->extra->stopped;
    if (stopped && h->callback == CALLBACK_NONE) {
        h->extra->stopped = false;
        submit(h, CALLBACK_STOPPED, SIMBA_UNCHANGED, up);
    }
    if (h->closing && !h->closed && handle_is_idle(h))
        submit(h, CALLBACK_CLOSED, SIMBA_UNCHANGED, up);
}

void handle_step(struct handle *h, const struct handle_event *e, struct handle_update *up)
{
    *up = (struct handle_update){.send = false};
    int64_t now = e->now;

    heard(h, now, lease_expire(&h->lease, now), up);
    if (h->extra != NULL)
        check_extra(h, e, up);
    if (h->waiting && now >= h->wait_until)
        end_wait(h, now, late_result(h), up);
    if (now >= h->drain_at) {
        if (h->lease.state == LEASE_HOLDING)
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
    if (lease_is_over(&h->lease) && !user_code_runs(h) && !is_kept(h)) {
        lease_user_code_done(&h->lease, now);
        h->acquired_submitted = false;
        h->drain_at = NEVER;
    }
    if (h->extra != NULL)
        tell_danger(h, now, up);
    come_back(h, now);
    if (h->status == SIMBA_STOPPING && handle_is_idle(h))
        move(h, STATUS_IDLE);
    tell_end(h, up);
    up->send = lease_poll(&h->lease, now, &up->request);
    if (!up->send && h->extra != NULL)
        up->send = publish_poll(h, now, &up->request);
}

bool handle_keeps(const struct handle *h)
{
    return is_kept(h) && lease_is_over(&h->lease);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t handle_next_wake(const struct handle *h)
{
    int64_t at = sooner(lease_next_wake(&h->lease), h->drain_at);
    if (h->kind == HANDLE_LOCKER)
        at = sooner(at, h->wait_until);
    else if (h->resigned == RESIGNED_PAUSED)
        at = sooner(at, h->pause);
    if (h->extra == NULL)
        return at;
    if (handle_keeps(h))
        at = sooner(at, h->extra->keep_until);
    if (lease_deadline(&h->lease) == 0)
        return at;
    if (h->extra->publishing != PUBLISHING_NOT)
        at = sooner(at, h->extra->publish_at);
    return sooner(at, h->extra->watchdog.check_at);
}
