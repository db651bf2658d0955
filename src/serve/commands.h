/* commands.h: the commands that simba-serve runs. 0 or the exit code, after saying why. */
#ifndef SERVE_COMMANDS_H
#define SERVE_COMMANDS_H

struct cli;

int serve_run(struct cli *c);
int history_run(struct cli *c);
int watch_and_record(struct cli *c);
#endif
