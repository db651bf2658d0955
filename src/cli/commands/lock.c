/* lock.c: simba lock: hold a mutex while a command runs. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/run/acquire.h"
#include "cli/run/cmd_lock.h"
#include "cli/run/guard.h"
#include "cli/run/poll_thread.h"
#include "cli/run/process_tree.h"
#include "cli/run/relay.h"
#include "cli/shown.h"

enum { OPT_NO_WAIT, OPT_AT_LEAST, OPT_EXCLUSIVE, OPT_SHARED };

static const struct option options[] = {
    {"no-wait", 'n', OPT_NO_WAIT, NULL, "do not wait for another owner of NAME: exit with 124"},
    {"nonblock", 0, OPT_NO_WAIT, NULL, NULL},
    {"nb", 0, OPT_NO_WAIT, NULL, NULL},
    {"wait", 'w', CMD_LOCK_WAIT, "D", "wait at most this long, then exit with 124"},
    {"timeout", 0, CMD_LOCK_WAIT, "D", NULL},
    {"conflict-exit-code", 'E', CMD_LOCK_CONFLICT, "N", "exit with N instead of 124"},
    {"at-least", 0, OPT_AT_LEAST, "D",
     "when CMD ends earlier than this after the acquisition, own NAME until then"},
    CMD_LOCK_OPTIONS,
    {"exclusive", 'x', OPT_EXCLUSIVE, NULL, NULL},
    {"exclusive", 'e', OPT_EXCLUSIVE, NULL, NULL},
    {"shared", 's', OPT_SHARED, NULL, NULL},
    {NULL, 0, 0, NULL, NULL},
};

static const char help[] =
    "CMD's environment has SIMBA_MUTEX, SIMBA_FENCING_TOKEN, SIMBA_CONTENDER_ID and SIMBA_STORE. "
    "Without CMD, simba prints the token and holds NAME until a signal comes. Options end at the "
    "first word of CMD. Of -n and -w the last one counts.\n\n"
    "Exit status: CMD's own, or 128 + the signal that killed it; 123 the lease was lost and CMD "
    "was stopped; 124 another has NAME, at once (-n) or for all the time (-w); 125 simba itself "
    "failed, or the store did not answer, or grants nothing yet: that is never silent; "
    "126 CMD cannot be run; 127 CMD not found; 64 wrong usage.\n\n"
    "Examples:\n"
    "  simba lock backup rsync -a /data /backup   # one at a time on this machine\n"
    "  simba lock -n report ./report.sh           # skip it if the last still runs\n"
    "  simba lock -w 5m -E 0 sync -c 'a | b'      # after 5 minutes give up quietly\n"
    "  simba lock --progress 30s import ./import  # end it when it hangs\n"
    "  simba -u redis://db1/0 lock nightly ./job  # one at a time on all machines\n";

/* ---- options ------------------------------------------------------------------------------- */

struct lock {
    struct cmd_lock lock;
    int64_t at_least_ms; /* the mutex is kept, from the acquisition on */
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct lock *l = data;
    switch (id) {
    case OPT_NO_WAIT:
        l->lock.options.wait_ms = 0;
        return GO_ON;
    case OPT_EXCLUSIVE:
        return GO_ON;
    case OPT_AT_LEAST:
        return cli_take_duration(c, "--at-least", value, &l->at_least_ms);
    case OPT_SHARED:
        return usage(c, "there are no shared locks: a mutex has one owner");
    default:
        return cmd_lock_take(&l->lock, id, value);
    }
}

static struct step take_operand(struct cli *c, void *data, int id, char *value)
{
    struct lock *l = data;
    (void)c;
    (void)id;
    return run_options_take_operand(&l->lock.options, value);
}

/* ---- CMD under the lock -------------------------------------------------------------------- */

