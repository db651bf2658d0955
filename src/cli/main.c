/* main.c: the table of subcommands, what --help shows of it, and the way to the one that is meant. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"

#define HELP_WIDTH 80
#define OPTION_WIDTH 30 /* with the blanks around it */
#define OPERANDS_WIDTH 12

const struct command *const commands[] = {
    &lock_command,
    &once_command,
    &elect_command,
    &schedule_command,
    &leader_command,
    &watch_command,
    &status_command,
    &list_command,
    &history_command,
    &serve_command,
    &release_command,
    &init_command,
    &doctor_command,
    &bench_command,
    &tck_command,
    &torture_command,
    &completion_command,
    &version_command,
    NULL,
};
#define COMMANDS (sizeof commands / sizeof *commands - 1)

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
        return usage(c, "unknown command '%.60s'; did you mean %s?", name, near);
    return usage(c, "unknown command '%.60s'", name);
}

/* ---- help ---------------------------------------------------------------------------------- */

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

/* Lines that begin with a blank stay as they are. Those that begin with a dash, or follow an
 * empty one, begin anew; all others go on where the one before has ended. */
static void show_text(const char *text, size_t length)
{
    const char *end = text + length;
    for (int at = 0; text < end;) {
        size_t bytes = strcspn(text, "\n");
        bool is_verbatim = *text == ' ';
        if (is_verbatim)
            printf("%.*s", (int)bytes, text);
        else
            at = put_wrapped(text, bytes, 0, at);
        text += bytes;
        text += text < end && *text == '\n';
        if (text >= end || is_verbatim || bytes == 0 || strchr(" -\n", *text) != NULL) {
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
        bool takes_next = option_takes_next(o);
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", o->letter != 0 ? "-" : "",
                 o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ", " : "   ", o->name,
                 o->arg == NULL ? ""
                 : takes_next   ? " "
                                : "[=",
                 o->arg == NULL ? ""
                 : takes_next   ? o->arg
                                : o->arg + 1);
        printf("  %-*s", OPTION_WIDTH - 2, left);
        put_wrapped(o->help, strlen(o->help), OPTION_WIDTH, OPTION_WIDTH);
        putchar('\n');
    }
}

static void show_command(const struct command *m)
{
    const char *examples = strstr(m->help, "Example"); /* at the end; else all of it is one */
    if (examples == NULL)
        examples = m->help;
    printf("simba %s%s%s\n    %s\n\n", m->name, m->operands[0] != '\0' ? " " : "", m->operands,
           m->summary);
    show_text(examples, strlen(examples));
    if (m->options != NULL)
        printf("\nOptions:\n");
    show_options(m->options);
    printf("\nOptions of all commands:\n");
    show_options(common_options);
    size_t rest = (size_t)(examples - m->help);
    while (rest > 0 && m->help[rest - 1] == '\n')
        rest--;
    if (rest > 0)
        putchar('\n');
    show_text(m->help, rest);
}

static void show_overview(void)
{
    printf("simba: at most one owner of a named mutex, in any number of processes\n\n");
    for (const struct command *const *m = commands; *m != NULL; m++) {
        const char *operands = (*m)->operands;
        printf("  simba %-10s %s%*s %s\n", (*m)->name, operands,
               OPERANDS_WIDTH - width_of(operands, strlen(operands)), "", (*m)->summary);
    }
    printf("\nsimba COMMAND --help shows examples and options. Options of all commands:\n");
    show_options(common_options);
    printf("\nTry:\n"
           "  simba lock backup rsync -a /data /backup      # one at a time on this machine\n"
           "  simba lock -n backup rsync -a /data /backup   # or not at all, exit 124\n"
           "  simba lock --dry-run backup                   # which store, which durations?\n\n"
           "Durations: 500ms, 10s, 5m, 1h, 1d; a bare number is in seconds.\n"
           "Manuals: simba(1), simba(7).\n");
}

void help_show(const struct command *m)
{
    if (m != NULL)
        show_command(m);
    else
        show_overview();
}

/* ---- main ---------------------------------------------------------------------------------- */

static int take_command(struct cli *c, void *data, int id, char *value)
{
    (void)c;
    (void)id;
    *(const char **)data = value;
    return STOP_HERE;
}

static int run(struct cli *c)
{
    const char *name = NULL;
    int code = cli_take(c, NULL, take_command, &name);
    if (code >= 0)
        return code;
    if (name == NULL)
        return usage(c, "missing command, such as lock, status or doctor");
    bool is_help = strcmp(name, "help") == 0;
    if (is_help)
        name = c->args.argv[c->args.at];
    if (is_help && (c->json || (name != NULL && strcmp(name, "--json") == 0))) {
        help_print_json();
        return 0;
    }
    const struct command *m = name != NULL ? find_command(name) : NULL;
    if (m == NULL && name != NULL)
        return no_command(c, name);
    if (is_help) {
        help_show(m);
        return 0;
    }
    c->command = m;
    return m->run(c);
}

/* No descriptor of ours becomes somebody's stdin or stdout. What was closed still is, for
 * whoever reads or writes. */
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
    const char *log = getenv("SIMBA_LOG");
    if (log != NULL) /* of what is wrong before the configuration is read; that checks it */
        log_format_parse(log, &c.log);
    c.args = (struct args){.argv = argv, .at = argv[0] != NULL ? 1 : 0};
    int code = run(&c), failure = flush_stdout(&c);
    return failure != 0 ? failure : code;
}
