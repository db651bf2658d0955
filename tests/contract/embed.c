/* embed.c: a client without a thread of its own, driven by a loop of the user's
 * (SIMBA_NO_THREAD); and its metrics, and who is woken by a push. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "suite.h"

static simba_client *open_embedded(void)
{
    struct simba_options o = suite_options();
    simba_client *s;
    o.flags = SIMBA_NO_THREAD;
    if (!suite_is_memory())
        o.command_timeout_ms = PATIENCE_MS / 5; /* where nobody polls, it is waited for twice */
    CHECK_OK(simba_open(suite_url(), &o, &s));
    return s;
}

/* One turn of a loop that has nothing else to do; the descriptor is inside another epoll. */
static void turn(simba_client *s, int64_t at_most_ms)
{
    int outer = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    CHECK_OK(epoll_ctl(outer, EPOLL_CTL_ADD, simba_poll_fd(s), &e));
    int64_t wait = simba_poll_timeout(s);
    if (wait < 0 || wait > at_most_ms)
        wait = at_most_ms;
    CHECK(epoll_wait(outer, &e, 1, (int)wait) >= 0);
    CHECK_OK(simba_poll(s));
    close(outer);
}

#define DRIVE(s, cond)                                             \
    do {                                                           \
        int64_t drive_until_ = simba_now() + PATIENCE_MS;          \
        while (!(cond)) {                                          \
            if (simba_now() > drive_until_)                        \
                suite_fail(__FILE__, __LINE__, "in time: " #cond); \
            turn(s, 1000);                                         \
        }                                                          \
    } while (0)

static pthread_t driver;

static void note_thread(struct probe *p)
{
    (void)p;
    CHECK(pthread_equal(pthread_self(), driver));
}

/* Callbacks come inside simba_poll, on this thread. Nothing but the descriptor wakes us: a turn
 * of the loop waits for a second. */
static void embed_leads(void)
{
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_steady();
    struct probe p = {.in_acquired = note_thread, .in_released = note_thread};
    driver = pthread_self();
    probe_create(&p, s, fresh("embedded"), &o);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(simba_contender_start(p.c));
        DRIVE(s, probe_leads(&p));
        CHECK_OK(simba_contender_stop(p.c));
        DRIVE(s, simba_contender_status(p.c) == SIMBA_INITIAL);
        CHECK(atomic_load(&p.acquired) == i && atomic_load(&p.released) == i);
    }
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK(atomic_load(&p.closed) == 1);
}

/* The lease is kept by polling when the descriptor says so, for longer than it is. */
static void embed_renews(void)
{
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_steady();
    struct probe p = {0};
    probe_start(&p, s, fresh("kept"), &o);
    DRIVE(s, probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    int64_t until = simba_now() + o.ttl_ms + o.transition_ms + 500;
    while (simba_now() < until) {
        turn(s, until - simba_now());
        CHECK(simba_contender_owns(p.c, token));
    }
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

/* Whoever drives the client and waits, drives it meanwhile. */
static void embed_waits(void)
{
    struct heard heard = {0};
    struct simba_options options = suite_options();
    options.flags = SIMBA_NO_THREAD;
    options.trace = hear;
    options.trace_data = &heard;
    simba_client *s = NULL, *other = client_open();
    CHECK_OK(simba_open(suite_url(), &options, &s));
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    struct probe p = {0};
    simba_locker *l;
    const char *mutex = fresh("waits");
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner));
    CHECK(owner.token == 0);
    CHECK_OK(simba_locker_create(s, mutex, NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_read(other, mutex, PATIENCE_MS, &owner));
    CHECK(owner.token == simba_locker_token(l));
    CHECK_OK(simba_locker_release(l));
    probe_start(&p, other, mutex, &o);
    AWAIT(probe_leads(&p));
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    hear_anew(&heard);
    check_in_vain(&heard, simba_locker_acquire(l, 200), 200, s);
    struct probe q = {0};
    probe_start(&q, s, fresh("waits"), &o);
    CHECK_OK(simba_contender_wait(q.c, SIMBA_RUNNING, PATIENCE_MS));
    DRIVE(s, probe_leads(&q));
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.owned == 1 && m.handles == 2);
    CHECK(simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, NULL, 0) > 1000);
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK_CODE(simba_poll_fd(other), SIMBA_EINVAL);
    CHECK_CODE(simba_poll(other), SIMBA_EINVAL);
    CHECK(simba_poll_timeout(other) == SIMBA_EINVAL);
    client_close(other);
}

static const char *lock_name;

