/* guard.h: the process between keeper and CMD. */
#ifndef CLI_RUN_GUARD_H
#define CLI_RUN_GUARD_H

#include <sys/types.h>

struct run_options;

pid_t guard_fork(const struct run_options *opts, int *channel); /* before any thread; -1: errno */
void guard_end(pid_t guard); /* when there is nothing left to guard */
#endif
