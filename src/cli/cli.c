/* cli.c: what all subcommands have: options, the configuration, and the way to the store. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/schemes.h"
#include "cli/address.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/run/outage.h"
#include "cli/shown.h"
#include "cli/sqlite_path.h"
#include "core/failure.h"

#define LEASE_LEAST_MS 500 /* below this, starting a process takes too much of it */

enum {
    OPT_URL = 1000, /* and on: above those of all commands */
    OPT_TTL,
    OPT_TRANSITION,
    OPT_ID,
    OPT_JSON,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_LOG,
    OPT_DRY_RUN,
    OPT_HELP,
    OPT_VERSION
};

const struct option common_options[] = {
    {"url", 'u', OPT_URL, "URL", "the store; default: SIMBA_URL, simba.yaml, a file of your own"},
    {"ttl", 0, OPT_TTL, "D", "the owner has to renew within this; default 10s"},
    {"transition", 0, OPT_TRANSITION, "D",
     "after the ttl nobody else owns NAME this long; default 6s"},
    {"id", 0, OPT_ID, "ID",
     "the contender, as others see it; must be unique; default: made from host and pid"},
    {"json", 0, OPT_JSON, NULL, "data as one JSON object per line"},
    {"quiet", 'q', OPT_QUIET, NULL, "only errors on stderr"},
    {"verbose", 'v', OPT_VERBOSE, NULL, "say what happens; twice (-vv): also the library's log"},
    {"log", 0, OPT_LOG, "FORMAT",
     "lines on stderr: plain, for people, or json, an object per line; default plain"},
    {"dry-run", 0, OPT_DRY_RUN, NULL, "show the configuration and where it comes from, then end"},
    {"help", 'h', OPT_HELP, NULL, "show this help"},
    {"version", 0, OPT_VERSION, NULL, "the version of the command and its library"},
    {NULL, 0, 0, NULL, NULL},
};

/* ---- options of all commands --------------------------------------------------------------- */

void cli_set(struct cli *c, enum setting_id id, const char *value, const char *flag)
{
    c->setting[id].value = value;
    c->setting[id].by_flag = true;
    snprintf(c->setting[id].where, sizeof c->setting[id].where, "%s", flag);
}

/* argv can be read by everybody on the machine: keep the URL for us, and blank there what may be
 * secret: between the first colon of the authority and the last @, and values after the ?. */
static struct step set_url(struct cli *c, char *value)
{
    if (strlen(value) >= sizeof c->url)
        return usage(c, "--url is longer than %d bytes", URL_MAX - 1);
    snprintf(c->url, sizeof c->url, "%s", c->given_url[0] != '\0' ? c->given_url : value);
    cli_set(c, SET_URL, c->url, "--url");
    char *start = strstr(value, "://"), *at = strrchr(value, '@');
    char *colon = start != NULL ? strchr(start + 3, ':') : NULL;
    if (colon != NULL && at != NULL && colon < at)
        memset(colon + 1, '*', (size_t)(at - colon - 1));
    char *question = strchr(value, '?');
    if (question != NULL)
        memset(question + 1, '*', strlen(question + 1));
    return GO_ON;
}

struct step cli_take_operand(struct cli *c, void *data, int id, char *value)
{
    (void)data;
    (void)id;
    if (c->operand_count > 0 && c->command->one != NULL)
        return usage(c, "unexpected argument '%.60s': %s", value, c->command->one);
    if (c->operand_count == 0)
        c->operands = c->args.argv + c->args.at - 1;
    c->operands[c->operand_count++] = value; /* options among them leave gaps */
    return GO_ON;
}

struct step cli_take_url(struct cli *c, void *data, int id, char *value)
{
    (void)data;
    (void)id;
    if (strchr(value, ':') == NULL)
        return usage(c, "'%.60s' is not a URL: write one as in simba %s redis://host:6379/0", value,
                     c->command->name);
    if (c->setting[SET_URL].value != NULL)
        return usage(c, "two URLs are given: one store at a time");
    return set_url(c, value);
}

