/* plan.c: what the commands that run others have in common, before anything is run. */
#include "cli/run/plan.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/run/clock.h"

#define KILL_AFTER_MOST_MS 3000 /* by default; a fifth of the lease if that is less */
#define MARGIN_MOST_MS 1000

int plan_take(struct plan *p, int id, char *value)
{
    switch (id) {
    case PLAN_KILL_AFTER:
        p->kill_after_given = value;
        return -1;
    case PLAN_SIGNAL:
        p->signal = signal_by_name(value);
        return p->signal > 0 ? -1 : usage(p->c, "--signal: there is no signal %.40s", value);
    default:
        p->fail_fast = true;
        return -1;
    }
}

int plan_take_word(struct plan *p, char *value)
{
    const struct args *a = &p->c->args;
    if (p->mutex == NULL) {
        p->mutex = value;
        return -1;
    }
    p->argv = &a->argv[a->at - 1];
    return STOP_HERE;
}

int plan_choose_cmd(struct plan *p, char *shell[4])
{
    if (shell[0] == NULL)
        return -1;
    if (p->argv != NULL)
        return usage(p->c, "CMD comes from -c or from words, not from both");
    p->argv = shell;
    return -1;
}

char **plan_shell_argv(char *argv[4], char *text)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    argv[3] = NULL;
    return argv;
}

int64_t plan_default_kill_after_ms(const struct cli *c)
{
    int64_t ms = (c->ttl_ms + c->transition_ms) / 5;
    return ms < KILL_AFTER_MOST_MS ? ms : KILL_AFTER_MOST_MS;
}

/* The lease is renewed at half the ttl; CMD must not be told to end before that had a chance. */
int plan_kill_after(struct plan *p)
{
    const struct cli *c = p->c;
    const char *option = p->kill_after_given;
    int64_t lease = c->ttl_ms + c->transition_ms, ms = plan_default_kill_after_ms(c);
    if (option != NULL) {
        int code = cli_take_duration(c, "--kill-after", option, &ms);
        if (code >= 0)
            return code;
        int64_t most = lease * 8 / 10 - c->ttl_ms / 2 - c->ttl_ms / 8;
        if (ms > most)
            return usage(c,
                         "--kill-after %s leaves no time to renew the lease: at most %lldms with "
                         "this ttl and transition",
                         option, (long long)most);
    }
    p->kill_after = ms * NS_PER_MS;
    return -1;
}

int plan_handle(const struct plan *p, struct simba_handle_options *o)
{
    if (strncmp(p->c->store, "memory:", 7) == 0) {
        print_error(p->c, "memory: is a store within one process: it keeps nobody else out. Use "
                          "sqlite:PATH");
        return EXIT_TROUBLE;
    }
    o->id = p->c->setting[SET_ID].value;
    return config_duration(p->c, SET_INITIAL_DELAY, SIMBA_DEFAULT, &o->initial_delay_ms);
}

int plan_refused(const struct plan *p, int rc)
{
    const struct setting *id = &p->c->setting[SET_ID];
    print_error(p->c, "%s", simba_error_text());
    return rc == SIMBA_EINVAL && (id->value == NULL || id->by_flag) ? EXIT_USAGE : EXIT_TROUBLE;
}

/* As docs/guarantees.md has it. */
int64_t plan_lease_margin(const struct cli *c)
{
    int64_t lease = c->ttl_ms + c->transition_ms;
    int64_t ms = c->transition_ms / 4 > lease / 10 ? c->transition_ms / 4 : lease / 10;
    return (ms < MARGIN_MOST_MS ? ms : MARGIN_MOST_MS) * NS_PER_MS;
}
