/* run_options.c: what the commands that run others have in common, before anything is run. */
#include "cli/run/run_options.h"
#include "cli/run/process_tree.h"

#include <string.h>

#include "base/clock.h"
#include "base/schemes.h"
#include "cli/cli.h"
#include "cli/lease_policy.h"
#include "cli/messages.h"
#include "core/period.h"

static struct step take_interval(const struct cli *c, const char *option, const char *value,
                                 int64_t *ns)
{
    int64_t ms = 0;
    struct step step = cli_take_duration(c, option, value, &ms);
    if (step.ends)
        return step;
    if (ms < PROGRESS_MIN_MS || ms > PROGRESS_MAX_MS)
        return usage(c, "%s '%.40s' is not between %dms and 24h", option, value, PROGRESS_MIN_MS);
    *ns = ms * NS_PER_MS;
    return GO_ON;
}

struct step run_options_take(struct run_options *opts, int id, char *value)
{
    switch (id) {
    case RUN_KILL_AFTER:
        opts->kill_after_given = value;
        return GO_ON;
    case RUN_SIGNAL:
        opts->signal = signal_by_name(value);
        return opts->signal > 0
                   ? GO_ON
                   : usage(
                         opts->c,
                         "--signal '%.40s' is not a signal: give a name such as TERM, or a number",
                         value);
    case RUN_PROGRESS:
        return take_interval(opts->c, "--progress", value, &opts->progress);
    case RUN_CHECK:
        opts->check = run_options_shell_argv(opts->check_argv, value);
        return GO_ON;
    case RUN_CHECK_EVERY:
        return take_interval(opts->c, "--check-every", value, &opts->check_every);
    case RUN_LISTEN:
        cli_set(opts->c, SET_LISTEN, value, "--listen");
        return GO_ON;
    case RUN_HOST:
        cli_set(opts->c, SET_SERVE_HOST, value, "--host");
        return GO_ON;
    default:
        opts->fail_fast = true;
        return GO_ON;
    }
}

struct step run_options_take_operand(struct run_options *opts, char *value)
{
    struct args *a = &opts->c->args;
    if (opts->mutex == NULL) {
        opts->mutex = value;
        return GO_ON;
    }
    opts->argv = &a->argv[a->at - 1];
    a->is_stopped = true;
    return GO_ON;
}

struct step run_options_choose_cmd(struct run_options *opts, char *shell[4])
{
    if (shell[0] == NULL)
        return GO_ON;
    if (opts->argv != NULL)
        return usage(opts->c, "CMD is given twice: by -c, and by '%.60s'", opts->argv[0]);
    opts->argv = shell;
    return GO_ON;
}

char **run_options_shell_argv(char *argv[4], char *text)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    argv[3] = NULL;
    return argv;
}

struct step run_options_kill_after(struct run_options *opts)
{
    const struct cli *c = opts->c;
    const char *option = opts->kill_after_given;
    int64_t ttl = c->ttl_ms * NS_PER_MS, transition = c->transition_ms * NS_PER_MS, ms;
    opts->kill_after = policy_kill_after(ttl, transition);
    if (option == NULL)
        return GO_ON;
    struct step step = cli_take_duration(c, "--kill-after", option, &ms);
    if (step.ends)
        return step;
    int64_t most = policy_kill_after_max(ttl, transition);
    opts->kill_after = ms * NS_PER_MS;
    if (opts->kill_after <= most)
        return GO_ON;
    return usage(
        c,
        "--kill-after %s leaves no time to renew the lease: at most %lldms with ttl %lldms "
        "and transition %lldms",
        option, (long long)(most / NS_PER_MS), (long long)c->ttl_ms, (long long)c->transition_ms);
}

struct step run_options_progress(struct run_options *opts, bool has_cmd)
{
    if (opts->check == NULL && opts->check_every != 0)
        return usage(opts->c, "--check-every needs --check CHECK, what to run so often");
    if ((opts->progress != 0 || opts->check != NULL) && !has_cmd && !opts->checks_tenure)
        return usage(opts->c, "%s needs a CMD", opts->check != NULL ? "--check" : "--progress");
    if (opts->check == NULL && opts->progress != 0 && !process_tree_is_known())
        return print_error(opts->c,
                           "--progress: who reports cannot be told, since /proc is not mounted or "
                           "shows another process namespace: mount it (unshare --mount-proc), or "
                           "use --check");
    if (opts->check == NULL)
        return GO_ON;
    if (opts->check_every == 0)
        opts->check_every =
            opts->progress != 0 ? opts->progress / CHECKS_PER_PROGRESS : CHECK_EVERY_MS * NS_PER_MS;
    if (opts->progress == 0)
        opts->progress = CHECKS_PER_PROGRESS * opts->check_every;
    if (opts->check_every < opts->progress)
        return GO_ON;
    return usage(opts->c, "--check-every must be shorter than --progress, the limit of silence");
}

struct step run_options_handle(const struct run_options *opts, struct simba_handle_options *o)
{
    if (scheme_kind(opts->c->store) == STORE_MEMORY)
        return print_error(opts->c,
                           "the store %s lives in one process and keeps nobody else out: use "
                           "sqlite:PATH",
                           opts->c->store);
    o->id = opts->c->setting[SET_ID].value;
    return config_duration(opts->c, SET_INITIAL_DELAY, SIMBA_DEFAULT, &o->initial_delay_ms);
}

struct step run_options_refused(const struct run_options *opts, int rc)
{
    const struct setting *id = &opts->c->setting[SET_ID];
    print_error(opts->c, "%s", simba_error_text());
    return end_with(rc == SIMBA_EINVAL && (id->value == NULL || id->by_flag) ? EXIT_USAGE
                                                                             : EXIT_TROUBLE);
}

int64_t run_options_lease_margin(const struct cli *c)
{
    return period_margin(c->ttl_ms * NS_PER_MS, c->transition_ms * NS_PER_MS);
}
