/* state.h: what a handle shows of who owns the mutex. */
#ifndef RUNTIME_STATE_H
#define RUNTIME_STATE_H

#include <simba.h>

struct actor;
struct request;

/* Whoever has the baton. True: there is something to tell. */
void state_ended(struct actor *a, enum simba_reason reason); /* its own tenure has */
bool state_answered(struct actor *a, struct request *r);
bool state_next(struct actor *a); /* an observer has told an end: now what followed */
void state_free(struct actor *a);

void state_show(const struct actor *a, struct simba_state *out); /* any thread */
#endif
