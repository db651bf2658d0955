/* schedule.c: simba schedule: runs a command again and again, on the leader only. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/candidate.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define DRY_RUN_TICKS 10
#define RETRY_MS 50

enum {
    OPT_EVERY,
    OPT_CRON,
    OPT_ZONE,
    OPT_MISSED,
    OPT_AT_LEAST_ONCE,
    OPT_DELAY,
    OPT_INITIAL,
    OPT_AT_LEAST,
    OPT_ONCE,
    OPT_COMMAND
};

static const struct option options[] = {
    {"every", 0, OPT_EVERY, "D",
     "start a run this often, whoever leads; a start that is due while one runs is skipped"},
    {"cron", 0, OPT_CRON, "EXPR", "start runs as a crontab says: '30 3 * * mon-fri', @daily"},
    {"zone", 0, OPT_ZONE, "ZONE", "the time zone of --cron, as Europe/Berlin; default UTC"},
    {"missed", 0, OPT_MISSED, "HOW",
     "runs that nobody started in time: skip (default), once: one for all, all: each of them"},
    {"at-least-once", 0, OPT_AT_LEAST_ONCE, NULL,
     "repeat a run that ended with its leader, or could not begin; default: each at most once"},
    {"delay", 0, OPT_DELAY, "D", "from the end of a run to the next"},
    {"initial-delay", 0, OPT_INITIAL, "D", "from the acquisition to the first run; default 0"},
    {"at-least", 0, OPT_AT_LEAST, "D",
     "own NAME at least this long, even if a signal comes; default 0"},
    {"once", 0, OPT_ONCE, NULL, "one run, then exit with CMD's status"},
    {"command", 'c', OPT_COMMAND, "STRING", "CMD for the shell: sh -c STRING"},
    RUN_OPTIONS_OF_CANDIDATES,
    {NULL, 0, 0, NULL, NULL},
};

static const char help[] =
    "Of all that run this with the same NAME one owns NAME and runs CMD; if it dies, another "
    "takes over, and goes on where it was: runs of --every and --cron are claimed in the note of "
    "NAME. CMD gets SIMBA_MUTEX, SIMBA_FENCING_TOKEN, SIMBA_CONTENDER_ID, SIMBA_STORE, of these "
    "runs also SIMBA_TICK, their nominal time, and is "
    "ended before the lease is. Each run is reported on stderr, and so is who leads.\n"
    "--dry-run: also shows the next ten runs of --cron.\n"
    "--json: on stdout, and what CMD prints goes to stderr. Event run has at_ms, mutex, token, "
    "run, tick, took_ms, code, lost, store; acquired, released and lost are those of simba "
    "elect.\n\n"
    "Exit status: 0 ended by a signal; 125 simba itself failed; 141 nobody reads its lines; 64 "
    "wrong usage. With --once: CMD's own, or 128 + the signal that killed it; 123 the lease was "
    "lost and CMD was stopped; 126 CMD cannot be run; 127 CMD not found.\n\n"
    "Examples:\n"
    "  simba schedule cleanup --every 5m ./cleanup.sh\n"
    "  simba schedule backup --cron '30 3 * * *' --zone Europe/Berlin ./backup.sh\n"
    "  simba schedule report --delay 1h --initial-delay 10s -c './make && ./send'\n";

struct schedule_command {
    struct run_options options;
    struct running running;
    struct candidate candidate;
    struct simba_schedule when;
    int64_t at_least_ms;
    bool has_every, has_delay, has_missed, once;
    char *shell[4];
    simba_scheduler *scheduler;
    long runs; /* the work's */
};

static struct step take_missed(struct cli *c, struct schedule_command *s, const char *value)
{
    static const char *const names[] = {
        [SIMBA_MISSED_SKIP] = "skip", [SIMBA_MISSED_ONCE] = "once", [SIMBA_MISSED_ALL] = "all"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            s->when.missed = (enum simba_missed)i;
            s->has_missed = true;
            return GO_ON;
        }
    }
    return usage(c, "--missed is skip, once or all, not '%.40s'", value);
}

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct schedule_command *s = data;
    switch (id) {
    case OPT_EVERY:
        s->has_every = true;
        s->when.flags |= SIMBA_KEEP_PHASE;
        return cli_take_duration(c, "--every", value, &s->when.period_ms);
    case OPT_CRON:
        s->when.pace = SIMBA_CRON;
        s->when.cron = value;
        return GO_ON;
    case OPT_ZONE:
        s->when.zone = value;
        return GO_ON;
    case OPT_MISSED:
        return take_missed(c, s, value);
    case OPT_AT_LEAST_ONCE:
        s->when.flags |= SIMBA_AT_LEAST_ONCE;
        return GO_ON;
    case OPT_DELAY:
        s->has_delay = true;
        s->when.pace = SIMBA_FIXED_DELAY;
        return cli_take_duration(c, "--delay", value, &s->when.period_ms);
    case OPT_INITIAL:
        return cli_take_duration(c, "--initial-delay", value, &s->when.initial_delay_ms);
    case OPT_AT_LEAST:
        return cli_take_duration(c, "--at-least", value, &s->at_least_ms);
    case OPT_ONCE:
        s->once = true;
        return GO_ON;
    case OPT_COMMAND:
        run_options_shell_argv(s->shell, value);
        return GO_ON;
    default:
        return run_options_take(&s->options, id, value);
    }
}

