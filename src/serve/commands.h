/* commands.h: the commands that simba-serve runs: the exit code. */
#ifndef SERVE_COMMANDS_H
#define SERVE_COMMANDS_H

struct cli;

int serve_run(struct cli *c);
int history_run(struct cli *c);
int watch_and_record(struct cli *c);
#endif
