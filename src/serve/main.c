/* main.c: simba-serve: the viewer. simba starts it for serve, history and watch --record. */
#include "cli/commands/commands.h"
#include "cli/frame.h"
#include "serve/commands.h"

const struct subcommand *const commands[] = {&serve_command, &history_command, &watch_command,
                                             NULL};

static int start(struct cli *c)
{
    return c->command == &serve_command     ? serve_run(c)
           : c->command == &history_command ? history_run(c)
                                            : watch_and_record(c);
}

int main(int argc, char **argv)
{
    return frame_main(argc, argv, true, start);
}