static struct step take_log(struct cli *c)
{
    const struct setting *s = &c->setting[SET_LOG];
    if (s->value == NULL || log_format_parse(s->value, &c->log))
        return GO_ON;
    if (s->by_flag)
        return usage(c, "--log '%.40s' is neither plain nor json", s->value);
    return print_error(c, "%s: the log format '%.40s' is neither plain nor json", s->where,
                       s->value);
}

static struct step take_common(struct cli *c, int id, char *value)
{
    switch (id) {
    case OPT_URL:
        return set_url(c, value);
    case OPT_TTL:
        cli_set(c, SET_TTL, value, "--ttl");
        return GO_ON;
    case OPT_TRANSITION:
        cli_set(c, SET_TRANSITION, value, "--transition");
        return GO_ON;
    case OPT_ID:
        cli_set(c, SET_ID, value, "--id");
        return GO_ON;
    case OPT_JSON:
        c->json = true;
        return GO_ON;
    case OPT_QUIET:
        c->quiet = true;
        return GO_ON;
    case OPT_VERBOSE:
        c->verbose++;
        return GO_ON;
    case OPT_LOG:
        cli_set(c, SET_LOG, value, "--log");
        return take_log(c);
    case OPT_DRY_RUN:
        c->dry_run = true;
        return GO_ON;
    case OPT_HELP:
        help_show(c->command);
        return end_with(0);
    default:
        return end_with(version_command.run(c));
    }
}

struct step cli_take(struct cli *c, take_fn *option, take_fn *operand, void *data)
{
    struct step step = GO_ON;
    c->args.is_stopped = false;
    while (!step.ends && !c->args.is_stopped) {
        struct arg arg = args_next(c);
        if (arg.kind == ARG_WRONG)
            step = end_with(EXIT_USAGE);
        else if (arg.kind == ARG_END)
            break;
        else if (arg.kind == ARG_OPERAND && operand == NULL)
            step = usage(c, "unexpected argument '%.60s'", arg.value);
        else if (arg.kind == ARG_OPERAND)
            step = operand(c, data, 0, arg.value);
        else if (arg.id >= OPT_URL)
            step = take_common(c, arg.id, arg.value);
        else
            step = option(c, data, arg.id, arg.value);
    }
    return step;
}

struct step cli_take_duration(const struct cli *c, const char *option, const char *value,
                              int64_t *ms)
{
    if (simba_duration_parse(value, ms) != 0)
        return usage(c, "%s: %s", option, simba_error_text());
    return GO_ON;
}

struct step cli_take_keep(const struct cli *c, const char *value, int64_t *ms)
{
    struct step step = cli_take_duration(c, "--keep", value, ms);
    if (!step.ends && *ms < KEEP_LEAST_MS)
        return usage(c, "--keep %s is shorter than 1m", value);
    return step;
}

/* ---- the store ----------------------------------------------------------------------------- */

/* With -vv all that there is, and what nobody else says. */
static void on_log(void *data, enum simba_level level, const char *line)
{
    static const char *const names[] = {"error: ", "warning: ", "info: ", "debug: "};
    const struct cli *c = data;
    if (c->verbose > 1)
        print_level(c, level, "%s%s", c->log == LOG_JSON ? "" : names[level], line);
    else if (c->says_errors && level == SIMBA_LOG_ERROR)
        print_level(c, level, "%s", line);
}

static void show_outage(const struct cli *c, const struct simba_event *e)
{
    char time[DURATION_SIZE];
    if (e->kind == SIMBA_EVENT_FAILING)
        print_level(c, SIMBA_LOG_WARN,
                    "mutex '%s' on %.150s: cannot renew: %s; trying again, the lease lasts %s more",
                    e->mutex, c->store, e->text, show_duration(e->until - simba_now(), time));
    else
        print_level(c, SIMBA_LOG_INFO,
                    "mutex '%s' on %.150s: renewed again after %s without renewal", e->mutex,
                    c->store, show_duration(e->duration_us / 1000, time));
}