/* Options may stand between NAME and CMD. */
static struct step take_operand(struct cli *c, void *data, int id, char *value)
{
    struct schedule_command *s = data;
    (void)c;
    (void)id;
    return run_options_take_operand(&s->options, value);
}

/* Of --every, --cron, --delay and --once there is one. */
static struct step check_pace(struct cli *c, struct schedule_command *s)
{
    bool has_cron = s->when.cron != NULL;
    int64_t tick;
    if (s->once && (s->has_every || s->has_delay || has_cron))
        return usage(c, "--once excludes --every, --cron and --delay");
    if (s->has_every + s->has_delay + has_cron > 1)
        return usage(c, "--every, --cron and --delay exclude each other");
    if (!s->has_every && !s->has_delay && !has_cron && !s->once)
        return usage(c, "missing --every D, --cron EXPR, --delay D or --once: how often CMD runs");
    if (s->when.zone != NULL && !has_cron)
        return usage(c, "--zone is for --cron");
    bool has_ticks = s->has_every || has_cron;
    if (!has_ticks && (s->has_missed || (s->when.flags & SIMBA_AT_LEAST_ONCE) != 0))
        return usage(c, "--missed and --at-least-once are for --every and --cron");
    if (has_cron && simba_schedule_next(&s->when, 0, &tick, NULL) != 0)
        return usage(c, "%s", simba_error_text());
    return GO_ON;
}

static struct step check(struct cli *c, struct schedule_command *s)
{
    if (s->options.mutex == NULL)
        return usage(c,
                     "missing NAME, the mutex to lead under: simba schedule NAME --every D CMD…");
    struct step step = run_options_choose_cmd(&s->options, s->shell);
    if (step.ends)
        return step;
    if (s->options.argv == NULL && !c->dry_run)
        return usage(c, "missing CMD, what to run: simba schedule NAME --every D CMD…");
    step = check_pace(c, s);
    if (step.ends)
        return step;
    if (s->when.period_ms == 0)
        return usage(c, "%s must be longer than 0", s->has_every ? "--every" : "--delay");
    if (s->when.period_ms < 0 && s->once)
        s->when.period_ms = SIMBA_PERIOD_MAX_MS;
    return GO_ON;
}

/* ---- --dry-run ----------------------------------------------------------------------------- */

static struct step show_ticks(const struct cli *c, const struct schedule_command *s)
{
    char utc[TIME_SIZE], local[TIME_SIZE];
    const char *zone = s->when.zone != NULL ? s->when.zone : "UTC";
    int64_t tick = simba_wall_ms(simba_now());
    int32_t offset;
    if (s->when.cron == NULL)
        return GO_ON;
    if (!c->json)
        printf("\nnext runs of '%s', in %s and in UTC:\n", s->when.cron, zone);
    for (int i = 0; i < DRY_RUN_TICKS; i++) {
        if (simba_schedule_next(&s->when, tick, &tick, &offset) != 0)
            return print_error(c, "%s", simba_error_text());
        if (tick == INT64_MAX)
            break;
        show_tick(tick, utc);
        show_local_tick(tick, offset, local);
        if (c->json)
            print_json("{s:s, s:s, s:s}", "tick", utc, "local", local, "zone", zone);
        else
            printf("  %s  %s\n", local, utc);
    }
    return GO_ON;
}

/* ---- on the library's threads -------------------------------------------------------------- */

static void report_run(struct schedule_command *s, const simba_run *run, const struct outcome *o,
                       int64_t began, int64_t took_ms)
{
    const struct cli *c = s->options.c;
    char took[24], tick[TIME_SIZE];
    const char *shown = simba_run_tick(run) != 0 ? show_tick(simba_run_tick(run), tick) : NULL;
    if (c->json) {
        print_json("{s:s, s:I, s:s, s:I, s:i, s:s?, s:I, s:i, s:b, s:s}", "event", "run", "at_ms",
                   (long long)simba_wall_ms(began), "mutex", s->options.mutex, "token",
                   (long long)simba_run_token(run), "run", (int)s->runs, "tick", shown, "took_ms",
                   (long long)took_ms, "code", o->code, "lost", (int)o->is_lost, "store", c->store);
        candidate_flush(&s->candidate);
    } else if (o->error != 0) {
        print_error(c, "mutex '%s' on %s: cannot run %s: %s", s->options.mutex, c->store,
                    s->options.argv[0], strerror(o->error));
    } else {
        print_note(c, "mutex '%s' on %s: run %ld ended with status %d after %s%s%s%s",
                   s->options.mutex, c->store, s->runs, o->code, show_duration(took_ms, took),
                   o->why, shown != NULL ? "; tick " : "", shown != NULL ? shown : "");
    }
}

