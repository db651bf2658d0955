/* contender.c: leader election by callbacks; the public face of an actor. */
#include "base/clock.h"
#include "base/futex.h"
#include "core/status.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/state.h"

int simba_contender_create(simba_client *s, const char *mutex,
                           const struct simba_handle_options *options, simba_contender **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return error_say(SIMBA_EINVAL,
                         "simba_contender_create needs a client and a place for the result");
    int rc = actor_create(s, mutex, HANDLE_CONTENDER, options, &a);
    *out = (simba_contender *)(void *)a;
    return rc;
}

/* Of a tenure that ends by a stop. */
struct failure {
    uint64_t token;
    enum simba_reason reason;
};

/* Start and stop change the visible status and is_owner() at once, so that their results are exact;
 * the loop follows in the same order. */
static int move(struct actor *a, enum status_event event, uint32_t post, const char *verb,
                const struct failure *failure)
{
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    driver_lock(a->client);
    int64_t left_ms;
    if (failure != NULL && (failure->token == 0 || actor_token(a, &left_ms) != failure->token)) {
        driver_unlock(a->client);
        return error_on(SIMBA_ELOST, a->by_mutex.name, NULL, "the tenure with token %llu is over",
                        (unsigned long long)failure->token);
    }
    enum simba_status status = (enum simba_status)atomic_load(&a->status);
    bool closing = a->closing || a->client->closing;
    int next = closing ? SIMBA_ESTATE : status_next(status, event);
    if (next >= 0) {
        a->start_failure = 0;
        if (event == STATUS_START || failure != NULL)
            a->failed_as = (uint8_t)(failure != NULL ? failure->reason : SIMBA_UNCHANGED);
        if (event == STATUS_STOP)
            view_stop(&a->view);
        else
            view_start(&a->view);
        atomic_store(&a->status, (uint32_t)next);
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
        turn_post_locked(a, post);
    }
    driver_unlock(a->client);
    if (next >= 0)
        return 0;
    bool too_soon = event == STATUS_START && status == SIMBA_STOPPING && !closing;
    return error_on(SIMBA_ESTATE, a->by_mutex.name, NULL, "cannot %s a contender that is %s%s",
                    verb, closing ? "being closed" : status_name(status),
                    too_soon ? ": start it in on_stopped, or when it is INITIAL" : "");
}

int simba_contender_start(simba_contender *c)
{
    return move(actor_of(c), STATUS_START, POST_START, "start", NULL);
}

int simba_contender_stop(simba_contender *c)
{
    return move(actor_of(c), STATUS_STOP, POST_STOP, "stop", NULL);
}

int simba_contender_fail(simba_contender *c, uint64_t token, enum simba_reason reason)
{
    if (reason != SIMBA_EXPIRED && reason != SIMBA_STALLED)
        return error_say(SIMBA_EINVAL,
                         "simba_contender_fail knows SIMBA_EXPIRED and SIMBA_STALLED");
    return move(actor_of(c), STATUS_STOP, POST_STOP, "stop",
                &(struct failure){.token = token, .reason = reason});
}

int simba_contender_resign(simba_contender *c, int64_t pause_ms)
{
    struct actor *a = actor_of(c);
    int64_t left_ms;
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    if (pause_ms < 0)
        return error_on(SIMBA_EINVAL, a->by_mutex.name, NULL, "a pause must not be negative");
    driver_lock(a->client);
    uint64_t token = actor_token(a, &left_ms);
    if (token != 0) {
        view_stop(&a->view);
        a->resign_pause = clock_after_ms(0, pause_ms);
        a->resign_token = token;
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
        turn_post_locked(a, POST_RESIGN);
    }
    driver_unlock(a->client);
    if (token == 0)
        return error_on(SIMBA_ESTATE, a->by_mutex.name, NULL,
                        "%s is not the owner, it has nothing to resign", actor_id(a));
    return 0;
}

