#include "cli.h"
static int run(struct cli *c)
{
    return usage(c, "x");
}
const struct command init_command = {
    .name = "init", .words = "", .summary = "", .help = "", .run = run};
