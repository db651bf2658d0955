/* main.c: the frame of the command: the table of subcommands, the options that all of them have, help
 * and the way to the store. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define LEASE_LEAST_MS 500 /* below this, starting a process takes too much of it */

const struct command *const commands[] = {
    &lock_command,
    &elect_command,
    &schedule_command,
    &watch_command,
    &status_command,
    &list_command,
    &release_command,
    &init_command,
    &doctor_command,
    &tck_command,
    &completion_command,
    &version_command,
    NULL,
};
#define COMMANDS (sizeof commands / sizeof *commands - 1)

enum {
    OPT_URL = 1000,
    OPT_TTL,
    OPT_TRANSITION,
    OPT_ID,
    OPT_JSON,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_DRY_RUN,
    OPT_HELP,
    OPT_VERSION
};

const struct option common_options[] = {
    {"url", 'u', OPT_URL, "URL",
     "the store; else SIMBA_URL, the configuration, a file of your own"},
    {"ttl", 0, OPT_TTL, "D", "the owner renews within this; default 10s"},
    {"transition", 0, OPT_TRANSITION, "D", "nobody else owns for so long after it; default 6s"},
    {"id", 0, OPT_ID, "ID",
     "who we are to others; must be unique; default: made from host and pid"},
    {"json", 0, OPT_JSON, NULL, "data as one JSON object per line"},
    {"quiet", 'q', OPT_QUIET, NULL, "only errors on stderr"},
    {"verbose", 'v', OPT_VERBOSE, NULL, "say what happens; twice: also the library's log"},
    {"dry-run", 0, OPT_DRY_RUN, NULL, "show the configuration and its origin, then end"},
    {"help", 'h', OPT_HELP, NULL, "this"},
    {"version", 0, OPT_VERSION, NULL, "the version of the command and its library"},
    {NULL, 0, 0, NULL, NULL},
};

/* ---- help ------------------------------------------------------------------------------------ */

#define HELP_WIDTH 80
#define OPTION_WIDTH 30 /* with the blanks around it */
#define WORDS_WIDTH 12

/* Goes on in column `at`, and where a line is full in the next one, below `indent`. */
static int put_wrapped(const char *text, size_t bytes, int indent, int at)
{
    for (size_t i = 0, word; i < bytes; i += word) {
        i += strspn(text + i, " ");
        word = strcspn(text + i, " \n");
        int width = width_of(text + i, word);
        if (at > indent && at + 1 + width > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            at = indent;
        }
        at += printf("%s", at > indent ? " " : "") + width;
        printf("%.*s", (int)word, text + i);
    }
    return at;
}

/* Lines that begin with a blank stay as they are. Those that begin with a dash, or follow an empty one,
 * begin anew; all others go on where the one before has ended. */
static void show_text(const char *text)
{
    for (int at = 0; *text != '\0';) {
        size_t bytes = strcspn(text, "\n");
        bool is_verbatim = *text == ' ';
        if (is_verbatim)
            printf("%.*s", (int)bytes, text);
        else
            at = put_wrapped(text, bytes, 0, at);
        text += bytes;
        text += *text == '\n';
        if (is_verbatim || bytes == 0 || strchr(" -\n", *text) != NULL) { /* or it is the end */
            putchar('\n');
            at = 0;
        }
    }
}

static void show_options(const struct option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        char left[64];
        if (o->help == NULL)
            continue;
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", o->letter != 0 ? "-" : "",
                 o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ", " : "   ", o->name,
                 o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
        printf("  %-*s", OPTION_WIDTH - 2, left);
        put_wrapped(o->help, strlen(o->help), OPTION_WIDTH, OPTION_WIDTH);
        putchar('\n');
    }
}

static int show_command(const struct command *m)
{
    printf("simba %s%s%s\n    %s\n", m->name, m->words[0] != '\0' ? " " : "", m->words, m->summary);
    if (m->options != NULL)
        printf("\nOptions:\n");
    show_options(m->options);
    printf("\nOptions of all commands:\n");
    show_options(common_options);
    putchar('\n');
    show_text(m->help);
    return 0;
}

