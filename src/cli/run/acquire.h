/* acquire.h: waiting for the lock. */
#ifndef CLI_RUN_ACQUIRE_H
#define CLI_RUN_ACQUIRE_H

#include <simba.h>

struct plan;

/* Waits for the lock. ACQUIRED, or an exit code after saying why; *signal: what ended the wait. */
enum { ACQUIRED = -1 };
int acquire(struct plan *p, simba_locker *l, int *signal);
#endif
