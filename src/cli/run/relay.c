/* relay.c: a keeper with nothing below it but its guard and CMD's tree.
 *
 * When the guard dies, its keeper kills all that is below the keeper. That must not hit others:
 * children that a process had before it became simba (sh -c 'nginx & exec simba lock …'), their
 * orphans, and the orphans of a whole container, which PID 1 adopts. So where there may be
 * others the keeper is forked, and the process that was started stays outside: it passes signals
 * on, and ends as the keeper ends. If it is killed the kernel kills the keeper, and the guard
 * ends the tree, as for any keeper.
 *
 * It also tells systemd that the keeper is ready, and alive, because systemd listens to the process that it
 * started. */
#include "cli/run/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/notify.h"
#include "cli/run/signals.h"
#include "cli/run/spawn.h"

static int ready =
    -1; /* a pipe: the keeper's end, or the relay's; -1: there is no relay, or no keeper */

/* What goes through the pipe. */
static const char *const states[] = {"READY=1", "WATCHDOG=1"};

static void notify(unsigned char which)
{
    if (ready >= 0)
        (void)!write(ready, &which, 1);
    else
        notify_service_manager(states[which]);
}

void relay_notify_ready(void)
{
    notify(0);
}

void relay_notify_alive(void)
{
    notify(1);
}

static bool may_have_others(void)
{
    siginfo_t info;
    return getpid() == 1 || waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

/* Whoever has ended, for there is nobody else to wait for them. If it was the keeper, so do we. */
static void reap_others(pid_t keeper)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
        if (pid == keeper && WIFSIGNALED(status))
            die_of(WTERMSIG(status));
        if (pid == keeper)
            _exit(WEXITSTATUS(status));
    }
}

static void on_signals(const struct signals *s, pid_t keeper)
{
    struct signalfd_siginfo info;
    while (read(s->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap_others(keeper);
        else if (!signal_is_from_terminal(&info)) /* the keeper is in our group, and has it */
            kill(keeper, (int)info.ssi_signo);
    }
}

/* That it is ready comes first: the keeper may have ended since. */
static _Noreturn void relay(const struct signals *s, pid_t keeper)
{
    unsigned char which;
    spawn_drop_stdio();
    for (;;) {
        struct pollfd fds[] = {{s->fd, POLLIN, 0}, {ready, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents != 0 && read(ready, &which, 1) == 1)
            notify_service_manager(states[which % 2]);
        else if (fds[1].revents != 0)
            ready = -1; /* the keeper has ended, or is about to */
        if (fds[0].revents != 0)
            on_signals(s, keeper);
    }
}

bool relay_fork(struct cli *c)
{
    struct signals s = {.fd = -1};
    int ends[2];
    pid_t self = getpid();
    if (!may_have_others())
        return true;
    if (!signals_take(&s) || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t keeper = fork();
    ready = ends[keeper > 0 ? 0 : 1];
    close(ends[keeper > 0 ? 1 : 0]);
    if (keeper > 0) {
        cli_forget_url(c);
        relay(&s, keeper);
    }
    close(s.fd);
    if (keeper < 0)
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self)
        _exit(EXIT_TROUBLE);
    signals_give_back(&s);
    return true;
}
