/* frame.c: see frame.h. From the arguments to the command that is meant. */
#include "cli/frame.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/program.h"

#define COMMANDS_MAX 32 /* for suggestions */

static const struct subcommand *find_command(const char *name)
{
    const struct subcommand *const *m = commands;
    while (*m != NULL && strcmp((*m)->name, name) != 0)
        m++;
    return *m;
}

static struct step no_command(const struct cli *c, const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    for (; count < COMMANDS_MAX && commands[count] != NULL; count++)
        names[count] = commands[count]->name;
    const char *near = text_nearest(name, names, count);
    if (near != NULL)
        return usage(c, "unknown command '%.60s'; did you mean %s?", name, near);
    return usage(c, "unknown command '%.60s'", name);
}

static struct step take_command(struct cli *c, void *data, int id, char *value)
{
    (void)id;
    *(const char **)data = value;
    c->args.is_stopped = true;
    return GO_ON;
}

static int run(struct cli *c, command_fn *start)
{
    const char *name = NULL;
    struct step step = cli_take(c, NULL, take_command, &name);
    if (step.ends)
        return step.code;
    if (name == NULL)
        return usage(c, "missing command, such as lock, status or doctor").code;
    bool is_help = strcmp(name, "help") == 0;
    if (is_help)
        name = c->args.argv[c->args.at];
    if (is_help && (c->json || (name != NULL && strcmp(name, "--json") == 0))) {
        help_print_json();
        return 0;
    }
    const struct subcommand *m = name != NULL ? find_command(name) : NULL;
    if (m == NULL && name != NULL)
        return no_command(c, name).code;
    if (is_help) {
        help_show(m);
        return 0;
    }
    c->command = m;
    return start(c);
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

/* The list of arguments is copied, since operands are moved together in it; the texts are not. */
int frame_main(int argc, char **argv, bool by_simba, command_fn *start)
{
    static struct cli c;
    keep_stdio();
    const char *log = getenv("SIMBA_LOG");
    if (log != NULL) /* of what is wrong before the configuration is read; that checks it */
        log_format_parse(log, &c.log);
    c.argv = argv;
    c.args.argv = calloc((size_t)argc + 1, sizeof *argv);
    if (c.args.argv == NULL)
        return print_error(&c, "out of memory").code;
    memcpy(c.args.argv, argv, (size_t)argc * sizeof *argv);
    c.args.at = argc > 0 ? 1 : 0;
    if (by_simba)
        program_take_url(&c);
    int code = run(&c, start);
    struct step flushed = flush_stdout(&c);
    return flushed.ends ? flushed.code : code;
}
