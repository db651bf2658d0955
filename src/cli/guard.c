/* guard.c: the process between keeper and CMD. It is CMD's parent, knows until when the lease holds
 * because the keeper says so, and ends the tree in time whatever becomes of the keeper. It blocks all
 * signals that can be blocked; only KILL and STOP reach it, and then there is the keeper.
 *
 *     RUNNING --- at deadline - kill_after, or the keeper is gone or says "lost" -----> TOLD
 *     TOLD    --- at kill_at, the deadline at the latest -----------------------------> killed
 *     any     --- no process is left ------------------------------------------------> the end
 *
 * In a series the end of one command is not the guard's: it waits for the next. Is the tenure over, or
 * the keeper gone, then the command for that (`last`) is run first, by whoever is left to do it. It
 * may take until where another could own the mutex. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lock.h"

#define KILL_PAUSE_MS 2
#define LIVE_FD_LEAST 64 /* out of the way of the numbers that scripts use */

struct guard {
    const struct plan *p;
    int link; /* -1: the keeper is gone */
    int timer, children;
    int live;          /* in a series, to be passed on; -1: none */
    enum link_job job; /* which command runs, or ran */
    bool is_led;       /* a series: CMD was begun in this tenure, last was not */
    uint64_t token;    /* of the tenure */
    pid_t cmd;         /* 0: none runs */
    bool has_ended;    /* CMD, not all of the tree */
    int status;
    bool is_told;             /* because the lease ends */
    enum simba_reason reason; /* why the tenure is over, for last */
    bool is_ending;           /* a kill is due at kill_at, for that or for --kill-rest */
    bool is_shared;           /* CMD is in the keeper's process group */
    int64_t kill_at;
    int64_t last_until; /* last must have ended */
};

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void drop_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

static void tell(const struct guard *g, enum link_kind kind, int number)
{
    struct link_message m = {.kind = kind, .job = g->job, .number = number, .token = g->token};
    if (g->link >= 0)
        link_send(g->link, &m, -1);
}

/* When something has to be done about what runs; 0: nothing does. */
static int64_t due_at(const struct guard *g)
{
    if (g->is_ending)
        return g->kill_at;
    if (g->cmd != 0 && g->job == JOB_LAST)
        return g->last_until - lease_margin(g->p->c) / 2;
    return g->cmd != 0 || g->is_led ? *g->p->deadline - g->p->kill_after : 0;
}

/* Suspend counts, and so does a point that has passed. */
static void set_timer(const struct guard *g)
{
    int64_t at = due_at(g);
    struct itimerspec t = {.it_value = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000}};
    if (at < 0)
        t.it_value = (struct timespec){.tv_nsec = 1};
    timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* True when nothing is left: no child means no tree, for whoever loses its parent becomes our child. */
static bool reap(struct guard *g)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0)
            return false;
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid == g->cmd) {
            g->has_ended = true;
            g->status = status;
        }
    }
}

static void signal_tree(const struct guard *g, int signal)
{
    if (tree_signal(signal, 0) >= 0)
        return;
    if (!g->has_ended) /* without /proc: whom we know */
        kill(g->cmd, signal);
    if (!g->is_shared)
        kill(-g->cmd, signal);
}

static void run_last(struct guard *g);

/* Nothing is left of the command. */
static void on_empty(struct guard *g)
{
    tell(g, LINK_EMPTY, g->status);
    if (!g->p->is_series)
        _exit(0);
    g->cmd = 0;
    g->has_ended = g->is_ending = false;
    if (g->is_led && g->is_told) {
        run_last(g);
        return;
    }
    g->is_told = false;
    if (g->link < 0)
        _exit(0);
    set_timer(g);
}

static void kill_tree(struct guard *g)
{
    for (;;) {
        signal_tree(g, SIGKILL);
        if (reap(g))
            break;
        poll(NULL, 0, KILL_PAUSE_MS);
    }
    on_empty(g);
}

/* Tells the tree to end. Stopped processes are woken to hear it. */
static void end_tree(struct guard *g)
{
    int64_t at = now_ns() + g->p->kill_after;
    int64_t latest = g->job == JOB_LAST ? g->last_until : *g->p->deadline;
    g->kill_at = at < latest ? at : latest;
    g->is_ending = true;
    signal_tree(g, g->p->signal);
    signal_tree(g, SIGCONT);
    set_timer(g);
}

static void end_for_lease(struct guard *g, enum simba_reason reason)
{
    if (g->is_told)
        return;
    if (g->cmd == 0 && !g->is_led)
        return; /* nobody acts */
    g->is_told = true;
    g->reason = reason;
    tell(g, LINK_TOLD, 0);
    if (g->cmd == 0)
        run_last(g);
    else if (g->job == JOB_CMD)
        end_tree(g);
}

