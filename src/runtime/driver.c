/* driver.c: who drives a client.
 *
 * Machines, timers, requests and the store belong to the thread that has the baton:
 *   TURNS  a thread takes a turn (turn.c). It looks again before it ends, so what is posted
 *          meanwhile wakes nobody.
 *   WAITS  a thread is inside of libuv, between two turns. The eventfd wakes it.
 *   RESTS  nobody is. The own thread sleeps at the gate, outside of libuv.
 *
 * Who may have it:
 *   the own thread   always, from WAITS and RESTS.
 *   a poll           the host program's thread instead of it, with SIMBA_NO_THREAD.
 *   a caller         that would only wait for the own thread: two changes of threads cost more than
 *                    all the rest. It depends on what the store lends (work() in simba/backend.h):
 *                      SIMBA_LEND_STORE  One turn, from WAITS: the own thread stays inside of
 *                                        libuv, which such a store does not need. Then it works
 *                                        for the store, without the baton. A thread of the
 *                                        store's own may do the same.
 *                      SIMBA_LEND_LOOP   From RESTS it goes inside of libuv until it has its
 *                                        result, one caller at a time, and not for long: nothing
 *                                        may depend on a thread that is not ours.
 *
 * No caller has it while the client closes, or with SIMBA_NO_THREAD, or with an executor of the
 * user's: its submit must not run on a thread that may hold the user's locks. The baton changes
 * under the client's lock, which makes what one driver has done visible to the next. */
#include "runtime/driver.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "runtime/client.h"
#include "runtime/error.h"

#define CALLER_MAX_MS 20         /* inside of libuv */
#define ROUNDS_MAX 16            /* of a poll, before the host program goes on */
#define LATE_MAX (2 * NS_PER_MS) /* a timer of libuv may be so late */

static _Thread_local const struct simba_client
    *inside; /* the client in whose loop this thread is */

bool driver_is_here(const struct simba_client *s)
{
    return inside == s;
}

/* ---- the lock, and who is woken ------------------------------------------------------------ */

void driver_lock(struct simba_client *s)
{
    pthread_mutex_lock(&s->lock);
}

void driver_want_locked(struct simba_client *s)
{
    struct driver *d = &s->driver;
    if (d->baton != BATON_TURNS && !d->woken && !s->over && inside != s)
        d->wanted = true;
}

