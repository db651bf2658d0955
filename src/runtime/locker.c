/* locker.c: a blocking lock; the public face of an actor whose user code is the caller. */
#include <assert.h>
#include <string.h>

#include "runtime/client.h"
#include "runtime/clock.h"
#include "runtime/fault.h"
#include "runtime/futex.h"

#define ONCE (-1) /* as a time to wait until: the store is asked once, however long that takes */

struct simba_locker {
    struct actor actor;
};

static struct actor *of(const simba_locker *l)
{
    assert(l != NULL);
    return (struct actor *)(uintptr_t)l;
}

int simba_locker_create(simba *s, const char *mutex, const struct simba_handle_options *options,
                        simba_locker **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return fault(SIMBA_EINVAL, "simba_locker_create needs a client and a place for the result");
    int rc = actor_create(s, mutex, HANDLE_LOCKER, options, &a);
    *out = (simba_locker *)(void *)a;
    return rc;
}

/* Puts the note to the loop and waits for the verdict. The loop changes the phase before it gives
 * the verdict: after that the locker may be gone. */
static int ask(struct actor *a, enum locker_phase from, enum locker_phase to, uint32_t note,
               int64_t wait_until, struct call *call)
{
    pthread_mutex_lock(&a->client->lock);
    bool closing = a->closing || a->client->closing;
    bool allowed = atomic_load(&a->phase) == from && !closing;
    if (allowed) {
        atomic_store(&a->phase, to);
        a->call = call;
        a->wait_until = wait_until;
        a->once = wait_until == ONCE;
        a->notes |= note;
        loop_post_locked(a->client, a);
    }
    pthread_mutex_unlock(&a->client->lock);
    if (!allowed)
        return SIMBA_ESTATE;
    futex_wait(&call->done, 0, NEVER);
    return call->code;
}

int simba_locker_acquire(simba_locker *l, int64_t timeout_ms)
{
    struct actor *a = of(l);
    struct call call = {.code = 0};
    char mutex[SIMBA_MUTEX_MAX + 1];
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    memcpy(mutex, a->by_mutex.name, strlen(a->by_mutex.name) + 1);
    if (timeout_ms < 0)
        return fault(SIMBA_EINVAL, "mutex '%s': a timeout must not be negative", mutex);
    if (client_would_deadlock(a->client, a))
        return fault(SIMBA_EDEADLOCK,
                     "mutex '%s': acquiring a locker inside its own callback "
                     "would never end",
                     mutex);
    int64_t until = timeout_ms == 0 ? ONCE : clock_after_ms(clock_now(), timeout_ms);
    rc = ask(a, LOCKER_FREE, LOCKER_WAITING, NOTE_ACQUIRE, until, &call);
    if (rc == SIMBA_ESTATE)
        return fault(rc,
                     "mutex '%s': this locker is held or awaited already; use one locker per "
                     "thread",
                     mutex);
    if (rc < 0)
        return fault(rc, "mutex '%s': not acquired: %s%s%s", mutex, simba_strerror(rc),
                     call.text[0] != '\0' ? ": " : "", call.text);
    return 0;
}

int simba_locker_release(simba_locker *l)
{
    struct actor *a = of(l);
    struct call call = {.code = 0};
    char mutex[SIMBA_MUTEX_MAX + 1];
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    memcpy(mutex, a->by_mutex.name, strlen(a->by_mutex.name) + 1);
    if (loop_is_here(a->client))
        return fault(SIMBA_EDEADLOCK, "mutex '%s': releasing on the loop would never end", mutex);
    rc = ask(a, LOCKER_HELD, LOCKER_LEAVING, NOTE_RELEASE, NEVER, &call);
    if (rc == SIMBA_ESTATE)
        return fault(rc, "mutex '%s': this locker is not held", mutex);
    if (rc == SIMBA_ELOST)
        return fault(rc,
                     "mutex '%s': the lock had ended before its release: what was done under "
                     "it was not protected to the end",
                     mutex);
    if (rc < 0)
        return fault(rc, "mutex '%s': released here, but the store does not know yet: %s", mutex,
                     call.text);
    return 0;
}

bool simba_locker_is_held(const simba_locker *l)
{
    return simba_locker_token(l) != 0;
}

uint64_t simba_locker_token(const simba_locker *l)
{
    uint64_t token;
    int64_t left;
    return actor_owns(of(l), &token, &left) ? token : 0;
}

int64_t simba_locker_remaining(const simba_locker *l)
{
    uint64_t token;
    int64_t left;
    return actor_owns(of(l), &token, &left) ? left / NS_PER_MS : 0;
}

void simba_locker_destroy(simba_locker *l)
{
    actor_destroy((struct actor *)(void *)l);
}
