/* help.h: what --help shows. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

struct command;

void help_command(const struct command *m);
void help_overview(void);
#endif
