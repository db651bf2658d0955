/* locker.c: a lock; the public face of an actor whose user code is the caller. A blocking call is
 * the request of an asynchronous one, on the caller's stack, and a wait for its result. */
#include "runtime/locker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/report.h"

#define STORE_SHOWN 151

int simba_locker_create(simba_client *s, const char *mutex,
                        const struct simba_handle_options *options, simba_locker **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return error_say(SIMBA_EINVAL,
                         "simba_locker_create needs a client and a place for the result");
    int rc = actor_create(s, mutex, HANDLE_LOCKER, options, &a);
    if (rc == 0)
        a->wait_slot = futex_new_slot();
    *out = (simba_locker *)(void *)a;
    return rc;
}

/* The result does not come; under the lock. What was wanted is not any more, or is given back if it
 * is granted meanwhile. A release goes on. */
static void leave_locked(struct actor *a, struct call *call)
{
    a->call = NULL;
    call->code = call->said_held ? SIMBA_ETIMEOUT : SIMBA_ESTORE;
    bool is_unseen = (a->posts & (call->releases ? POST_RELEASE : POST_ACQUIRE)) != 0;
    if (call->said_held)
        report_say_owner(a, call->text, sizeof call->text);
    else if (!call->releases && a->failure != NULL)
        snprintf(call->text, sizeof call->text, "%s", a->failure);
    else
        snprintf(call->text, sizeof call->text, "%s",
                 is_unseen ? "the client's loop has not run: was this process stopped, or is the "
                             "thread busy that calls simba_poll?"
                           : "the store does not answer");
    if (call->releases)
        return;
    view_stop(&a->view);
    a->phase = LOCKER_FREE;
    if ((a->posts & POST_ACQUIRE) != 0) { /* nobody has seen it */
        a->posts &= ~(uint32_t)POST_ACQUIRE;
        return;
    }
    a->abandoned = true;
    turn_post_locked(a, POST_ABANDON);
}

/* Without a thread of ours nobody may be there to give the result: the caller looks at the clock
 * itself. It is among the waiters, so that nobody frees the locker under it. */
static void await_or_leave(struct actor *a, struct call *call)
{
    struct simba_client *s = a->client;
    bool done = futex_await(&call->done, call->wait_slot, call->leave_at);
    driver_lock(s);
    if (!done && a->call == call) {
        leave_locked(a, call);
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
    struct call *call;
};

/* A callback that this thread ran while it waited has ended the thread: the wait goes with it. */
static void driving_over(void *arg)
{
    struct driving *d = arg;
    if (futex_is_done(&d->call->done))
        return;
    driver_lock(d->actor->client);
    leave_locked(d->actor, d->call);
    driver_unlock(d->actor->client);
}

/* Puts the request to the loop; under the lock. 0, or why that is not possible. A holder may release
 * while the client closes. */
static int post_locked(struct actor *a, struct call *call, struct thread_ref *self)
{
    struct simba_client *s = a->client;
    bool closing = a->closing || (s->closing && (!call->releases || a->phase == LOCKER_FREE));
    call->found = a->phase;
    if (call->releases && strcmp(s->close_held, a->by_mutex.name) == 0)
        s->close_held[0] = '\0';
    if (closing)
        return SIMBA_ECANCELED;
    if (a->phase != (call->releases ? LOCKER_HELD : LOCKER_FREE))
        return SIMBA_ESTATE;
    a->phase = call->releases ? LOCKER_LEAVING : LOCKER_WAITING;
    a->call = call;
    if ((self != NULL || !call->releases) && a->locked_by != self) {
        thread_ref_drop(a->locked_by);
        a->locked_by = thread_ref_keep(self);
    }
    if (call->releases)
        view_stop(&a->view);
    else
        view_start(&a->view);
    a->same_id = false;
    turn_post_locked(a, call->releases ? POST_RELEASE : POST_ACQUIRE);
    return 0;
}

/* And waits for the result. The loop changes the phase before it gives that: then the locker may be
 * gone. */
static int ask(struct actor *a, struct call *call)
{
    struct simba_client *s = a->client; /* gone, perhaps, with the result */
    bool drives = driver_polls_here(s), may_leave = s->no_thread && !drives;
    struct thread_ref *self = thread_ref_self();
    if (self == NULL && !call->releases)
        return SIMBA_ELIMIT;
    call->wait_slot = a->wait_slot;
    driver_lock(s);
    int rc = post_locked(a, call, self);
    if (rc == 0 && may_leave)
        a->waiters++;
    driver_unlock_turn(s, rc == 0 ? call : NULL,
                       call->once || call->until - clock_now() > DRIVER_HERE_MIN);
    if (rc < 0)
        return rc;
    if (drives)
        driver_wait(s, &call->done, 0, NEVER, driving_over, &(struct driving){a, call});
    else if (may_leave)
        await_or_leave(a, call);
    else
        futex_await(&call->done, call->wait_slot, NEVER);
    return call->code;
}

/* And does not wait: callback.c tells the result, and frees the call. Without on_done nobody is
 * told. */
static int ask_async(struct actor *a, struct call *call)
{
    struct simba_client *s = a->client;
    bool is_nobodys = thread_client == s && !s->no_thread; /* in a callback: the thread is ours */
    struct thread_ref *self = is_nobodys ? NULL : thread_ref_self();
    struct call *kept = call->on_done != NULL ? malloc(sizeof *kept) : NULL;
    if ((self == NULL && !is_nobodys && !call->releases) ||
        (kept == NULL && call->on_done != NULL)) {
        free(kept);
        return SIMBA_ELIMIT;
    }
    driver_lock(s);
    int rc = post_locked(a, call, self);
    if (rc == 0)
        a->call = kept;
    if (rc == 0 && kept != NULL)
        *kept = *call;
    driver_unlock(s);
    if (rc < 0)
        free(kept);
    return rc;
}

/* ---- acquire ------------------------------------------------------------------------------- */

static int say_acquire(const struct call *call, int code, const char *mutex, const char *store)
{
    char waited[ERROR_DURATION];
    if (code == SIMBA_ESTATE)
        return error_on(
            code, mutex, NULL, "%s",
            call->found == LOCKER_HELD
                ? "this locker is held already: release it first, or create another locker"
            : call->found == LOCKER_LEAVING
                ? "this locker is being released: acquire it when that is done"
                : "this locker waits already: cancel that wait, or create another locker");
    if (code == SIMBA_ECANCELED)
        return error_on(code, mutex, NULL, "%s",
                        call->canceled ? "the wait was canceled"
                                       : "the locker or its client is being closed");
    if (code == SIMBA_ELIMIT && call->text[0] == '\0')
        return error_on(code, mutex, NULL, "out of memory");
    if (code == SIMBA_ETIMEOUT)
        return error_on(code, mutex, store, "timed out after %s: %s",
                        error_duration(clock_now() - call->began, waited), call->text);
    return error_on(code, mutex, store, "%s", call->text);
}

static int begin_acquire(const struct actor *a, int64_t timeout_ms, struct call *call)
{
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    if (timeout_ms < 0)
        return error_on(SIMBA_EINVAL, a->by_mutex.name, NULL, "a timeout must not be negative");
    call->began = clock_now();
    call->once = timeout_ms == 0;
    call->until = clock_after_ms(call->began, timeout_ms);
    if (call->once) /* a little longer than the store is given to answer */
        call->until = call->began + actor_period(a)->patience + actor_period(a)->attempt;
    call->leave_at = call->until;
    return 0;
}

int simba_locker_acquire(simba_locker *l, int64_t timeout_ms)
{
    struct actor *a = actor_of(l);
    struct call call = {.releases = false};
    char mutex[SIMBA_MUTEX_MAX + 1], store[STORE_SHOWN];
    int rc = begin_acquire(a, timeout_ms, &call);
    if (rc < 0)
        return rc;
    snprintf(mutex, sizeof mutex, "%s", a->by_mutex.name); /* the locker may be gone later */
    snprintf(store, sizeof store, "%s", actor_store(a));
    if (client_would_deadlock(a->client, a))
        return error_on(SIMBA_EDEADLOCK, mutex, NULL,
                        "acquiring a locker inside its own callback would never end");
    rc = ask(a, &call);
    return rc < 0 ? say_acquire(&call, rc, mutex, store) : 0;
}

int simba_locker_acquire_async(simba_locker *l, int64_t timeout_ms, simba_done_fn *done, void *data)
{
    struct actor *a = actor_of(l);
    struct call call = {.on_done = done, .data = data};
    int rc = begin_acquire(a, timeout_ms, &call);
    if (rc < 0)
        return rc;
    if (done == NULL)
        return error_on(SIMBA_EINVAL, a->by_mutex.name, NULL,
                        "simba_locker_acquire_async needs a done function");
    rc = ask_async(a, &call);
    return rc < 0 ? say_acquire(&call, rc, a->by_mutex.name, actor_store(a)) : 0;
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
        turn_post_locked(a, POST_CANCEL);
    }
    driver_unlock(a->client);
    if (!waits)
        return error_on(SIMBA_ESTATE, a->by_mutex.name, NULL, "nobody waits for this locker");
    return 0;
}

