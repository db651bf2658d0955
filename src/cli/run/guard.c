/* guard.c: the process between keeper and CMD. It is CMD's parent, knows until when the lease
 * holds because the keeper says so, and ends the tree in time whatever becomes of the keeper. It
 * blocks all signals that can be blocked; only KILL and STOP reach it, and then there is the
 * keeper.
 *
 *     RUNNING   --- at deadline - kill_after, or the keeper is gone or says "lost" ---> TERM_SENT
 *     TERM_SENT --- at kill_at, the deadline at the latest ---------------------------> killed
 *     any       --- no process is left -----------------------------------------------> EMPTY
 *
 * With --progress silence counts like a lost lease: see progress.h. Then it is the guard's to say
 * that the tenure is over, and the keeper gives the mutex back when nothing is left.
 *
 * Then the guard waits for the next command, or ends if the keeper has said that there is none,
 * or is gone. If the tenure is over, or the keeper gone, on_released is run first, by whoever is
 * left to do it. It may take until another could own the mutex. */
#include "cli/run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/channel.h"
#include "cli/run/cmd_watch.h"
#include "cli/run/outage.h"
#include "cli/run/process_tree.h"
#include "cli/run/run_options.h"
#include "cli/run/spawn.h"
#include "cli/shown.h"

#define FLOOD_PAUSE_MS 10 /* nobody needs to report more often */

struct guard {
    const struct run_options *opts;
    int channel; /* -1: the keeper is gone */
    pid_t keeper;
    int timer, children;
    int live;             /* the liveness descriptor, held because we act for the owner; -1: none */
    enum job job;         /* which command runs, or ran */
    bool on_released_due; /* CMD was begun in this tenure, on_released was not (nor is there one,
                             if the tenure is checked) */
    struct message tenure; /* the START of its CMD: token, id, store */
    pid_t cmd;             /* 0: none runs */
    bool has_ended;        /* the command, not all of the tree */
    int status;
    bool term_sent;           /* because the lease ends */
    enum simba_reason reason; /* why the tenure is over, for on_released */
    bool is_ending;           /* a kill is due at kill_at, for that or for --kill-rest */
    bool is_shared;           /* CMD is in the keeper's process group */
    int64_t kill_at;
    int64_t on_released_until; /* it must have ended by then */
    struct cmd_watch watch;
};

static void report(const struct guard *g, enum message_kind kind, int number)
{
    struct message m = {.kind = kind, .job = g->job, .number = number, .token = g->tenure.token};
    if (g->channel >= 0)
        channel_send(g->channel, &m, -1);
}

/* When something has to be done about what runs; 0: nothing does. */
static int64_t due_at(const struct guard *g)
{
    if (g->is_ending)
        return g->kill_at;
    if (g->cmd != 0 && g->job == JOB_ON_RELEASED)
        return g->on_released_until - run_options_lease_margin(g->opts->c) / 2;
    if (g->cmd == 0 && !g->on_released_due)
        return 0;
    int64_t at = *g->opts->running->deadline - g->opts->kill_after,
            watch = cmd_watch_due_at(&g->watch);
    return watch != 0 && watch < at ? watch : at;
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

/* ---- the tree ------------------------------------------------------------------------------ */

/* True when nothing is left: no child means no tree, for whoever loses its parent becomes our
 * child. */
static bool reap(struct guard *g)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int status;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            return errno == ECHILD;
        pid_t pid = info.si_pid;
        if (pid == 0)
            return false;
        if (pid == g->watch.check.pid) { /* nobody else may wait for it */
            cmd_watch_reap(&g->watch);
            continue;
        }
        waitpid(pid, &status, 0);
        if (pid == g->cmd && !g->has_ended) { /* later, another of the tree may have its number */
            g->has_ended = true;
            g->status = status;
        }
    }
}

static void signal_tree_of(const struct guard *g, int signal, struct process_tree_left *left)
{
    if (process_tree_signal(signal, 0, left) >= 0 || g->cmd <= 0)
        return;
    if (!g->has_ended) /* without /proc: whom we know */
        kill(g->cmd, signal);
    if (!g->is_shared)
        kill(-g->cmd, signal);
}

