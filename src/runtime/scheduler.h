/* scheduler.h: what an actor must know about work that runs while it leads. Whoever has the baton;
 * every actor may be asked, also one that is no scheduler's. */
#ifndef RUNTIME_SCHEDULER_H
#define RUNTIME_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

struct actor;

void scheduler_go_on(struct actor *a); /* a callback has returned: runs are due, if it leads now */
void scheduler_left(struct actor *a);  /* POST_LEFT: the run has ended */

/* on_released is due, and no further run begins. True: one is at work, and it must wait for
 * POST_LEFT. */
bool scheduler_end(struct actor *a);

/* The note of its mutex is the scheduler's. By any thread. */
bool scheduler_has_ticks(const struct actor *a);
#endif
