/* actor_api.c: what callers on any thread do with a handle: make it, ask it, let it go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/rng.h"
#include "core/name.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/inquiry.h"
#include "runtime/options.h"
#include "runtime/process.h"

int actor_check(const struct actor *a)
{
    if (a == NULL)
        return error_say(SIMBA_EINVAL, "there is no handle: NULL was given instead of one");
    if (!client_is_forked(a->client))
        return 0;
    return error_on(SIMBA_EFORKED, a->by_mutex.name, NULL,
                    "this handle belongs to the parent process; open a "
                    "client of your own after fork");
}

const char *actor_store(const struct actor *a)
{
    return a->client->url.shown;
}

uint64_t actor_token(const struct actor *a, int64_t *left_ms)
{
    struct view_reading r;
    *left_ms = 0;
    if (a == NULL || client_is_forked(a->client))
        return 0;
    if (a->machine.kind == HANDLE_CONTENDER && a->client->closing) /* counts from the call on */
        return 0;
    while (view_begin(&a->view, &r)) {
        int64_t left = r.deadline - clock_now();
        if (!view_end(&a->view, &r))
            continue;
        if (left <= 0)
            return 0;
        *left_ms = left / NS_PER_MS;
        return r.token;
    }
    return 0;
}

bool actor_owns(const struct actor *a, uint64_t token)
{
    int64_t left_ms;
    return token != 0 && actor_token(a, &left_ms) == token;
}

int64_t actor_owns_at(const struct actor *a, uint64_t token)
{
    struct view_reading r;
    if (a->client->closing)
        return 0;
    while (view_begin(&a->view, &r) && view_is_of(&r, token)) {
        int64_t now = clock_now();
        if (view_end(&a->view, &r))
            return now < r.deadline ? now : 0;
    }
    return 0;
}

void actor_ask_progress(struct actor *a, bool on)
{
    struct actor_extra *x = actor_extra(a);
    if (x != NULL)
        atomic_store(&x->reported_at, on ? clock_now() : NEVER);
}

void actor_wait_over_locked(struct actor *a)
{
    if (--a->waiters == 0 && (a->closing || a->client->closing))
        turn_post_locked(a, 0);
}

/* ---- creation ------------------------------------------------------------------------------ */

static int check_names(struct simba_client *s, const char *mutex, const char *id)
{
    const char *rule;
    char why[CALL_TEXT_MAX] = "";
    if (name_check_mutex(mutex, &rule) != 0)
        return error_say(SIMBA_EINVAL, "%s", rule);
    if (id != NULL && name_check_id(id, &rule) != 0)
        return error_on(SIMBA_EINVAL, mutex, NULL, "%s", rule);
    if (s->backend->check == NULL)
        return 0;
    int rc = s->backend->check(s->store, mutex, id != NULL ? id : "x", why, sizeof why);
    if (rc < 0)
        return error_on(rc, mutex, s->url.shown, "%s", why);
    return 0;
}

/* The handle's own timing; *own says whether it differs from the client's. */
static int make_period(const struct simba_client *s, const struct simba_handle_options *o,
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
    else if (o->progress_ms == 0 || o->progress_ms < SIMBA_DEFAULT ||
             o->progress_ms > SIMBA_LEASE_MAX_MS)
        *why = "progress must be between 1 ms and a day";
    else if (o->at_least_ms < SIMBA_DEFAULT || o->at_least_ms > SIMBA_LEASE_MAX_MS)
        *why = "at_least must be between 0 and a day";
    else if (period_init(period, &t, why) == 0) {
        period->phase = s->period.phase;
        return 0;
    }
    return SIMBA_EINVAL;
}

