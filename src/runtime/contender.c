/* contender.c: leader election by callbacks; the public face of an actor. */
#include <assert.h>

#include "core/status.h"
#include "runtime/client.h"
#include "runtime/clock.h"
#include "runtime/fault.h"
#include "runtime/futex.h"

struct simba_contender {
    struct actor actor;
};

static struct actor *of(const simba_contender *c)
{
    assert(c != NULL);
    return (struct actor *)(uintptr_t)c;
}

int simba_contender_create(simba *s, const char *mutex, const struct simba_handle_options *options,
                           simba_contender **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return fault(SIMBA_EINVAL,
                     "simba_contender_create needs a client and a place for the result");
    int rc = actor_create(s, mutex, HANDLE_CONTENDER, options, &a);
    *out = (simba_contender *)(void *)a;
    return rc;
}

/* Start and stop change the visible status at once, so that their results are exact; the loop
 * follows in the same order. */
static int move(struct actor *a, enum status_event event, uint32_t note, const char *verb)
{
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&a->client->lock);
    enum simba_status status = (enum simba_status)atomic_load(&a->status);
    bool closing = a->closing || a->client->closing;
    int next = closing ? SIMBA_ESTATE : status_next(status, event);
    if (next >= 0) {
        a->notes |= note;
        futex_set(&a->status, (uint32_t)next);
        loop_post_locked(a->client, a);
    }
    pthread_mutex_unlock(&a->client->lock);
    if (next < 0)
        return fault(SIMBA_ESTATE, "mutex '%s': cannot %s a contender that is %s", a->by_mutex.name,
                     verb, closing ? "being closed" : status_name(status));
    return 0;
}

int simba_contender_start(simba_contender *c)
{
    return move(of(c), STATUS_START, NOTE_START, "start");
}

int simba_contender_stop(simba_contender *c)
{
    return move(of(c), STATUS_STOP, NOTE_STOP, "stop");
}

int simba_contender_wait(simba_contender *c, enum simba_status until, int64_t timeout_ms)
{
    struct actor *a = of(c);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    if (timeout_ms < 0)
        return fault(SIMBA_EINVAL, "mutex '%s': a timeout must not be negative", a->by_mutex.name);
    int64_t end = clock_after_ms(clock_now(), timeout_ms);
    for (;;) {
        uint32_t status = atomic_load(&a->status);
        if (status == (uint32_t)until)
            return 0;
        if (client_would_deadlock(a->client, a))
            return fault(SIMBA_EDEADLOCK,
                         "mutex '%s': waiting for a contender inside its own "
                         "callback would never end",
                         a->by_mutex.name);
        if (!futex_wait(&a->status, status, end))
            return fault(SIMBA_ETIMEOUT, "mutex '%s' on %s: still %s, not %s, after %lld ms",
                         a->by_mutex.name, actor_store(a), status_name((enum simba_status)status),
                         status_name(until), (long long)timeout_ms);
    }
}

void simba_contender_destroy(simba_contender *c)
{
    actor_destroy((struct actor *)(void *)c);
}

enum simba_status simba_contender_status(const simba_contender *c)
{
    return (enum simba_status)atomic_load(&of(c)->status);
}

bool simba_contender_is_owner(const simba_contender *c)
{
    uint64_t token;
    int64_t left;
    return actor_owns(of(c), &token, &left);
}

bool simba_contender_owns(const simba_contender *c, uint64_t token)
{
    uint64_t mine;
    int64_t left;
    return actor_owns(of(c), &mine, &left) && mine == token;
}

uint64_t simba_contender_token(const simba_contender *c)
{
    uint64_t token;
    int64_t left;
    return actor_owns(of(c), &token, &left) ? token : 0;
}

int64_t simba_contender_remaining(const simba_contender *c)
{
    uint64_t token;
    int64_t left;
    return actor_owns(of(c), &token, &left) ? left / NS_PER_MS : 0;
}

const char *simba_contender_id(const simba_contender *c)
{
    return of(c)->id;
}

void simba_contender_state(const simba_contender *c, struct simba_state *out)
{
    if (client_is_forked(of(c)->client))
        *out = (struct simba_state){.reason = SIMBA_UNCHANGED};
    else
        actor_state(of(c), out);
}
