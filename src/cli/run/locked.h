/* locked.h: one CMD under a lock: what lock and once have in common. The order of the calls is that of
 * the functions here, with acquire() after locked_open(). */
#ifndef CLI_RUN_LOCKED_H
#define CLI_RUN_LOCKED_H

#include "cli/args.h"
#include "cli/run/keeper.h"
#include "cli/run/plan.h"

struct locked {
    struct plan plan;
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

/* Options, for their tables; locked_take() takes them, and the first two, whose help differs. */
enum {
    LOCKED_WAIT = 600,
    LOCKED_CONFLICT,
    LOCKED_COMMAND,
    LOCKED_CLOSE,
    LOCKED_KILL_REST,
    LOCKED_LEAVE_REST
}; /* beside a command's own, those of the plan, and the common ones */
#define LOCKED_OPTIONS                                                                           \
    PLAN_OPTIONS, {"command", 'c', LOCKED_COMMAND, "STRING", "CMD for the shell: sh -c STRING"}, \
        {"close", 'o', LOCKED_CLOSE, NULL,                                                       \
         "do not pass on to CMD the descriptor that shows it is alive"},                         \
        {"kill-rest", 0, LOCKED_KILL_REST, NULL, "when CMD ends, end what it left running"},     \
    {                                                                                            \
        "leave-rest", 0, LOCKED_LEAVE_REST, NULL,                                                \
            "when CMD ends, release, even if it left something running"                          \
    }

/* Before the options. */
void locked_init(struct locked *x, struct cli *c);

struct step locked_take(struct locked *x, int id, char *value);
bool locked_has_cmd(const struct locked *x); /* after all options */

/* After the options: chooses CMD, reads the configuration. */
struct step locked_configure(struct locked *x);

/* Takes the signals, forks the guard, opens the store, makes the locker. In any case guard_end()
 * comes at the end. */
struct step locked_open(struct locked *x);

void locked_say_acquired(const struct locked *x); /* with -v */

/* CMD, to its end; then what that means: the exit code, after saying why it is not CMD's. */
struct outcome locked_run(struct locked *x);
int locked_exit_code(const struct locked *x, const struct outcome *o);

/* The lock is lost: says what that means ("; CMD is not …"), and why. */
void locked_report_loss(struct locked *x, const char *meaning);

/* If the lock is lost, or the store cannot be told, that is said. The exit code, given the one so far:
 * another, if the lock had gone before CMD ended by itself. */
int locked_release(struct locked *x, int code);

void locked_end(struct locked *x); /* the guard, and what --listen has begun */
#endif