/* CMD has ended. What about those it left behind? */
static void on_cmd_ended(struct guard *g)
{
    if (g->p->rest == REST_LEAVE) {
        tell(g, LINK_EMPTY, g->status);
        _exit(0);
    }
    int count = tree_signal(0, 0);
    tell(g, LINK_ENDED, count > 0 ? count : 1);
    if (g->p->rest == REST_KILL && !g->is_ending)
        end_tree(g);
}

static void on_children(struct guard *g)
{
    struct signalfd_siginfo info;
    bool had_ended = g->has_ended;
    while (read(g->children, &info, sizeof info) > 0)
        ;
    if (g->cmd == 0)
        return;
    if (reap(g))
        on_empty(g);
    else if (g->has_ended && !had_ended && !g->p->is_series)
        on_cmd_ended(g);
}

/* ---- CMD ------------------------------------------------------------------------------------- */

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

static void set_environment(const struct plan *p, const struct link_message *m)
{
    char token[32];
    snprintf(token, sizeof token, "%llu", (unsigned long long)m->token);
    setenv("SIMBA_MUTEX", p->mutex, 1);
    setenv("SIMBA_CONTENDER_ID", m->id, 1);
    setenv("SIMBA_FENCING_TOKEN", token, 1);
    setenv("SIMBA_STORE", m->store, 1);
    unsetenv("SIMBA_REASON");
}

static char **argv_of(const struct guard *g)
{
    return g->job == JOB_LAST ? g->p->last : g->p->argv;
}

/* The child of vfork(): the guard stands still until exec. Why that failed goes through `report`. */
static _Noreturn void run_cmd(const struct guard *g, pid_t guard, pid_t group, int live, int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(EXIT_TROUBLE);
    if (!g->is_shared || group > 0)
        setpgid(0, g->is_shared ? group : 0);
    if (live >= 0 && !g->p->close_live && fcntl(live, F_DUPFD, LIVE_FD_LEAST) < 0)
        fcntl(live, F_SETFD, 0); /* few descriptors are allowed here: then as it is */
    signals_give_back(g->p);
    execvp(argv_of(g)[0], argv_of(g));
    int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(EXIT_CANNOT_RUN);
}

/* vfork, because copying page tables for an exec takes as long as the exec. The guard leaves the
 * keeper's group before; only where that group has no number here, being of another process
 * namespace, and CMD could not join it again, after. */
static int fork_cmd(struct guard *g, int live)
{
    int report[2], error = 0;
    pid_t guard = getpid(), group = getpgrp();
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    g->is_shared = !g->p->is_series && is_in_foreground();
    if (!g->is_shared || group > 0)
        setpgid(0, 0);
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0)
        run_cmd(g, guard, group, live, report[1]); /* NOLINT(clang-analyzer-unix.Vfork) */
    g->cmd = pid;
    setpgid(0, 0);
    if (!g->p->is_series)
        drop_stdio();
    close(report[1]);
    if (pid < 0)
        error = EAGAIN;
    while (pid > 0 && read(report[0], &error, sizeof error) < 0 && errno == EINTR)
        ;
    close(report[0]);
    return error;
}

/* One of a series; without such a command it has ended already. */
static void run_job(struct guard *g, enum link_job job)
{
    g->job = job;
    g->status = 0;
    g->has_ended = g->is_ending = false;
    int error = argv_of(g) != NULL ? fork_cmd(g, g->live) : 0;
    if (error != 0)
        tell(g, LINK_FAILED, error);
    if (argv_of(g) == NULL || g->cmd < 0) {
        on_empty(g);
        return;
    }
    tell(g, LINK_STARTED, g->cmd);
    set_timer(g);
}

/* If the lease is over (both of us were stopped, the machine slept), late is better than never: it
 * undoes what CMD has done. */
static void run_last(struct guard *g)
{
    int64_t now = now_ns(), margin = lease_margin(g->p->c);
    g->is_led = false;
    g->last_until = *g->p->deadline + margin - margin / 10;
    if (g->last_until <= now) {
        complain(g->p->c, "mutex '%s': the lease has ended before the tenure was wound up",
                 g->p->mutex);
        g->last_until = now + g->p->kill_after + margin / 2;
    }
    setenv("SIMBA_REASON", reason_name(g->reason), 1);
    run_job(g, JOB_LAST);
}

