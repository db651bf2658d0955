/* process_tree.c: all processes that came from this one. The kernel has no call for it, so /proc
 * is read: each process names its parent, and since we are a subreaper, a process that lost its
 * parent names us. A process group would not do: setsid() leaves it.
 *
 * A process is signalled through its folder in /proc, opened before a last look at when it was
 * started: so it cannot be another that got its number meanwhile, and it does not matter whose
 * process namespace /proc counts in. Its parent says nothing any more: that may just have died
 * of the same signal. */
#include "cli/run/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define STAT_BYTES 512
#define STAT_STARTED 20 /* of the fields after NAME */
#define FIRST_ROOM 256
#define DEPTH_MAX 4096
#define KILL_PAUSE_MS 2
#define PAUSE_MOST_MS 1000 /* where nothing can be done but wait */
#define STATUS_BYTES 1024

struct process {
    long pid, parent;
    unsigned long long started; /* in ticks since the machine was */
    bool is_below, is_dead;
};

struct processes {
    struct process *all;
    size_t count, room;
};

static unsigned long long started_of(const char *text)
{
    for (int field = 1; field < STAT_STARTED && text != NULL; field++)
        text = strchr(text + 1, ' ');
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* "PID (NAME) STATE PARENT …", where NAME may hold anything. */
static bool read_stat(int folder, const char *path, struct process *out)
{
    char text[STAT_BYTES];
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    if (after == NULL || strlen(after) < 4)
        return false;
    *out = (struct process){.pid = strtol(text, NULL, 10),
                            .parent = strtol(after + 3, NULL, 10),
                            .started = started_of(after + 1),
                            .is_dead = after[2] == 'Z' || after[2] == 'X'};
    return out->pid > 0;
}

static bool add(struct processes *p, const struct process *one)
{
    if (p->count == p->room) {
        size_t room = p->room > 0 ? 2 * p->room : FIRST_ROOM;
        struct process *all = realloc(p->all, room * sizeof *all);
        if (all == NULL)
            return false;
        p->all = all;
        p->room = room;
    }
    p->all[p->count++] = *one;
    return true;
}

static int compare(const void *a, const void *b)
{
    long x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

static bool read_all(DIR *proc, struct processes *out)
{
    struct process one;
    char path[64];
    rewinddir(proc);
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "%.40s/stat", e->d_name);
        if (read_stat(dirfd(proc), path, &one) && !add(out, &one))
            return false;
    }
    if (out->count == 0)
        return false; /* not even we are in it */
    qsort(out->all, out->count, sizeof *out->all, compare);
    return true;
}

static void mark_below(struct processes *p, long root)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < p->count; i++) {
            struct process *one = &p->all[i], key = {.pid = one->parent};
            if (one->is_below || one->pid == root)
                continue;
            const struct process *parent = bsearch(&key, p->all, p->count, sizeof *p->all, compare);
            if (one->parent == root || (parent != NULL && parent->is_below))
                one->is_below = more = true;
        }
    }
}

