/* elect.c: simba elect: stays a candidate, says who it is to be, and runs hooks. */
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/candidate.h"
#include "cli/run/run_options.h"

enum { OPT_ACQUIRED, OPT_RELEASED, OPT_ADVERTISE };

static const struct option options[] = {
    {"on-acquired", 'a', OPT_ACQUIRED, "CMD", "shell command to run when NAME is acquired"},
    {"on-released", 'r', OPT_RELEASED, "CMD",
     "shell command to run when the tenure ends, before another begins"},
    {"advertise", 0, OPT_ADVERTISE, "TEXT",
     "while this candidate leads, simba leader NAME prints TEXT, an address say"},
    RUN_OPTIONS_OF_CANDIDATES,
    {NULL, 0, 0, NULL, NULL},
};

static const char help[] =
    "Prints a line for acquired, released and lost, and stays a candidate until a signal ends it. "
    "A store that is down is tried again for ever.\n"
    "--json: event, at_ms, mutex, holder, token, remaining_ms, held_ms, waiters, reason, store.\n\n"
    "The hook of --on-acquired may take as long as the tenure; it is ended before the lease is. If "
    "it fails, NAME is left to others for a ttl. That of --on-released runs once for every "
    "--on-acquired, also if simba is killed or stopped, and ends before another can own NAME. "
    "Hooks get SIMBA_MUTEX, SIMBA_FENCING_TOKEN, SIMBA_CONTENDER_ID and SIMBA_STORE, that of "
    "--on-released also SIMBA_REASON: released, expired, evicted or stalled. What they print goes "
    "to stderr.\n\n"
    "What --advertise says is in the store before --on-acquired begins.\n\n"
    "Exit status: 0 ended by a signal; 125 simba itself failed; 141 nobody reads its lines; 64 "
    "wrong usage.\n\n"
    "Examples:\n"
    "  simba elect web -a 'ip addr add 10.0.0.9/24 dev eth0' \\\n"
    "                  -r 'ip addr del 10.0.0.9/24 dev eth0'\n"
    "  simba elect worker -a 'exec ./worker'\n"
    "  simba elect api --advertise http://10.0.0.7:8080 -a 'exec ./api'\n"
    "  simba elect --json web | ./follow\n";

struct elect {
    struct run_options options;
    struct running running;
    struct candidate candidate;
    char *acquired[4], *released[4]; /* sh -c HOOK */
    struct simba_owner tenure;       /* of the last on_acquired */
    const char *advertise;           /* NULL: nothing */
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct elect *e = data;
    (void)c;
    switch (id) {
    case OPT_ACQUIRED:
        e->options.argv = run_options_shell_argv(e->acquired, value);
        return GO_ON;
    case OPT_RELEASED:
        e->options.on_released = run_options_shell_argv(e->released, value);
        return GO_ON;
    case OPT_ADVERTISE:
        if (strlen(value) > SIMBA_NOTE_MAX)
            return usage(c, "--advertise is longer than %d bytes", SIMBA_NOTE_MAX);
        e->advertise = value;
        return GO_ON;
    default:
        return run_options_take(&e->options, id, value);
    }
}

static struct step take_name(struct cli *c, void *data, int id, char *value)
{
    struct elect *e = data;
    (void)id;
    if (e->options.mutex != NULL)
        return usage(c, "unexpected argument '%.60s': what to run is given by --on-acquired",
                     value);
    e->options.mutex = value;
    return GO_ON;
}

/* ---- on the library's threads -------------------------------------------------------------- */

static void report(struct elect *e, const char *event, enum simba_reason reason)
{
    owner_event_print(e->options.c, event, e->options.mutex, &e->tenure, reason);
    candidate_flush(&e->candidate);
}

/* False: the hook has failed. */
static bool check_hook(const struct elect *e, const struct outcome *o, const char *hook)
{
    if (!o->is_run || o->code == 0)
        return true;
    if (o->error != 0)
        print_error(e->options.c, "mutex '%s' on %s: cannot run %s: %s", e->options.mutex,
                    e->options.c->store, hook, strerror(o->error));
    else
        print_error(e->options.c, "mutex '%s' on %s: %s ended with status %d%s", e->options.mutex,
                    e->options.c->store, hook, o->code, o->why);
    return o->is_lost;
}

static bool accepts(void *data, const struct outcome *o)
{
    return check_hook(data, o, "--on-acquired");
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct elect *e = data;
    (void)mutex;
    e->tenure = state->after;
    e->options.c->token = e->tenure.token;
    if (e->options.argv != NULL || e->options.on_released != NULL || e->options.check != NULL)
        keeper_launch(&e->candidate.keeper, e->tenure.token);
    report(e, "acquired", SIMBA_UNCHANGED); /* now --on-released is sure to come, whoever dies */
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct elect *e = data;
    struct keeper *k = &e->candidate.keeper;
    uint64_t token = e->tenure.token;
    enum simba_reason reason = keeper_reason(k, token, state->reason);
    bool lost = reason_is_loss(reason);
    (void)mutex;
    e->tenure.transition_at = 0; /* nothing of it is left */
    if (lost)
        report(e, "lost", reason);
    if (lost)
        keeper_report_loss(k, token, reason);
    keeper_await(k, token, reason);
    if (!lost)
        report(e, "released", reason);
    if (e->options.on_released != NULL || e->options.check != NULL) {
        struct outcome o = keeper_perform(k, JOB_ON_RELEASED, token, reason);
        check_hook(e, &o, "--on-released");
    }
    e->options.c->token = 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static struct step create(void *data)
{
    struct elect *e = data;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    struct step step = run_options_handle(&e->options, &o);
    if (step.ends)
        return step;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.note = e->advertise;
    o.data = e;
    int rc =
        simba_contender_create(e->options.c->client, e->options.mutex, &o, &e->candidate.contender);
    return rc == 0 ? GO_ON : run_options_refused(&e->options, rc);
}

static int run(struct cli *c)
{
    static struct elect e = {.options = {.signal = SIGTERM,
                                         .running = &e.running,
                                         .in_background = true,
                                         .to_stderr = true},
                             .running = {.signals = {.fd = -1}},
                             .candidate = {.data = &e, .accepts = accepts}};
    e.options.c = c;
    struct step step = cli_take(c, take_option, take_name, &e);
    if (!step.ends && e.options.mutex == NULL)
        return usage(c, "missing NAME, the mutex to contend for: simba elect NAME").code;
    e.options.checks_tenure = e.options.check != NULL;
    step = AND_THEN(step, run_options_progress(&e.options, e.options.argv != NULL));
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, run_options_kill_after(&e.options));
    if (step.ends)
        return step.code;
    candidate_run(&e.candidate, &e.options, create);
}

const struct subcommand elect_command = {
    .name = "elect",
    .operands = "NAME",
    .summary = "stay a candidate, print changes, run hooks",
    .help = help,
    .options = options,
    .run = run,
};
