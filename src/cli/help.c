/* help.c: what --help shows of the table of commands, and of one of them. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/terminal.h"

#define HELP_WIDTH 80
#define OPTION_WIDTH 30 /* with the blanks around it */
#define OPERANDS_WIDTH 12

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

static void show_command(const struct subcommand *m)
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
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
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

void help_show(const struct subcommand *m)
{
    if (m != NULL)
        show_command(m);
    else
        show_overview();
}
