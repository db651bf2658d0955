/* worker_contender.c: contenders, one for each mutex, with the library's thread or in a loop of the
 * worker's own (SIMBA_NO_THREAD). The main thread asks whether it owns, and leaves; callbacks come
 * on threads of the library, and meet the main thread in atomics only. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "lab/torture/worker.h"

#define ENDANGERED_NS (5 * NS_PER_MS)

enum phase {
    IDLE,       /* not started, until resume_at */
    CONTENDING, /* or in the pause of a resignation, until resume_at */
    OWNING,
    ENDING,  /* until on_released has ended */
    STOPPING /* until on_stopped */
};

struct contender {
    struct torture_worker *w;
    unsigned mutex;
    int64_t number; /* of all handles of this worker */
    simba_contender *c;
    uint64_t random;            /* of the callbacks */
    _Atomic uint64_t announced; /* on_acquired began for this token … */
    _Atomic uint64_t released;  /* … and on_released ended */
    _Atomic bool is_stopped;

    enum phase phase; /* of the main thread, with all below */
    uint64_t token;
    int64_t leave_at, resume_at;
    bool wants;
    int64_t lie_until; /* claims to own it until then, though it does not */
};

/* ---- callbacks ----------------------------------------------------------------------------- */

static void work(struct contender *k)
{
    int64_t ns = draw_callback(k->w, &k->random);
    if (k->w->kind == WORKER_LOOP)
        ns /= 8; /* nothing is renewed meanwhile */
    worker_sleep(ns);
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct contender *k = data;
    int64_t before = clock_now();
    (void)mutex;
    atomic_store(&k->announced, state->after.token);
    work(k);
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_ACQUIRED, state, before);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct contender *k = data;
    int64_t before = clock_now();
    (void)mutex;
    work(k);
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_RELEASED, state, before);
    atomic_store(&k->released, state->before.token);
}

static void on_endangered(void *data, const char *mutex, int64_t left_ms)
{
    struct contender *k = data;
    int64_t before = clock_now();
    (void)mutex;
    (void)left_ms;
    worker_sleep(ENDANGERED_NS); /* on_released waits for it */
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_ENDANGERED, NULL, before);
}

static void on_stopped(void *data)
{
    struct contender *k = data;
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_STOPPED, NULL, clock_now());
    atomic_store(&k->is_stopped, true);
}

static void on_closed(void *data)
{
    struct contender *k = data;
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_CLOSED, NULL, clock_now());
    free(k);
}

/* ---- the main thread ----------------------------------------------------------------------- */

static struct contender *create(struct torture_worker *w, unsigned mutex)
{
    struct simba_handle_options o;
    char name[SIMBA_MUTEX_MAX + 1];
    struct contender *k = calloc(1, sizeof *k);
    if (k == NULL)
        _exit(EXIT_TROUBLE);
    k->w = w;
    k->mutex = mutex;
    k->number = w->handles++;
    k->random = rng_next(&w->random);
    worker_options(w, &o);
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_endangered = on_endangered;
    o.on_stopped = on_stopped;
    o.on_closed = on_closed;
    o.data = k;
    if (simba_contender_create(w->client, torture_mutex(w->t, mutex, name), &o, &k->c) != 0)
        _exit(cli_fail(w->t->c, 0));
    return k;
}

static void set_wants(struct contender *k, bool wants)
{
    assert(k != NULL);
    if (k->wants != wants)
        worker_wants(k->w, k->mutex, wants);
    k->wants = wants;
}

static bool owns(void *handle, uint64_t token)
{
    return simba_contender_owns(handle, token);
}

static bool lies(void *handle, uint64_t token)
{
    (void)handle;
    (void)token;
    return true;
}

static void leave(struct contender *k, bool stops)
{
    struct torture_worker *w = k->w;
    int64_t lease = w->t->period.lease, pause = rng_between(&w->random, 0, lease / 4);
    struct entry e = {.kind = ENTRY_LEAVE, .mutex = (uint16_t)k->mutex, .token = k->token};
    e.before = clock_now();
    if (stops)
        e.code = simba_contender_stop(k->c);
    else
        e.code = simba_contender_resign(k->c, pause / NS_PER_MS);
    e.after = clock_now();
    if (e.code != 0)
        return; /* it has just been lost */
    worker_add(w, e);
    worker_says_yes(w, k->mutex, k->token, owns, k->c); /* the judge wants to hear no */
    if (w->t->is_lying && w->number == 0)
        k->lie_until = e.after + lease;
    k->resume_at = e.after + pause + lease / 4; /* the pause counts from the release on */
    k->phase = stops ? STOPPING : ENDING;
}