int simba_contender_progress(simba_contender *c, uint64_t token)
{
    struct actor *a = actor_of(c);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    int64_t now = actor_owns_at(a, token);
    if (token == 0 || now == 0)
        return error_on(SIMBA_ELOST, a->by_mutex.name, NULL, "the tenure with token %llu is over",
                        (unsigned long long)token);
    if (actor_extra(a) != NULL)
        watchdog_report(&actor_extra(a)->reported_at, now);
    return 0;
}

/* Under the lock: 1 to go on waiting, else the result. */
static int wait_result(const struct actor *a, enum simba_status until)
{
    enum simba_status status = (enum simba_status)atomic_load(&a->status);
    const char *mutex = a->by_mutex.name, *store = actor_store(a);
    if (status == until)
        return 0;
    if (a->closing || a->client->closing)
        return error_on(SIMBA_ECANCELED, mutex, store, "closed while waiting for %s",
                        status_name(until));
    if (status == SIMBA_INITIAL && a->start_failure < 0)
        return error_on(a->start_failure, mutex, store, "could not start: %s",
                        a->failure != NULL ? a->failure : simba_strerror(a->start_failure));
    return 1;
}

static int say_late(const struct actor *a, enum simba_status until, int64_t timeout_ms)
{
    return error_on(SIMBA_ETIMEOUT, a->by_mutex.name, actor_store(a),
                    "still %s, not %s, after %lld ms%s%s",
                    status_name((enum simba_status)atomic_load(&a->status)), status_name(until),
                    (long long)timeout_ms, a->failure != NULL ? ": " : "",
                    a->failure != NULL ? a->failure : "");
}

/* A callback that this thread ran while it waited has ended the thread. */
static void wait_over(void *arg)
{
    struct actor *a = arg;
    driver_lock(a->client);
    actor_wait_over_locked(a);
    driver_unlock(a->client);
}

int simba_contender_wait(simba_contender *c, enum simba_status until, int64_t timeout_ms)
{
    struct actor *a = actor_of(c);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    struct simba_client *s = a->client;
    if (timeout_ms < 0 || until > SIMBA_STOPPING)
        return error_on(SIMBA_EINVAL, a->by_mutex.name, NULL, "%s",
                        timeout_ms < 0 ? "a timeout must not be negative"
                                       : "there is no such status");
    int64_t end = clock_after_ms(clock_now(), timeout_ms);
    driver_lock(s);
    a->waiters++; /* so that nobody frees it under us */
    while ((rc = wait_result(a, until)) == 1) {
        if (client_would_deadlock(s, a)) {
            rc = error_on(SIMBA_EDEADLOCK, a->by_mutex.name, NULL,
                          "waiting for a contender inside its own callback would never "
                          "end");
            break;
        }
        uint32_t changes = atomic_load(&a->changes);
        driver_unlock(s);
        bool in_time = driver_wait(s, &a->changes, changes, end, wait_over, a);
        driver_lock(s);
        if (!in_time && atomic_load(&a->changes) == changes) {
            rc = say_late(a, until, timeout_ms);
            break;
        }
    }
    actor_wait_over_locked(a);
    driver_unlock(s);
    return rc;
}

void simba_contender_destroy(simba_contender *c)
{
    actor_destroy(actor_of(c));
}

enum simba_status simba_contender_status(const simba_contender *c)
{
    return c == NULL ? SIMBA_INITIAL : (enum simba_status)atomic_load(&actor_of(c)->status);
}

bool simba_contender_is_owner(const simba_contender *c)
{
    return simba_contender_token(c) != 0;
}

bool simba_contender_owns(const simba_contender *c, uint64_t token)
{
    return actor_owns(actor_of(c), token);
}

uint64_t simba_contender_token(const simba_contender *c)
{
    int64_t left_ms;
    return actor_token(actor_of(c), &left_ms);
}

int64_t simba_contender_remaining(const simba_contender *c)
{
    int64_t left_ms;
    actor_token(actor_of(c), &left_ms);
    return left_ms;
}

const char *simba_contender_id(const simba_contender *c)
{
    return c == NULL ? "" : actor_id(actor_of(c));
}

void simba_contender_state(const simba_contender *c, struct simba_state *out)
{
    state_show(actor_of(c), out);
}