void driver_unlock(struct simba_client *s)
{
    struct driver *d = &s->driver;
    bool wake = d->wanted;
    d->wanted = false;
    if (wake) {
        d->woken = true;
        loop_wake_locked(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (wake)
        loop_wake(s);
}

/* ---- a turn -------------------------------------------------------------------------------- */

/* Returns to how many that had asked for the same: a release and the acquisition that it made
 * possible are one. */
static int give_results(struct call *results)
{
    struct futex_batch r = {.groups = 0};
    int count[2] = {0, 0};
    for (struct call *next; results != NULL; results = next) {
        next = results->next; /* it is gone right after */
        count[results->releases]++;
        futex_finish(&r, &results->done, results->wait_slot);
    }
    futex_wake_batch(&r);
    return count[0] > count[1] ? count[0] : count[1];
}

/* By whoever has set the baton to TURNS. The callers hear their results after it, so that they
 * find the next turn free. Returns how many there were. */
static int take_turn(struct simba_client *s, bool here)
{
    struct driver *d = &s->driver;
    struct turn turn;
    if (turn_take(s, &turn))
        d->turned = true;
    driver_lock(s);
    d->baton = BATON_WAITS;
    d->wanted = turn_is_wanted_locked(s) && !s->over;
    driver_unlock(s);
    int given = turn.results != NULL ? give_results(turn.results) : 0;
    if (turn.submitted && s->backend->work != NULL)
        s->backend->work(s->store, here);
    return given;
}

/* After a turn of a thread that is inside of libuv. */
static void see_callers(struct simba_client *s, int given)
{
    struct driver *d = &s->driver;
    if (d->call != NULL && futex_is_done(&d->call->done))
        uv_stop(&s->loop.uv);
    if (given == 0 || s->backend->work == NULL || d->any_thread)
        return;
    driver_lock(s);
    if (given > 1)
        d->many_callers = true;
    else if (s->requests.in_flight == 0)
        d->many_callers = false;
    driver_unlock(s);
}

/* Several callers that go on at once will soon be back: let them, so that what they want makes one
 * batch. Meanwhile nobody needs to wake this thread. */
static void let_them_go_on(struct simba_client *s)
{
    struct driver *d = &s->driver;
    driver_lock(s);
    if (d->baton != BATON_TURNS) /* else it has looked perhaps for the last time */
        d->woken = true;
    driver_unlock(s);
    sched_yield();
}

static void close_handles(struct simba_client *s)
{
    struct driver *d = &s->driver;
    loop_close_handles(s);
    uv_close((uv_handle_t *)&d->before_sleep, NULL);
    uv_close((uv_handle_t *)&d->after_sleep, NULL);
    uv_close((uv_handle_t *)&d->limit, NULL);
}

/* The store is closed when all actors are quiet: closed, and waiting for nothing but answers. The
 * loop ends when the store is gone and nothing is left to answer. */
static void end_if_done(struct simba_client *s)
{
    bool close_store = false, end = false;
    driver_lock(s);
    if (s->closing && s->driver.callers == 0) { /* and from now on there will be none */
        bool quiet = s->actors_count == s->quiet;
        bool answered = s->requests.in_flight == 0 && s->inbox.inquiries == NULL;
        close_store = quiet && !s->store_closing;
        end = quiet && s->store_closed && answered && !s->over;
        s->store_closing = s->store_closing || close_store;
        s->over = s->over || end;
        s->driver.wanted = close_store; /* it may have answers right away */
    }
    driver_unlock(s);
    if (close_store)
        s->backend->close(s->store);
    if (end)
        close_handles(s);
}

static void turn_inside(struct simba_client *s)
{
    struct driver *d = &s->driver;
    for (int given = 2; given > 1; end_if_done(s)) {
        driver_lock(s);
        bool free = d->baton != BATON_TURNS; /* if not, whoever has it looks again */
        d->baton = BATON_TURNS;
        driver_unlock(s);
        if (!free)
            return;
        given = take_turn(s, d->here);
        see_callers(s, given);
        if (given > 1)
            let_them_go_on(s);
    }
}

static void before_sleep(uv_prepare_t *handle)
{
    turn_inside(handle->data);
}

static void after_sleep(uv_check_t *handle)
{
    turn_inside(handle->data);
}

/* ---- a thread that is not ours, inside of libuv -------------------------------------------- */

/* As on the own thread: no handler of the user's runs, threads that are started inherit it, and a
 * write to a connection that is gone must not end the process. */
void driver_enter(struct driver_visit *v, const struct simba_client *s)
{
    sigset_t all;
    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &v->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &v->signals);
    v->inside_before = inside;
    inside = s;
}

/* A SIGPIPE that a write of ours has left is not the user's. */
void driver_leave(const struct driver_visit *v)
{
    static const struct timespec at_once;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    inside = v->inside_before;
    if (!sigismember(&v->signals, SIGPIPE))
        sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &v->signals, NULL);
    pthread_setcancelstate(v->cancel, NULL);
}

/* ---- a caller ------------------------------------------------------------------------------ */

/* Unlocks. */
static void take_one_turn(struct simba_client *s, bool here)
{
    struct driver *d = &s->driver;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    d->wanted = false;
    d->baton = BATON_TURNS;
    d->callers++;
    driver_unlock(s);
    take_turn(s, here);
    driver_lock(s);
    d->callers--;
    if (s->closing && d->callers == 0) /* it has been waiting for us */
        driver_want_locked(s);
    driver_unlock(s);
    pthread_setcancelstate(cancel, NULL);
}

/* From RESTS. What this caller waits for must wake it alone: the gate is shut. */
static bool borrow_locked(struct simba_client *s, struct call *call)
{
    struct driver *d = &s->driver;
    if (d->call != NULL)
        d->many_callers = true;
    if (d->baton != BATON_RESTS || d->many_callers)
        return false;
    loop_shut_gate(s, true);
    d->baton = BATON_WAITS;
    d->call = call;
    d->wanted = false;
    d->callers++;
    return true;
}

/* The own thread is woken by whatever it would not hear of at the gate, or too late. */
static void give_back(struct simba_client *s)
{
    struct driver *d = &s->driver;
    int timeout = loop_timeout(s);
    bool odd = s->backend->work(s->store, false) != SIMBA_LEND_LOOP;
    driver_lock(s);
    int64_t due = timeout < 0 ? NEVER : clock_now() + timeout * NS_PER_MS;
    d->baton = BATON_RESTS;
    d->call = NULL;
    d->callers--;
    d->wanted = turn_is_wanted_locked(s) || odd || d->many_callers || s->closing ||
                due < d->rests_until - LATE_MAX;
    loop_shut_gate(s, false);
    driver_unlock(s);
}

