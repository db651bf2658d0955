/* run_options.h: what the user wants to be run, and how; and by whom it is run.
 *
 *     keeper   the process that was started: holds the lock and renews it      keeper.c
 *       guard  its child, forked before any thread exists: does no I/O on      guard.c
 *              the store, only watches a deadline that the keeper moves
 *         CMD  and whatever it starts: the tree                               process_tree.c
 *
 * If the keeper dies or is stopped, the guard ends the tree before the mutex can be another's; if
 * the guard dies, the keeper does. Both are subreapers, so that no process gets out of the tree by
 * losing its parent, and the guard has a process group of its own, so that what stops the job does
 * not stop it. Nobody but these is below the keeper (relay.c). All times are nanoseconds on
 * CLOCK_BOOTTIME.
 *
 * `lock` runs one CMD. `elect` and `schedule` run many, one after the other, by the same guard.
 * There may be a second command, on_released, which follows CMD when the tenure ends, however
 * it ends: if the keeper cannot say so any more, the guard runs it by itself. */
#ifndef CLI_RUN_RUN_OPTIONS_H
#define CLI_RUN_RUN_OPTIONS_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "cli/run/signals.h"
#include "cli/step.h"

struct cli;

enum rest_policy { REST_HOLD, REST_KILL, REST_LEAVE };

/* What belongs to the processes that carry them out; made by keeper_begin(). */
struct running {
    struct signals signals;
    struct listen *listen; /* of --listen; NULL: nobody is answered … */
    struct rlimit files;   /* … and the limit as it was before that: what CMD and hooks get */

    /* The lease holds until then. In memory that keeper and guard share: the keeper writes, the
     * guard reads, so a guard that was stopped knows the latest when it goes on. Set by
     * guard_fork(). */
    _Atomic int64_t *deadline;

    /* The same in the other direction: CMD counts as hanging from then on; 0: nobody asks. */
    _Atomic int64_t *progress_until;
};

/* Constant when the options are taken, before anything is forked. */
struct run_options {
    struct cli *c;
    const char *mutex;
    char **argv;        /* CMD; NULL: none */
    char **on_released; /* at the end of a tenure in which CMD was begun; NULL: nothing */
    bool in_background; /* the commands have nothing to do with the terminal */
    bool to_stderr;     /* what they print is no data */
    bool fail_fast;     /* the store must answer at the start */
    int64_t wait_ms;
    int conflict_code;
    bool may_be_held;             /* if wait_ms is 0: that another has it is no conflict */
    const char *kill_after_given; /* as the option has it; NULL: default */
    int64_t kill_after;           /* from the signal to the kill */
    int signal;                   /* how CMD is asked to end */
    bool close_live;              /* CMD does not inherit the liveness descriptor */
    enum rest_policy rest;        /* what becomes of processes that CMD leaves behind */
    int64_t progress;             /* CMD shows at least this often that it gets on; 0: never */
    char **check;                 /* instead, this command shows it; NULL: none */
    char *check_argv[4];          /* its words */
    int64_t check_every;          /* so often it is run */
    bool checks_tenure;           /* also while no CMD runs */
    struct running *running;
};

#define PROGRESS_MIN_MS 100
#define PROGRESS_MAX_MS INT64_C(86400000) /* one day */
#define CHECK_EVERY_MS 5000
#define CHECKS_PER_PROGRESS 3

/* Options, for their tables; run_options_take() takes them. */
enum {
    RUN_KILL_AFTER = 500,
    RUN_SIGNAL,
    RUN_PROGRESS,
    RUN_CHECK,
    RUN_CHECK_EVERY,
    RUN_FAIL_FAST,
    RUN_LISTEN,
    RUN_HOST
}; /* beside a command's own, and the common ones */
#define RUN_OPTIONS                                                                             \
    {"kill-after", 'k', RUN_KILL_AFTER, "D",                                                    \
     "if the lease is lost: from the signal to the kill; default 3s, or a fifth of the lease"}, \
        {"signal", 0, RUN_SIGNAL, "SIG", "the signal that asks CMD to end; default TERM"},      \
        {"progress", 0, RUN_PROGRESS, "D",                                                      \
         "end CMD when it has not sent WATCHDOG=1 to $NOTIFY_SOCKET for this long"},            \
        {"check", 0, RUN_CHECK, "CHECK",                                                        \
         "instead, end CMD when this shell command has not succeeded for --progress"},          \
        {"check-every", 0, RUN_CHECK_EVERY, "D",                                                \
         "how often that is run; default a third of --progress, else 5s"},                      \
        {"listen", 0, RUN_LISTEN, "ADDR",                                                       \
         "answer HTTP on [HOST]:PORT or unix:PATH: /leader, /healthz, /metrics"},               \
    {                                                                                           \
        "host", 0, RUN_HOST, "NAMES",                                                           \
            "names by which clients may ask there, too, with commas between them"               \
    }
#define RUN_OPTIONS_OF_CANDIDATES                                     \
    RUN_OPTIONS,                                                      \
    {                                                                 \
        "fail-fast", 0, RUN_FAIL_FAST, NULL,                          \
            "exit with 125 if the store does not answer at the start" \
    }
struct step run_options_take(struct run_options *opts, int id, char *value);

/* A word: NAME is the first, CMD begins with the second. */
struct step run_options_take_operand(struct run_options *opts, char *value);

char **run_options_shell_argv(char *argv[4], char *text); /* sh -c text; argv */
/* CMD from -c (shell[0]: NULL if there was none) or from words. */
struct step run_options_choose_cmd(struct run_options *opts, char *shell[4]);

/* How long the tree is left from the signal to the kill. */
struct step run_options_kill_after(struct run_options *opts);

/* How silence is told from progress; has_cmd: there is a CMD to report. */
struct step run_options_progress(struct run_options *opts, bool has_cmd);

/* Fills in what the configuration says of a handle. */
struct step run_options_handle(const struct run_options *opts, struct simba_handle_options *o);
struct step run_options_refused(const struct run_options *opts,
                                int rc); /* says why there is no handle */

/* From the end of the right to act to where another may own the mutex: see core/period.h. */
int64_t run_options_lease_margin(const struct cli *c);
#endif