/* What it asks for beyond what all have; false: nothing. */
static bool make_extra(enum handle_kind kind, const struct simba_handle_options *o,
                       struct actor_extra *x)
{
    bool contends = kind == HANDLE_CONTENDER;
    *x = (struct actor_extra){.on_endangered = o->on_endangered, .note = o->note};
    x->machine.has_note = o->note != NULL;
    x->machine.at_least = o->at_least_ms < 0 ? 0 : o->at_least_ms * NS_PER_MS;
    x->machine.tells_danger = o->on_endangered != NULL;
    if (contends) {
        x->on_stopped = o->on_stopped;
        x->machine.tells_stopped = o->on_stopped != NULL;
        x->machine.watchdog.limit = o->progress_ms < 0 ? 0 : o->progress_ms * NS_PER_MS;
    }
    return kind != HANDLE_OBSERVER &&
           (x->machine.at_least > 0 || x->machine.tells_danger || x->machine.has_note ||
            x->machine.tells_stopped || x->machine.watchdog.limit > 0);
}

/* One piece of memory: the actor, its extra and its period if it has its own, the mutex, the id, the
 * note. */
static struct actor *allocate(struct simba_client *s, const char *mutex, const char *id,
                              const struct period *period, const struct actor_extra *extra)
{
    size_t period_size = period != &s->period ? sizeof *period : 0;
    size_t extra_size = extra != NULL ? sizeof *extra : 0;
    size_t mutex_size = strlen(mutex) + 1, id_size = strlen(id) + 1;
    size_t note_size = extra != NULL && extra->note != NULL ? strlen(extra->note) + 1 : 0;
    char *memory = calloc(1, sizeof(struct actor) + extra_size + period_size + mutex_size +
                                 id_size + note_size);
    if (memory == NULL)
        return NULL;
    struct actor *a = (struct actor *)(void *)memory;
    memory += sizeof *a;
    a->client = s;
    a->timer.expire = actor_expire;
    if (extra != NULL)
        a->machine.extra = memcpy(memory, extra, extra_size);
    memory += extra_size;
    a->machine.lease.period = period_size != 0 ? memcpy(memory, period, period_size) : period;
    a->by_mutex.name = memcpy(memory + period_size, mutex, mutex_size);
    a->machine.lease.id = memcpy(memory + period_size + mutex_size, id, id_size);
    if (note_size != 0)
        actor_extra(a)->note =
            memcpy(memory + period_size + mutex_size + id_size, extra->note, note_size);
    return a;
}

/* The loop must know it, for close. An observer starts with it: later might be after a close. */
static void add_locked(struct actor *a)
{
    bool observes = a->machine.kind == HANDLE_OBSERVER;
    a->client->actors_count++;
    atomic_store(&a->status, observes ? SIMBA_STARTING : SIMBA_INITIAL);
    turn_post_locked(a, observes ? POST_START : 0);
}

/* An option that would be ignored: its name; NULL: there is none. */
static const char *foreign_option(enum handle_kind kind, const struct simba_handle_options *o)
{
    bool contends = kind == HANDLE_CONTENDER, observes = kind == HANDLE_OBSERVER;
    if (!contends && o->on_acquired != NULL)
        return "on_acquired";
    if (!contends && o->on_released != NULL)
        return "on_released";
    if (!contends && o->on_stopped != NULL)
        return "on_stopped";
    if (!contends && o->progress_ms != SIMBA_DEFAULT)
        return "progress_ms";
    if ((contends || observes) && o->on_lost != NULL)
        return "on_lost";
    if (observes && o->on_endangered != NULL)
        return "on_endangered";
    if (observes && o->at_least_ms != SIMBA_DEFAULT)
        return "at_least_ms";
    if (observes && o->note != NULL)
        return "note";
    return !observes && o->on_changed != NULL ? "on_changed" : NULL;
}

