/* main.c: the table of subcommands, and the way to the one that is meant. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/help.h"
#include "cli/output.h"

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
        if (m == NULL && about != NULL)
            return no_command(c, about);
        if (m != NULL)
            help_command(m);
        else
            help_overview();
        return 0;
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