/* ---- release ------------------------------------------------------------------------------- */

static int say_release(const struct call *call, int code, const char *mutex, const char *store)
{
    if (code == SIMBA_ESTATE)
        return error_on(code, mutex, NULL, "this locker is not held");
    if (code == SIMBA_ECANCELED)
        return error_on(code, mutex, NULL, "the locker is being destroyed, which releases it");
    if (code == SIMBA_ELIMIT && call->text[0] == '\0')
        return error_on(code, mutex, NULL, "out of memory");
    if (code == SIMBA_ELOST)
        return error_on(code, mutex, store,
                        "lost before its release: what was done under the lock was "
                        "not protected to the end");
    return error_on(code, mutex, store,
                    "released here, but the store could not be told (%s): others "
                    "can own it when the lease ends",
                    call->text);
}

int simba_locker_release(simba_locker *l)
{
    struct actor *a = actor_of(l);
    struct call call = {.releases = true, .until = NEVER};
    char mutex[SIMBA_MUTEX_MAX + 1], store[STORE_SHOWN];
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    snprintf(mutex, sizeof mutex, "%s", a->by_mutex.name);
    snprintf(store, sizeof store, "%s", actor_store(a));
    if (client_is_here(a->client))
        return error_on(SIMBA_EDEADLOCK, mutex, NULL, "releasing on the loop would never end");
    call.leave_at = clock_now() + actor_period(a)->patience + actor_period(a)->attempt;
    rc = ask(a, &call);
    return rc < 0 ? say_release(&call, rc, mutex, store) : 0;
}

int simba_locker_release_async(simba_locker *l, simba_done_fn *done, void *data)
{
    struct actor *a = actor_of(l);
    struct call call = {.releases = true, .until = NEVER, .on_done = done, .data = data};
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    rc = ask_async(a, &call);
    return rc < 0 ? say_release(&call, rc, a->by_mutex.name, actor_store(a)) : 0;
}

void locker_say(const struct actor *a, const struct call *call)
{
    if (call->code < 0)
        (void)(call->releases ? say_release : say_acquire)(call, call->code, a->by_mutex.name,
                                                           actor_store(a));
}

/* ---- the rest ------------------------------------------------------------------------------ */

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