static void signal_tree(const struct guard *g, int signal)
{
    signal_tree_of(g, signal, NULL);
}

static void run_on_released(struct guard *g);

/* Nothing is left of the command, or nothing that matters. */
static void on_empty(struct guard *g)
{
    if (!g->opts->checks_tenure || !g->on_released_due)
        cmd_watch_end(&g->watch); /* before the next can be sent */
    report(g, MESSAGE_EMPTY, g->status);
    g->cmd = 0;
    g->has_ended = g->is_ending = false;
    if (g->on_released_due && g->term_sent) {
        run_on_released(g);
        return;
    }
    g->term_sent = false;
    if (g->channel < 0 || g->tenure.is_only)
        _exit(0);
    set_timer(g);
}

/* Of who may not be signalled the keeper hears as well: then it does not take us for one that hangs. */
static void kill_tree(struct guard *g)
{
    struct process_tree_left left = {0};
    struct pollfd children = {g->children, POLLIN, 0};
    struct signalfd_siginfo info;
    bool is_owned = !g->term_sent || g->reason == SIMBA_STALLED; /* until nothing is left */
    for (;;) {
        signal_tree_of(g, SIGKILL, &left);
        if (reap(g))
            break;
        bool was_said = left.is_said;
        int pause_ms = process_tree_pause_ms(
            &left, g->opts,
            is_owned ? ", and the mutex is not free" : ", and another may own the mutex beside it");
        if (left.is_said && !was_said)
            report(g, MESSAGE_DENIED, left.denied);
        poll(&children, 1, pause_ms);
        while (read(g->children, &info, sizeof info) > 0)
            ;
    }
    on_empty(g);
}

/* Tells the tree to end. Stopped processes are woken to hear it. */
static void end_tree(struct guard *g)
{
    int64_t at = clock_now() + g->opts->kill_after;
    int64_t latest = g->job == JOB_ON_RELEASED ? g->on_released_until : *g->opts->running->deadline;
    g->kill_at = at < latest ? at : latest;
    g->is_ending = true;
    check_end(&g->watch.check);
    signal_tree(g, g->opts->signal);
    signal_tree(g, SIGCONT);
    set_timer(g);
}

static void report_loss(const struct guard *g, enum simba_reason reason, const char *why)
{
    const struct run_options *opts = g->opts;
    bool runs = g->cmd != 0 && g->job == JOB_CMD;
    const char *next = opts->on_released != NULL ? "running --on-released" : "staying a candidate";
    print_loss(opts->c, reason_name(reason), "lost '%s' on %s: %s; %s%s%s", opts->mutex,
               g->tenure.store, why, runs ? "sending " : next,
               runs ? signal_name(opts->signal) : "", runs ? " to CMD" : "");
}

static void end_for_lease(struct guard *g, enum simba_reason reason)
{
    if (g->term_sent)
        return;
    if (g->cmd == 0 && !g->on_released_due)
        return; /* nobody acts */
    g->term_sent = true;
    g->reason = reason;
    report(g, MESSAGE_TERM_SENT, (int)reason);
    if (g->cmd == 0)
        run_on_released(g);
    else if (g->job == JOB_CMD)
        end_tree(g);
}

/* The command has ended. What about those it left behind? */
static void on_cmd_ended(struct guard *g)
{
    check_drop(&g->watch.check); /* it may be all that is left */
    if (g->opts->rest == REST_LEAVE) {
        on_empty(g);
        return;
    }
    int count = process_tree_signal(0, 0, NULL);
    report(g, MESSAGE_ENDED, count > 0 ? count : 1);
    if (g->opts->rest == REST_KILL && !g->is_ending)
        end_tree(g);
}

static void on_children(struct guard *g)
{
    struct signalfd_siginfo info;
    bool had_ended = g->has_ended;
    while (read(g->children, &info, sizeof info) > 0)
        ;
    bool is_empty = reap(g);
    if (g->cmd == 0)
        return;
    if (is_empty)
        on_empty(g);
    else if (g->has_ended && !had_ended)
        on_cmd_ended(g);
}

/* ---- CMD ----------------------------------------------------------------------------------- */

static char **argv_of(const struct guard *g)
{
    return g->job == JOB_ON_RELEASED ? g->opts->on_released : g->opts->argv;
}

