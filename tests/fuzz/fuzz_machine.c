/* fuzz_machine.c: the machines fed with arbitrary events in any order, as far as the runtime could
 * ever deliver them: answers to any request with any content, at any time, callbacks, users. No
 * assert may trip and the promises that need no second contender must hold. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/handle.h"

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0 && in->left > 0) {
        value = value << 8 | *in->at++;
        in->left--;
    }
    return value;
}

struct run {
    int64_t reported_at;
    struct handle h;
    int64_t now;
    struct lease_request sent[8]; /* the last few */
    size_t sends;
    bool calling, holding;
    enum handle_callback last;
    uint64_t tenure, last_tenure;
};

static void check(struct run *r, const struct handle_update *up)
{
    const struct handle *h = &r->h;
    if (up->send) {
        bool runs = r->calling || r->holding;
        /* These two are no work under the mutex. */
        bool apart = h->callback == CALLBACK_CLOSED || h->callback == CALLBACK_STOPPED;
        assert(up->request.op != SIMBA_RELEASE || (up->request.token != 0 && !runs) || apart);
        assert(up->request.op != SIMBA_RELEASE || !handle_warns(h));
        r->sent[r->sends++ % 8] = up->request;
    }
    if (up->callback != CALLBACK_NONE) {
        assert(!r->calling);
        r->calling = true;
    }
    if (up->has_result && up->code == 0)
        r->holding = h->held;
    int64_t deadline = lease_deadline(&h->lease);
    assert(deadline == 0 || deadline > r->now);
    assert(deadline == 0 || deadline <= r->now + h->lease.period->lease);
    bool waits_for_user =
        h->callback != CALLBACK_NONE || h->acquired_ran || h->held || handle_warns(h);
    assert(handle_next_wake(h) != NEVER || waits_for_user || handle_is_idle(h));
}

static void step(struct run *r, struct handle_event e)
{
    struct handle_update up;
    e.now = r->now;
    e.reported_at = r->reported_at;
    handle_step(&r->h, &e, &up);
    check(r, &up);
}

static void reply(struct run *r, struct input *in)
{
    static const char *const owners[] = {"", "me", "other"};
    static const int codes[] = {0, 0, 0, SIMBA_ELOST, SIMBA_ESTORE, SIMBA_EINVAL, SIMBA_ECANCELED};
    if (r->sends == 0)
        return;
    size_t back = take(in, 1) % (r->sends < 8 ? r->sends : 8);
    uint64_t random = take(in, 2);
    struct lease_reply m = {.request = r->sent[(r->sends - 1 - back) % 8]};
    m.code = codes[random % 7];
    m.owner = owners[random / 7 % 3];
    m.granted = m.request.op == SIMBA_CONTEND && (random / 21) % 2 == 1 && m.owner[0] == 'm';
    m.token = m.owner[0] == '\0' ? 0 : take(in, 1);
    m.left = (int64_t)take(in, 2) * NS_PER_MS;
    step(r, (struct handle_event){.kind = HANDLE_REPLY, .reply = &m});
}

static void use(struct run *r, struct input *in)
{
    struct handle *h = &r->h;
    bool locker = h->kind == HANDLE_LOCKER;
    if (h->closing) {
        step(r, (struct handle_event){.kind = HANDLE_CLOSE});
    } else if (locker && h->held) {
        r->holding = false;
        step(r, (struct handle_event){.kind = HANDLE_RELEASE});
    } else if (locker && !h->waiting && !h->leaving) {
        struct handle_event e = {.kind = HANDLE_ACQUIRE, .at = NEVER};
        e.once = take(in, 1) % 4 == 0;
        if (!e.once)
            e.at = r->now + (int64_t)take(in, 2) * NS_PER_MS;
        step(r, e);
    } else if (locker) {
        step(r, (struct handle_event){.kind = HANDLE_CANCEL});
    } else if (h->status == SIMBA_INITIAL) {
        int64_t at = r->now + (int64_t)take(in, 1) * NS_PER_MS;
        step(r, (struct handle_event){.kind = HANDLE_START, .at = at});
    } else if (h->status == SIMBA_RUNNING && take(in, 1) % 2 == 0) {
        step(r, (struct handle_event){.kind = HANDLE_RESIGN,
                                      .token = h->lease.token,
                                      .at = (int64_t)take(in, 2) * NS_PER_MS});
    } else if (h->status != SIMBA_STOPPING) {
        step(r, (struct handle_event){.kind = HANDLE_STOP});
    }
}

static void act(struct run *r, struct input *in)
{
    switch (take(in, 1) % 8) {
    case 0:
    case 1:
        reply(r, in);
        break;
    case 2:
        use(r, in);
        break;
    case 3:
        step(r, (struct handle_event){.kind = HANDLE_HINT});
        break;
    case 4:
        if (r->calling) {
            r->calling = false;
            step(r, (struct handle_event){.kind = HANDLE_DONE, .ran = take(in, 1) % 4 != 0});
        }
        break;
    case 5:
        if (handle_warns(&r->h))
            step(r, (struct handle_event){.kind = HANDLE_WARNED});
        r->reported_at = take(in, 1) % 8 == 0 ? NEVER : r->now;
        if (take(in, 1) % 16 == 0)
            r->holding = false;
        if (!r->holding && take(in, 1) % 16 == 0)
            step(r, (struct handle_event){.kind = HANDLE_CLOSE});
        break;
    case 6: /* the alarm, in time */
        if (handle_next_wake(&r->h) != NEVER && handle_next_wake(&r->h) > r->now)
            r->now = handle_next_wake(&r->h);
        step(r, (struct handle_event){.kind = HANDLE_EXPIRE});
        break;
    default: /* some time later */
        r->now += (int64_t)take(in, 2) * NS_PER_MS / 4;
        step(r, (struct handle_event){.kind = HANDLE_EXPIRE});
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct period period;
    struct period_options options = {-1, -1, -1, -1, -1, -1, -1};
    const char *why;
    uint64_t random = take(&in, 1);
    if (random & 1) {
        options.ttl_ms = 1 + (int64_t)take(&in, 2);
        options.transition_ms = (int64_t)take(&in, 2);
        options.renew_ms = (int64_t)take(&in, 2) - 1;
    }
    if (period_init(&period, &options, &why) != 0)
        return 0;
    struct run r = {.now = 1000 * NS_PER_MS};
    bool locker = (random & 2) != 0;
    struct handle_extra extra = {
        .tells_danger = true, .tells_stopped = !locker, .has_note = (random & 32) != 0};
    if (random & 16) {
        extra.at_least = (int64_t)take(&in, 2) * NS_PER_MS;
        extra.watchdog.limit = locker ? 0 : (int64_t)take(&in, 2) * NS_PER_MS;
    }
    handle_init(&r.h, locker ? HANDLE_LOCKER : HANDLE_CONTENDER, 5000 * NS_PER_MS, &period, "me",
                (random & 4) != 0, (random & 8) != 0, random, random & 16 ? &extra : NULL);
    while (in.left > 0)
        act(&r, &in);
    return 0;
}
