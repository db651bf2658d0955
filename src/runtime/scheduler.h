/* scheduler.h: what an actor must know about work that runs while it leads. Whoever has the baton;
 * every actor may be asked, also one that is no scheduler's. */
#ifndef RUNTIME_SCHEDULER_H
#define RUNTIME_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

struct actor;

int64_t scheduler_due(const struct actor *a); /* when a run is to begin; NEVER: none waits */
void scheduler_tick(struct actor *a);         /* begins it, if it is time */
void scheduler_left(struct actor *a);         /* POST_LEFT: the run has ended */

/* A run is at work: on_released must wait for POST_LEFT. */
bool scheduler_lingers(const struct actor *a);

/* The note of its mutex is the scheduler's. By any thread. */
bool scheduler_has_ticks(const struct actor *a);
#endif