static void on_limit(uv_timer_t *timer)
{
    ((struct simba_client *)timer->data)->driver.limit_reached = true;
}

static void drive(struct simba_client *s, struct call *call)
{
    struct driver *d = &s->driver;
    struct driver_visit visit;
    bool go_on = true;
    driver_enter(&visit, s);
    d->limit_reached = false;
    uv_update_time(&s->loop.uv);
    uv_timer_start(&d->limit, on_limit, CALLER_MAX_MS, 0);
    while (go_on) {
        uv_run(&s->loop.uv, UV_RUN_ONCE);
        driver_lock(s);
        go_on = !futex_is_done(&call->done) && !call->parked && !d->limit_reached &&
                !d->many_callers && !s->closing;
        driver_unlock(s);
    }
    uv_timer_stop(&d->limit);
    give_back(s);
    driver_leave(&visit);
}

void driver_unlock_turn(struct simba_client *s, struct call *call, bool here)
{
    struct driver *d = &s->driver;
    bool may = !s->closing && !s->has_executor_user && !s->no_thread;
    if (may && d->any_thread && d->wanted) {
        take_one_turn(s, here);
    } else if (may && call != NULL && borrow_locked(s, call)) {
        driver_unlock(s);
        drive(s, call);
    } else {
        driver_unlock(s);
    }
}

/* ---- the own thread ------------------------------------------------------------------------ */

static void rest(struct simba_client *s)
{
    struct driver *d = &s->driver;
    int timeout = loop_timeout(s);
    driver_lock(s);
    d->baton = BATON_RESTS;
    do {
        d->rests_until = timeout < 0 ? NEVER : clock_now() + timeout * NS_PER_MS;
        driver_unlock(s);
        loop_wait_at_gate(s, timeout);
        driver_lock(s);
        timeout = CALLER_MAX_MS; /* if a caller has it just now */
    } while (d->call != NULL);
    d->baton = BATON_WAITS;
    driver_unlock(s);
}

/* libuv registers descriptors on its way to sleep: nothing may wait for that while nobody is
 * inside. */
static bool may_rest(struct simba_client *s)
{
    struct driver *d = &s->driver;
    driver_lock(s);
    bool may = s->backend->work != NULL && !d->any_thread && !d->many_callers && !s->closing &&
               !turn_is_wanted_locked(s); /* left by a timer after the last turn */
    driver_unlock(s);
    return may && s->backend->work(s->store, false) == SIMBA_LEND_LOOP;
}

static void *run_thread(void *arg)
{
    struct simba_client *s = arg;
    inside = s;
    thread_client = s;
    for (bool alive = true; alive;) {
        alive = uv_run(&s->loop.uv, may_rest(s) ? UV_RUN_NOWAIT : UV_RUN_ONCE) != 0;
        if (alive && may_rest(s))
            rest(s);
    }
    driver_end(s);
    return NULL;
}

/* ---- a loop of the host program, instead of a thread of ours -------------------------------- */

/* What a thread of the executor would run, runs here as well, outside of libuv. */

bool driver_polls_here(const struct simba_client *s)
{
    return s->no_thread && pthread_equal(atomic_load(&s->driver.poller), pthread_self());
}

void driver_take_over(struct simba_client *s)
{
    atomic_store(&s->driver.poller, pthread_self());
}

static int wait_readable(struct simba_client *s, int timeout_ms)
{
    struct pollfd fd = {.fd = uv_backend_fd(&s->loop.uv), .events = POLLIN};
    return poll(&fd, 1, timeout_ms);
}

/* libuv registers a descriptor only when it is about to wait. So this goes on until a run had
 * nothing to do: then the descriptor of the loop tells of everything that the loop wants to hear
 * of. A timer that was due counts, whenever it ran: since libuv 1.45 that is after the turn. What
 * is left after so many rounds makes the descriptor readable. */
static void run_loop(struct simba_client *s, bool here)
{
    struct driver *d = &s->driver;
    bool active = true, alive = true;
    struct driver_visit visit;
    driver_enter(&visit, s);
    driver_take_over(s);
    d->here = here;
    for (int round = 0; round < ROUNDS_MAX && active && alive; round++) {
        int timeout = loop_timeout(s);
        uint64_t before = uv_now(&s->loop.uv);
        bool readable = wait_readable(s, 0) > 0;
        d->turned = false;
        alive = uv_run(&s->loop.uv, UV_RUN_NOWAIT) != 0;
        bool due = timeout >= 0 && uv_now(&s->loop.uv) - before >= (uint64_t)timeout;
        active = readable || d->turned || due;
    }
    driver_lock(s);
    d->wanted = active && alive && !s->over;
    driver_unlock(s);
    if (!alive)
        driver_end(s);
    driver_leave(&visit);
}

