/* locker.c: a blocking lock; the public face of an actor whose user code is the caller. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/poll.h"

#define STORE_SHOWN 151

int simba_locker_create(simba_client *s, const char *mutex,
                        const struct simba_handle_options *options, simba_locker **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return fault(SIMBA_EINVAL, "simba_locker_create needs a client and a place for the result");
    int rc = actor_create(s, mutex, HANDLE_LOCKER, options, &a);
    if (rc == 0)
        a->wait_slot = futex_new_slot();
    *out = (simba_locker *)(void *)a;
    return rc;
}

/* The result does not come; under the lock. What was wanted is not any more, or is given back if it
 * is granted meanwhile. A release goes on. */
static void leave_locked(struct actor *a, uint32_t note, struct call *call)
{
    a->call = NULL;
    call->code = note == NOTE_ACQUIRE ? SIMBA_ETIMEOUT : SIMBA_ESTORE;
    if (note == NOTE_ACQUIRE && (a->after.id != NULL || a->same_id))
        actor_say_owner(a, call->text, sizeof call->text);
    else if (note == NOTE_ACQUIRE && a->failure != NULL)
        snprintf(call->text, sizeof call->text, "%s", a->failure);
    else
        snprintf(call->text, sizeof call->text,
                 "no answer from the client's loop: is the thread busy that calls simba_poll?");
    if (note != NOTE_ACQUIRE)
        return;
    view_stop(&a->view);
    a->phase = LOCKER_FREE;
    if ((a->notes & NOTE_ACQUIRE) != 0) { /* nobody has seen it */
        a->notes &= ~(uint32_t)NOTE_ACQUIRE;
        return;
    }
    a->abandoned = true;
    turn_post_locked(a, NOTE_ABANDON);
}

/* Without a thread of ours nobody may be there to give the result: the caller looks at the clock
 * itself. It is among the waiters, so that nobody frees the locker under it. */
static void await_or_leave(struct actor *a, uint32_t note, struct call *call)
{
    struct simba_client *s = a->client;
    bool done = futex_await(&call->done, call->wait_slot, call->leave_at);
    driver_lock(s);
    if (!done && a->call == call) {
        leave_locked(a, note, call);
    } else if (!done) { /* the result is known, and told at the end of this turn */
        driver_unlock(s);
        futex_await(&call->done, call->wait_slot, NEVER);
        driver_lock(s);
    }
    actor_wait_over_locked(a);
    driver_unlock(s);
}

struct driving {
    struct actor *actor;
    uint32_t note;
    struct call *call;
};

/* A callback that this thread ran while it waited has ended the thread: the wait goes with it. */
static void driving_over(void *arg)
{
    struct driving *d = arg;
    if (futex_is_done(&d->call->done))
        return;
    driver_lock(d->actor->client);
    leave_locked(d->actor, d->note, d->call);
    driver_unlock(d->actor->client);
}

/* Puts the note to the loop and waits for the result. The loop changes the phase before it gives
 * the result: after that the locker may be gone. A holder may release while the client closes. */
static int ask(struct actor *a, enum locker_phase from, uint32_t note, struct call *call)
{
    struct simba_client *s = a->client; /* gone, perhaps, with the result */
    bool drives = poll_is_here(s), may_leave = s->no_thread && !drives;
    struct thread_ref *self = thread_ref_self();
    if (self == NULL && note == NOTE_ACQUIRE)
        return SIMBA_ELIMIT;
    call->wait_slot = a->wait_slot;
    driver_lock(s);
    bool closing = a->closing || (s->closing && note == NOTE_ACQUIRE);
    bool allowed = a->phase == from && !closing;
    call->was_held = a->phase == LOCKER_HELD;
    if (note == NOTE_RELEASE && strcmp(s->close_held, a->by_mutex.name) == 0)
        s->close_held[0] = '\0';
    if (allowed) {
        a->phase = from == LOCKER_FREE ? LOCKER_WAITING : LOCKER_LEAVING;
        a->call = call;
        if (self != NULL && a->locked_by != self) {
            thread_ref_drop(a->locked_by);
            a->locked_by = thread_ref_keep(self);
        }
        a->waiters += may_leave;
        if (note == NOTE_RELEASE)
            view_stop(&a->view);
        else
            view_start(&a->view);
        a->same_id = false;
        turn_post_locked(a, note);
    }
    driver_unlock_turn(s, allowed ? call : NULL,
                       call->once || call->until - clock_now() > DRIVER_HERE_MIN);
    if (!allowed)
        return closing ? SIMBA_ECANCELED : SIMBA_ESTATE;
    if (drives)
        poll_wait(s, &call->done, 0, NEVER, driving_over, &(struct driving){a, note, call});
    else if (may_leave)
        await_or_leave(a, note, call);
    else
        futex_await(&call->done, call->wait_slot, NEVER);
    return call->code;
}