static struct cmd_tenure tenure_of(const struct guard *g)
{
    return (struct cmd_tenure){.id = g->tenure.id,
                               .store = g->tenure.store,
                               .token = g->tenure.token,
                               .tick = g->job == JOB_CMD ? g->tenure.tick : 0};
}

static int start(struct guard *g)
{
    struct cmd_tenure t = tenure_of(g);
    if (g->job == JOB_ON_RELEASED) {
        t.reason = reason_name(g->reason);
    } else if (g->watch.progress.fd >= 0) {
        t.notify_socket = g->watch.progress.address;
        t.watchdog_ns = g->opts->progress;
    }
    return spawn_command(g->opts, argv_of(g), &t, g->live, &g->cmd, &g->is_shared);
}

/* Without such a command it has ended already. If exec fails, the child's end follows. */
static void run_job(struct guard *g, enum job job)
{
    g->job = job;
    g->status = 0;
    g->has_ended = g->is_ending = false;
    struct cmd_tenure t = tenure_of(g);
    if (job == JOB_CMD)
        cmd_watch_begin(&g->watch, &t, g->live);
    int error = argv_of(g) != NULL ? start(g) : 0;
    if (error != 0)
        report(g, MESSAGE_FAILED, error);
    if (argv_of(g) == NULL || g->cmd < 0) {
        on_empty(g);
        return;
    }
    if (error == 0)
        report(g, MESSAGE_STARTED, g->cmd);
    set_timer(g);
}

/* If the lease is over (both of us were stopped, the machine slept), late is better than never: it
 * undoes what CMD has done. */
static void run_on_released(struct guard *g)
{
    int64_t now = clock_now(), margin = run_options_lease_margin(g->opts->c);
    g->on_released_due = false;
    cmd_watch_end(&g->watch);
    if (g->opts->on_released == NULL) {
        g->job = JOB_ON_RELEASED;
        g->status = 0;
        kill_tree(g); /* of checks */
        return;
    }
    g->on_released_until = *g->opts->running->deadline + margin - margin / 10;
    if (g->on_released_until <= now) {
        char late[24];
        print_error(g->opts->c,
                    "mutex '%s' on %s: the lease ended %s ago: another may own it while "
                    "--on-released runs",
                    g->opts->mutex, g->tenure.store,
                    show_duration((now - *g->opts->running->deadline - margin) / NS_PER_MS, late));
        g->on_released_until = now + g->opts->kill_after + margin / 2;
    }
    run_job(g, JOB_ON_RELEASED);
}

static void start_on_released(struct guard *g, enum simba_reason reason)
{
    if (!g->on_released_due || g->cmd != 0)
        return; /* it is being done */
    g->reason = reason;
    run_on_released(g);
}

/* If the keeper is gone again, CMD is not begun; but where there is only on_released, it is due. */
static void start_cmd(struct guard *g, const struct message *m)
{
    char byte;
    bool is_gone = recv(g->channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    if (is_gone && g->opts->argv != NULL)
        return;
    g->tenure = *m;
    g->opts->c->token = m->token; /* what lines are about; the store was opened after the fork */
    snprintf(g->opts->c->store, sizeof g->opts->c->store, "%s", m->store);
    g->on_released_due = g->opts->on_released != NULL || g->opts->checks_tenure;
    if (!is_gone)
        run_job(g, JOB_CMD);
}

/* ---- messages from the keeper -------------------------------------------------------------- */

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
    close(g->channel);
    g->channel = -1;
    if (g->cmd == 0 && (!g->on_released_due || g->opts->on_released == NULL)) {
        signal_tree(g, SIGKILL); /* checks */
        _exit(0);
    }
    char why[96];
    snprintf(why, sizeof why, "process %d, which renews the lease, was killed", (int)g->keeper);
    report_loss(g, SIMBA_EXPIRED, why);
    end_for_lease(g, SIMBA_EXPIRED);
}

static void on_message(struct guard *g, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_START:
        if (m->job == JOB_CMD)
            start_cmd(g, m);
        else
            start_on_released(g, (enum simba_reason)m->number);
        return;
    case MESSAGE_LOST:
        end_for_lease(g, (enum simba_reason)m->number);
        return;
    case MESSAGE_SIGNAL:
        pass_on(g, m->number, m->from_terminal);
        return;
    default:
        return;
    }
}

