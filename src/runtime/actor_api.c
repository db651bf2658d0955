/* actor_api.c: what callers on any thread do with a handle: make it, ask it, let it go. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "core/name.h"
#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/process.h"

int actor_check(const struct actor *a)
{
    if (a == NULL)
        return fault(SIMBA_EINVAL, "there is no handle: NULL was given instead of one");
    if (!client_is_forked(a->client))
        return 0;
    return fault(SIMBA_EFORKED,
                 "mutex '%s': this handle belongs to the parent process; open a "
                 "client of your own after fork",
                 a->by_mutex.name);
}

const char *actor_store(const struct actor *a)
{
    return a->client->url.shown;
}

bool actor_owns(const struct actor *a, uint64_t *token, int64_t *left)
{
    struct view_reading r;
    if (a == NULL || client_is_forked(a->client))
        return false;
    if (a->machine.kind == HANDLE_CONTENDER && a->client->closing) /* counts from the call on */
        return false;
    while (view_begin(&a->view, &r)) {
        *token = r.token;
        *left = r.deadline - clock_now();
        if (view_end(&a->view, &r))
            return *left > 0;
    }
    return false;
}

static void show_owner(struct simba_owner *out, const struct tenure *seen, int64_t transition)
{
    *out = (struct simba_owner){.token = seen->token};
    if (seen->id == NULL)
        return;
    snprintf(out->id, sizeof out->id, "%s", seen->id);
    out->acquired_at = seen->acquired_at / NS_PER_MS;
    out->ttl_at = (seen->until - transition) / NS_PER_MS;
    out->transition_at = seen->until / NS_PER_MS;
    out->flags = seen->evicted ? SIMBA_OWNER_EVICTED : 0;
}

void actor_state(const struct actor *a, struct simba_state *out)
{
    if (out == NULL)
        return;
    *out = (struct simba_state){.reason = SIMBA_UNCHANGED};
    if (a == NULL || client_is_forked(a->client))
        return;
    loop_lock(a->client);
    show_owner(&out->before, &a->before, actor_period(a)->transition);
    show_owner(&out->after, &a->after, actor_period(a)->transition);
    out->reason = (enum simba_reason)a->reason;
    loop_unlock(a->client);
}

/* ---- creation -------------------------------------------------------------------------------- */

static int check_names(struct simba *s, const char *mutex, const char *id)
{
    const char *rule;
    char why[CALL_TEXT_MAX] = "";
    if (name_check_mutex(mutex, &rule) != 0)
        return fault(SIMBA_EINVAL, "%s", rule);
    if (id != NULL && name_check_id(id, &rule) != 0)
        return fault(SIMBA_EINVAL, "mutex '%s': %s", mutex, rule);
    if (s->backend->check == NULL)
        return 0;
    int rc = s->backend->check(s->store, mutex, id != NULL ? id : "x", why, sizeof why);
    if (rc < 0)
        return fault(rc, "mutex '%s' on %s: %s", mutex, s->url.shown, why);
    return 0;
}

/* The handle's own timing; *own says whether it differs from the client's. */
static int make_period(const struct simba *s, const struct simba_handle_options *o,
                       struct period *period, bool *own, const char **why)
{
    struct period_options t = s->timing;
    *own = o->ttl_ms != SIMBA_DEFAULT || o->transition_ms != SIMBA_DEFAULT ||
           o->renew_ms != SIMBA_DEFAULT || o->jitter_early_ms != SIMBA_DEFAULT ||
           o->jitter_late_ms != SIMBA_DEFAULT;
    if (o->ttl_ms != SIMBA_DEFAULT)
        t.ttl_ms = o->ttl_ms;
    if (o->transition_ms != SIMBA_DEFAULT)
        t.transition_ms = o->transition_ms;
    t.renew_ms = o->renew_ms;
    t.jitter_early_ms = o->jitter_early_ms;
    t.jitter_late_ms = o->jitter_late_ms;
    if (o->initial_delay_ms < SIMBA_DEFAULT || o->initial_delay_ms > SIMBA_LEASE_MAX_MS)
        *why = "initial_delay must be between 0 and a day";
    else if (o->drain_ms < SIMBA_DEFAULT)
        *why = "drain must not be negative";
    else if (period_init(period, &t, why) == 0) {
        period->phase = s->period.phase;
        return 0;
    }
    return SIMBA_EINVAL;
}

