/* process_tree.h: all processes that came from this one. */
#ifndef CLI_RUN_PROCESS_TREE_H
#define CLI_RUN_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

struct run_options;

/* Whom a signal was to reach. A process of another user may not be signalled. */
struct process_tree_left {
    int count, denied; /* all of them; those that may not be */
    long pid;          /* one of these: */
    unsigned user;
    char name[32];
    bool is_said; /* that it may not be */
    int pause_ms; /* until they are looked at again; 0: they were not yet */
};

/* Sends a signal to every process below this one but `spare` (0: none); 0: only counts. Returns how
 * many there are; -1: /proc cannot be read. left may be NULL; it begins as all 0. */
int process_tree_signal(int signal, pid_t spare, struct process_tree_left *left);

/* After KILL was sent: how long to wait before it is sent again. Where nobody is left but those that may
 * not be signalled, that is said once, with what it means, and the pauses grow. */
int process_tree_pause_ms(struct process_tree_left *left, const struct run_options *opts,
                          const char *meaning);

/* Can processes be found at all? False where /proc cannot be read, or counts in another process namespace. */
bool process_tree_is_known(void);

/* Is that process below this one? A process that is gone, or that cannot be found, is not. */
bool process_tree_has(pid_t pid);

/* Instead of the guard: kills it (0: it is dead already) and everything below, until none is left. */
void process_tree_kill(pid_t guard, const struct run_options *opts, const char *meaning);

/* Whoever has ended; *guard is 0 then, if it was among them. */
void process_tree_reap(pid_t *guard);
#endif
