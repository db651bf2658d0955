/* poll.c: a client in a loop of the host program, which drives it instead of a thread of ours.
 * What a thread of the executor would run, runs here as well, outside of libuv. */
#include "runtime/poll.h"

#include <poll.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"
#include "runtime/fault.h"

#define ROUNDS_MAX 16 /* before the host program goes on */

bool poll_is_here(const struct simba_client *s)
{
    return s->no_thread && pthread_equal(atomic_load(&s->driver.poller), pthread_self());
}

void poll_take_over(struct simba_client *s)
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
    poll_take_over(s);
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

void poll_start(struct simba_client *s)
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

void poll_notify(void *arg)
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

bool poll_wait(struct simba_client *s, _Atomic uint32_t *word, uint32_t value, int64_t until,
               void (*thread_ends)(void *arg), void *arg)
{
    bool in_time;
    if (!poll_is_here(s))
        return futex_wait(word, value, until);
    pthread_cleanup_push(thread_ends, arg);
    in_time = poll_until(s, word, value, until);
    pthread_cleanup_pop(0);
    return in_time;
}

/* ---- for the host program ------------------------------------------------------------------ */

static int check(const struct simba_client *s)
{
    if (s == NULL || !s->no_thread)
        return fault(SIMBA_EINVAL, "only a client that was opened with SIMBA_NO_THREAD is polled");
    return client_check(s);
}

int simba_poll_fd(simba_client *s)
{
    int rc = check(s);
    return rc < 0 ? rc : uv_backend_fd(&s->loop.uv);
}

int64_t simba_poll_timeout(simba_client *s)
{
    int rc = check(s);
    return rc < 0 ? rc : loop_timeout(s);
}

int simba_poll(simba_client *s)
{
    int rc = check(s);
    if (rc < 0)
        return rc;
    if (thread_client == s || driver_is_here(s))
        return fault(SIMBA_EDEADLOCK, "simba_poll inside one of its own callbacks");
    run_all(s, false);
    return 0;
}
