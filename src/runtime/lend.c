/* lend.c: the loop, lent to a caller.
 *
 * A caller that waits for a verdict would wake the loop's thread, which asks the store, hears the answer
 * and wakes the caller: two changes of threads that cost more than all the rest. So where the store
 * allows it, a caller that comes alone drives the loop itself until it has its verdict.
 *
 *   RUNS   the loop's thread drives it, or sleeps inside libuv
 *   RESTS  nobody does; the loop's thread sleeps outside of libuv, on the descriptor of the loop, or
 *          parked because a caller was here a moment ago and may be back
 *   LENT   a caller drives it; the loop's thread is parked, and asks for it back after a while, so
 *          that nothing depends for long on a thread that is not ours
 *
 * The state changes under the client's lock, which also makes what one driver has done visible to the
 * next. With several callers at once the loop's thread is better: it makes one batch of all. */
#include <poll.h>
#include <unistd.h>

#include "runtime/client.h"
#include "runtime/clock.h"
#include "runtime/futex.h"

#define GRACE (200 * NS_PER_MS / 1000) /* for how long the loop may be left alone after a caller */
#define LENT_SHORT (5 * GRACE)
#define LENT_MAX (20 * NS_PER_MS)

/* ---- a caller -------------------------------------------------------------------------------- */

bool lend_take_locked(struct simba *s, struct call *call)
{
    struct loan *l = &s->loan;
    if (l->state == LOOP_LENT)
        l->crowd = true;
    if (l->state != LOOP_RESTS || l->crowd || s->closing || s->has_executor_user)
        return false;
    l->state = LOOP_LENT;
    l->since = clock_now();
    l->call = call;
    l->recalled = false;
    s->wanted = false;
    s->guests++;
    return true;
}

static void give_back(struct simba *s)
{
    struct loan *l = &s->loan;
    uv_update_time(&s->loop);
    int timeout = uv_backend_timeout(&s->loop);
    bool odd = !s->backend->lends(s->store), busy = odd || s->in_flight > 0;
    loop_lock(s);
    int64_t now = clock_now();
    int64_t due = timeout < 0 ? NEVER : now + timeout * NS_PER_MS;
    busy = busy || l->recalled || l->crowd || s->closing;
    l->state = LOOP_RESTS;
    l->since = busy ? 0 : now;
    l->call = NULL;
    s->guests--;
    bool wake = l->parked ? busy || l->until > now + GRACE : odd || s->closing || due < l->until;
    lend_unlock(s, wake);
}

void lend_drive(struct simba *s, struct call *call)
{
    int cancel;
    bool go_on = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const struct simba *before = loop_enter(s);
    while (go_on) {
        uv_run(&s->loop, UV_RUN_ONCE);
        loop_lock(s);
        go_on = !futex_is_done(&call->done) && !s->loan.recalled && !s->loan.crowd && !s->closing;
        loop_unlock(s);
    }
    loop_enter(before);
    give_back(s);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- the loop's thread ----------------------------------------------------------------------- */

/* Until when to sleep; asks for the loop when it has been away for too long. */
static int64_t until_when(struct simba *s, int64_t now)
{
    static const uint64_t one = 1;
    struct loan *l = &s->loan;
    int64_t age = now - l->since;
    if (l->state == LOOP_RESTS)
        return l->since + GRACE;
    if (age < LENT_SHORT) /* then a caller need not wake anybody when it leaves */
        return now + GRACE;
    if (age < LENT_MAX)
        return l->since + LENT_MAX;
    l->recalled = true;
    ssize_t n = write(s->wake_fd, &one, sizeof one);
    (void)n;
    return NEVER;
}

static void take_back(struct simba *s)
{
    struct loan *l = &s->loan;
    int64_t now;
    loop_lock(s);
    while (now = clock_now(), l->state == LOOP_LENT || now - l->since < GRACE) {
        uint32_t before = atomic_load(&s->recall);
        l->until = until_when(s, now);
        l->parked = true;
        loop_unlock(s);
        futex_wait(&s->recall, before, l->until);
        loop_lock(s);
        l->parked = false;
    }
    l->state = LOOP_RUNS;
    loop_unlock(s);
}

static void rest(struct simba *s)
{
    struct pollfd fd = {.fd = uv_backend_fd(&s->loop), .events = POLLIN};
    uv_update_time(&s->loop);
    int timeout = uv_backend_timeout(&s->loop);
    loop_lock(s);
    s->loan.state = LOOP_RESTS;
    s->loan.until = timeout < 0 ? NEVER : clock_now() + timeout * NS_PER_MS;
    loop_unlock(s);
    poll(&fd, 1, timeout);
    take_back(s);
}

/* Nothing may wait to be registered with the kernel while this thread is outside of libuv. */
static bool may_rest(struct simba *s)
{
    loop_lock(s);
    bool may = s->backend->lends != NULL && !s->loan.crowd && !s->closing;
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
