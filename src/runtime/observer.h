/* observer.h: what an actor must know about one that observes all mutexes; whoever has the baton. */
#ifndef RUNTIME_OBSERVER_H
#define RUNTIME_OBSERVER_H

struct actor;
struct found;

void observer_listed(struct actor *all, const struct found *list); /* it has the list */
void observer_closing(struct actor *all);
#endif
