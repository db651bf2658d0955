/* spawn.h: a command as a child of the guard. */
#ifndef CLI_RUN_SPAWN_H
#define CLI_RUN_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct plan;

/* 0: it runs; else why not (errno). *pid: -1, or that of the child, also if its exec has failed. *is_shared:
 * it is in the keeper's process group. live: the liveness descriptor to pass on; -1: none. */
int spawn_command(const struct plan *p, char **argv, char **environment, int live, pid_t *pid,
                  bool *is_shared);
void spawn_drop_stdio(void); /* stdin and stdout are the command's alone */
#endif
