/* version.c: simba version. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/data.h"

static int run(struct cli *c)
{
    c->command = &version_command; /* for --version it was none, or another */
    struct step step = cli_take(c, NULL, NULL, NULL);
    if (step.ends)
        return step.code;
    if (c->json)
        print_json("{s:s}", "version", simba_version());
    else
        printf("simba %s\n", simba_version());
    return 0;
}

const struct subcommand version_command = {
    .name = "version",
    .operands = "",
    .summary = "the version of the command and its library",
    .help = "Example:\n  simba version --json\n",
    .run = run,
};
