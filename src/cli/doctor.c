#include "cli.h"
static int run(struct cli *c)
{
    return usage(c, "x");
}
const struct command doctor_command = {
    .name = "doctor", .words = "", .summary = "", .help = "", .run = run};
