/* worker_locker.c: lockers: one that blocks, one mutex at a time; and asynchronous ones, one for
 * each mutex, whose outcomes come by callback. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "lab/torture/worker.h"

#define PENDING 1 /* no code of an outcome */

struct locker {
    struct torture_worker *w;
    unsigned mutex;
    int64_t number;
    simba_locker *l;
    /* Of an asynchronous one: what done says, on a thread of the library … */
    _Atomic int acquired, released; /* PENDING, or the code */
    _Atomic uint64_t token_of_done;
    /* … and what only the main thread knows. */
    enum { FREE, ACQUIRING, HELD, RELEASING } phase;
    uint64_t token;
    int64_t next_at;
};

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    struct locker *k = data;
    (void)mutex;
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_LOST, state, clock_now());
}

static void on_closed(void *data)
{
    struct locker *k = data;
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_CLOSED, NULL, clock_now());
    free(k);
}

static struct locker *create(struct torture_worker *w, unsigned mutex)
{
    struct simba_handle_options o;
    char name[SIMBA_MUTEX_MAX + 1];
    struct locker *k = calloc(1, sizeof *k);
    if (k == NULL)
        _exit(EXIT_TROUBLE);
    k->w = w;
    k->mutex = mutex;
    k->number = w->handles++;
    worker_options(w, &o);
    o.on_lost = on_lost;
    o.on_closed = on_closed;
    o.data = k;
    if (simba_locker_create(w->client, torture_mutex(w->t, mutex, name), &o, &k->l) != 0)
        _exit(cli_fail(w->t->c, 0));
    return k;
}

static void create_all(struct torture_worker *w, struct locker **all)
{
    for (unsigned i = 0; i < w->t->mutexes; i++)
        all[i] = create(w, i);
}

static bool owns(void *handle, uint64_t token)
{
    return simba_locker_token(handle) == token;
}

/* Now and then it only asks; else it waits for up to three leases. */
static int64_t draw_timeout(struct torture_worker *w)
{
    if (rng_between(&w->random, 0, 10) == 0)
        return 0;
    return rng_between(&w->random, 1, 2 + 3 * w->t->period.lease / NS_PER_MS);
}

static void add_call(struct torture_worker *w, unsigned mutex, enum call_kind kind, int64_t limit,
                     int code, int64_t before)
{
    worker_add(w, (struct entry){.kind = ENTRY_CALL,
                                 .detail = (uint8_t)kind,
                                 .mutex = (uint16_t)mutex,
                                 .limit = limit,
                                 .code = code,
                                 .before = before,
                                 .after = clock_now()});
}

static void add_leave(struct torture_worker *w, unsigned mutex, uint64_t token, int code,
                      int64_t before)
{
    worker_add(w, (struct entry){.kind = ENTRY_LEAVE,
                                 .mutex = (uint16_t)mutex,
                                 .token = token,
                                 .code = code,
                                 .before = before,
                                 .after = clock_now()});
}

/* ---- one that blocks ----------------------------------------------------------------------- */

/* C9: with timeout 0 it waits for one attempt and what a renewal may take. */
static bool acquire(struct locker *k)
{
    const struct period *p = &k->w->t->period;
    int64_t timeout_ms = draw_timeout(k->w), before = clock_now();
    int64_t limit = timeout_ms > 0 ? timeout_ms * NS_PER_MS : p->patience + p->attempt;
    worker_wants(k->w, k->mutex, true);
    int rc = simba_locker_acquire(k->l, timeout_ms);
    worker_wants(k->w, k->mutex, false);
    add_call(k->w, k->mutex, CALL_ACQUIRE, limit, rc, before);
    return rc == 0;
}

static void release(struct locker *k)
{
    int64_t before = clock_now();
    int rc = simba_locker_release(k->l);
    add_leave(k->w, k->mutex, k->token, rc, before);
    if (k->token != 0) /* it must say no from the call on */
        worker_says_yes(k->w, k->mutex, k->token, owns, k->l);
    add_call(k->w, k->mutex, CALL_RELEASE, k->w->t->period.patience, rc, before);
}

static void obey(struct torture_worker *w, struct locker **all, enum fault fault, unsigned mutex)
{
    if (fault == FAULT_STOP) {
        simba_locker_destroy(all[mutex]->l);
        all[mutex] = create(w, mutex);
    } else if (fault == FAULT_CLOSE) {
        worker_close(w);
        worker_open(w);
        create_all(w, all);
    }
}

static void hold(struct locker *k)
{
    struct torture_worker *w = k->w;
    int64_t until = clock_now() + worker_draw_hold(w);
    k->token = simba_locker_token(k->l);
    worker_began(w, k->mutex);
    while (k->token != 0 && worker_says_yes(w, k->mutex, k->token, owns, k->l) &&
           clock_now() < until && !worker_must_end(w))
        worker_sleep(STEP);
    release(k);
}

