/* server.c: see server.h. A fault goes through its states as its commands end:
 *
 *   IDLE -> BEGINNING -> LASTING -> ENDING -> IDLE
 *
 * What needs no command passes its state at once. An end that is asked for while the beginning
 * still runs comes after it. */
#include "lab/torture/server.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/torture/history.h"

#define POLL_MS 5
#define COMMAND_MAX (60000 * NS_PER_MS)

enum server_state { SERVER_IDLE, SERVER_BEGINNING, SERVER_LASTING, SERVER_ENDING };

struct torture_server {
    const char *command[FAULT_KINDS]; /* NULL: none */
    const char *pid_file, *start;
    pid_t pid; /* 0: not known */
    int pidfd; /* that very process: its number may be another's when it has ended */
    fault_set faults;
    enum server_state state;
    enum fault fault;
    bool is_to_end;
    int64_t since;
    pid_t child; /* the command that runs; 0: none */
    int64_t child_since;
    int output; /* what it prints */
    char error[256];
};

static void note_error(struct torture_server *s, const char *format, ...)
{
    va_list args;
    if (s->error[0] != '\0')
        return;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(s->error, sizeof s->error, format, args);
    va_end(args);
}

/* ---- options ------------------------------------------------------------------------------- */

static bool add_command(struct torture_server *s, const char *text, char *why, size_t why_size)
{
    char name[64];
    const char *equals = strchr(text, '=');
    fault_set one = 0;
    if (equals != NULL && (size_t)(equals - text) < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        for (int i = 0; i < FAULT_KINDS; i++) {
            if (strcmp(name, fault_names[i]) == 0 &&
                fault_group_of((enum fault)i) == GROUP_SERVER) {
                s->command[i] = equals + 1;
                one = FAULT_BIT(i);
            }
        }
    }
    s->faults |= one;
    if (one == 0)
        snprintf(why, why_size, "'%s' is not NAME=CMD with the name of a fault of the server",
                 text);
    return one != 0;
}

static void forget_process(struct torture_server *s)
{
    if (s->pid != 0)
        close(s->pidfd);
    s->pid = 0;
}

/* One that we know already tenures the same process. */
static void know_process(struct torture_server *s, long pid)
{
    if (pid == s->pid)
        return;
    forget_process(s);
    s->pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
    s->pid = s->pidfd >= 0 ? (pid_t)pid : 0;
}