/* A keeper that was stopped may not know yet that the tenure goes on: then it is asked again. */
static struct outcome perform(struct schedule_command *s, const simba_run *run)
{
    struct outcome o;
    do
        o = keeper_perform_tick(&s->candidate.keeper, simba_run_token(run), simba_run_tick(run));
    while (!o.is_run && !simba_run_wait(run, RETRY_MS));
    return o;
}

static int work(void *data, const simba_run *run)
{
    struct schedule_command *s = data;
    int64_t began = simba_now();
    struct outcome o = perform(s, run);
    if (!o.is_run)
        return 0;
    s->runs++;
    report_run(s, run, &o, began, simba_now() - began);
    if (s->once)
        candidate_end(&s->candidate, o.is_lost ? EXIT_LOST : o.code);
    if ((s->when.flags & SIMBA_AT_LEAST_ONCE) == 0)
        return o.code;
    if (o.error != 0) /* perhaps another can begin it */
        simba_contender_resign(s->candidate.contender, s->options.c->ttl_ms);
    bool is_cut_short = o.is_lost || (o.code != 0 && o.is_signaled);
    return is_cut_short || o.error != 0 ? SIMBA_ECANCELED : o.code;
}

static void report(struct schedule_command *s, const char *event, const struct simba_owner *o,
                   enum simba_reason reason)
{
    struct cli *c = s->options.c;
    bool lost = reason_is_loss(reason);
    if (c->json) {
        owner_event_print(c, event, s->options.mutex, o, reason);
        candidate_flush(&s->candidate);
    } else {
        print_note(c, "mutex '%s' on %s: %s%s%s%s, token %llu", s->options.mutex, c->store, event,
                   lost ? " (" : "", lost ? reason_name(reason) : "", lost ? ")" : "",
                   (unsigned long long)o->token);
    }
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct schedule_command *s = data;
    (void)mutex;
    s->options.c->token = state->after.token;
    report(s, "acquired", &state->after, SIMBA_UNCHANGED);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct schedule_command *s = data;
    struct simba_owner o = state->before;
    enum simba_reason reason = keeper_reason(&s->candidate.keeper, o.token, state->reason);
    (void)mutex;
    o.transition_at = 0; /* nothing of it is left */
    if (reason_is_loss(reason))
        keeper_report_loss(&s->candidate.keeper, o.token, reason);
    report(s, reason_is_loss(reason) ? "lost" : "released", &o, reason);
    s->options.c->token = 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static struct step create(void *data)
{
    struct schedule_command *s = data;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    struct step step = run_options_handle(&s->options, &o);
    if (step.ends)
        return step;
    /* For a scheduler it is from becoming the leader to the first run. */
    if (s->when.initial_delay_ms < 0)
        s->when.initial_delay_ms = o.initial_delay_ms;
    o.initial_delay_ms = SIMBA_DEFAULT;
    o.at_least_ms = s->at_least_ms;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.data = s;
    int rc = simba_scheduler_create(s->options.c->client, s->options.mutex, &s->when, work, &o,
                                    &s->scheduler);
    s->candidate.contender = simba_scheduler_contender(s->scheduler);
    return rc == 0 ? GO_ON : run_options_refused(&s->options, rc);
}

static int run(struct cli *c)
{
    static struct schedule_command s = {
        .options = {.signal = SIGTERM, .running = &s.running, .in_background = true},
        .running = {.signals = {.fd = -1}},
        .candidate = {.data = &s},
        .when = SIMBA_SCHEDULE_INIT,
        .at_least_ms = SIMBA_DEFAULT};
    s.options.c = c;
    struct step step = cli_take(c, take_option, take_operand, &s);
    step = AND_THEN(step, check(c, &s));
    step = AND_THEN(step, run_options_progress(&s.options, true));
    step = AND_THEN(step, cli_configure(c));
    if (step.ends && step.code == 0 && c->dry_run)
        step = end_with(show_ticks(c, &s).code);
    step = AND_THEN(step, run_options_kill_after(&s.options));
    if (step.ends)
        return step.code;
    s.options.to_stderr = c->json;
    c->says_errors = true;
    candidate_run(&s.candidate, &s.options, create);
}

const struct subcommand schedule_command = {
    .name = "schedule",
    .operands = "NAME … CMD…",
    .summary = "run CMD again and again, on the leader only",
    .help = help,
    .options = options,
    .run = run,
};
