/* scheduler.h: what an actor must know about work that runs while it leads. */
#ifndef RUNTIME_SCHEDULER_H
#define RUNTIME_SCHEDULER_H

#include <simba.h>
#include <stdbool.h>

struct actor;

/* On the loop, when on_released is due: tells the work that its tenure has ended. true: its thread
 * goes on for now; NOTE_LEFT comes when it is about to end, and on_released must wait for that.
 * false: there is none, as with every actor that is no scheduler's. */
bool scheduler_lingers(const struct actor *a);
#endif
