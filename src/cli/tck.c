#include "cli.h"
static int run(struct cli *c)
{
    return usage(c, "x");
}
const struct command tck_command = {
    .name = "tck", .words = "", .summary = "", .help = "", .run = run};
