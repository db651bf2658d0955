/* spawn.c: starts a command between fork and exec of the guard: its process group, its signals, its
 * descriptors. */
#include "cli/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/plan.h"

#define LIVE_FD_LEAST 64 /* out of the way of the numbers that scripts use */

struct child {
    const struct plan *p;
    char **argv, **environment;
    pid_t guard, group; /* group: the keeper's; 0: it has no number here */
    bool is_shared;
    int live, result; /* result: why exec failed goes through it */
};

void spawn_drop_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Is our job, whose group we are still in, in the foreground of its terminal? */
static bool is_in_foreground(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool yes = tcgetpgrp(fd) == getpgrp();
    close(fd);
    return yes;
}

/* The child of vfork(): the guard stands still until exec. */
static _Noreturn void exec_command(const struct child *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->guard)
        _exit(EXIT_TROUBLE);
    if (!c->is_shared || c->group > 0)
        setpgid(0, c->is_shared ? c->group : 0);
    if (c->live >= 0 && !c->p->close_live && fcntl(c->live, F_DUPFD, LIVE_FD_LEAST) < 0)
        fcntl(c->live, F_SETFD, 0); /* few descriptors are allowed here: then as it is */
    signals_give_back(&c->p->signals);
    execvpe(c->argv[0], c->argv, c->environment);
    int error = errno;
    (void)!write(c->result, &error, sizeof error);
    _exit(EXIT_CANNOT_RUN);
}

/* vfork, because copying page tables for an exec takes as long as the exec. The guard leaves the
 * keeper's group before; only where that group has no number here, being of another process
 * namespace, and CMD could not join it again, after. */
int spawn_command(const struct plan *p, char **argv, char **environment, int live, pid_t *pid,
                  bool *is_shared)
{
    int result[2], error = 0;
    struct child c = {p, argv, environment, getpid(), getpgrp(), false, live, -1};
    *pid = -1;
    *is_shared = c.is_shared = !p->in_background && is_in_foreground();
    if (pipe2(result, O_CLOEXEC) != 0)
        return errno;
    c.result = result[1];
    if (!c.is_shared || c.group > 0)
        setpgid(0, 0);
    pid_t child = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (child == 0)
        exec_command(&c); /* NOLINT(clang-analyzer-unix.Vfork) */
    *pid = child;
    setpgid(0, 0);
    if (!p->in_background)
        spawn_drop_stdio();
    close(result[1]);
    if (child < 0)
        error = EAGAIN;
    while (child > 0 && read(result[0], &error, sizeof error) < 0 && errno == EINTR)
        ;
    close(result[0]);
    return error;
}