static int show_overview(void)
{
    printf("simba: at most one owner of a named mutex, in any number of processes\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *words = commands[i]->words;
        printf("  simba %-10s %s%*s %s\n", commands[i]->name, words,
               WORDS_WIDTH - width_of(words, strlen(words)), "", commands[i]->summary);
    }
    printf("\nsimba COMMAND --help says more. Options of all commands:\n");
    show_options(common_options);
    printf("\nTry:\n"
           "  simba lock backup rsync -a /data /backup      # one at a time on this machine\n"
           "  simba lock -n backup rsync -a /data /backup   # or not at all, exit 124\n"
           "  simba lock --dry-run backup                   # which store, which durations?\n\n"
           "Durations: 500ms, 10s, 5m, 1h; a bare number is in seconds.\n"
           "See simba(1), simba(7).\n");
    return 0;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int no_command(const struct cli *c, const char *name)
{
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *near = nearest(name, names, COMMANDS);
    if (near != NULL)
        return usage(c, "there is no command %.60s; did you mean %s?", name, near);
    return usage(c, "there is no command %.60s", name);
}

/* ---- options of all commands ----------------------------------------------------------------- */

static void set(struct cli *c, enum setting_id id, const char *value, const char *flag)
{
    c->setting[id].value = value;
    c->setting[id].by_flag = true;
    snprintf(c->setting[id].where, sizeof c->setting[id].where, "%s", flag);
}

/* argv can be read by everybody on the machine: keep the URL for us, and blank there what may be
 * secret: between the first colon of the authority and the last @, and values after the ?. */
static bool take_url(struct cli *c, char *value)
{
    if (strlen(value) >= sizeof c->url)
        return false;
    snprintf(c->url, sizeof c->url, "%s", value);
    set(c, SET_URL, c->url, "--url");
    char *start = strstr(value, "://"), *at = strrchr(value, '@');
    char *colon = start != NULL ? strchr(start + 3, ':') : NULL;
    if (colon != NULL && at != NULL && colon < at)
        memset(colon + 1, '*', (size_t)(at - colon - 1));
    char *question = strchr(value, '?');
    if (question != NULL)
        memset(question + 1, '*', strlen(question + 1));
    return true;
}

static int set_url(struct cli *c, char *value)
{
    return take_url(c, value) ? -1 : usage(c, "the URL is longer than %d bytes", URL_MAX - 1);
}

int cli_take_url(struct cli *c, void *data, int id, char *value)
{
    (void)data;
    (void)id;
    if (strchr(value, ':') == NULL)
        return usage(c, "'%.60s' is no URL: simba %s redis://host:6379/0", value, c->command->name);
    if (c->setting[SET_URL].value != NULL)
        return usage(c, "one URL at a time: there is a second one");
    return set_url(c, value);
}

bool cli_common(struct cli *c, int id, char *value, int *code)
{
    *code = -1;
    switch (id) {
    case OPT_URL:
        *code = set_url(c, value);
        return true;
    case OPT_TTL:
        return set(c, SET_TTL, value, "--ttl"), true;
    case OPT_TRANSITION:
        return set(c, SET_TRANSITION, value, "--transition"), true;
    case OPT_ID:
        return set(c, SET_ID, value, "--id"), true;
    case OPT_JSON:
        return c->json = true;
    case OPT_QUIET:
        return c->quiet = true;
    case OPT_VERBOSE:
        return c->verbose++, true;
    case OPT_DRY_RUN:
        return c->dry_run = true;
    case OPT_HELP:
        *code = c->command != NULL ? show_command(c->command) : show_overview();
        return true;
    case OPT_VERSION:
        c->args.own = version_command.options; /* none */
        *code = version_command.run(c);
        return true;
    default:
        return false;
    }
}

int cli_take(struct cli *c, take_fn *option, take_fn *word, void *data)
{
    char *value;
    for (;;) {
        int code, id = args_next(&c->args, &value);
        if (id == ARG_WRONG)
            return EXIT_USAGE;
        if (id == ARG_END)
            return -1;
        if (id == ARG_WORD && word == NULL)
            return usage(c, "there is no word expected, but '%.60s' stands there", value);
        if (id == ARG_WORD)
            code = word(c, data, id, value);
        else if (!cli_common(c, id, value, &code))
            code = option(c, data, id, value);
        if (code == STOP_HERE)
            return -1;
        if (code >= 0)
            return code;
    }
}

int take_duration(const struct cli *c, const char *option, const char *value, int64_t *ms)
{
    if (simba_duration_parse(value, ms) != 0)
        return usage(c, "%s: %s", option, simba_error_text());
    return -1;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void on_log(void *data, enum simba_level level, const char *line)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    complain(data, "%s: %s", names[level], line);
}

/* The library takes the options of the URL itself, so that it checks them. */
static int64_t unless_in_url(const struct setting *s, int64_t ms)
{
    return s->value != NULL && strcmp(s->where, "the URL") == 0 ? SIMBA_DEFAULT : ms;
}

int cli_fail(const struct cli *c, int rc)
{
    complain(c, "%s", simba_error_text());
    return rc == SIMBA_EINVAL ? EXIT_USAGE : EXIT_TROUBLE;
}

int cli_open(struct cli *c)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.ttl_ms = unless_in_url(&c->setting[SET_TTL], c->ttl_ms);
    o.transition_ms = unless_in_url(&c->setting[SET_TRANSITION], c->transition_ms);
    if (c->verbose > 1) {
        o.log = on_log;
        o.log_data = c;
    }
    if (c->is_driven)
        o.flags |= SIMBA_NO_THREAD;
    if (simba_open(c->setting[SET_URL].value, &o, &c->client) != 0) {
        complain(c, "%s", simba_error_text());
        return EXIT_TROUBLE;
    }
    snprintf(c->store, sizeof c->store, "%s", simba_store_text(c->client));
    return 0;
}