/* Of elect --advertise. */
static void show_note(const struct cli *c, const struct simba_event *e)
{
    if (e->kind == SIMBA_EVENT_NOTE_FAILED)
        print_level(c, SIMBA_LOG_WARN, "mutex '%s' on %.150s: the note was not published: %s; %s",
                    e->mutex, c->store, e->text,
                    failure_is_ours(e->code) ? "giving up" : "trying again with each renewal");
    else if (e->kind == SIMBA_EVENT_NOTE_PUBLISHED)
        print_level(c, SIMBA_LOG_INFO, "mutex '%s' on %.150s: the note is published now", e->mutex,
                    c->store);
}

/* That renewals fail, or a note, is said in any case. With -vv the log says it. */
static void on_event(void *data, const struct simba_event *event)
{
    const struct cli *c = data;
    bool is_news = outage_take(c->outage, event);
    if (c->verbose > 1)
        return;
    if (is_news)
        show_outage(c, event);
    show_note(c, event);
}

/* The library takes the options of the URL itself, so that it checks them. */
static int64_t unless_in_url(const struct setting *s, int64_t ms)
{
    return s->value != NULL && strcmp(s->where, "the URL") == 0 ? SIMBA_DEFAULT : ms;
}

static void ignore_entry(void *data, const struct simba_entry *e)
{
    (void)data;
    (void)e;
}

int cli_ask(const struct cli *c, const char *prefix)
{
    return simba_list(c->client, prefix, ANSWER_MS, ignore_entry, NULL);
}

#define CLOSE_FAILED_MS 500 /* whoever waits for us has waited for the store already */

void cli_close(const struct cli *c, int code)
{
    bool has_failed = code == EXIT_TROUBLE || code == EXIT_CONFLICT;
    (void)simba_close(c->client, has_failed ? CLOSE_FAILED_MS : ANSWER_MS);
    if (!has_failed)
        return;
    fflush(stdout);
    _exit(code); /* exit() waits for threads that wait for the store */
}

bool cli_error_is_final(int rc)
{
    return failure_lasts(rc);
}

bool cli_error_is_passing(int rc)
{
    return rc == SIMBA_ESTORE || rc == SIMBA_ETIMEOUT;
}

int cli_fail(const struct cli *c, int rc)
{
    print_error(c, "%s", simba_error_text());
    return rc == SIMBA_EINVAL ? EXIT_USAGE : EXIT_TROUBLE;
}

struct step cli_open(struct cli *c)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.ttl_ms = unless_in_url(&c->setting[SET_TTL], c->ttl_ms);
    o.transition_ms = unless_in_url(&c->setting[SET_TRANSITION], c->transition_ms);
    if (c->verbose > 1 || c->says_errors) {
        o.log = on_log;
        o.log_data = c;
    }
    if (c->outage != NULL) {
        o.trace = on_event;
        o.trace_data = c;
        o.trace_kinds = OUTAGE_EVENTS | SIMBA_EVENT_BIT(SIMBA_EVENT_NOTE_FAILED) |
                        SIMBA_EVENT_BIT(SIMBA_EVENT_NOTE_PUBLISHED);
    }
    if (c->is_driven)
        o.flags |= SIMBA_NO_THREAD;
    if (simba_open(c->setting[SET_URL].value, &o, &c->client) != 0)
        return print_error(c, "%s", simba_error_text());
    snprintf(c->store, sizeof c->store, "%s", simba_store_text(c->client));
    return GO_ON;
}

/* What stands in the environment is not ours: CMD gets it as it is. */
void cli_forget_url(struct cli *c)
{
    struct setting *s = &c->setting[SET_URL];
    bool is_own = s->value != NULL && strcmp(s->where, "SIMBA_URL") != 0;
    if (is_own)
        explicit_bzero((char *)(uintptr_t)s->value, strlen(s->value));
    explicit_bzero(c->url, sizeof c->url);
    explicit_bzero(c->given_url, sizeof c->given_url);
    if (is_own)
        s->value = c->store;
}

