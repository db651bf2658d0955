/* main.c: simba: the table of its commands, those that are programs of their own among them. */
#include "cli/commands/commands.h"
#include "cli/frame.h"
#include "cli/program.h"

const struct subcommand *const commands[] = {
    &lock_command,
    &once_command,
    &elect_command,
    &schedule_command,
    &leader_command,
    &watch_command,
    &status_command,
    &list_command,
    &history_command,
    &serve_command,
    &release_command,
    &init_command,
    &doctor_command,
    &bench_command,
    &tck_command,
    &torture_command,
    &completion_command,
    &version_command,
    NULL,
};
static int start(struct cli *c)
{
    return c->command->program != NULL ? program_run(c) : c->command->run(c);
}

int main(int argc, char **argv)
{
    return frame_main(argc, argv, false, start);
}
