/* process_tree.h: all processes that came from this one. */
#ifndef CLI_RUN_PROCESS_TREE_H
#define CLI_RUN_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends a signal to every process below this one but `spare` (0: none); 0: only counts. Returns how
 * many there are; -1: /proc cannot be read. */
int process_tree_signal(int signal, pid_t spare);

/* Can processes be found at all? False where /proc cannot be read, or counts in another process namespace. */
bool process_tree_is_known(void);

/* Is that process below this one? A process that is gone, or that cannot be found, is not. */
bool process_tree_has(pid_t pid);

/* Instead of the guard: kills it (0: it is dead already) and everything below, until none is left. */
void process_tree_kill(pid_t guard);

/* Whoever has ended; *guard is 0 then, if it was among them. */
void process_tree_reap(pid_t *guard);
#endif
