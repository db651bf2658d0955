/* plan.c: what the commands that run others have in common, before anything is run. */
#include "cli/run/plan.h"
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

struct step plan_take(struct plan *p, int id, char *value)
{
    switch (id) {
    case PLAN_KILL_AFTER:
        p->kill_after_given = value;
        return GO_ON;
    case PLAN_SIGNAL:
        p->signal = signal_by_name(value);
        return p->signal > 0
                   ? GO_ON
                   : usage(
                         p->c,
                         "--signal '%.40s' is not a signal: give a name such as TERM, or a number",
                         value);
    case PLAN_PROGRESS:
        return take_interval(p->c, "--progress", value, &p->progress);
    case PLAN_CHECK:
        p->check = plan_shell_argv(p->check_argv, value);
        return GO_ON;
    case PLAN_CHECK_EVERY:
        return take_interval(p->c, "--check-every", value, &p->check_every);
    case PLAN_LISTEN:
        cli_set(p->c, SET_LISTEN, value, "--listen");
        return GO_ON;
    case PLAN_HOST:
        cli_set(p->c, SET_SERVE_HOST, value, "--host");
        return GO_ON;
    default:
        p->fail_fast = true;
        return GO_ON;
    }
}

struct step plan_take_operand(struct plan *p, char *value)
{
    struct args *a = &p->c->args;
    if (p->mutex == NULL) {
        p->mutex = value;
        return GO_ON;
    }
    p->argv = &a->argv[a->at - 1];
    a->is_stopped = true;
    return GO_ON;
}

struct step plan_choose_cmd(struct plan *p, char *shell[4])
{
    if (shell[0] == NULL)
        return GO_ON;
    if (p->argv != NULL)
        return usage(p->c, "CMD is given twice: by -c, and by '%.60s'", p->argv[0]);
    p->argv = shell;
    return GO_ON;
}

char **plan_shell_argv(char *argv[4], char *text)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    argv[3] = NULL;
    return argv;
}

struct step plan_kill_after(struct plan *p)
{
    const struct cli *c = p->c;
    const char *option = p->kill_after_given;
    int64_t ttl = c->ttl_ms * NS_PER_MS, transition = c->transition_ms * NS_PER_MS, ms;
    p->kill_after = policy_kill_after(ttl, transition);
    if (option == NULL)
        return GO_ON;
    struct step step = cli_take_duration(c, "--kill-after", option, &ms);
    if (step.ends)
        return step;
    int64_t most = policy_kill_after_max(ttl, transition);
    p->kill_after = ms * NS_PER_MS;
    if (p->kill_after <= most)
        return GO_ON;
    return usage(
        c,
        "--kill-after %s leaves no time to renew the lease: at most %lldms with ttl %lldms "
        "and transition %lldms",
        option, (long long)(most / NS_PER_MS), (long long)c->ttl_ms, (long long)c->transition_ms);
}

struct step plan_progress(struct plan *p, bool has_cmd)
{
    if (p->check == NULL && p->check_every != 0)
        return usage(p->c, "--check-every needs --check CHECK, what to run so often");
    if ((p->progress != 0 || p->check != NULL) && !has_cmd && !p->checks_tenure)
        return usage(p->c, "%s needs a CMD", p->check != NULL ? "--check" : "--progress");
    if (p->check == NULL && p->progress != 0 && !process_tree_is_known())
        return print_error(p->c,
                           "--progress: who reports cannot be told, since /proc is not mounted or "
                           "shows another process namespace: mount it (unshare --mount-proc), or "
                           "use --check");
    if (p->check == NULL)
        return GO_ON;
    if (p->check_every == 0)
        p->check_every =
            p->progress != 0 ? p->progress / CHECKS_PER_PROGRESS : CHECK_EVERY_MS * NS_PER_MS;
    if (p->progress == 0)
        p->progress = CHECKS_PER_PROGRESS * p->check_every;
    if (p->check_every < p->progress)
        return GO_ON;
    return usage(p->c, "--check-every must be shorter than --progress, the limit of silence");
}

struct step plan_handle(const struct plan *p, struct simba_handle_options *o)
{
    if (scheme_kind(p->c->store) == STORE_MEMORY)
        return print_error(p->c,
                           "the store %s lives in one process and keeps nobody else out: use "
                           "sqlite:PATH",
                           p->c->store);
    o->id = p->c->setting[SET_ID].value;
    return config_duration(p->c, SET_INITIAL_DELAY, SIMBA_DEFAULT, &o->initial_delay_ms);
}

struct step plan_refused(const struct plan *p, int rc)
{
    const struct setting *id = &p->c->setting[SET_ID];
    print_error(p->c, "%s", simba_error_text());
    return end_with(rc == SIMBA_EINVAL && (id->value == NULL || id->by_flag) ? EXIT_USAGE
                                                                             : EXIT_TROUBLE);
}

int64_t plan_lease_margin(const struct cli *c)
{
    return period_margin(c->ttl_ms * NS_PER_MS, c->transition_ms * NS_PER_MS);
}
