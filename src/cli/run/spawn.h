/* spawn.h: a command as a child of the guard, or of a keeper without one. */
#ifndef CLI_RUN_SPAWN_H
#define CLI_RUN_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_options;

/* What the command learns of the tenure that it runs under: SIMBA_FENCING_TOKEN and so on. */
struct cmd_tenure {
    const char *id, *store;
    const char *reason; /* why it is over; NULL: it is not */
    uint64_t token;
    int64_t tick;              /* ms since 1970 UTC; 0: none */
    const char *notify_socket; /* where CMD reports progress; NULL: nowhere */
    int64_t watchdog_ns;       /* and how often */
};

/* 0: it runs; else why not (errno). *pid: -1, or that of the child, also if its exec has failed.
 * *is_shared: it is in the keeper's process group. live: the liveness descriptor to pass on; -1:
 * none. */
int spawn_command(const struct run_options *opts, char **argv, const struct cmd_tenure *t, int live,
                  pid_t *pid, bool *is_shared);

/* The same for a run of --check, in a process group of its own: what it prints is no data. */
int spawn_check(const struct run_options *opts, const struct cmd_tenure *t, int live, pid_t *pid);

/* Runs the command of --on-released, and kills it if it has not ended by then. */
void spawn_on_released(const struct run_options *opts, const struct cmd_tenure *t, int64_t until);

void spawn_drop_stdio(void); /* stdin and stdout are the command's alone */
#endif
