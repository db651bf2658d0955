/* commands.h: the subcommands, each in the file of its name; list is in status.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct subcommand lock_command, once_command, elect_command, leader_command,
    schedule_command, watch_command, status_command, list_command, history_command, serve_command,
    release_command, init_command, doctor_command, bench_command, tck_command, torture_command,
    completion_command, version_command;

/* In the main file of each program: */
extern const struct subcommand *const commands[]; /* all of them, NULL at the end */

/* In help.c: */
void help_show(const struct subcommand *m); /* what --help shows; NULL: of all */
void help_print_json(void);                 /* in help_json.c: simba help --json */
#endif
