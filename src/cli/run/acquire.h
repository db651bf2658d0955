/* acquire.h: waiting for the lock. */
#ifndef CLI_RUN_ACQUIRE_H
#define CLI_RUN_ACQUIRE_H

#include <simba.h>

struct plan;

/* Waits for the lock. ACQUIRED, or an exit code after saying why; *signal: what ended the wait. HELD:
 * another has it, which the plan takes without a word. */
enum { ACQUIRED = -1, HELD = -2 };
int acquire(struct plan *p, simba_locker *l, int *signal);
#endif