static void *lock_often(void *arg)
{
    simba_client *s = arg;
    simba_locker *l;
    CHECK_OK(simba_locker_create(s, lock_name, NULL, &l));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK(simba_locker_is_held(l));
        CHECK_OK(simba_locker_release(l));
    }
    simba_locker_destroy(l);
    return NULL;
}

static atomic_int finished;

static void *lock_and_finish(void *arg)
{
    lock_often(arg);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

/* Other threads may wait, as long as one drives. */
/* shows: C9 */
static void embed_other_threads(void)
{
    simba_client *s = open_embedded();
    lock_name = fresh("embedded");
    pthread_t a = spawn(lock_and_finish, s), b = spawn(lock_and_finish, s);
    DRIVE(s, atomic_load(&finished) == 2);
    join(a);
    join(b);
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

struct task {
    simba_client *s;
    simba_locker *l;
    const char *mutex;
    int64_t timeout_ms;
    int acquired, released;
    atomic_bool over;
};

static void *acquire_once(void *arg)
{
    struct task *t = arg;
    t->acquired = simba_locker_acquire(t->l, t->timeout_ms);
    atomic_store(&t->over, true);
    return NULL;
}

static void *cancel_soon(void *arg)
{
    AWAIT(simba_locker_cancel(arg) == 0);
    return NULL;
}

/* Another thread ends the wait of the one that drives, and that one the wait of another. */
/* shows: C9 */
static void embed_cancel(void)
{
    simba_client *s = open_embedded(), *other = client_open();
    struct task t = {.s = s, .mutex = fresh("canceled"), .timeout_ms = SIMBA_FOREVER};
    struct simba_handle_options o = lease_long();
    simba_locker *rival;
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &t.l));
    CHECK_OK(simba_locker_create(other, t.mutex, &o, &rival));
    CHECK_OK(simba_locker_acquire(rival, PATIENCE_MS));
    pthread_t thread = spawn(cancel_soon, t.l);
    CHECK_REFUSED(simba_locker_acquire(t.l, SIMBA_FOREVER), SIMBA_ECANCELED, "canceled");
    join(thread);
    thread = spawn(acquire_once, &t);
    DRIVE(s, simba_locker_cancel(t.l) == 0);
    DRIVE(s, atomic_load(&t.over));
    join(thread);
    CHECK(t.acquired == SIMBA_ECANCELED);
    CHECK_OK(simba_locker_release(rival));
    CHECK_OK(simba_locker_acquire(t.l, PATIENCE_MS));
    CHECK_OK(simba_close(s, PATIENCE_MS));
    client_close(other);
}

/* Nobody polls: none of these may wait longer than it was told to. */
static void *ask_in_vain(void *arg)
{
    struct task *t = arg;
    struct simba_owner owner;
    simba_contender *c;
    int64_t began = simba_now();
    CHECK_REFUSED(simba_locker_acquire(t->l, 200), SIMBA_ESTORE, "simba_poll");
    CHECK_CODE(simba_locker_acquire(t->l, 200), SIMBA_ESTORE);
    CHECK_CODE(simba_locker_acquire(t->l, 0), SIMBA_ESTORE);
    CHECK(!simba_locker_is_held(t->l));
    CHECK_CODE(simba_read(t->s, t->mutex, 100, &owner), SIMBA_ETIMEOUT);
    CHECK_CODE(simba_evict(t->s, t->mutex, NULL, false, 100), SIMBA_ETIMEOUT);
    CHECK_OK(simba_contender_create(t->s, t->mutex, NULL, &c));
    CHECK_OK(simba_contender_start(c));
    CHECK_CODE(simba_contender_wait(c, SIMBA_RUNNING, 100), SIMBA_ETIMEOUT);
    CHECK(simba_metrics_prometheus(&t->s, 1, SIMBA_PER_HANDLE, NULL, 0) == SIMBA_ETIMEOUT);
    simba_contender_destroy(c);
    CHECK(simba_now() - began < PATIENCE_MS);
    return NULL;
}

/* shows: C9 */
static void embed_nobody_polls(void)
{
    simba_client *s = open_embedded(), *other = client_open();
    struct simba_handle_options o = lease_long();
    struct task t = {.s = s, .mutex = fresh("unpolled"), .timeout_ms = PATIENCE_MS};
    simba_locker *rival;
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &t.l));
    CHECK_OK(simba_locker_create(other, t.mutex, &o, &rival));
    join(spawn(ask_in_vain, &t));
    CHECK_OK(simba_locker_acquire(rival, PATIENCE_MS)); /* nothing of it has reached the store */
    CHECK_OK(simba_locker_release(rival));
    pthread_t thread = spawn(acquire_once, &t); /* and all goes on as soon as somebody polls */
    DRIVE(s, atomic_load(&t.over));
    join(thread);
    CHECK_OK(t.acquired);
    CHECK_OK(simba_close(s, PATIENCE_MS));
    client_close(other);
}

