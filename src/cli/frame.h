/* frame.h: what simba, simba-serve and the laboratory's programs begin with. Each has a table of commands,
 * commands[] of commands/commands.h, in its main file. */
#ifndef CLI_FRAME_H
#define CLI_FRAME_H

#include <stdbool.h>

struct cli;

typedef int command_fn(struct cli *c); /* the exit code */

/* Finds the command that is meant and starts it: c->command says which. by_simba: in a program that simba
 * starts, see program.h. What main() returns. */
int frame_main(int argc, char **argv, bool by_simba, command_fn *start);
#endif