void lockers_run(struct torture_worker *w)
{
    struct locker *all[MUTEXES_MAX] = {NULL};
    enum fault fault;
    unsigned mutex;
    create_all(w, all);
    while (!worker_must_end(w)) {
        if (worker_take_order(w, &fault, &mutex))
            obey(w, all, fault, mutex);
        struct locker *k = all[rng_between(&w->random, 0, (int64_t)w->t->mutexes)];
        if (acquire(k))
            hold(k);
        worker_sleep(rng_between(&w->random, 0, w->t->period.lease / 50) + 1);
    }
}

/* ---- asynchronous ones --------------------------------------------------------------------- */

static void on_acquire_done(void *data, int code)
{
    struct locker *k = data;
    int64_t before = clock_now();
    atomic_store(&k->token_of_done, code == 0 ? simba_locker_token(k->l) : 0);
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_DONE, NULL, before);
    atomic_store(&k->acquired, code);
}

static void on_release_done(void *data, int code)
{
    struct locker *k = data;
    worker_add_callback(k->w, k->mutex, k->number, CALLBACK_DONE, NULL, clock_now());
    atomic_store(&k->released, code);
}

static void pause_for(struct locker *k)
{
    k->phase = FREE;
    k->next_at = clock_now() + rng_between(&k->w->random, 0, k->w->t->period.lease / 10);
}

static void begin_acquire(struct locker *k)
{
    atomic_store(&k->acquired, PENDING);
    worker_wants(k->w, k->mutex, true);
    if (simba_locker_acquire_async(k->l, draw_timeout(k->w), on_acquire_done, k) == 0) {
        k->phase = ACQUIRING;
        return;
    }
    worker_wants(k->w, k->mutex, false);
    pause_for(k);
}

/* Who has lost it has to release it, too, but does not leave by itself. */
static void begin_release(struct locker *k, bool is_owner)
{
    int64_t before = clock_now();
    atomic_store(&k->released, PENDING);
    int rc = simba_locker_release_async(k->l, on_release_done, k);
    if (rc == 0 && is_owner)
        add_leave(k->w, k->mutex, k->token, 0, before);
    k->phase = rc == 0 ? RELEASING : FREE;
}

static void step(struct locker *k)
{
    assert(k != NULL);
    int64_t now = clock_now();
    int acquired = atomic_load(&k->acquired);
    if (k->phase == FREE && now >= k->next_at) {
        begin_acquire(k);
    } else if (k->phase == ACQUIRING && acquired != PENDING) {
        worker_wants(k->w, k->mutex, false);
        if (acquired != 0) {
            pause_for(k);
            return;
        }
        k->token = atomic_load(&k->token_of_done);
        k->next_at = now + worker_draw_hold(k->w);
        k->phase = HELD;
        worker_began(k->w, k->mutex);
    } else if (k->phase == RELEASING && atomic_load(&k->released) != PENDING) {
        pause_for(k);
    } else if (k->phase == RELEASING && k->token != 0) {
        worker_says_yes(k->w, k->mutex, k->token, owns, k->l);
    }
    if (k->phase != HELD)
        return;
    bool is_yes = k->token != 0 && worker_says_yes(k->w, k->mutex, k->token, owns, k->l);
    if (!is_yes || now >= k->next_at)
        begin_release(k, is_yes);
}

static struct locker *replace(struct locker *k)
{
    struct torture_worker *w = k->w;
    unsigned mutex = k->mutex;
    bool is_owner = k->phase == HELD && owns(k->l, k->token);
    uint64_t token = k->token; /* k may be gone when it is closed */
    int64_t before = clock_now();
    if (k->phase == ACQUIRING)
        worker_wants(w, mutex, false);
    simba_locker_destroy(k->l);
    if (is_owner)
        add_leave(w, mutex, token, 0, before);
    return create(w, mutex);
}

static void leave_all(struct torture_worker *w, struct locker **all)
{
    for (unsigned i = 0; i < w->t->mutexes; i++) {
        struct locker *k = all[i];
        assert(k != NULL);
        if (k->phase == ACQUIRING)
            worker_wants(w, i, false);
        if (k->phase == HELD)
            begin_release(k, owns(k->l, k->token));
    }
}

static void obey_async(struct torture_worker *w, struct locker **all, enum fault fault,
                       unsigned mutex)
{
    struct locker *k = all[mutex];
    if (fault == FAULT_STOP) {
        all[mutex] = replace(k);
    } else if (fault == FAULT_RESIGN && k->phase == ACQUIRING) {
        simba_locker_cancel(k->l); /* done says how it ended */
    } else if (fault == FAULT_RESIGN && k->phase == HELD) {
        begin_release(k, owns(k->l, k->token));
    } else if (fault == FAULT_CLOSE) {
        leave_all(w, all);
        worker_close(w);
        worker_open(w);
        create_all(w, all);
    }
}

void async_lockers_run(struct torture_worker *w)
{
    struct locker *all[MUTEXES_MAX] = {NULL};
    enum fault fault;
    unsigned mutex;
    create_all(w, all);
    while (!worker_must_end(w)) {
        if (worker_take_order(w, &fault, &mutex))
            obey_async(w, all, fault, mutex);
        for (unsigned i = 0; i < w->t->mutexes; i++)
            step(all[i]);
        worker_sleep(STEP);
    }
    leave_all(w, all);
}