static void on_channel(struct guard *g)
{
    struct message m;
    int live, rc;
    while ((rc = channel_receive(g->channel, &m, &live)) > 0) {
        if (live >= 0 && g->live >= 0)
            close(g->live);
        if (live >= 0)
            g->live = live;
        on_message(g, &m);
    }
    if (rc == 0)
        on_keeper_gone(g);
}

static void on_timer(struct guard *g)
{
    uint64_t times;
    if (read(g->timer, &times, sizeof times) != sizeof times)
        return;
    if (clock_now() < due_at(g)) {
        set_timer(g); /* the keeper has renewed since it was set */
    } else if (g->is_ending) {
        kill_tree(g);
    } else if (g->cmd != 0 && g->job == JOB_ON_RELEASED) {
        print_error(g->opts->c,
                    "mutex '%s' on %s: --on-released '%s' has not ended in time; sending %s to it",
                    g->opts->mutex, g->tenure.store, g->opts->on_released[2],
                    signal_name(g->opts->signal));
        end_tree(g);
    } else if (clock_now() >= *g->opts->running->deadline - g->opts->kill_after) {
        char why[OUTAGE_TEXT_MAX];
        report_loss(g, SIMBA_EXPIRED, outage_explain(g->opts->c->outage, (int)g->keeper, why));
        end_for_lease(g, SIMBA_EXPIRED);
    } else if (!cmd_watch_tick(&g->watch)) {
        char why[CMD_WATCH_TEXT_MAX];
        report_loss(g, SIMBA_STALLED, cmd_watch_explain(&g->watch, why));
        end_for_lease(g, SIMBA_STALLED);
    } else {
        set_timer(g);
    }
}

/* The time comes last: after a stop or a sleep, what happened meanwhile may have settled it. */
static _Noreturn void guard_run(struct guard *g)
{
    for (bool is_flooded = false;;) {
        struct pollfd fds[] = {{g->children, POLLIN, 0},
                               {g->channel, POLLIN, 0},
                               {g->timer, POLLIN, 0},
                               {is_flooded ? -1 : g->watch.progress.fd, POLLIN, 0}};
        int n = poll(fds, 4, is_flooded ? FLOOD_PAUSE_MS : -1);
        is_flooded = false;
        if (n < 0)
            continue;
        if (fds[3].revents != 0) { /* before anybody is waited for who may have sent it */
            is_flooded = progress_read(&g->watch.progress);
            set_timer(g);
        }
        if (fds[0].revents != 0)
            on_children(g);
        if (g->channel >= 0 && fds[1].revents != 0)
            on_channel(g);
        if (fds[2].revents != 0)
            on_timer(g);
    }
}

static void leave_terminal(const struct run_options *opts)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        close(fd);
    }
    if (opts->to_stderr)
        dup2(STDERR_FILENO, STDOUT_FILENO);
}

static _Noreturn void guard_main(const struct run_options *opts, int channel)
{
    struct guard g = {.opts = opts, .channel = channel, .keeper = getppid(), .live = -1};
    sigset_t all, child;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* if somebody has stopped us, we go on when we are needed */
    close(opts->running->signals.fd);
    cli_forget_url(opts->c);
    prctl(PR_SET_NAME, "simba-guard"); /* who has this name knows no password */
    if (opts->in_background)
        leave_terminal(opts);
    g.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    g.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g.children < 0 || g.timer < 0 || !cmd_watch_open(&g.watch, opts)) {
        print_error(opts->c, "cannot start the guard of CMD: %s", strerror(errno));
        _exit(EXIT_TROUBLE);
    }
    guard_run(&g);
}

pid_t guard_fork(const struct run_options *opts, int *channel)
{
    int ends[2];
    struct shared {
        _Atomic int64_t deadline, progress_until;
    } *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    opts->running->deadline = &shared->deadline;
    opts->running->progress_until = &shared->progress_until;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        guard_main(opts, ends[1]);
    }
    close(ends[1]);
    *channel = ends[0];
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