static void *acquire_silent(void *arg)
{
    struct task *t = arg;
    for (int i = 0; i < 5; i++)
        CHECK_REFUSED(simba_locker_acquire(t->l, 100), SIMBA_ESTORE, "the store does not answer");
    atomic_store(&t->over, true);
    return NULL;
}

/* It is polled all the time: that there is no answer is the store's fault. */
static void embed_silent_store(void)
{
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_long();
    struct task t = {.s = s, .mutex = fresh("silent")};
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &t.l));
    store_set(HANG);
    pthread_t thread = spawn(acquire_silent, &t);
    DRIVE(s, atomic_load(&t.over));
    join(thread);
    store_set(HEALTHY);
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

/* The question is on its way when the polling ends: a grant that comes then is given back. */
/* shows: C8 */
static void embed_late_grant(void)
{
    simba_client *s = open_embedded(), *other = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_metrics m = SIMBA_METRICS_INIT;
    struct task t = {.s = s, .mutex = fresh("late"), .timeout_ms = 300};
    struct task u = {.s = other, .mutex = t.mutex, .timeout_ms = PATIENCE_MS};
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &t.l));
    CHECK_OK(simba_locker_create(other, t.mutex, &o, &u.l));
    store_delay(400);
    pthread_t thread = spawn(acquire_once, &t);
    while (m.attempts == 0) {
        CHECK_OK(simba_poll(s));
        CHECK_OK(simba_metrics_read(s, &m));
    }
    join(thread);
    CHECK_CODE(t.acquired, SIMBA_ESTORE);
    store_set(HEALTHY);
    thread = spawn(acquire_once, &u);
    DRIVE(s, atomic_load(&u.over));
    join(thread);
    CHECK_OK(u.acquired);
    CHECK(!simba_locker_is_held(t.l));
    CHECK_OK(simba_close(s, PATIENCE_MS));
    client_close(other);
}

static void *hold_and_release(void *arg)
{
    struct task *t = arg;
    t->acquired = simba_locker_acquire(t->l, t->timeout_ms);
    atomic_store(&t->over, true);
    while (atomic_load(&t->over))
        nap(1);
    t->released = simba_locker_release(t->l);
    return NULL;
}

/* Nobody hears of the release: it counts here at once, and the store hears of it later. */
/* shows: C9 */
static void embed_unheard_release(void)
{
    struct simba_options quick = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease_long();
    simba_client *s;
    quick.flags = SIMBA_NO_THREAD;
    quick.command_timeout_ms = suite_is_memory() ? 500 : 2000;
    CHECK_OK(simba_open(suite_url(), &quick, &s));
    struct task t = {.s = s, .mutex = fresh("unheard"), .timeout_ms = PATIENCE_MS};
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &t.l));
    pthread_t thread = spawn(hold_and_release, &t);
    DRIVE(s, atomic_load(&t.over));
    atomic_store(&t.over, false);
    join(thread);
    CHECK_OK(t.acquired);
    CHECK_CODE(t.released, SIMBA_ESTORE);
    CHECK(!simba_locker_is_held(t.l));
    thread = spawn(acquire_once, &t);
    join(thread);
    CHECK_CODE(t.acquired, SIMBA_ESTATE); /* until that is through */
    struct simba_owner owner = {.token = 1};
    AWAIT(simba_read(s, t.mutex, PATIENCE_MS, &owner) == 0 && owner.token == 0); /* we drive */
    CHECK_OK(simba_locker_acquire(t.l, PATIENCE_MS));
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

static void poll_inside(struct probe *p)
{
    CHECK_CODE(simba_poll(p->data), SIMBA_EDEADLOCK);
    CHECK_CODE(simba_close(p->data, 1000), SIMBA_EDEADLOCK);
    CHECK_CODE(simba_read(p->data, "x", 1000, &(struct simba_owner){.token = 0}), SIMBA_EDEADLOCK);
    simba_contender_destroy(p->c);
}