int actor_create(struct simba_client *s, const char *mutex, enum handle_kind kind,
                 const struct simba_handle_options *options, struct actor **out)
{
    struct simba_handle_options taken;
    const struct simba_handle_options *o = &taken;
    char id[SIMBA_ID_MAX + 1] = "";
    struct period period;
    struct actor_extra extra;
    bool own_period;
    const char *why;

    int rc = client_check(s);
    if (rc < 0)
        return rc;
    rc = options_take(&options_of_handle, options, &taken);
    if (rc < 0)
        return rc;
    static const char *const kinds[] = {"a contender", "a locker", "an observer"};
    const char *foreign = foreign_option(kind, o);
    if (foreign != NULL)
        return error_on(SIMBA_EINVAL, mutex != NULL ? mutex : "", NULL, "%s is not an option of %s",
                        foreign, kinds[kind]);
    if (kind == HANDLE_OBSERVER && o->on_changed == NULL)
        return error_say(SIMBA_EINVAL, "an observer needs an on_changed function");
    bool all = kind == HANDLE_OBSERVER && mutex == NULL;
    rc = all ? 0 : check_names(s, mutex, o->id);
    if (rc < 0)
        return rc;
    rc = o->note != NULL ? note_check(mutex, o->note) : 0;
    if (rc < 0)
        return rc;
    if (all)
        mutex = OBSERVER_OF_ALL;
    if (make_period(s, o, &period, &own_period, &why) < 0)
        return error_on(SIMBA_EINVAL, mutex, NULL, "%s", why);
    if (kind != HANDLE_OBSERVER && o->id == NULL &&
        (rc = process_make_id(id, sizeof id, s->backend->short_ids)) < 0)
        return rc;
    if (kind != HANDLE_OBSERVER && o->id != NULL)
        snprintf(id, sizeof id, "%s", o->id);

    struct actor *a = allocate(s, mutex, id, own_period ? &period : &s->period,
                               make_extra(kind, o, &extra) ? &extra : NULL);
    if (a == NULL)
        return error_on(SIMBA_ELIMIT, mutex, NULL, "out of memory");
    a->initial_delay_ms = o->initial_delay_ms < 0 ? 0 : (uint32_t)o->initial_delay_ms;
    a->on_acquired = kind == HANDLE_OBSERVER ? o->on_changed : o->on_acquired;
    if (kind != HANDLE_OBSERVER)
        a->on_released = kind == HANDLE_LOCKER ? o->on_lost : o->on_released;
    a->on_closed = o->on_closed;
    a->data = o->data;
    int64_t drain = clock_after_ms(0, o->drain_ms < 0 ? ACTOR_DRAIN_MS : o->drain_ms);
    handle_init(&a->machine, kind, drain, actor_period(a), actor_id(a), o->id == NULL,
                s->backend->queues, rng_seed(), a->machine.extra);
    a->machine.lease.lists = all;

    driver_lock(s);
    bool closing = s->closing;
    if (!closing)
        add_locked(a);
    driver_unlock(s);
    if (closing) {
        free(a);
        return error_on(SIMBA_ESTATE, mutex, NULL, "the client is being closed");
    }
    *out = a;
    return 0;
}

struct actor *actor_child(struct actor *parent, const char *mutex)
{
    struct simba_client *s = parent->client;
    struct actor *a = allocate(s, mutex, "", actor_period(parent), NULL);
    if (a == NULL)
        return NULL;
    a->parent = parent;
    a->on_acquired = parent->on_acquired;
    a->data = parent->data;
    handle_init(&a->machine, HANDLE_OBSERVER, 0, actor_period(a), actor_id(a), false, false,
                rng_seed(), NULL);
    hash_table_add(&s->actors,
                   &a->by_mutex); /* now: the parent may be told to close in this turn */
    a->is_registered = true;
    parent->children++;
    driver_lock(s);
    add_locked(a);
    driver_unlock(s);
    return a;
}

void actor_destroy(struct actor *a)
{
    if (a == NULL || client_is_forked(a->client))
        return;
    struct simba_client *s = a->client;
    driver_lock(s);
    a->closing = true;
    view_stop(&a->view);
    futex_set(&a->changes, atomic_load(&a->changes) + 1);
    turn_post_locked(a, POST_DESTROY);
    driver_unlock(s);
}