static void start_of_series(struct guard *g, const struct link_message *m, int live)
{
    if (live >= 0 && g->live >= 0)
        close(g->live);
    if (live >= 0)
        g->live = live;
    if (m->job == JOB_LAST) {
        if (!g->is_led || g->cmd != 0)
            return; /* it is being done */
        g->reason = (enum simba_reason)m->number;
        run_last(g);
        return;
    }
    char byte;
    bool is_gone = recv(g->link, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    if (is_gone && g->p->argv != NULL)
        return; /* the keeper is gone again: what was not begun is not wound up */
    g->token = m->token;
    g->is_led = g->p->last != NULL;
    set_environment(g->p, m);
    if (!is_gone)
        run_job(g, JOB_CMD);
}

static void start(struct guard *g, const struct link_message *m, int live)
{
    char byte;
    if (g->p->is_series) {
        start_of_series(g, m, live);
        return;
    }
    if (recv(g->link, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        _exit(0); /* the keeper is gone again */
    set_environment(g->p, m);
    int error = fork_cmd(g, live); /* live stays open here, too: we act for the owner */
    if (error != 0) {
        tell(g, LINK_FAILED, error);
        _exit(0);
    }
    tell(g, LINK_STARTED, g->cmd);
    set_timer(g);
}

/* ---- messages from the keeper ---------------------------------------------------------------- */

/* To end is for all of them, or a shell would end and its child go on; the rest is for CMD. */
static void pass_on(const struct guard *g, int signal, bool from_terminal)
{
    if (g->cmd == 0 || (from_terminal && g->is_shared))
        return; /* CMD has it already */
    if (signal_ends(signal) || signal == SIGCONT)
        signal_tree(g, signal);
    else if (!g->has_ended)
        kill(g->cmd, signal);
}

static void on_keeper_gone(struct guard *g)
{
    close(g->link);
    g->link = -1;
    if (g->cmd == 0 && !g->is_led)
        _exit(0);
    complain(g->p->c, "mutex '%s': the keeper of the lock died; CMD is told to end", g->p->mutex);
    end_for_lease(g, SIMBA_EXPIRED);
}

static void on_message(struct guard *g, const struct link_message *m, int live)
{
    switch (m->kind) {
    case LINK_START:
        start(g, m, live);
        return;
    case LINK_LOST:
        end_for_lease(g, (enum simba_reason)m->number);
        return;
    case LINK_SIGNAL:
        pass_on(g, m->number, m->from_terminal);
        return;
    default:
        return;
    }
}

static void on_link(struct guard *g)
{
    struct link_message m;
    int live, rc;
    while ((rc = link_receive(g->link, &m, &live)) > 0)
        on_message(g, &m, live);
    if (rc == 0)
        on_keeper_gone(g);
}

static void on_timer(struct guard *g)
{
    uint64_t times;
    if (read(g->timer, &times, sizeof times) != sizeof times)
        return;
    if (now_ns() < due_at(g)) {
        set_timer(g); /* the keeper has renewed since it was set */
    } else if (g->is_ending) {
        kill_tree(g);
    } else if (g->cmd != 0 && g->job == JOB_LAST) {
        complain(g->p->c, "mutex '%s': '%s' does not end in time, and is told to", g->p->mutex,
                 g->p->last[2]);
        end_tree(g);
    } else {
        complain(g->p->c, "mutex '%s': the lease could not be kept; CMD is told to end",
                 g->p->mutex);
        end_for_lease(g, SIMBA_EXPIRED);
    }
}

/* The time comes last: after a stop or a sleep, what happened meanwhile may have settled it. */
static _Noreturn void guard_run(struct guard *g)
{
    for (;;) {
        struct pollfd fds[] = {
            {g->children, POLLIN, 0}, {g->link, POLLIN, 0}, {g->timer, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        if (fds[0].revents != 0)
            on_children(g);
        if (g->link >= 0 && fds[1].revents != 0)
            on_link(g);
        if (fds[2].revents != 0)
            on_timer(g);
    }
}

/* The commands of a series have nothing to do with the terminal. */
static void leave_job(const struct plan *p)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        close(fd);
    }
    if (p->to_stderr)
        dup2(STDERR_FILENO, STDOUT_FILENO);
}

static _Noreturn void guard_main(const struct plan *p, int link)
{
    struct guard g = {.p = p, .link = link, .live = -1};
    sigset_t all, child;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* if somebody has stopped us, we go on when we are needed */
    close(p->signals);
    cli_forget_url(p->c);
    prctl(PR_SET_NAME, "simba-guard"); /* who has this name knows no password */
    if (p->is_series)
        leave_job(p);
    g.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    g.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g.children < 0 || g.timer < 0) {
        complain(p->c, "the guard cannot start: %s", strerror(errno));
        _exit(EXIT_TROUBLE);
    }
    guard_run(&g);
}

pid_t guard_fork(struct plan *p, int *link)
{
    int ends[2];
    p->c->drops_lines = true;
    p->deadline =
        mmap(NULL, sizeof *p->deadline, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->deadline == MAP_FAILED)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        guard_main(p, ends[1]);
    }
    close(ends[1]);
    *link = ends[0];
    if (pid < 0)
        close(ends[0]);
    return pid;
}

/* It may be stopped; and whoever waits for us waits for it, too. */
void guard_end(pid_t guard)
{
    if (guard <= 0)
        return;
    kill(guard, SIGKILL);
    while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
        ;
}
