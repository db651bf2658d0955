/* lock.c: simba lock: hold a mutex while a command runs. */
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/owner_list.h"
#include "cli/run/acquire.h"
#include "cli/run/clock.h"
#include "cli/run/guard.h"
#include "cli/run/keeper.h"
#include "cli/run/listen.h"
#include "cli/run/outage.h"
#include "cli/run/plan.h"
#include "cli/run/poll_thread.h"
#include "cli/run/process_tree.h"
#include "cli/run/relay.h"

#define SHORT_MS 20
#define LEFT_BEHIND_AFTER_MS 500 /* before that it is not worth a line: they may be about to end */

enum {
    OPT_NO_WAIT,
    OPT_WAIT,
    OPT_CONFLICT,
    OPT_COMMAND,
    OPT_AT_LEAST,
    OPT_CLOSE,
    OPT_KILL_REST,
    OPT_LEAVE_REST,
    OPT_EXCLUSIVE,
    OPT_SHARED
};

static const struct option options[] = {
    {"no-wait", 'n', OPT_NO_WAIT, NULL, "if another owns NAME, exit with 124 at once"},
    {"nonblock", 0, OPT_NO_WAIT, NULL, NULL},
    {"nb", 0, OPT_NO_WAIT, NULL, NULL},
    {"wait", 'w', OPT_WAIT, "D", "wait at most this long, then exit with 124"},
    {"timeout", 0, OPT_WAIT, "D", NULL},
    {"conflict-exit-code", 'E', OPT_CONFLICT, "N", "exit with N instead of 124"},
    PLAN_OPTIONS,
    {"command", 'c', OPT_COMMAND, "STRING", "CMD for the shell: sh -c STRING"},
    {"at-least", 0, OPT_AT_LEAST, "D",
     "when CMD ends earlier than this after the acquisition, own NAME until then"},
    {"close", 'o', OPT_CLOSE, NULL, "do not pass on to CMD the descriptor that shows it is alive"},
    {"kill-rest", 0, OPT_KILL_REST, NULL, "when CMD ends, end what it left running"},
    {"leave-rest", 0, OPT_LEAVE_REST, NULL,
     "when CMD ends, release, even if it left something running"},
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
    "was stopped; 124 held by another (-n) or not acquired in time (-w); 125 simba itself failed; "
    "126 CMD cannot be run; 127 CMD not found; 64 wrong usage.\n\n"
    "Examples:\n"
    "  simba lock backup rsync -a /data /backup   # one at a time on this machine\n"
    "  simba lock -n report ./report.sh           # skip it if the last still runs\n"
    "  simba lock -w 5m -E 0 sync -c 'a | b'      # after 5 minutes give up quietly\n"
    "  simba lock --progress 30s import ./import  # end it when it hangs\n"
    "  simba -u redis://db1/0 lock nightly ./job  # one at a time on all machines\n";

/* ---- options ------------------------------------------------------------------------------- */

struct lock {
    struct plan plan;
    struct keeper keeper;
    simba_locker *locker;
    char *shell[4];                   /* all NULL: no -c */
    int64_t began;                    /* CMD */
    int64_t at_least_ms;              /* the mutex is kept, from the acquisition on */
    _Atomic enum simba_reason reason; /* why the lock was lost */
    bool is_polled;                   /* by a thread of its own, if the client needs one */
};

static int take_option(struct cli *c, void *data, int id, char *value)
{
    struct lock *l = data;
    struct plan *p = &l->plan;
    char *end;
    long number;
    switch (id) {
    case OPT_NO_WAIT:
        p->wait_ms = 0;
        return -1;
    case OPT_WAIT:
        return cli_take_duration(c, "--wait", value, &p->wait_ms);
    case OPT_CONFLICT:
        number = strtol(value, &end, 10);
        if (*value == '\0' || *end != '\0' || number < 0 || number > 255)
            return usage(c, "--conflict-exit-code '%.20s' is not a number from 0 to 255", value);
        p->conflict_code = (int)number;
        return -1;
    case OPT_COMMAND:
        plan_shell_argv(l->shell, value);
        return -1;
    case OPT_EXCLUSIVE:
        return -1;
    case OPT_AT_LEAST:
        return cli_take_duration(c, "--at-least", value, &l->at_least_ms);
    case OPT_CLOSE:
        p->close_live = true;
        return -1;
    case OPT_KILL_REST:
        p->rest = REST_KILL;
        return -1;
    case OPT_LEAVE_REST:
        p->rest = REST_LEAVE;
        return -1;
    case OPT_SHARED:
        return usage(c, "there are no shared locks: a mutex has one owner");
    default:
        return plan_take(p, id, value);
    }
}

static int take_operand(struct cli *c, void *data, int id, char *value)
{
    struct lock *l = data;
    (void)c;
    (void)id;
    return plan_take_operand(&l->plan, value);
}

/* ---- CMD under the lock -------------------------------------------------------------------- */

static int64_t remaining_ms(void *data, uint64_t token)
{
    const struct lock *l = data;
    int64_t left = simba_locker_remaining(l->locker);
    return simba_locker_token(l->locker) == token ? left : 0;
}

static void print_left_behind(const struct plan *p, int count)
{
    const char *es = count == 1 ? "" : "es";
    if (p->rest == REST_KILL)
        print_note(p->c,
                   "mutex '%s' on %s: CMD has ended; ending %d process%s that it left running",
                   p->mutex, p->c->store, count, es);
    else
        print_note(
            p->c,
            "mutex '%s' on %s: CMD has ended, but left %d process%s running; the lock is held "
            "until %s (--kill-rest ends them, --leave-rest does not wait)",
            p->mutex, p->c->store, count, es, count == 1 ? "it ends" : "they end");
}

/* A CMD that ends soon needs no thread for renewals. If there is none, the lock lasts one lease. */
static int on_turn(void *data)
{
    struct lock *l = data;
    struct keeper *k = &l->keeper;
    int64_t now = now_ns();
    if (k->job.is_over || k->is_guard_dead)
        return -1;
    if (!l->is_polled && now - l->began < SHORT_MS * NS_PER_MS)
        return SHORT_MS;
    if (!l->is_polled)
        poll_thread_start(l->plan.c);
    l->is_polled = true;
    if (k->job.left_behind == 0)
        return INT_MAX;
    if (now - k->job.left_since >= LEFT_BEHIND_AFTER_MS * NS_PER_MS) {
        print_left_behind(&l->plan, k->job.left_behind);
        k->job.left_behind = 0;
    }
    return LEFT_BEHIND_AFTER_MS;
}

/* What CMD's end means, also if it was never begun. */
static int exit_code(const struct lock *l, const struct outcome *o)
{
    const struct plan *p = &l->plan;
    if (l->keeper.is_guard_dead)
        return l->keeper.job.term_sent ? EXIT_LOST : EXIT_TROUBLE;
    char why[OUTAGE_TEXT_MAX];
    if (!o->is_run)
        print_loss(p->c, "expired", "lost '%s' on %s before CMD began: %s", p->mutex, p->c->store,
                   outage_explain(p->c->outage, (int)getpid(), why));
    if (!o->is_run || o->is_lost)
        return EXIT_LOST;
    if (o->error != 0)
        print_error(p->c, "cannot run %s: %s; '%s' on %s is released", p->argv[0],
                    strerror(o->error), p->mutex, p->c->store);
    return o->code;
}

/* The lock had gone before CMD ended by itself, or the store cannot be told. */
static int release(const struct lock *l, int code, bool was_held)
{
    int rc = simba_locker_release(l->locker);
    if (rc == 0 || l->keeper.job.term_sent)
        return code;
    print_error(l->plan.c, "%s", cli_error_text());
    return rc == SIMBA_ELOST && !was_held ? EXIT_LOST : code;
}

/* CMD has ended. Its status is ours, also if the lock is lost from now on. */
static void keep(struct lock *l)
{
    const struct plan *p = &l->plan;
    int64_t end = l->began + l->at_least_ms * NS_PER_MS, left;
    struct signalfd_siginfo info;
    char more[24];
    if (l->keeper.has_ending_signal || now_ns() >= end || !poll_thread_start(p->c))
        return;
    if (isatty(STDERR_FILENO) != 0)
        print_note(p->c, "mutex '%s' on %s: CMD has ended; kept for another %s (--at-least)",
                   p->mutex, p->c->store, show_duration((end - now_ns()) / NS_PER_MS, more));
    while ((left = (end - now_ns()) / NS_PER_MS) > 0 && simba_locker_is_held(l->locker)) {
        struct pollfd fds[] = {{p->signals.fd, POLLIN, 0}, {l->keeper.wake, POLLIN, 0}};
        uint64_t times;
        if (poll(fds, 2, left < INT_MAX ? (int)left + 1 : INT_MAX) <= 0)
            continue;
        if (fds[1].revents != 0)
            (void)!read(l->keeper.wake, &times, sizeof times);
        process_tree_reap(&l->keeper.guard);
        while (read(p->signals.fd, &info, sizeof info) == sizeof info) {
            if (signal_ends((int)info.ssi_signo))
                return;
        }
    }
}

static int run_cmd(struct lock *l)
{
    struct keeper *k = &l->keeper;
    k->data = l;
    k->id = simba_locker_id(l->locker);
    k->remaining_ms = remaining_ms;
    k->on_turn = on_turn;
    l->began = now_ns();
    keeper_start_only(k, simba_locker_token(l->locker));
    relay_notify_ready();
    struct outcome o = keeper_run(k);
    int code = exit_code(l, &o);
    bool is_kept = l->at_least_ms > 0 && o.is_run && !o.is_lost && o.error == 0 &&
                   simba_locker_is_held(l->locker);
    if (is_kept)
        keep(l);
    return o.is_run || k->is_guard_dead ? release(l, code, is_kept) : code;
}

/* ---- the lock ------------------------------------------------------------------------------ */

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    struct lock *l = data;
    (void)mutex;
    l->reason = state->reason;
    keeper_wake(&l->keeper);
}

