/* cmd_lock.c: see cmd_lock.h. */
#include "cli/run/cmd_lock.h"

#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/schemes.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/guard.h"
#include "cli/run/listen.h"
#include "cli/run/outage.h"
#include "cli/run/poll_thread.h"
#include "cli/run/relay.h"

#define SHORT_MS 20
#define REASON_WAIT_MS 100
#define LEFT_BEHIND_AFTER_MS 500 /* before that it is not worth a line: they may be about to end */

/* ---- options ------------------------------------------------------------------------------- */

void cmd_lock_init(struct cmd_lock *x, struct cli *c)
{
    x->options.c = c;
    x->options.wait_ms = SIMBA_FOREVER;
    x->options.conflict_code = EXIT_CONFLICT;
    x->options.signal = SIGTERM;
    x->options.running = &x->running;
    x->running.signals.fd = -1;
    mallopt(M_ARENA_MAX, 1); /* one for each of our few threads costs more than they ever wait */
}

struct step cmd_lock_take(struct cmd_lock *x, int id, char *value)
{
    struct run_options *opts = &x->options;
    char *end;
    long number;
    switch (id) {
    case CMD_LOCK_WAIT:
        return cli_take_duration(opts->c, "--wait", value, &opts->wait_ms);
    case CMD_LOCK_CONFLICT:
        number = strtol(value, &end, 10);
        if (*value == '\0' || *end != '\0' || number < 0 || number > 255)
            return usage(opts->c, "--conflict-exit-code '%.20s' is not a number from 0 to 255",
                         value);
        opts->conflict_code = (int)number;
        return GO_ON;
    case CMD_LOCK_COMMAND:
        run_options_shell_argv(x->shell, value);
        return GO_ON;
    case CMD_LOCK_CLOSE:
        opts->close_live = true;
        return GO_ON;
    case CMD_LOCK_KILL_REST:
        opts->rest = REST_KILL;
        return GO_ON;
    case CMD_LOCK_LEAVE_REST:
        opts->rest = REST_LEAVE;
        return GO_ON;
    default:
        return run_options_take(opts, id, value);
    }
}

bool cmd_lock_has_cmd(const struct cmd_lock *x)
{
    return x->options.argv != NULL || x->shell[0] != NULL;
}

struct step cmd_lock_configure(struct cmd_lock *x)
{
    struct step step = run_options_choose_cmd(&x->options, x->shell);
    step = AND_THEN(step, run_options_progress(&x->options, x->options.argv != NULL));
    step = AND_THEN(step, cli_configure(x->options.c));
    return AND_THEN(step, run_options_kill_after(&x->options));
}

/* ---- the lock ------------------------------------------------------------------------------ */

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    struct cmd_lock *x = data;
    (void)mutex;
    x->reason = state->reason;
    keeper_wake(&x->keeper);
}

static struct step create_locker(struct cmd_lock *x)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    const struct run_options *opts = &x->options;
    struct step step = run_options_handle(opts, &o);
    if (step.ends)
        return step;
    o.on_lost = on_lost;
    o.data = x;
    int rc = simba_locker_create(opts->c->client, opts->mutex, &o, &x->locker);
    return rc == 0 ? GO_ON : run_options_refused(opts, rc);
}

struct step cmd_lock_open(struct cmd_lock *x)
{
    const struct run_options *opts = &x->options;
    const char *url = opts->c->setting[SET_URL].value;
    bool is_file = url == NULL || scheme_kind(url) == STORE_SQLITE;
    opts->c->is_driven = is_file && opts->c->setting[SET_LISTEN].value == NULL;
    struct step step = keeper_begin(&x->keeper, opts);
    step = AND_THEN(step, create_locker(x));
    return AND_THEN(step, listen_begin(opts, NULL, x->locker));
}

void cmd_lock_say_acquired(const struct cmd_lock *x)
{
    const struct run_options *opts = &x->options;
    opts->c->token = simba_locker_token(x->locker);
    if (opts->c->verbose > 0)
        print_level(opts->c, SIMBA_LOG_INFO, "mutex '%s' on %s: acquired by %s, token %llu",
                    opts->mutex, opts->c->store, simba_locker_id(x->locker),
                    (unsigned long long)opts->c->token);
}

/* ---- CMD under the lock -------------------------------------------------------------------- */

static int64_t remaining_ms(void *data, uint64_t token)
{
    const struct cmd_lock *x = data;
    int64_t left = simba_locker_remaining(x->locker);
    return simba_locker_token(x->locker) == token ? left : 0;
}