/* "Name:\tNAME\n…\nUid:\tREAL\tEFFECTIVE\t…" */
static void read_denied(int folder, struct process_tree_left *left)
{
    char text[STATUS_BYTES];
    int fd = openat(folder, "status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *user = strstr(text, "\nUid:\t"), *name = strchr(text, '\t');
    const char *effective = user != NULL ? strchr(user + sizeof "\nUid:\t" - 1, '\t') : NULL;
    left->user = effective != NULL ? (unsigned)strtoul(effective + 1, NULL, 10) : 0;
    snprintf(left->name, sizeof left->name, "%.*s", name != NULL ? (int)strcspn(name + 1, "\n") : 0,
             name != NULL ? name + 1 : "");
}

static void note_denied(int folder, const struct process *one, struct process_tree_left *left)
{
    if (left == NULL)
        return;
    if (left->denied++ == 0) {
        left->pid = one->pid;
        read_denied(folder, left);
    }
}

/* True if it was there to be signalled. */
static bool send_to(DIR *proc, const struct process *one, int signal,
                    struct process_tree_left *left)
{
    char path[32];
    struct process now;
    snprintf(path, sizeof path, "%ld", one->pid);
    int folder = openat(dirfd(proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false;
    bool same = read_stat(folder, "stat", &now) && now.started == one->started && !now.is_dead;
    int rc = same ? (int)syscall(SYS_pidfd_send_signal, folder, signal, NULL, 0) : 0;
    if (rc != 0 && errno == ENOSYS) /* Linux before 5.1 */
        rc = kill((pid_t)one->pid, signal);
    if (rc != 0 && errno == EPERM)
        note_denied(folder, one, left);
    close(folder);
    return same;
}

int process_tree_signal(int signal, pid_t spare, struct process_tree_left *left)
{
    struct processes all = {0};
    struct process self;
    int count = -1;
    DIR *proc = opendir("/proc");
    if (left != NULL)
        left->count = left->denied = 0;
    if (proc == NULL)
        return -1;
    if (!read_stat(dirfd(proc), "self/stat", &self) || !read_all(proc, &all))
        goto out;
    mark_below(&all, self.pid);
    count = 0;
    for (size_t i = 0; i < all.count; i++) {
        const struct process *one = &all.all[i];
        /* Where /proc counts in another namespace spare is not found, and not spared: it is
         * asked for by a keeper that no longer needs its guard. */
        bool is_spared = one->pid == spare && one->parent == self.pid;
        if (!one->is_below || one->is_dead || is_spared)
            continue;
        if (signal == 0 || send_to(proc, one, signal, left))
            count++;
    }
    if (left != NULL)
        left->count = count;
out:
    free(all.all);
    closedir(proc);
    return count;
}

static bool is_ours(int proc)
{
    struct process one;
    return proc >= 0 && read_stat(proc, "self/stat", &one) && one.pid == getpid();
}

bool process_tree_is_known(void)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_known = is_ours(proc);
    if (proc >= 0)
        close(proc);
    return is_known;
}

/* From child to parent; the limit is for a tree that changes while it is walked. */
bool process_tree_has(pid_t pid)
{
    struct process one;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_known = is_ours(proc), is_below = false;
    long at = pid;
    for (int i = 0; is_known && !is_below && at > 1 && i < DEPTH_MAX; i++) {
        char path[32];
        snprintf(path, sizeof path, "%ld/stat", at);
        if (!read_stat(proc, path, &one))
            break;
        at = one.parent;
        is_below = at == getpid();
    }
    if (proc >= 0)
        close(proc);
    return is_below;
}

void process_tree_reap(pid_t *guard)
{
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
        if (pid == *guard)
            *guard = 0;
    }
}

static void say_denied(const struct process_tree_left *left, const struct run_options *opts,
                       const char *meaning)
{
    char others[48] = "", name[4 * sizeof left->name];
    if (left->denied > 1)
        snprintf(others, sizeof others, " (and %d more)", left->denied - 1);
    print_error(opts->c,
                "mutex '%s' on %s: process %ld (%s) runs as user %u and may not be signalled%s: it "
                "runs on%s; waiting for its end. End it as that user, or as root",
                opts->mutex, opts->c->store, left->pid, show_name(left->name, name, sizeof name),
                left->user, others, meaning);
}

int process_tree_pause_ms(struct process_tree_left *left, const struct run_options *opts,
                          const char *meaning)
{
    bool is_stuck = left->denied > 0 && left->denied == left->count;
    if (!is_stuck || left->pause_ms == 0)
        left->pause_ms = KILL_PAUSE_MS;
    else if (left->pause_ms < PAUSE_MOST_MS)
        left->pause_ms = 2 * left->pause_ms < PAUSE_MOST_MS ? 2 * left->pause_ms : PAUSE_MOST_MS;
    if (is_stuck && !left->is_said)
        say_denied(left, opts, meaning);
    left->is_said = left->is_said || is_stuck;
    return left->pause_ms;
}

void process_tree_kill(pid_t guard, const struct run_options *opts, const char *meaning)
{
    struct process_tree_left left = {0};
    if (guard > 0)
        kill(guard, SIGKILL); /* it takes CMD along, the others become ours */
    for (;;) {
        int count = process_tree_signal(SIGKILL, guard, &left);
        process_tree_reap(&guard);
        if (count <= 0 && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        poll(NULL, 0, process_tree_pause_ms(&left, opts, meaning));
    }
}