/* What stands in the environment is not ours: CMD gets it as it is. */
void cli_forget_url(struct cli *c)
{
    struct setting *s = &c->setting[SET_URL];
    bool is_own = s->value != NULL && strcmp(s->where, "SIMBA_URL") != 0;
    if (is_own)
        explicit_bzero((char *)(uintptr_t)s->value, strlen(s->value));
    explicit_bzero(c->url, sizeof c->url);
    if (is_own)
        s->value = c->store;
}

int cli_open_to_look(struct cli *c)
{
    static struct place at;
    static char by_default[URL_MAX], path[PATH_MAX + NAME_MAX + 2];
    struct stat s;
    const char *url = c->setting[SET_URL].value;
    if (url == NULL && simba_default_url(by_default, sizeof by_default) == 0)
        url = by_default;
    if (url == NULL || strncmp(url, "sqlite:", 7) != 0 || place_of(url, &at) != NULL)
        return cli_open(c); /* it says what is wrong */
    snprintf(path, sizeof path, "%s/%s", at.folder, at.file);
    if (stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return cli_open(c);
    complain(c,
             "there is no store at %s: nobody has used it yet, or the URL is wrong (from %s). Its "
             "first user makes it, or simba init does",
             path, c->setting[SET_URL].value != NULL ? c->setting[SET_URL].where : "default");
    return EXIT_TROUBLE;
}

/* What would be used, without using it: the folder of the default store is not made. */
static int show_configuration(struct cli *c)
{
    static const char *const names[SETTINGS] = {"url", "ttl", "transition", "id", "initial-delay"};
    static const char *const defaults[SETTINGS] = {NULL, "10s", "6s", "made from host and pid",
                                                   "0s"};
    if (c->setting[SET_URL].value != NULL) {
        int code = cli_open(c);
        if (code != 0)
            return code;
        simba_close(c->client, 1000);
    } else if (simba_default_url(c->store, sizeof c->store) != 0) {
        complain(c, "%s", simba_error_text());
        return EXIT_TROUBLE;
    }
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &c->setting[i];
        const char *value = i == SET_URL ? c->store : s->value != NULL ? s->value : defaults[i];
        if (c->json)
            print_json("{s:s, s:s, s:s}", "setting", names[i], "value", value, "from",
                       s->value != NULL ? s->where : "default");
        else
            printf("%-14s %-40s from %s\n", names[i], value,
                   s->value != NULL ? s->where : "default");
    }
    return 0;
}

int cli_configure(struct cli *c)
{
    int code = config_load(c);
    if (code == 0)
        code = config_duration(c, SET_TTL, SIMBA_TTL_MS, &c->ttl_ms);
    if (code == 0)
        code = config_duration(c, SET_TRANSITION, SIMBA_TRANSITION_MS, &c->transition_ms);
    if (code != 0)
        return code;
    if (c->ttl_ms + c->transition_ms < LEASE_LEAST_MS) {
        const char *rule = "ttl and transition together are shorter than 500ms: too short to run "
                           "a command under";
        if (c->setting[SET_TTL].by_flag || c->setting[SET_TRANSITION].by_flag)
            return usage(c, "%s", rule);
        complain(c, "%s (ttl from %s, transition from %s)", rule, c->setting[SET_TTL].where,
                 c->setting[SET_TRANSITION].where);
        return EXIT_TROUBLE;
    }
    return c->dry_run ? show_configuration(c) : -1;
}

/* ---- main ------------------------------------------------------------------------------------ */

static int run(struct cli *c)
{
    char *value;
    for (;;) {
        int code, id = args_next(&c->args, &value);
        if (id == ARG_WRONG)
            return EXIT_USAGE;
        if (id == ARG_END)
            return usage(c, "a command is missing");
        if (id == ARG_WORD)
            break;
        cli_common(c, id, value, &code);
        if (code >= 0)
            return code;
    }
    if (strcmp(value, "help") == 0) {
        const char *about = c->args.argv[c->args.at];
        const struct command *m = about != NULL ? find_command(about) : NULL;
        return m != NULL ? show_command(m) : about == NULL ? show_overview() : no_command(c, about);
    }
    c->command = find_command(value);
    if (c->command == NULL)
        return no_command(c, value);
    c->args.command = c->command->name;
    c->args.own = c->command->options;
    return c->command->run(c);
}

/* No descriptor of ours becomes somebody's stdin or stdout. What was closed still is, for whoever reads or
 * writes. */
static void keep_stdio(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

int main(int argc, char **argv)
{
    static struct cli c;
    (void)argc;
    keep_stdio();
    c.args = (struct args){.argv = argv, .at = argv[0] != NULL ? 1 : 0, .common = common_options};
    int code = run(&c);
    flush_stdout(&c);
    return code;
}
