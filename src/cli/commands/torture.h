/* torture.h: the options of simba torture: for its description and for the program that runs it. */
#ifndef CLI_COMMANDS_TORTURE_H
#define CLI_COMMANDS_TORTURE_H

#include "cli/commands/commands.h"

enum {
    OPT_PROCESSES,
    OPT_MUTEXES,
    OPT_FOR,
    OPT_SEED,
    OPT_PLAN,
    OPT_FAULTS,
    OPT_LIMITS,
    OPT_SAME_ID,
    OPT_STRICT,
    OPT_HTML,
    OPT_SERVER_PID,
    OPT_SERVER_START,
    OPT_SERVER_FAULT
};
#endif
