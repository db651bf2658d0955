/* observer.c: watching without contending; the public face of an actor that only reads.
 *
 * An observer of all mutexes is an actor that lists instead: at the start, when a mutex is
 * pushed that it does not know, and once per ttl. For each mutex that it finds it has a child,
 * an observer of that one, until nobody owns it any more. Children begin some at a time. */
#include "runtime/observer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/inquiry.h"
#include "runtime/request.h"
#include "runtime/state.h"

#define FIRST_ANSWERS_MAX 512 /* children that wait for theirs, after each list */

int simba_observer_create(simba_client *s, const char *mutex,
                          const struct simba_handle_options *options, simba_observer **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return error_say(SIMBA_EINVAL,
                         "simba_observer_create needs a client and a place for the result");
    *out = NULL;
    int rc = actor_create(s, mutex, HANDLE_OBSERVER, options, &a);
    *out = (simba_observer *)(void *)a;
    return rc;
}

void simba_observer_state(const simba_observer *w, struct simba_state *out)
{
    state_show(actor_of(w), out);
}

void simba_observer_destroy(simba_observer *w)
{
    actor_destroy(actor_of(w));
}

/* ---- of all mutexes; by whoever has the baton ---------------------------------------------- */

static struct actor *child_of(const struct actor *all, const char *mutex)
{
    struct hash_node *n = hash_table_find(&all->client->actors, mutex);
    while (n != NULL && actor_parent(actor_of(n)) != all)
        n = hash_table_find_next(n);
    return actor_of(n);
}

/* Ends its children; forgotten: only those that the last list does not have and that nobody owns. */
static void end_children(struct actor *all, bool forgotten)
{
    for (struct hash_node *n = NULL; (n = hash_table_next(&all->client->actors, n)) != NULL;) {
        struct actor *a = actor_of(n);
        if (actor_parent(a) == all && !a->closing &&
            (!forgotten || (a->listed != all->listed && a->after.id == NULL)))
            actor_destroy(a);
    }
}

static bool observes_all(const struct actor *a)
{
    return a->by_mutex.name[0] == '\0';
}

static void forget_list(struct actor *all)
{
    request_free_found(all->to_observe);
    all->to_observe = NULL;
}

/* Begins to observe the next one. Each asks the store first; if all did so at once, renewals of the
 * same client would wait behind a million questions. */
static void observe_next(struct actor *all)
{
    struct found *f = all->to_observe;
    struct actor *a = child_of(all, f->mutex);
    if (a == NULL)
        a = actor_child(all, f->mutex);
    if (a != NULL)
        a->listed = all->listed;
    all->to_observe = f->next;
    free(f->note);
    free(f);
}

void observer_go_on(struct actor *all)
{
    if (all->to_observe != NULL)
        observe_next(all);
}

/* Keeps those of the list that have no child yet, and marks the children of the others. */
static void take_list(struct actor *all, struct found *list)
{
    for (struct found *f = list, *next; f != NULL; f = next) {
        struct actor *a = child_of(all, f->mutex);
        next = f->next;
        if (a != NULL)
            a->listed = all->listed;
        if (a != NULL || f->owner.id[0] == '\0') {
            free(f->note);
            free(f);
            continue;
        }
        f->next = all->to_observe;
        all->to_observe = f;
    }
}

void observer_keep_note(struct actor *a, struct request *r)
{
    driver_lock(a->client);
    struct note *before = a->note;
    a->note = r->note;
    driver_unlock(a->client);
    r->note = NULL;
    free(before);
}

void observer_listed(struct actor *all, struct found *list)
{
    all->listed++;
    forget_list(all); /* what is still to be observed is in the new one */
    take_list(all, list);
    if (all->children > 0)
        end_children(all, true);
    for (int i = 0; i < FIRST_ANSWERS_MAX && all->to_observe != NULL; i++)
        observe_next(all);
}

void observer_free(struct actor *a)
{
    if (observes_all(a))
        forget_list(a);
    else
        free(a->to_report);
    free(a->note);
}

void observer_closing(struct actor *a)
{
    if (!observes_all(a))
        return;
    forget_list(a);
    if (a->children > 0)
        end_children(a, false);
}
