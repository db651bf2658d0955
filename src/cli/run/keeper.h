/* keeper.h: the process that holds the lock while CMD runs. */
#ifndef CLI_RUN_KEEPER_H
#define CLI_RUN_KEEPER_H

#include <simba.h>
#include <sys/types.h>

struct plan;

int exit_code_of(int status); /* of waitpid() */

/* Runs CMD under the lock, until nothing is left of it and the lock is released. The exit code. */
int keep(struct plan *p, simba_locker *l, int lost, int link, pid_t guard);
#endif