static void embed_callback_calls(void)
{
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_long();
    struct probe p = {.in_acquired = poll_inside, .data = s};
    probe_start(&p, s, fresh("inside"), &o);
    DRIVE(s, atomic_load(&p.closed) == 1);
    CHECK(atomic_load(&p.released) == 1);
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

/* Nobody owns after a stop, from the call on: here the loop cannot have seen it. */
/* shows: C4 */
static void stop_counts_at_once(void)
{
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_long();
    struct probe p = {0}, q = {0}, r = {0};
    simba_locker *l;
    probe_start(&p, s, fresh("stopped"), &o);
    probe_start(&q, s, fresh("destroyed"), &o);
    probe_start(&r, s, fresh("closed"), &o);
    CHECK_OK(simba_locker_create(s, fresh("locked"), &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    DRIVE(s, probe_leads(&p) && probe_leads(&q) && probe_leads(&r));
    uint64_t token = simba_contender_token(p.c);
    CHECK_OK(simba_contender_stop(p.c));
    CHECK(!simba_contender_is_owner(p.c) && !simba_contender_owns(p.c, token));
    CHECK(simba_contender_token(p.c) == 0 && simba_contender_remaining(p.c) == 0);
    simba_contender_destroy(q.c); /* still there until the loop has seen it */
    CHECK(!simba_contender_is_owner(q.c));
    simba_locker_destroy(l);
    CHECK(!simba_locker_is_held(l) && simba_locker_remaining(l) == 0);
    DRIVE(s, simba_contender_status(p.c) == SIMBA_INITIAL && atomic_load(&q.closed) == 1);
    CHECK(atomic_load(&p.released) == 1 && atomic_load(&q.released) == 1);
    CHECK_OK(simba_contender_start(p.c));
    DRIVE(s, probe_leads(&p));
    CHECK(simba_contender_is_owner(r.c));
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

/* More handles than one round of the loop takes, and none of them seen by it before. */
static void embed_closes_many(void)
{
    enum { MANY = 3000 };
    simba_client *s = open_embedded();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("many");
    for (int i = 0; i < MANY; i++) {
        simba_contender *c;
        CHECK_OK(simba_contender_create(s, mutex, &o, &c));
    }
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

static atomic_int ends;

static void still_owner(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
    atomic_fetch_add(&ends, 1);
    while (atomic_load(&ends) < 2)
        nap(1);
}

/* The same for a close that does not wait: a callback keeps it from coming to an end. */
/* shows: C4 */
static void close_counts_at_once(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_contender *c;
    o.on_acquired = still_owner;
    CHECK_OK(simba_contender_create(s, fresh("closing"), &o, &c));
    CHECK_OK(simba_contender_start(c));
    AWAIT(atomic_load(&ends) == 1 && simba_contender_is_owner(c));
    CHECK_CODE(simba_close(s, 0), SIMBA_ETIMEOUT);
    CHECK(!simba_contender_is_owner(c));
    atomic_store(&ends, 2);
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

const struct test embed_tests[] = {
    {"stop_counts_at_once", stop_counts_at_once, ANY_STORE, 0},
    {"close_counts_at_once", close_counts_at_once, ANY_STORE, 0},
    {"embed_leads", embed_leads, ANY_STORE, 0},
    {"embed_renews", embed_renews, ANY_STORE, 0},
    {"embed_waits", embed_waits, ANY_STORE, 0},
    {"embed_other_threads", embed_other_threads, PUSHES, 0},
    {"embed_cancel", embed_cancel, ANY_STORE, 0},
    {"embed_nobody_polls", embed_nobody_polls, ANY_STORE, 0},
    {"embed_silent_store", embed_silent_store, MEMORY_FAULTS, 0},
    {"embed_late_grant", embed_late_grant, MEMORY_FAULTS, 0},
    {"embed_unheard_release", embed_unheard_release, ANY_STORE, 0},
    {"embed_callback_calls", embed_callback_calls, ANY_STORE, 0},
    {"embed_closes_many", embed_closes_many, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};

/* ---- metrics ------------------------------------------------------------------------------- */

struct tally {
    const char *mutex;
    int found;
    struct simba_handle_metrics seen;
};

static void tally(void *data, const struct simba_handle_metrics *m)
{
    struct tally *t = data;
    if (strcmp(m->mutex, t->mutex) == 0) {
        t->found++;
        t->seen = *m;
    }
}

static void metrics_count(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long(); /* no renewal may fail by being late */
    struct simba_metrics m = SIMBA_METRICS_INIT;
    struct tally t = {.mutex = fresh("counted")};
    struct probe p = {0};
    probe_start(&p, s, t.mutex, &o);
    AWAIT(probe_leads(&p));
    do {
        CHECK_OK(simba_metrics_read(s, &m));
    } while (m.renewals == 0 || m.callback.count == 0);
    CHECK(m.handles == 1 && m.owned == 1 && m.acquisitions == 1 && m.attempts == 1);
    CHECK(m.expired == 0 && m.evicted == 0 && m.failures == 0);
    CHECK(m.operation.count >= 1 && m.callback_delay.count == m.callback.count);
    store_evict(t.mutex, true);
    AWAIT(atomic_load(&p.acquired) == 2);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.evicted == 1 && m.acquisitions == 2);
    CHECK_OK(simba_metrics_each(s, tally, &t));
    CHECK(t.found == 1 && t.seen.acquisitions == 2 && t.seen.evicted == 1);
    CHECK(t.seen.status == SIMBA_RUNNING && t.seen.token == simba_contender_token(p.c));
    probe_stop(&p);
    CHECK_OK(simba_metrics_read(s, &m));
    CHECK(m.owned == 0);
    m.size = sizeof m - 1;
    CHECK_CODE(simba_metrics_read(s, &m), SIMBA_EINVAL);
    client_close(s);
}

static void metrics_text(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    char mutex[SIMBA_MUTEX_MAX + 1], line[256], small[20];
    snprintf(mutex, sizeof mutex, "%s\"\\", fresh("quoted"));
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    int64_t length = simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, NULL, 0);
    CHECK(length > 1000);
    char *text = malloc((size_t)length + 100);
    CHECK(text != NULL);
    CHECK(simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, text, (size_t)length + 100) <=
          length + 50);
    CHECK(strstr(text, "\nsimba_owned 1\n") != NULL);
    CHECK(strstr(text, "simba_operation_seconds_bucket{le=\"+Inf\"}") != NULL);
    snprintf(line, sizeof line, "simba_mutex_owned{mutex=\"%.*s\\\"\\\\\",id=\"%s\"} 1\n",
             (int)strlen(mutex) - 2, mutex, simba_contender_id(p.c));
    CHECK(strstr(text, line) != NULL);
    free(text);
    CHECK(simba_metrics_prometheus(&s, 1, 0, small, sizeof small) > (int64_t)sizeof small);
    CHECK(strlen(small) == sizeof small - 1);
    CHECK(simba_metrics_prometheus(&s, 1, 0, NULL, 7) == SIMBA_EINVAL);
    client_close(s);
}

/* ---- many who wait in one client ----------------------------------------------------------- */

#define MANY 50

static int leader_of(struct probe *p)
{
    for (int i = 0; i < MANY; i++) {
        if (probe_leads(&p[i]))
            return i;
    }
    return -1;
}

/* One release, one question to the store; the others are not woken. In the end everybody had it. */
static void push_wakes_one(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_metrics before = SIMBA_METRICS_INIT, after = SIMBA_METRICS_INIT;
    const char *mutex = fresh("many");
    static struct probe p[MANY];
    for (int i = 0; i < MANY; i++)
        probe_start(&p[i], s, mutex, &o);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(simba_contender_wait(p[i].c, SIMBA_RUNNING, PATIENCE_MS));
    AWAIT(leader_of(p) >= 0);
    CHECK_OK(simba_metrics_read(s, &before));
    for (int i = 0; i < MANY - 1; i++) {
        probe_stop(&p[leader_of(p)]);
        AWAIT(leader_of(p) >= 0);
    }
    CHECK_OK(simba_metrics_read(s, &after));
    CHECK(after.acquisitions - before.acquisitions == MANY - 1);
    /* Two each; and one more of everybody, if the store's way of pushing came up only now. Woken by
     * each release, all of them would ask a thousand times. */
    CHECK(after.attempts - before.attempts <= 3 * MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(atomic_load(&p[i].acquired) == 1);
    client_close(s);
}

/* Those who are woken and leave at that moment pass it on. */
static void push_is_passed_on(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("leaving");
    static struct probe p[MANY];
    struct probe last = {0};
    for (int i = 0; i < MANY; i++)
        probe_start(&p[i], s, mutex, &o);
    AWAIT(leader_of(p) >= 0);
    probe_start(&last, s, mutex, &o);
    CHECK_OK(simba_contender_wait(last.c, SIMBA_RUNNING, PATIENCE_MS));
    for (int i = 0; i < MANY; i++)
        simba_contender_destroy(p[i].c);
    AWAIT(probe_leads(&last));
    client_close(s);
}

const struct test metrics_tests[] = {
    {"metrics_count", metrics_count, ANY_STORE, 0},
    {"metrics_text", metrics_text, ANY_STORE, 0},
    {"push_wakes_one", push_wakes_one, PUSHES, 0},
    {"push_is_passed_on", push_is_passed_on, PUSHES, 0},
    {NULL, NULL, ANY_STORE, 0},
};
