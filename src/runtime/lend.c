/* lend.c: the loop, lent to a caller.
 *
 * A caller that waits for a verdict would wake the loop's thread, which asks the store, hears the answer
 * and wakes the caller: two changes of threads that cost more than all the rest. So where the store
 * allows it, a caller that comes alone drives the loop itself until it has its verdict.
 *
 *   RUNS   the loop's thread drives it, or sleeps inside libuv
 *   RESTS  nobody does; the loop's thread sleeps outside of libuv, at the gate
 *   LENT   a caller drives it, but not for long, so that nothing depends on a thread that is not ours
 *
 * The gate is an epoll descriptor that watches the one of the loop, except while that is lent: so what
 * the caller waits for wakes the caller alone. State and gate change together, under the client's lock,
 * which also makes what one driver has done visible to the next. With several callers at once the loop's
 * thread is better: it makes one batch of all. */
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"

#define LENT_MAX_MS 20
#define LATE_MAX (2 * NS_PER_MS) /* a timer of libuv may be so late */

static void set_gate(struct simba *s, uint32_t events)
{
    struct epoll_event e = {.events = events};
    epoll_ctl(s->loan.gate, EPOLL_CTL_MOD, uv_backend_fd(&s->loop), &e);
}

/* ---- a caller -------------------------------------------------------------------------------- */

bool lend_take_locked(struct simba *s, struct call *call)
{
    struct loan *l = &s->loan;
    if (l->state == LOOP_LENT)
        l->crowd = true;
    if (l->state != LOOP_RESTS || l->crowd || s->closing || s->has_executor_user)
        return false;
    set_gate(s, 0);
    l->state = LOOP_LENT;
    l->call = call;
    s->wanted = false;
    s->guests++;
    return true;
}

static void on_long_enough(uv_timer_t *timer)
{
    ((struct simba *)timer->data)->loan.is_long = true;
}

static void give_back(struct simba *s)
{
    struct loan *l = &s->loan;
    uv_update_time(&s->loop);
    int timeout = uv_backend_timeout(&s->loop);
    bool odd = !s->backend->lends(s->store);
    loop_lock(s);
    int64_t due = timeout < 0 ? NEVER : clock_now() + timeout * NS_PER_MS;
    l->state = LOOP_RESTS;
    l->call = NULL;
    s->guests--;
    s->wanted =
        loop_is_wanted_locked(s) || odd || l->crowd || s->closing || due < l->until - LATE_MAX;
    set_gate(s, EPOLLIN);
    loop_unlock(s);
}

/* As on the loop's thread: no handler of the user's runs, threads that are started inherit it, and a write
 * to a connection that is gone must not end the process. */
static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void lend_restore_signals(const sigset_t *before)
{
    static const struct timespec at_once;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!sigismember(before, SIGPIPE))
        sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void lend_drive(struct simba *s, struct call *call)
{
    struct loan *l = &s->loan;
    int cancel;
    bool go_on = true;
    sigset_t mask;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    block_signals(&mask);
    const struct simba *before = loop_enter(s);
    l->is_long = false;
    uv_update_time(&s->loop);
    uv_timer_start(&l->timer, on_long_enough, LENT_MAX_MS, 0);
    while (go_on) {
        uv_run(&s->loop, UV_RUN_ONCE);
        loop_lock(s);
        go_on = !futex_is_done(&call->done) && !l->is_long && !l->crowd && !s->closing;
        loop_unlock(s);
    }
    uv_timer_stop(&l->timer);
    loop_enter(before);
    give_back(s);
    lend_restore_signals(&mask);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- the loop's thread ----------------------------------------------------------------------- */

static void rest(struct simba *s)
{
    struct loan *l = &s->loan;
    struct epoll_event event;
    uv_update_time(&s->loop);
    int timeout = uv_backend_timeout(&s->loop);
    loop_lock(s);
    l->state = LOOP_RESTS;
    do {
        l->until = timeout < 0 ? NEVER : clock_now() + timeout * NS_PER_MS;
        loop_unlock(s);
        epoll_wait(l->gate, &event, 1, timeout);
        loop_lock(s);
        timeout = LENT_MAX_MS; /* if it is lent just now */
    } while (l->state == LOOP_LENT);
    l->state = LOOP_RUNS;
    loop_unlock(s);
}

/* Nothing may wait to be registered with the kernel while this thread is outside of libuv. */
static bool may_rest(struct simba *s)
{
    loop_lock(s);
    bool may = s->backend->lends != NULL && !s->loan.crowd && !s->closing &&
               !loop_is_wanted_locked(s); /* left by a timer after the last turn */
    loop_unlock(s);
    return may && s->backend->lends(s->store);
}

void lend_run(struct simba *s)
{
    for (bool alive = true; alive;) {
        alive = uv_run(&s->loop, may_rest(s) ? UV_RUN_NOWAIT : UV_RUN_ONCE) != 0;
        if (alive && may_rest(s))
            rest(s);
    }
}

void lend_told(struct simba *s, int told)
{
    struct loan *l = &s->loan;
    if (l->call != NULL && futex_is_done(&l->call->done))
        uv_stop(&s->loop);
    if (told == 0 || s->backend->lends == NULL)
        return;
    loop_lock(s);
    if (told > 1)
        l->crowd = true;
    else if (s->in_flight == 0)
        l->crowd = false;
    loop_unlock(s);
}

bool lend_init(struct simba *s)
{
    struct epoll_event e = {.events = EPOLLIN};
    s->loan.gate = epoll_create1(EPOLL_CLOEXEC);
    if (s->loan.gate < 0)
        return false;
    if (epoll_ctl(s->loan.gate, EPOLL_CTL_ADD, uv_backend_fd(&s->loop), &e) != 0) {
        close(s->loan.gate);
        return false;
    }
    uv_timer_init(&s->loop, &s->loan.timer);
    s->loan.timer.data = s;
    return true;
}
