/* test_handle_random.c: anything that can happen, in any order, to one handle. The store answers
 * late, twice, never, and whatever it likes; users and callbacks come when they may come. After
 * every step unit/machine.h checks what must be so: no assert fails, a wake-up is due unless user
 * code runs or all is idle, no release while user code runs, callbacks alternate, no right to act
 * beyond what a request can have given. And in the end everything can be closed. */
#include "unit/machine.h"

#define LIVES 400
#define STEPS 250 /* of one life, before it is closed */
#define STEPS_TO_CLOSE 40
#define MEMORY 6 /* so many requests back a late answer may reach */

static bool toss(uint64_t *random, int64_t percent)
{
    return rng_between(random, 0, 100) < percent;
}

static struct handle_event user_event(const struct handle *h, uint64_t *random)
{
    struct handle_event e = {.kind = HANDLE_EXPIRE, .at = NEVER};
    if (h->callback != CALLBACK_NONE && toss(random, 60)) {
        e.kind = HANDLE_DONE;
        e.ran = h->callback != CALLBACK_ACQUIRED || toss(random, 80);
    } else if (handle_warns(h) && toss(random, 50)) {
        e.kind = HANDLE_WARNED;
    } else if (h->held && toss(random, 40)) {
        e.kind = HANDLE_RELEASE;
    } else if (h->closing || toss(random, 1)) {
        e.kind = toss(random, 90)   ? HANDLE_EXPIRE
                 : toss(random, 50) ? HANDLE_CLOSE
                                    : HANDLE_DESTROY;
    } else if (h->kind == HANDLE_CONTENDER) {
        if (h->status == SIMBA_INITIAL && toss(random, 70))
            e.kind = HANDLE_START;
        else if (toss(random, 30))
            e.kind = HANDLE_STOP;
        else if (toss(random, 30))
            e = (struct handle_event){.kind = HANDLE_RESIGN,
                                      .token = h->lease.token - (toss(random, 10) ? 1 : 0),
                                      .at = toss(random, 50) ? 0 : h->lease.period->lease};
    } else if (!h->held && !h->waiting && !h->leaving) {
        e.kind = HANDLE_ACQUIRE;
        e.once = toss(random, 30);
    } else if (toss(random, 5)) {
        e.kind = HANDLE_CANCEL;
    }
    return e;
}

static struct lease_reply any_reply(const struct machine *m, uint64_t *random)
{
    static const int codes[] = {SIMBA_ELOST, SIMBA_ESTORE, SIMBA_EDENIED, SIMBA_EINVAL};
    static const char *const owners[] = {"me", "me", "bob", ""};
    const struct lease *l = &m->handle.lease;
    uint64_t most = m->sent_last < MEMORY ? m->sent_last : MEMORY;
    uint64_t back = toss(random, 60) ? 0 : rng_next(random) % most;
    struct lease_reply r = {.request = m->sent[(m->sent_last - back) % MACHINE_SENT]};
    const uint64_t tokens[] = {
        0, l->token, l->token + 1, l->token + 2, l->token / 2, l->to_release};
    r.token = tokens[rng_next(random) % COUNT(tokens)];
    r.granted = r.request.op == SIMBA_CONTEND && toss(random, 50);
    r.owner = r.granted ? "me" : owners[rng_next(random) % COUNT(owners)];
    r.left = toss(random, 60) ? m->period.lease : rng_between(random, 0, 2 * m->period.lease);
    if (toss(random, 10))
        r.left = 0;
    if (toss(random, 25))
        r.code = codes[rng_next(random) % COUNT(codes)];
    return r;
}

static struct lease_reply any_publication(const struct machine *m, uint64_t *random)
{
    static const int codes[] = {0, 0, SIMBA_ELOST, SIMBA_ESTORE, SIMBA_EUNSUPPORTED};
    uint64_t most = m->publications < MEMORY ? m->publications : MEMORY;
    uint64_t back = toss(random, 60) ? 0 : rng_next(random) % most;
    return (struct lease_reply){.request = m->publication[(m->publications - back) % MACHINE_SENT],
                                .owner = "",
                                .code = codes[rng_next(random) % COUNT(codes)]};
}