static int create_locker(struct lock *l)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    const struct plan *p = &l->plan;
    int code = plan_handle(p, &o);
    if (code != 0)
        return code;
    o.on_lost = on_lost;
    o.data = l;
    int rc = simba_locker_create(p->c->client, p->mutex, &o, &l->locker);
    return rc == 0 ? 0 : plan_refused(p, rc);
}

static void print_token(const struct plan *p, const simba_locker *locker)
{
    unsigned long long token = (unsigned long long)simba_locker_token(locker);
    if (p->c->json)
        print_json("{s:s, s:I, s:s, s:s}", "mutex", p->mutex, "token", (long long)token, "id",
                   simba_locker_id(locker), "store", p->c->store);
    else
        printf("%llu\n", token);
    fflush(stdout);
}

static void report_loss(struct lock *l)
{
    const struct plan *p = &l->plan;
    char why[OUTAGE_TEXT_MAX] =
        "the store has ended the tenure (by simba release, or its data were deleted)";
    if (l->reason != SIMBA_EVICTED)
        outage_explain(p->c->outage, (int)getpid(), why);
    print_loss(p->c, reason_name(l->reason), "lost '%s' on %s: %s", p->mutex, p->c->store, why);
}

/* Without CMD there is nothing to guard: we are the ones who are to be ended. */
static int hold(struct lock *l)
{
    const struct plan *p = &l->plan;
    struct signalfd_siginfo info;
    if (!poll_thread_start(p->c))
        return EXIT_TROUBLE;
    print_token(p, l->locker);
    relay_notify_ready();
    for (;;) {
        struct pollfd fds[] = {{p->signals.fd, POLLIN, 0}, {l->keeper.wake, POLLIN, 0}};
        if (poll(fds, 2, -1) <= 0)
            continue;
        if (fds[1].revents != 0) {
            report_loss(l);
            return EXIT_LOST;
        }
        while (read(p->signals.fd, &info, sizeof info) == sizeof info) {
            if (!signal_ends((int)info.ssi_signo))
                continue;
            int rc = simba_locker_release(l->locker);
            if (rc != 0)
                print_error(p->c, "%s", cli_error_text());
            return rc == SIMBA_ELOST ? EXIT_LOST : 0;
        }
    }
}