static void print_left_behind(const struct run_options *opts, int count)
{
    const char *es = count == 1 ? "" : "es";
    if (opts->rest == REST_KILL)
        print_note(opts->c,
                   "mutex '%s' on %s: CMD has ended; ending %d process%s that it left running",
                   opts->mutex, opts->c->store, count, es);
    else
        print_note(
            opts->c,
            "mutex '%s' on %s: CMD has ended, but left %d process%s running; the lock is held "
            "until %s (--kill-rest ends them, --leave-rest does not wait)",
            opts->mutex, opts->c->store, count, es, count == 1 ? "it ends" : "they end");
}

/* A CMD that ends soon needs no thread for renewals. If there is none, the lock lasts one lease. */
static bool on_turn(void *data, int *pause_ms)
{
    struct cmd_lock *x = data;
    struct keeper *k = &x->keeper;
    int64_t now = clock_now();
    bool is_young = !x->is_polled && now - x->began < SHORT_MS * NS_PER_MS;
    *pause_ms = is_young ? SHORT_MS : k->job.left_behind == 0 ? INT_MAX : LEFT_BEHIND_AFTER_MS;
    if (k->job.is_over || k->is_guard_dead)
        return false;
    if (is_young)
        return true;
    if (!x->is_polled)
        poll_thread_start(x->options.c);
    x->is_polled = true;
    if (k->job.left_behind > 0 && now - k->job.left_since >= LEFT_BEHIND_AFTER_MS * NS_PER_MS) {
        print_left_behind(&x->options, k->job.left_behind);
        k->job.left_behind = 0;
    }
    return true;
}

struct outcome cmd_lock_run(struct cmd_lock *x)
{
    struct keeper *k = &x->keeper;
    k->data = x;
    k->id = simba_locker_id(x->locker);
    k->remaining_ms = remaining_ms;
    k->on_turn = on_turn;
    x->began = clock_now();
    keeper_start_only(k, simba_locker_token(x->locker));
    relay_notify_ready();
    struct outcome o = keeper_run(k);
    x->was_held = simba_locker_is_held(x->locker);
    return o;
}

int cmd_lock_exit_code(const struct cmd_lock *x, const struct outcome *o)
{
    const struct run_options *opts = &x->options;
    if (x->keeper.is_guard_dead)
        return x->keeper.job.term_sent ? EXIT_LOST : EXIT_TROUBLE;
    char why[OUTAGE_TEXT_MAX];
    if (!o->is_run)
        print_loss(opts->c, "expired", "lost '%s' on %s before CMD began: %s", opts->mutex,
                   opts->c->store, outage_explain(opts->c->outage, (int)getpid(), why));
    if (!o->is_run || o->is_lost)
        return EXIT_LOST;
    if (o->error != 0)
        print_error(opts->c, "cannot run %s: %s; '%s' on %s is released", opts->argv[0],
                    strerror(o->error), opts->mutex, opts->c->store);
    return o->code;
}

/* on_lost() may be under way. */
static enum simba_reason reason_of(const struct cmd_lock *x)
{
    for (int i = 0; i < REASON_WAIT_MS && x->reason == SIMBA_UNCHANGED; i++)
        poll(NULL, 0, 1);
    if (x->reason != SIMBA_UNCHANGED)
        return x->reason;
    return clock_now() < x->keeper.hold_until ? SIMBA_EVICTED : SIMBA_EXPIRED;
}

void cmd_lock_report_loss(struct cmd_lock *x, const char *meaning)
{
    const struct run_options *opts = &x->options;
    enum simba_reason reason = reason_of(x);
    char why[OUTAGE_TEXT_MAX];
    print_loss(opts->c, reason_name(reason), "lost '%s' on %s: %s%s", opts->mutex, opts->c->store,
               outage_why(opts->c->outage, reason, (int)getpid(), why), meaning);
    x->is_loss_said = true;
}

int cmd_lock_release(struct cmd_lock *x, int code)
{
    int rc = simba_locker_release(x->locker);
    if (rc == 0 || x->keeper.job.term_sent)
        return code;
    if (rc != SIMBA_ELOST)
        print_error(x->options.c, "%s", simba_error_text());
    else if (!x->is_loss_said)
        cmd_lock_report_loss(x, x->options.argv == NULL ? ""
                                : x->was_held
                                    ? "; CMD did not run then"
                                    : "; CMD has ended, but was not protected to its end");
    return rc == SIMBA_ELOST && !x->was_held ? EXIT_LOST : code;
}

void cmd_lock_end(struct cmd_lock *x)
{
    listen_end(&x->options);
    guard_end(x->keeper.guard);
}