void driver_start_polled(struct simba_client *s)
{
    run_loop(s, false); /* so that the descriptor is right from the start */
}

/* All that can be done without waiting; here: this thread has nothing else to do. */
static void run_all(struct simba_client *s, bool here)
{
    for (int round = 0; round < ROUNDS_MAX && atomic_load(&s->ended) == 0; round++) {
        run_loop(s, here);
        if (!executor_run(&s->executor))
            break;
    }
}

void driver_notify(void *arg)
{
    struct simba_client *s = arg;
    if (driver_is_here(s))
        return; /* it runs what waits when it is through */
    driver_lock(s);
    s->driver.wanted = !s->driver.woken && !s->over;
    driver_unlock(s);
}

/* As a loop of the user would. */
static bool poll_until(struct simba_client *s, _Atomic uint32_t *word, uint32_t value,
                       int64_t until)
{
    for (;;) {
        run_all(s, true);
        int64_t left_ms = (until - clock_now()) / NS_PER_MS;
        if (atomic_load(word) != value)
            return true;
        if (left_ms <= 0)
            return false;
        int64_t wait_ms = loop_timeout(s);
        if (wait_ms < 0 || wait_ms > left_ms)
            wait_ms = left_ms;
        int cancel;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        wait_readable(s, wait_ms > CLOCK_SLICE_MS ? CLOCK_SLICE_MS : (int)wait_ms);
        pthread_setcancelstate(cancel, NULL);
    }
}

bool driver_wait(struct simba_client *s, _Atomic uint32_t *word, uint32_t value, int64_t until,
                 void (*thread_ends)(void *arg), void *arg)
{
    bool in_time;
    if (!driver_polls_here(s))
        return futex_wait(word, value, until);
    pthread_cleanup_push(thread_ends, arg);
    in_time = poll_until(s, word, value, until);
    pthread_cleanup_pop(0);
    return in_time;
}

/* ---- beginning and end --------------------------------------------------------------------- */

void driver_init(struct simba_client *s)
{
    struct driver *d = &s->driver;
    uv_prepare_init(&s->loop.uv, &d->before_sleep);
    uv_check_init(&s->loop.uv, &d->after_sleep);
    uv_timer_init(&s->loop.uv, &d->limit);
    d->before_sleep.data = d->after_sleep.data = d->limit.data = s;
    uv_prepare_start(&d->before_sleep, before_sleep);
    uv_check_start(&d->after_sleep, after_sleep);
}

int driver_start(struct simba_client *s)
{
    struct driver *d = &s->driver;
    bool any_thread =
        s->backend->work != NULL && s->backend->work(s->store, false) == SIMBA_LEND_STORE;
    driver_lock(s); /* a thread of the store's may have a hint already */
    d->any_thread = any_thread;
    driver_unlock(s);
    return thread_start(&d->thread, "simba-loop", run_thread, s);
}

void driver_discard(struct simba_client *s, bool store_open)
{
    s->closing = true;
    s->store_closing = s->store_closed = !store_open;
    uv_run(&s->loop.uv, UV_RUN_DEFAULT);
    loop_end(s);
    loop_close_wake(s);
}

void driver_end(struct simba_client *s)
{
    loop_end(s);
    futex_set(&s->ended, 1);
}

void driver_join(struct simba_client *s)
{
    if (!s->no_thread)
        pthread_join(s->driver.thread, NULL);
    loop_close_wake(s);
}

/* ---- for the host program ------------------------------------------------------------------- */

static int check_polled(const struct simba_client *s)
{
    if (s == NULL || !s->no_thread)
        return error_say(SIMBA_EINVAL,
                         "only a client that was opened with SIMBA_NO_THREAD is polled");
    return client_check(s);
}

int simba_poll_fd(simba_client *s)
{
    int rc = check_polled(s);
    return rc < 0 ? rc : uv_backend_fd(&s->loop.uv);
}

int64_t simba_poll_timeout(simba_client *s)
{
    int rc = check_polled(s);
    return rc < 0 ? rc : loop_timeout(s);
}

int simba_poll(simba_client *s)
{
    int rc = check_polled(s);
    if (rc < 0)
        return rc;
    if (thread_client == s || driver_is_here(s))
        return error_say(SIMBA_EDEADLOCK, "simba_poll inside one of its own callbacks");
    run_all(s, false);
    return 0;
}