static int lock(struct lock *l)
{
    struct plan *p = &l->plan;
    const char *url = p->c->setting[SET_URL].value;
    int signal = 0;
    bool is_file = url == NULL || strncmp(url, "sqlite:", 7) == 0;
    p->c->is_driven = is_file && p->c->setting[SET_LISTEN].value == NULL;
    int code = keeper_begin(&l->keeper, p);
    if (code == 0)
        code = create_locker(l);
    if (code == 0)
        code = listen_begin(p, NULL, l->locker);
    if (code == 0)
        code = acquire(p, l->locker, &signal);
    if (code == ACQUIRED)
        p->c->token = simba_locker_token(l->locker);
    if (code == ACQUIRED && p->c->verbose > 0)
        print_level(p->c, SIMBA_LOG_INFO, "mutex '%s' on %s: acquired by %s, token %llu", p->mutex,
                    p->c->store, simba_locker_id(l->locker), (unsigned long long)p->c->token);
    if (code == ACQUIRED)
        code = p->argv != NULL ? run_cmd(l) : hold(l);
    listen_end(p);
    guard_end(l->keeper.guard);
    if (signal != 0)
        die_of(signal);
    return code;
}

static int run(struct cli *c)
{
    static struct lock l = {.plan = {.wait_ms = SIMBA_FOREVER,
                                     .conflict_code = EXIT_CONFLICT,
                                     .signal = SIGTERM,
                                     .signals = {.fd = -1}}};
    l.plan.c = c;
    mallopt(M_ARENA_MAX, 1); /* one for each of our few threads costs more than they ever wait */
    int code = cli_take(c, take_option, take_operand, &l);
    if (code < 0 && l.plan.mutex == NULL)
        return usage(c, "missing NAME, the mutex to lock: simba lock NAME [CMD…]");
    if (code < 0)
        code = plan_choose_cmd(&l.plan, l.shell);
    if (code < 0)
        code = plan_progress(&l.plan, l.plan.argv != NULL);
    if (code < 0 && l.at_least_ms != 0 && l.plan.argv == NULL)
        return usage(c, "--at-least needs a CMD");
    if (code < 0)
        code = cli_configure(c);
    if (code < 0)
        code = plan_kill_after(&l.plan);
    if (code >= 0)
        return code;
    code = lock(&l);
    /* The lock is released; taking the client apart in order would only cost time. */
    fflush(stdout);
    _exit(code);
}

const struct command lock_command = {
    .name = "lock",
    .operands = "NAME [CMD…]",
    .summary = "hold NAME while CMD runs",
    .help = help,
    .options = options,
    .run = run,
};