/* CMD has ended. Its status is ours, also if the lock is lost from now on. */
static void keep(struct lock *l)
{
    struct cmd_lock *x = &l->lock;
    const struct run_options *opts = &x->options;
    int64_t end = x->began + l->at_least_ms * NS_PER_MS, left;
    struct signalfd_siginfo info;
    char more[24];
    if (x->keeper.has_ending_signal || clock_now() >= end || !poll_thread_start(opts->c))
        return;
    if (isatty(STDERR_FILENO) != 0)
        print_note(opts->c, "mutex '%s' on %s: CMD has ended; kept for another %s (--at-least)",
                   opts->mutex, opts->c->store,
                   show_duration((end - clock_now()) / NS_PER_MS, more));
    while ((left = (end - clock_now()) / NS_PER_MS) > 0 && simba_locker_is_held(x->locker)) {
        struct pollfd fds[] = {{opts->running->signals.fd, POLLIN, 0}, {x->keeper.wake, POLLIN, 0}};
        uint64_t times;
        if (poll(fds, 2, left < INT_MAX ? (int)left + 1 : INT_MAX) <= 0)
            continue;
        if (fds[1].revents != 0)
            (void)!read(x->keeper.wake, &times, sizeof times);
        process_tree_reap(&x->keeper.guard);
        while (read(opts->running->signals.fd, &info, sizeof info) == sizeof info) {
            if (signal_ends((int)info.ssi_signo))
                return;
        }
    }
}

static int run_cmd(struct lock *l)
{
    struct cmd_lock *x = &l->lock;
    struct outcome o = cmd_lock_run(x);
    int code = cmd_lock_exit_code(x, &o);
    if (l->at_least_ms > 0 && o.is_run && !o.is_lost && o.error == 0 && x->was_held)
        keep(l);
    return o.is_run || x->keeper.is_guard_dead ? cmd_lock_release(x, code) : code;
}

/* ---- without CMD --------------------------------------------------------------------------- */

static void print_token(const struct run_options *opts, const simba_locker *locker)
{
    unsigned long long token = (unsigned long long)simba_locker_token(locker);
    if (opts->c->json)
        print_json("{s:s, s:I, s:s, s:s}", "mutex", opts->mutex, "token", (long long)token, "id",
                   simba_locker_id(locker), "store", opts->c->store);
    else
        printf("%llu\n", token);
    fflush(stdout);
}

/* Without CMD there is nothing to guard: we are the ones who are to be ended. */
static int hold(struct cmd_lock *x)
{
    const struct run_options *opts = &x->options;
    struct signalfd_siginfo info;
    if (!poll_thread_start(opts->c))
        return EXIT_TROUBLE;
    print_token(opts, x->locker);
    relay_notify_ready();
    for (;;) {
        struct pollfd fds[] = {{opts->running->signals.fd, POLLIN, 0}, {x->keeper.wake, POLLIN, 0}};
        if (poll(fds, 2, -1) <= 0)
            continue;
        if (fds[1].revents != 0) {
            cmd_lock_report_loss(x, "");
            return EXIT_LOST;
        }
        while (read(opts->running->signals.fd, &info, sizeof info) == sizeof info) {
            if (!signal_ends((int)info.ssi_signo))
                continue;
            return cmd_lock_release(x, 0);
        }
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int lock(struct lock *l)
{
    struct cmd_lock *x = &l->lock;
    struct acquisition a = {.result = NOT_ACQUIRED};
    struct step step = cmd_lock_open(x);
    if (!step.ends)
        a = acquire(&x->options, x->locker, x->options.wait_ms);
    int code = step.ends ? step.code : a.code;
    if (a.result == ACQUIRED) {
        cmd_lock_say_acquired(x);
        code = x->options.argv != NULL ? run_cmd(l) : hold(x);
    }
    cmd_lock_end(x);
    if (a.signal != 0)
        die_of(a.signal);
    return code;
}

static int run(struct cli *c)
{
    static struct lock l;
    cmd_lock_init(&l.lock, c);
    struct step step = cli_take(c, take_option, take_operand, &l);
    if (!step.ends && l.lock.options.mutex == NULL)
        return usage(c, "missing NAME, the mutex to lock: simba lock NAME [CMD…]").code;
    if (!step.ends && l.at_least_ms != 0 && !cmd_lock_has_cmd(&l.lock))
        return usage(c, "--at-least needs a CMD").code;
    step = AND_THEN(step, cmd_lock_configure(&l.lock));
    if (step.ends)
        return step.code;
    int code = lock(&l);
    /* The lock is released; taking the client apart in order would only cost time. */
    fflush(stdout);
    _exit(code);
}

const struct subcommand lock_command = {
    .name = "lock",
    .operands = "NAME [CMD…]",
    .summary = "hold NAME while CMD runs",
    .help = help,
    .options = options,
    .run = run,
};