static int64_t later(const struct machine *m, uint64_t *random)
{
    int64_t next = handle_next_wake(&m->handle);
    int64_t span = m->period.lease;
    if (toss(random, 50))
        return m->now + rng_between(random, 0, span / 1000);
    if (toss(random, 70) && next != NEVER)
        return (next > m->now ? next : m->now) + rng_between(random, 0, 2);
    return m->now + rng_between(random, 0, toss(random, 80) ? span / 8 : 2 * span);
}

static void any_step(struct machine *m, uint64_t *random)
{
    struct handle_event e = {.kind = HANDLE_EXPIRE};
    struct lease_reply reply;
    if (m->publications > 0 && toss(random, 10)) {
        reply = any_publication(m, random);
        e.kind = HANDLE_REPLY;
        e.reply = &reply;
    } else if (m->sent_last > 0 && toss(random, 50)) {
        reply = any_reply(m, random);
        e.kind = HANDLE_REPLY;
        e.reply = &reply;
    } else if (toss(random, 60)) {
        e = user_event(&m->handle, random);
    } else if (toss(random, 30)) {
        e.kind = HANDLE_HINT;
    }
    e.now = later(m, random);
    if (toss(random, 30))
        m->reported_at = toss(random, 20) ? NEVER : m->now;
    if ((e.kind == HANDLE_ACQUIRE && !e.once && toss(random, 70)) || e.kind == HANDLE_START)
        e.at = e.now + rng_between(random, 0, m->period.lease);
    m->done[0] = '\0';
    machine_step(m, e);
}

/* The store is gone for good; callbacks return. Every wake-up is taken when it is due. */
static void close_all(struct machine *m)
{
    struct handle *h = &m->handle;
    machine_step(m, (struct handle_event){.kind = HANDLE_DESTROY, .now = m->now});
    for (int i = 0; i < STEPS_TO_CLOSE && !(h->closed && handle_is_idle(h)); i++) {
        struct handle_event e = {.kind = HANDLE_EXPIRE, .now = m->now, .ran = true};
        if (h->callback != CALLBACK_NONE)
            e.kind = HANDLE_DONE;
        else if (handle_warns(h))
            e.kind = HANDLE_WARNED;
        else if (handle_next_wake(h) > m->now)
            e.now = handle_next_wake(h);
        assert_true(e.now != NEVER);
        m->done[0] = '\0';
        machine_step(m, e);
    }
    assert_true(h->closed && handle_is_idle(h));
    assert_false(h->waiting || h->leaving || h->held);
    assert_true(handle_next_wake(h) == NEVER);
    assert_int_equal(h->status, SIMBA_INITIAL);
}

static void live(enum handle_kind kind, uint64_t seed)
{
    static const struct period_options shortest = {50, 0, -1, -1, -1, -1, -1};
    struct machine m;
    uint64_t random = seed;
    const char *why;
    int64_t drain_ms = toss(&random, 50) ? 30000 : rng_between(&random, 0, 100);
    unsigned flags = (unsigned)rng_next(&random) & (CHOSEN_ID | QUEUES | NOTED);
    if (toss(&random, 50))
        machine_init(&m, kind, flags, drain_ms);
    else
        machine_init_extra(&m, kind, flags,
                           kind == HANDLE_CONTENDER ? rng_between(&random, 0, 20000) : 0,
                           rng_between(&random, 0, 2) * rng_between(&random, 0, 10000));
    if (toss(&random, 30))
        assert_int_equal(period_init(&m.period, &shortest, &why), 0);
    for (int step = 0; step < STEPS; step++)
        any_step(&m, &random);
    close_all(&m);
    for (int step = 0; step < STEPS / 10; step++) /* answers may still come */
        any_step(&m, &random);
}

/* shows: C3 */
static void contender_survives_everything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= LIVES; seed++)
        live(HANDLE_CONTENDER, seed);
}

static void locker_survives_everything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= LIVES; seed++)
        live(HANDLE_LOCKER, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contender_survives_everything),
        cmocka_unit_test(locker_survives_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