static void step_owning(struct contender *k, int64_t now)
{
    if (!worker_says_yes(k->w, k->mutex, k->token, owns, k->c))
        k->phase = ENDING;
    else if (now >= k->leave_at)
        leave(k, rng_between(&k->w->random, 0, 4) == 0);
}

static void step_contending(struct contender *k, int64_t now)
{
    uint64_t token = simba_contender_token(k->c);
    if (token == 0) {
        if (now >= k->resume_at)
            set_wants(k, true);
        return;
    }
    set_wants(k, false);
    k->token = token;
    k->lie_until = 0;
    k->leave_at = now + worker_draw_hold(k->w);
    k->phase = OWNING;
    worker_began(k->w, k->mutex);
    step_owning(k, now);
}

static void step(struct contender *k)
{
    assert(k != NULL);
    int64_t now = clock_now();
    if (now < k->lie_until)
        worker_says_yes(k->w, k->mutex, k->token, lies, NULL);
    if (k->phase == ENDING || k->phase == STOPPING) /* it must say no from the call on */
        worker_says_yes(k->w, k->mutex, k->token, owns, k->c);
    switch (k->phase) {
    case IDLE:
        if (now >= k->resume_at && simba_contender_start(k->c) == 0)
            k->phase = CONTENDING;
        break;
    case CONTENDING:
        step_contending(k, now);
        break;
    case OWNING:
        step_owning(k, now);
        break;
    case ENDING: /* a tenure that was over before its turn came is not announced */
        if (atomic_load(&k->announced) != k->token || atomic_load(&k->released) == k->token)
            k->phase = CONTENDING;
        break;
    case STOPPING:
        if (atomic_exchange(&k->is_stopped, false))
            k->phase = IDLE;
        break;
    }
}

static void stop(struct contender *k)
{
    if (k->phase == OWNING) {
        leave(k, true);
    } else if (k->phase != IDLE && k->phase != STOPPING && simba_contender_stop(k->c) == 0) {
        set_wants(k, false);
        k->phase = STOPPING;
        k->resume_at = clock_now();
    }
}

static void leave_all(struct torture_worker *w, struct contender **all)
{
    for (unsigned i = 0; i < w->t->mutexes; i++) {
        set_wants(all[i], false);
        if (all[i]->phase == OWNING)
            leave(all[i], true);
    }
}

static void obey(struct torture_worker *w, struct contender **all, enum fault fault, unsigned mutex)
{
    struct contender *k = all[mutex];
    if (fault == FAULT_STOP) {
        stop(k);
    } else if (fault == FAULT_RESIGN && k->phase == OWNING) {
        leave(k, false);
    } else if (fault == FAULT_CLOSE) {
        leave_all(w, all);
        worker_close(w);
        worker_open(w);
        for (unsigned i = 0; i < w->t->mutexes; i++)
            all[i] = create(w, i);
    }
}

/* Lets the library work, and callbacks come. Before it works it is asked: whoever was frozen here
 * must hear no from the clock alone. */
static void drive(struct torture_worker *w, struct contender **all)
{
    int64_t timeout = simba_poll_timeout(w->client);
    struct pollfd fd = {simba_poll_fd(w->client), POLLIN, 0};
    poll(&fd, 1, timeout == 0 ? 0 : 1);
    for (unsigned i = 0; i < w->t->mutexes; i++) {
        const struct contender *k = all[i];
        assert(k != NULL);
        if (k->phase == OWNING)
            worker_says_yes(w, i, k->token, owns, k->c);
    }
    simba_poll(w->client);
}

void contenders_run(struct torture_worker *w)
{
    struct contender *all[MUTEXES_MAX] = {NULL};
    enum fault fault;
    unsigned mutex;
    for (unsigned i = 0; i < w->t->mutexes; i++)
        all[i] = create(w, i);
    while (!worker_must_end(w)) {
        if (worker_take_order(w, &fault, &mutex))
            obey(w, all, fault, mutex);
        for (unsigned i = 0; i < w->t->mutexes; i++)
            step(all[i]);
        if (w->kind == WORKER_LOOP)
            drive(w, all);
        else
            worker_sleep(STEP);
    }
    leave_all(w, all);
}
