/* observer.h: what an actor must know about one that observes all mutexes; whoever has the baton. */
#ifndef RUNTIME_OBSERVER_H
#define RUNTIME_OBSERVER_H

struct actor;
struct found;
struct request;

void observer_keep_note(struct actor *a, struct request *r); /* of one: as it was answered */
void observer_listed(struct actor *all, struct found *list); /* it has the list, which is given */
void observer_go_on(struct actor *all);                      /* a child has had its first answer */
void observer_free(struct actor *a);                         /* of all, or of one: what it keeps */
void observer_closing(struct actor *a);
#endif
