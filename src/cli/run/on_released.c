/* on_released.c: the keeper runs --on-released by itself when the guard is dead. The library renews the
 * lease meanwhile. There are threads, so the command is spawned, not forked. */
#include "cli/run/on_released.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/owner_table.h"
#include "cli/run/clock.h"
#include "cli/run/environment.h"
#include "cli/run/plan.h"
#include "cli/run/process_tree.h"

#define WAIT_MS 10

void on_released_run(const struct plan *p, const char *id, uint64_t token, int64_t until)
{
    struct environment e = {.mutex = p->mutex,
                            .id = id,
                            .store = p->c->store,
                            .reason = reason_name(SIMBA_RELEASED), /* we still own it */
                            .token = token};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char **argv = p->on_released, **environment = environment_make(&e);
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (p->to_stderr)
        posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &p->signals.mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawn(&pid, argv[0], &files, &attributes, argv,
                         environment != NULL ? environment : environ);
    if (rc != 0)
        print_error(p->c, "cannot run %s: %s", argv[2], strerror(rc));
    while (rc == 0 && now_ns() < until && waitpid(pid, NULL, WNOHANG) == 0)
        poll(NULL, 0, WAIT_MS);
    process_tree_kill(0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    environment_free(environment);
}