static void read_pid_file(struct torture_server *s)
{
    long pid = 0;
    FILE *file = fopen(s->pid_file, "re");
    if (file == NULL || fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    if (file != NULL)
        fclose(file);
    know_process(s, pid);
}

/* Number 0 only asks whether it is there, and ours to signal. */
static bool send_signal(struct torture_server *s, int number)
{
    if (s->pid_file != NULL)
        read_pid_file(s);
    return s->pid != 0 && syscall(SYS_pidfd_send_signal, s->pidfd, number, NULL, 0) == 0;
}

static bool set_pid(struct torture_server *s, const char *text, char *why, size_t why_size)
{
    char *end;
    errno = 0;
    long pid = strtol(text, &end, 10);
    bool is_number = *text != '\0' && *end == '\0';
    if (is_number)
        know_process(s, errno == 0 && pid <= INT_MAX ? pid : 0);
    else
        s->pid_file = text;
    if (send_signal(s, 0))
        return true;
    snprintf(why, why_size,
             is_number ? "there is no process %s, or it is not ours to stop"
                       : "%s does not hold the number of a process of ours",
             text);
    return false;
}

struct torture_server *server_open(const struct server_options *o, char *why, size_t why_size)
{
    struct torture_server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    bool ok = o->pid == NULL || set_pid(s, o->pid, why, why_size);
    s->start = o->start;
    if (ok && o->start != NULL && o->pid == NULL) {
        snprintf(why, why_size, "a command that starts the server needs its pid, too");
        ok = false;
    }
    if (o->pid != NULL)
        s->faults |= FAULT_BIT(FAULT_SERVER_FREEZE);
    if (o->start != NULL)
        s->faults |= FAULT_BIT(FAULT_SERVER_KILL);
    for (size_t i = 0; ok && i < o->command_count; i++)
        ok = add_command(s, o->commands[i], why, why_size);
    if (ok)
        return s;
    forget_process(s);
    free(s);
    return NULL;
}

fault_set server_faults(const struct torture_server *s)
{
    return s->faults;
}

const char *server_error(const struct torture_server *s)
{
    return s->error;
}

/* ---- commands ------------------------------------------------------------------------------ */

static _Noreturn void become_command(const char *command, const char *argument, int output)
{
    char *script = NULL;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(output, STDOUT_FILENO);
    if (asprintf(&script, "%s \"$@\"", command) >= 0)
        execl("/bin/sh", "sh", "-c", script, "sh", argument, (char *)NULL);
    _exit(127);
}

/* Runs CMD ARGUMENT (NULL: none). Its output goes into a file without a name, which may be kept
 * open by what it leaves behind. */
static bool run(struct torture_server *s, const char *command, const char *argument)
{
    assert(s->child == 0);
    s->output = memfd_create("output", MFD_CLOEXEC);
    s->child_since = clock_now();
    s->child = s->output >= 0 ? fork() : -1;
    if (s->child == 0)
        become_command(command, argument, s->output);
    if (s->child > 0)
        return true;
    note_error(s, "'%s' cannot be run: %s", command, strerror(errno));
    s->child = 0;
    if (s->output >= 0)
        close(s->output);
    return false;
}

/* The first line that CMD printed is the pid, where no file holds it. A file that still holds the
 * last one is old. */
static void take_pid(struct torture_server *s)
{
    char text[32] = "";
    pid_t before = s->pid;
    if (s->pid_file == NULL)
        know_process(s,
                     pread(s->output, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0);
    if (send_signal(s, 0) && s->pid != before)
        return;
    forget_process(s);
    note_error(s, "'%s' did not report the pid of the server", s->start);
}

/* By its pid; the owner may also have a command for that fault. */
static bool is_started_again(const struct torture_server *s)
{
    return s->fault == FAULT_SERVER_KILL && s->command[s->fault] == NULL;
}

static const char *current_command(const struct torture_server *s)
{
    return is_started_again(s) ? s->start : s->command[s->fault];
}

/* True: no command runs any more. */
static bool command_has_ended(struct torture_server *s)
{
    int status = 0;
    if (s->child == 0)
        return true;
    pid_t pid = waitpid(s->child, &status, WNOHANG);
    if (pid == 0 && clock_now() - s->child_since > COMMAND_MAX) {
        note_error(s, "'%s' does not end", current_command(s));
        kill(s->child, SIGKILL);
    }
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    s->child = 0;
    if (status != 0)
        note_error(s, "'%s' failed with status %d", current_command(s),
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    else if (is_started_again(s))
        take_pid(s);
    close(s->output);
    return true;
}

/* ---- faults -------------------------------------------------------------------------------- */

static bool signal_server(struct torture_server *s, int signal)
{
    if (send_signal(s, signal))
        return true;
    note_error(s, "the server's process is gone");
    return false;
}

bool server_begin(struct torture_server *s, enum fault fault)
{
    bool ok;
    assert((s->faults & FAULT_BIT(fault)) != 0);
    if (s->state != SERVER_IDLE)
        return false;
    s->fault = fault;
    s->since = clock_now();
    s->is_to_end = false;
    if (s->command[fault] != NULL)
        ok = run(s, s->command[fault], "begin");
    else
        ok = signal_server(s, fault == FAULT_SERVER_KILL ? SIGKILL : SIGSTOP);
    if (ok)
        s->state = s->child != 0 ? SERVER_BEGINNING : SERVER_LASTING;
    return ok;
}

static void begin_end(struct torture_server *s)
{
    s->state = SERVER_ENDING;
    if (s->command[s->fault] != NULL)
        run(s, s->command[s->fault], "end");
    else if (is_started_again(s))
        run(s, s->start, NULL);
    else
        signal_server(s, SIGCONT);
}

void server_end(struct torture_server *s)
{
    s->is_to_end = s->state != SERVER_IDLE;
    if (s->state == SERVER_LASTING)
        begin_end(s);
}

bool server_is_busy(const struct torture_server *s)
{
    return s->state != SERVER_IDLE;
}

bool server_poll(struct torture_server *s, struct entry *out)
{
    if (s->state == SERVER_BEGINNING && command_has_ended(s)) {
        s->state = SERVER_LASTING;
        if (s->is_to_end)
            begin_end(s);
    }
    if (s->state != SERVER_ENDING || !command_has_ended(s))
        return false;
    s->state = SERVER_IDLE;
    *out = (struct entry){.kind = ENTRY_FAULT,
                          .detail = (uint8_t)s->fault,
                          .worker = FAULT_ON_ALL,
                          .before = s->since,
                          .after = clock_now()};
    return true;
}

bool server_settle(struct torture_server *s, struct entry *out)
{
    bool is_over = false;
    server_end(s);
    while (server_is_busy(s) && !(is_over = server_poll(s, out)))
        poll(NULL, 0, POLL_MS);
    return is_over;
}

void server_close(struct torture_server *s)
{
    struct entry ignored;
    server_settle(s, &ignored);
    forget_process(s);
    free(s);
}
