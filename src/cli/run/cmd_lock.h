/* cmd_lock.h: one CMD under a lock: what lock and once have in common. The order of the calls is that of
 * the functions here, with acquire() after cmd_lock_open(). */
#ifndef CLI_RUN_CMD_LOCK_H
#define CLI_RUN_CMD_LOCK_H

#include "cli/args.h"
#include "cli/run/keeper.h"
#include "cli/run/run_options.h"

struct cmd_lock {
    struct run_options options;
    struct running running;
    struct keeper keeper;
    simba_locker *locker;
    char *shell[4];                   /* of -c; all NULL: it is not given */
    int64_t began;                    /* CMD */
    _Atomic enum simba_reason reason; /* why the lock was lost */
    bool is_polled;                   /* by a thread of its own, if the client needs one */
    bool was_held;                    /* still, when CMD had ended, or was not to be begun */
    bool is_loss_said;
};

/* Options, for their tables; cmd_lock_take() takes them, and the first two, whose help differs. */
enum {
    CMD_LOCK_WAIT = 600,
    CMD_LOCK_CONFLICT,
    CMD_LOCK_COMMAND,
    CMD_LOCK_CLOSE,
    CMD_LOCK_KILL_REST,
    CMD_LOCK_LEAVE_REST
}; /* beside a command's own, those of run_options.h, and the common ones */
#define CMD_LOCK_OPTIONS                                                                          \
    RUN_OPTIONS, {"command", 'c', CMD_LOCK_COMMAND, "STRING", "CMD for the shell: sh -c STRING"}, \
        {"close", 'o', CMD_LOCK_CLOSE, NULL,                                                      \
         "do not pass on to CMD the descriptor that shows it is alive"},                          \
        {"kill-rest", 0, CMD_LOCK_KILL_REST, NULL, "when CMD ends, end what it left running"},    \
    {                                                                                             \
        "leave-rest", 0, CMD_LOCK_LEAVE_REST, NULL,                                               \
            "when CMD ends, release, even if it left something running"                           \
    }

/* Before the options. */
void cmd_lock_init(struct cmd_lock *x, struct cli *c);

struct step cmd_lock_take(struct cmd_lock *x, int id, char *value);
bool cmd_lock_has_cmd(const struct cmd_lock *x); /* after all options */

/* After the options: chooses CMD, reads the configuration. */
struct step cmd_lock_configure(struct cmd_lock *x);

/* Takes the signals, forks the guard, opens the store, makes the locker. In any case guard_end()
 * comes at the end. */
struct step cmd_lock_open(struct cmd_lock *x);

void cmd_lock_say_acquired(const struct cmd_lock *x); /* with -v */

/* CMD, to its end; then what that means: the exit code, after saying why it is not CMD's. */
struct outcome cmd_lock_run(struct cmd_lock *x);
int cmd_lock_exit_code(const struct cmd_lock *x, const struct outcome *o);

/* The lock is lost: says what that means ("; CMD is not …"), and why. */
void cmd_lock_report_loss(struct cmd_lock *x, const char *meaning);

/* If the lock is lost, or the store cannot be told, that is said. The exit code, given the one so far:
 * another, if the lock had gone before CMD ended by itself. */
int cmd_lock_release(struct cmd_lock *x, int code);

void cmd_lock_end(struct cmd_lock *x); /* the guard, and what --listen has begun */
#endif
