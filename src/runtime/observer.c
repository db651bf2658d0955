/* observer.c: watching without contending; the public face of an actor that only reads.
 *
 * An observer of all mutexes is an actor that lists instead: at the start, when a mutex is
 * pushed that it does not know, and once per ttl. For each mutex that it finds it has a child,
 * an observer of that one, until nobody owns it any more. */
#include "runtime/observer.h"

#include <string.h>

#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/state.h"

int simba_observer_create(simba_client *s, const char *mutex,
                          const struct simba_handle_options *options, simba_observer **out)
{
    struct actor *a = NULL;
    if (s == NULL || out == NULL)
        return fault(SIMBA_EINVAL,
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

void observer_listed(struct actor *all, const struct found *list)
{
    bool forgotten = all->children > 0;
    all->listed++;
    for (; list != NULL; list = list->next) {
        struct actor *a = child_of(all, list->mutex);
        if (a == NULL && list->owner.id[0] != '\0')
            a = actor_child(all, list->mutex);
        if (a != NULL)
            a->listed = all->listed;
    }
    if (forgotten)
        end_children(all, true);
}

void observer_closing(struct actor *all)
{
    if (all->children > 0)
        end_children(all, false);
}