struct step cli_open_existing(struct cli *c)
{
    static struct sqlite_path at;
    static char by_default[URL_MAX], path[PATH_MAX + NAME_MAX + 2];
    struct stat s;
    const char *url = c->setting[SET_URL].value;
    if (url == NULL && simba_default_url(by_default, sizeof by_default) == 0)
        url = by_default;
    if (url == NULL || scheme_kind(url) != STORE_SQLITE || sqlite_path_of(url, &at) != NULL)
        return cli_open(c); /* it says what is wrong */
    snprintf(path, sizeof path, "%s/%s", at.folder, at.file);
    if (stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return cli_open(c);
    return print_error(
        c,
        "there is no store at %s: nobody has used it yet, or the URL (from %s) is wrong. The "
        "first simba lock makes it, or simba init",
        path, c->setting[SET_URL].value != NULL ? c->setting[SET_URL].where : "default");
}

/* As it could be written; out holds 24 bytes. */
static const char *default_text(int64_t ms, char *out)
{
    snprintf(out, 24, ms % 1000 == 0 ? "%llds" : "%lldms",
             (long long)(ms % 1000 == 0 ? ms / 1000 : ms));
    return out;
}

/* What would be used, without using it: the folder of the default store is not made. */
static struct step show_configuration(struct cli *c)
{
    static const char *const names[SETTINGS] = {
        "url",    "ttl", "transition", "id",           "initial-delay",
        "listen", "log", "history",    "serve.listen", "serve.host"};
    char ttl[24], transition[24];
    const char *const defaults[SETTINGS] = {NULL,
                                            default_text(c->ttl_ms, ttl),
                                            default_text(c->transition_ms, transition),
                                            "made from host and pid",
                                            "0s",
                                            config_is_serve(c) ? SERVE_ADDRESS : "nowhere",
                                            "plain",
                                            "none",
                                            NULL, /* it is shown as listen */
                                            "none"};
    if (c->setting[SET_URL].value != NULL) {
        struct step step = cli_open(c);
        if (step.ends)
            return step;
        simba_close(c->client, 1000);
    } else if (simba_default_url(c->store, sizeof c->store) != 0) {
        return print_error(c, "%s", simba_error_text());
    }
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &c->setting[i];
        if (i == SET_SERVE_LISTEN || (i == SET_SERVE_HOST && !config_is_serve(c)))
            continue;
        const char *value = i == SET_URL ? c->store : s->value != NULL ? s->value : defaults[i];
        const char *from = s->value != NULL ? s->where : "default";
        if (c->json)
            print_json("{s:s, s:s, s:s}", "setting", names[i], "value", value, "from", from);
        else
            printf("%-14s %-40s from %s\n", names[i], value, from);
    }
    return end_with(0);
}

static struct step check_listen(const struct cli *c)
{
    const struct setting *s = &c->setting[SET_LISTEN];
    const char *why = s->value != NULL ? address_check(s->value) : NULL;
    if (why == NULL)
        return GO_ON;
    if (s->by_flag)
        return usage(c, "--listen '%.200s': %s", s->value, why);
    return print_error(c, "%s: cannot listen on '%.200s': %s", s->where, s->value, why);
}

struct step cli_configure(struct cli *c)
{
    int64_t ttl_ms = c->ttl_ms > 0 ? c->ttl_ms : SIMBA_TTL_MS;
    int64_t transition_ms = c->transition_ms > 0 ? c->transition_ms : SIMBA_TRANSITION_MS;
    struct step step = config_load(c);
    step = AND_THEN(step, take_log(c));
    step = AND_THEN(step, check_listen(c));
    step = AND_THEN(step, config_duration(c, SET_TTL, ttl_ms, &c->ttl_ms));
    step = AND_THEN(step, config_duration(c, SET_TRANSITION, transition_ms, &c->transition_ms));
    if (step.ends)
        return step;
    if (c->ttl_ms + c->transition_ms < LEASE_LEAST_MS) {
        static const char rule[] =
            "ttl (%lldms, from %s) and transition (%lldms, from %s) together "
            "are shorter than 500ms: too short to run a command under";
        const char *ttl = c->setting[SET_TTL].where, *transition = c->setting[SET_TRANSITION].where;
        if (c->setting[SET_TTL].by_flag || c->setting[SET_TRANSITION].by_flag)
            return usage(c, rule, (long long)c->ttl_ms, ttl, (long long)c->transition_ms,
                         transition);
        return print_error(c, rule, (long long)c->ttl_ms, ttl, (long long)c->transition_ms,
                           transition);
    }
    return c->dry_run ? show_configuration(c) : GO_ON;
}
