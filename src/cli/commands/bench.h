/* bench.h: the options of simba bench: for its description and for the program that runs it. */
#ifndef CLI_COMMANDS_BENCH_H
#define CLI_COMMANDS_BENCH_H

#include "cli/commands/commands.h"

enum { OPT_FOR, OPT_RATE };
#endif
