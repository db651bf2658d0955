/* serve.h: the options of simba serve: for its description and for the program that runs it. */
#ifndef CLI_COMMANDS_SERVE_H
#define CLI_COMMANDS_SERVE_H

#include "cli/commands/commands.h"

enum { OPT_LISTEN, OPT_HOST, OPT_HISTORY, OPT_KEEP };
#endif
