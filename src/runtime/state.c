/* state.c: what a handle shows of who owns the mutex (struct simba_state): the tenure that it saw
 * last, the one before, and why that has ended. Written by whoever has the baton, read by any
 * thread. */
#include "runtime/state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/client.h"

/* Takes over now.id, which is the actor's own, or allocated, or NULL. True: another tenure, or none
 * any more. */
static bool see(struct actor *a, struct tenure now, enum simba_reason reason)
{
    char *unused = now.id;
    driver_lock(a->client);
    bool changed = !tenure_is_same(&a->after, &now);
    if (changed) {
        unused = a->before.id;
        a->before = a->after;
        a->reason = (uint8_t)reason;
    } else {
        now.id = a->after.id;
        now.acquired_at = a->after.acquired_at; /* a renewal moves nothing but the end */
        if (now.lease < a->after.lease)
            now.lease = a->after.lease;
    }
    a->after = now;
    driver_unlock(a->client);
    if (unused != actor_id(a) && unused != now.id)
        free(unused);
    return changed;
}

/* An observer sees that one tenure has ended and another begun, and tells it in two steps, so that
 * each has its reason. The second comes when the first has been told (state_next). While it is
 * busy telling something else, changes become one. */
static bool see_end_first(struct actor *a, const struct tenure *now, bool *changed)
{
    *changed = false;
    if (a->machine.kind != HANDLE_OBSERVER)
        return false;
    if (a->next == NULL) {
        bool busy = a->machine.callback != CALLBACK_NONE || a->machine.changed;
        if (busy || a->after.id == NULL || now->id == NULL || tenure_is_same(&a->after, now))
            return false;
        a->next = malloc(sizeof *a->next);
        if (a->next == NULL)
            return false; /* one step, then */
        *a->next = (struct tenure){.id = NULL};
        struct tenure nobody = {.asked_at = now->asked_at, .seen_at = now->seen_at};
        *changed = see(a, nobody, tenure_end(&a->after, now));
    }
    free(a->next->id);
    *a->next = *now;
    return true;
}

/* guess: if its lease is like ours; for stores that do not say it. */
static int64_t began_at(const struct request *r, int64_t guess)
{
    int64_t asked_at = r->sent.sent_at;
    if (r->age_ms >= 0)
        return asked_at - r->age_ms * NS_PER_MS;
    return guess < asked_at ? guess : asked_at;
}

bool state_answered(struct actor *a, struct request *r)
{
    const struct lease *l = &a->machine.lease;
    struct tenure now = {.asked_at = r->sent.sent_at, .seen_at = clock_now()};
    bool own = r->own || r->sent.op == SIMBA_RENEW, owner = lease_deadline(l) != 0;
    now.token = r->sent.op == SIMBA_RENEW ? r->sent.token : r->token;
    if (r->code < 0 || r->sent.op == SIMBA_RELEASE)
        return false;
    /* While we own, and until its end has been told, there is our tenure to see; an answer that
     * comes late knows another one. And what is ours, but not to act on, is not shown. */
    if (lease_is_over(l) || (owner ? !own || now.token != l->token : own))
        return false;
    if (own || r->owner != NULL) {
        int64_t end = clock_after_ms(r->sent.sent_at, r->left_ms);
        now.id = own ? (char *)actor_id(a) : r->owner;
        now.acquired_at = began_at(r, end - actor_period(a)->lease);
        now.until = end;
        now.lease = end - r->sent.sent_at;
        now.aged = r->age_ms >= 0;
        now.evicted = r->evicted;
    }
    if (a->machine.kind == HANDLE_OBSERVER && tenure_is_old(&a->before, &a->after, &now))
        return false; /* an observer never goes back */
    if (now.id == r->owner)
        r->owner = NULL;
    if (now.id == NULL)
        now.token = 0;
    bool changed;
    if (see_end_first(a, &now, &changed))
        return changed;
    return see(a, now, now.id != NULL ? SIMBA_ACQUIRED : tenure_end(&a->after, &now));
}

void state_ended(struct actor *a, enum simba_reason reason)
{
    see(a, (struct tenure){.id = NULL}, reason);
}

bool state_next(struct actor *a)
{
    struct tenure *next = a->next;
    if (next == NULL || a->machine.changed || a->machine.callback != CALLBACK_NONE)
        return false;
    a->next = NULL;
    bool changed = see(a, *next, SIMBA_ACQUIRED);
    free(next);
    return changed;
}

void state_free(struct actor *a)
{
    if (a->machine.kind == HANDLE_OBSERVER && a->next != NULL) {
        free(a->next->id);
        free(a->next);
    }
    if (a->before.id != actor_id(a))
        free(a->before.id);
    if (a->after.id != actor_id(a))
        free(a->after.id);
}

/* ---- reading ------------------------------------------------------------------------------- */

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

void state_show(const struct actor *a, struct simba_state *out)
{
    if (out == NULL)
        return;
    *out = (struct simba_state){.reason = SIMBA_UNCHANGED};
    if (a == NULL || client_is_forked(a->client))
        return;
    driver_lock(a->client);
    show_owner(&out->before, &a->before, actor_period(a)->transition);
    show_owner(&out->after, &a->after, actor_period(a)->transition);
    out->reason = (enum simba_reason)a->reason;
    driver_unlock(a->client);
}
