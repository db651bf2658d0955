/* spawn.c: starts a command: between fork and exec of the guard, its process group, its signals,
 * its descriptors; or, for --on-released after the guard's death, from the keeper itself. */
#include "cli/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/run/process_tree.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define LIVE_FD_LEAST 64 /* out of the way of the numbers that scripts use */
#define WAIT_MS 10

/* ---- its environment: ours is not changed, threads may read it ----------------------------- */

#define OWN_VARIABLES 9
#define OWN_ALWAYS 6 /* the others only where progress is asked for */

static const char *const names[OWN_VARIABLES] = {
    "SIMBA_MUTEX=",         "SIMBA_CONTENDER_ID=", "SIMBA_STORE=",
    "SIMBA_FENCING_TOKEN=", "SIMBA_REASON=",       "SIMBA_TICK=",
    "NOTIFY_SOCKET=",       "WATCHDOG_USEC=",      "WATCHDOG_PID="};

static size_t own_count(const struct cmd_tenure *t)
{
    return t->notify_socket != NULL ? OWN_VARIABLES : OWN_ALWAYS;
}

static bool is_own(const char *variable, const struct cmd_tenure *t)
{
    for (size_t i = 0; i < own_count(t); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* The address that we listen on is of no use to a simba in CMD. */
static bool is_taken(const struct run_options *opts, const char *variable)
{
    return opts->c->setting[SET_LISTEN].value != NULL &&
           strncmp(variable, "SIMBA_LISTEN=", 13) == 0;
}

static void free_environment(char **all, const struct cmd_tenure *t)
{
    for (char **variable = all; all != NULL && *variable != NULL; variable++) {
        if (is_own(*variable, t))
            free(*variable);
    }
    free(all);
}

/* NULL: out of memory. WATCHDOG_PID is left out: whoever of the tree reports, it counts. */
static char **make_environment(const struct run_options *opts, const struct cmd_tenure *t)
{
    char number[24], watchdog[24], tick[TIME_SIZE];
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->token);
    snprintf(watchdog, sizeof watchdog, "%lld", (long long)(t->watchdog_ns / 1000));
    const char *const values[OWN_VARIABLES] = {
        opts->mutex,      t->id,     t->store,
        number,           t->reason, t->tick != 0 ? show_tick(t->tick, tick) : NULL,
        t->notify_socket, watchdog,  NULL};
    size_t count = OWN_VARIABLES + 1, n = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        count++;
    char **all = calloc(count, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < own_count(t); i++) {
        if (values[i] == NULL)
            continue;
        if (asprintf(&all[n], "%s%s", names[i], values[i]) < 0) {
            all[n] = NULL;
            free_environment(all, t);
            return NULL;
        }
        n++;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        if (!is_own(*variable, t) && !is_taken(opts, *variable))
            all[n++] = *variable;
    }
    return all;
}

/* ---- in the guard -------------------------------------------------------------------------- */

struct spawn {
    const struct run_options *opts;
    char **argv, **environment;
    pid_t guard, group; /* group: the keeper's; 0: it has no number here */
    bool is_shared, to_stderr;
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

/* CMD gets a description of its own, with a lock of its own: whatever it does to that one, also as another
 * user, the guard's stays as it is. -1: that cannot be had here. */
static int open_own_live(int live)
{
    char path[32];
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    snprintf(path, sizeof path, "/proc/self/fd/%d", live);
    lock.l_start = lseek(live, 0, SEEK_CUR);
    int own = lock.l_start < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (own >= 0 && fcntl(own, F_OFD_SETLK, &lock) != 0) {
        close(own);
        own = -1;
    }
    return own;
}

/* The child of vfork(): the guard stands still until exec. */
static _Noreturn void exec_command(const struct spawn *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->guard)
        _exit(EXIT_TROUBLE);
    if (!c->is_shared || c->group > 0)
        setpgid(0, c->is_shared ? c->group : 0);
    if (c->live >= 0 && fcntl(c->live, F_DUPFD, LIVE_FD_LEAST) < 0)
        fcntl(c->live, F_SETFD, 0); /* few descriptors are allowed here: then as it is */
    if (c->to_stderr)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    signals_give_back(&c->opts->running->signals);
    execvpe(c->argv[0], c->argv, c->environment);
    int error = errno;
    (void)!write(c->result, &error, sizeof error);
    _exit(EXIT_CANNOT_RUN);
}

/* vfork, because copying page tables for an exec takes as long as the exec. The guard leaves the
 * keeper's group before; only where that group has no number here, being of another process
 * namespace, and CMD could not join it again, after. */
static int run_child(struct spawn *c, pid_t *pid)
{
    int result[2], error = 0;
    if (pipe2(result, O_CLOEXEC) != 0)
        return errno;
    c->result = result[1];
    if (!c->is_shared || c->group > 0)
        setpgid(0, 0);
    pid_t child = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (child == 0)
        exec_command(c); /* NOLINT(clang-analyzer-unix.Vfork) */
    *pid = child;
    setpgid(0, 0);
    if (!c->opts->in_background)
        spawn_drop_stdio();
    close(result[1]);
    if (child < 0)
        error = EAGAIN;
    while (child > 0 && read(result[0], &error, sizeof error) < 0 && errno == EINTR)
        ;
    close(result[0]);
    return error;
}

static int spawn(struct spawn *c, const struct cmd_tenure *t, pid_t *pid)
{
    int own = c->live >= 0 && !c->opts->close_live ? open_own_live(c->live) : -1;
    *pid = -1;
    if (own >= 0 || c->opts->close_live)
        c->live = own;
    c->guard = getpid();
    c->environment = make_environment(c->opts, t);
    int error = c->environment != NULL ? run_child(c, pid) : ENOMEM;
    free_environment(c->environment, t);
    if (own >= 0)
        close(own);
    return error;
}

int spawn_command(const struct run_options *opts, char **argv, const struct cmd_tenure *t, int live,
                  pid_t *pid, bool *is_shared)
{
    struct spawn c = {.opts = opts, .argv = argv, .group = getpgrp(), .live = live};
    *is_shared = c.is_shared = !opts->in_background && is_in_foreground();
    return spawn(&c, t, pid);
}

/* CMD was begun before, so the guard has left the terminal, and stdin is empty. */
int spawn_check(const struct run_options *opts, const struct cmd_tenure *t, int live, pid_t *pid)
{
    struct spawn c = {.opts = opts, .argv = opts->check, .to_stderr = true, .live = live};
    return spawn(&c, t, pid);
}

/* ---- in the keeper ------------------------------------------------------------------------- */

/* The library renews the lease meanwhile. There are threads, so the command is spawned, not forked. */
void spawn_on_released(const struct run_options *opts, const struct cmd_tenure *t, int64_t until)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char **argv = opts->on_released, **environment = make_environment(opts, t);
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (opts->to_stderr)
        posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &opts->running->signals.mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    setrlimit(RLIMIT_NOFILE, &opts->running->files); /* it is the end: the keeper needs no more */
    int rc = posix_spawn(&pid, argv[0], &files, &attributes, argv,
                         environment != NULL ? environment : environ);
    if (rc != 0)
        print_error(opts->c, "cannot run %s: %s", argv[2], strerror(rc));
    while (rc == 0 && clock_now() < until && waitpid(pid, NULL, WNOHANG) == 0)
        poll(NULL, 0, WAIT_MS);
    process_tree_kill(0, opts, ", and another may own the mutex beside it");
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free_environment(environment, t);
}