/* One piece of memory: the actor, its period if it has its own, the mutex, the id. */
static struct actor *allocate(struct simba *s, const char *mutex, const char *id,
                              const struct period *period)
{
    size_t period_size = period != &s->period ? sizeof *period : 0;
    size_t mutex_size = strlen(mutex) + 1, id_size = strlen(id) + 1;
    char *memory = calloc(1, sizeof(struct actor) + period_size + mutex_size + id_size);
    if (memory == NULL)
        return NULL;
    struct actor *a = (struct actor *)(void *)memory;
    memory += sizeof *a;
    a->client = s;
    a->machine.lease.period = period_size != 0 ? memcpy(memory, period, period_size) : period;
    a->by_mutex.name = memcpy(memory + period_size, mutex, mutex_size);
    a->machine.lease.id = memcpy(memory + period_size + mutex_size, id, id_size);
    return a;
}

int actor_create(struct simba *s, const char *mutex, enum handle_kind kind,
                 const struct simba_handle_options *options, struct actor **out)
{
    static const struct simba_handle_options defaults = SIMBA_HANDLE_OPTIONS_INIT;
    const struct simba_handle_options *o = options != NULL ? options : &defaults;
    char id[SIMBA_ID_MAX + 1] = "";
    struct period period;
    bool own_period;
    const char *why;

    if (client_is_forked(s))
        return fault(SIMBA_EFORKED, "this client belongs to the parent process");
    if (o->size != sizeof *o)
        return fault(SIMBA_EINVAL, "handle options must start as SIMBA_HANDLE_OPTIONS_INIT");
    bool all = kind == HANDLE_OBSERVER && mutex == NULL;
    int rc = all ? 0 : check_names(s, mutex, o->id);
    if (rc < 0)
        return rc;
    if (all)
        mutex = OBSERVER_OF_ALL;
    if (make_period(s, o, &period, &own_period, &why) < 0)
        return fault(SIMBA_EINVAL, "mutex '%s': %s", mutex, why);
    if (kind != HANDLE_OBSERVER && o->id == NULL && (rc = simba_id_host(id, sizeof id)) < 0)
        return rc;
    if (kind != HANDLE_OBSERVER && o->id != NULL)
        snprintf(id, sizeof id, "%s", o->id);

    struct actor *a = allocate(s, mutex, id, own_period ? &period : &s->period);
    if (a == NULL)
        return fault(SIMBA_ELIMIT, "mutex '%s': out of memory", mutex);
    a->initial_delay_ms = o->initial_delay_ms < 0 ? 0 : (uint32_t)o->initial_delay_ms;
    a->on_acquired = o->on_acquired;
    a->on_released = o->on_released;
    if (kind == HANDLE_OBSERVER)
        a->on_changed = o->on_changed;
    a->on_closed = o->on_closed;
    a->data = o->data;
    int64_t drain = clock_after_ms(0, o->drain_ms < 0 ? ACTOR_DRAIN_MS : o->drain_ms);
    handle_init(&a->machine, kind, drain, actor_period(a), actor_id(a), o->id == NULL,
                s->backend->queues, process_random64());

    loop_lock(s);
    bool closing = s->closing;
    if (!closing) {
        s->actors_count++;
        loop_post_locked(s, a); /* so that the loop knows it, for close */
    }
    loop_unlock(s);
    if (closing) {
        free(a);
        return fault(SIMBA_ESTATE, "mutex '%s': the client is being closed", mutex);
    }
    *out = a;
    return 0;
}

void actor_start(struct actor *a)
{
    loop_lock(a->client);
    a->notes |= NOTE_START;
    atomic_store(&a->status, SIMBA_STARTING);
    loop_post_locked(a->client, a);
    loop_unlock(a->client);
}

struct actor *actor_child(struct actor *parent, const char *mutex)
{
    struct simba *s = parent->client;
    struct actor *a = allocate(s, mutex, "", actor_period(parent));
    if (a == NULL)
        return NULL;
    a->parent = parent;
    a->on_changed = parent->on_changed;
    a->data = parent->data;
    handle_init(&a->machine, HANDLE_OBSERVER, 0, actor_period(a), actor_id(a), false, false,
                process_random64());
    table_add(&s->actors, &a->by_mutex); /* now: the parent may be told to close in this turn */
    a->born = true;
    parent->children++;
    loop_lock(s);
    s->actors_count++;
    loop_unlock(s);
    actor_start(a);
    return a;
}

void actor_destroy(struct actor *a)
{
    if (a == NULL || client_is_forked(a->client))
        return;
    struct simba *s = a->client;
    loop_lock(s);
    a->closing = true;
    a->notes |= NOTE_DESTROY;
    view_stop(&a->view);
    futex_set(&a->changes, atomic_load(&a->changes) + 1);
    loop_post_locked(s, a);
    loop_unlock(s);
}
