/* help.c: what --help shows, made from the tables of the commands and their options. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/output.h"

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

void help_command(const struct command *m)
{
    printf("simba %s%s%s\n    %s\n", m->name, m->words[0] != '\0' ? " " : "", m->words, m->summary);
    if (m->options != NULL)
        printf("\nOptions:\n");
    show_options(m->options);
    printf("\nOptions of all commands:\n");
    show_options(common_options);
    putchar('\n');
    show_text(m->help);
}

void help_overview(void)
{
    printf("simba: at most one owner of a named mutex, in any number of processes\n\n");
    for (const struct command *const *m = commands; *m != NULL; m++) {
        const char *words = (*m)->words;
        printf("  simba %-10s %s%*s %s\n", (*m)->name, words,
               WORDS_WIDTH - width_of(words, strlen(words)), "", (*m)->summary);
    }
    printf("\nsimba COMMAND --help says more. Options of all commands:\n");
    show_options(common_options);
    printf("\nTry:\n"
           "  simba lock backup rsync -a /data /backup      # one at a time on this machine\n"
           "  simba lock -n backup rsync -a /data /backup   # or not at all, exit 124\n"
           "  simba lock --dry-run backup                   # which store, which durations?\n\n"
           "Durations: 500ms, 10s, 5m, 1h; a bare number is in seconds.\n"
           "See simba(1), simba(7).\n");
}