int simba_locker_acquire(simba_locker *l, int64_t timeout_ms)
{
    struct actor *a = actor_of(l);
    char mutex[SIMBA_MUTEX_MAX + 1], store[STORE_SHOWN], waited[FAULT_DURATION];
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    snprintf(mutex, sizeof mutex, "%s", a->by_mutex.name); /* the locker may be gone later */
    snprintf(store, sizeof store, "%s", actor_store(a));
    if (timeout_ms < 0)
        return fault(SIMBA_EINVAL, "mutex '%s': a timeout must not be negative", mutex);
    if (client_would_deadlock(a->client, a))
        return fault(SIMBA_EDEADLOCK,
                     "mutex '%s': acquiring a locker inside its own callback would never end",
                     mutex);
    int64_t now = clock_now();
    struct call call = {.once = timeout_ms == 0, .until = clock_after_ms(now, timeout_ms)};
    if (call.once) /* a little longer than the store is given to answer */
        call.until = now + actor_period(a)->patience + actor_period(a)->attempt;
    call.leave_at = call.until;
    rc = ask(a, LOCKER_FREE, NOTE_ACQUIRE, &call);
    if (rc == SIMBA_ESTATE)
        return fault(rc, "mutex '%s': %s", mutex,
                     call.was_held
                         ? "this locker is held already: release it first, or create another locker"
                         : "another thread waits with this locker: create one per thread");
    if (rc == SIMBA_ECANCELED)
        return fault(rc, "mutex '%s': %s", mutex,
                     call.canceled ? "the wait was canceled"
                                   : "the locker or its client is being closed");
    if (rc == SIMBA_ELIMIT && call.text[0] == '\0')
        return fault(rc, "mutex '%s': out of memory", mutex);
    if (rc == SIMBA_ETIMEOUT)
        return fault(rc, "mutex '%s' on %s: timed out after %s: %s", mutex, store,
                     fault_duration(clock_now() - now, waited), call.text);
    if (rc < 0)
        return fault(rc, "mutex '%s' on %s: %s", mutex, store, call.text);
    return 0;
}

/* The call is marked, not the locker: so a cancel that comes when the wait is over ends no other. */
int simba_locker_cancel(simba_locker *l)
{
    struct actor *a = actor_of(l);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    driver_lock(a->client);
    bool waits = a->phase == LOCKER_WAITING && a->call != NULL;
    if (waits) {
        a->call->canceled = true;
        turn_post_locked(a, NOTE_CANCEL);
    }
    driver_unlock(a->client);
    if (!waits)
        return fault(SIMBA_ESTATE, "mutex '%s': nobody waits for this locker", a->by_mutex.name);
    return 0;
}

int simba_locker_release(simba_locker *l)
{
    struct actor *a = actor_of(l);
    struct call call = {.until = NEVER};
    char mutex[SIMBA_MUTEX_MAX + 1], store[STORE_SHOWN];
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    snprintf(mutex, sizeof mutex, "%s", a->by_mutex.name);
    snprintf(store, sizeof store, "%s", actor_store(a));
    if (client_is_here(a->client))
        return fault(SIMBA_EDEADLOCK, "mutex '%s': releasing on the loop would never end", mutex);
    call.leave_at = clock_now() + actor_period(a)->patience + actor_period(a)->attempt;
    rc = ask(a, LOCKER_HELD, NOTE_RELEASE, &call);
    if (rc == SIMBA_ESTATE)
        return fault(rc, "mutex '%s': this locker is not held", mutex);
    if (rc == SIMBA_ECANCELED)
        return fault(rc, "mutex '%s': the locker is being destroyed, which releases it", mutex);
    if (rc == SIMBA_ELOST)
        return fault(rc,
                     "mutex '%s' on %s: lost before its release: what was done under the lock was "
                     "not protected to the end",
                     mutex, store);
    if (rc < 0)
        return fault(
            rc,
            "mutex '%s' on %s: released here, but the store could not be told (%s): others "
            "can own it when the lease ends",
            mutex, store, call.text);
    return 0;
}

bool simba_locker_is_held(const simba_locker *l)
{
    return simba_locker_token(l) != 0;
}

uint64_t simba_locker_token(const simba_locker *l)
{
    int64_t left_ms;
    return actor_token(actor_of(l), &left_ms);
}

int64_t simba_locker_remaining(const simba_locker *l)
{
    int64_t left_ms;
    actor_token(actor_of(l), &left_ms);
    return left_ms;
}

const char *simba_locker_id(const simba_locker *l)
{
    return l == NULL ? "" : actor_id(actor_of(l));
}

void simba_locker_destroy(simba_locker *l)
{
    actor_destroy(actor_of(l));
}
