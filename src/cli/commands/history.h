/* history.h: the options of simba history: for its description and for the program that runs it. */
#ifndef CLI_COMMANDS_HISTORY_H
#define CLI_COMMANDS_HISTORY_H

#include "cli/commands/commands.h"

enum { OPT_FROM, OPT_SINCE };
#endif
