/* peer.c: the test's side of its peers, the private folder and the ledger. */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

/* ---- starting and ending ------------------------------------------------------------------- */

/* For the program that is executed next, on kernels that do so. */
static void enter_time(int64_t offset_s)
{
    char line[64];
    int n = snprintf(line, sizeof line, "boottime %lld 0", (long long)offset_s);
    if (unshare(CLONE_NEWTIME) != 0)
        _exit(EXIT_SKIP);
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(EXIT_SKIP);
    close(fd);
}

static void enter_boot(const char *file)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(file, "/proc/sys/kernel/random/boot_id", NULL, MS_BIND, NULL) != 0)
        _exit(EXIT_SKIP);
}

static void become_user(uid_t user)
{
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
        _exit(EXIT_SKIP);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static _Noreturn void become_peer(const struct peer *p, int in, int out, pid_t test)
{
    char ttl[24], transition[24], renew[24], timeout[24];
    snprintf(ttl, sizeof ttl, "%lld", (long long)p->like.ttl_ms);
    snprintf(transition, sizeof transition, "%lld", (long long)p->like.transition_ms);
    snprintf(renew, sizeof renew, "%lld", (long long)p->like.renew_ms);
    snprintf(timeout, sizeof timeout, "%lld", (long long)p->command_timeout_ms);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != test || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(1);
    if (p->boottime_s != 0)
        enter_time(p->boottime_s);
    if (p->boot_id != NULL)
        enter_boot(p->boot_id);
    if (p->user != 0)
        become_user(p->user);
    execl("/proc/self/exe", "contract", "--peer", p->url, p->mutex, ttl, transition, renew, timeout,
          p->flaky ? "flaky" : "sound", (char *)NULL);
    _exit(127);
}

void peer_start(struct peer *p)
{
    int to[2], from[2];
    CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    signal(SIGPIPE, SIG_IGN);
    pid_t test = getpid();
    p->pid = fork();
    CHECK(p->pid >= 0);
    if (p->pid == 0)
        become_peer(p, to[0], from[1], test);
    close(to[0]);
    close(from[1]);
    p->to = to[1];
    p->from = from[0];
    p->is_ready = false;
}

static int gone(struct peer *p)
{
    int status = -1;
    close(p->to);
    CHECK(waitpid(p->pid, &status, 0) == p->pid);
    close(p->from);
    p->pid = 0;
    return status;
}

void peer_end(struct peer *p)
{
    int status = gone(p);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void peer_kill(struct peer *p)
{
    CHECK(kill(p->pid, SIGKILL) == 0);
    int status = gone(p);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

struct visit {
    const struct peer *peer;
    _Atomic bool is_over;
};

/* Writes to the store as the peer does: some stores wait for the longest lease that they have seen. Its lease is
 * so short that it may be over before a busy machine has answered the release. */
static void *visit_store(void *arg)
{
    struct visit *v = arg;
    simba_client *s;
    simba_locker *l;
    CHECK_CODE(simba_open(v->peer->url, NULL, &s), 0);
    CHECK_CODE(simba_locker_create(s, fresh("visit"), &v->peer->like, &l), 0);
    CHECK_CODE(simba_locker_acquire(l, PATIENCE_MS), 0);
    int rc = simba_locker_release(l);
    CHECK(rc == 0 || rc == SIMBA_ESTORE || rc == SIMBA_ELOST);
    atomic_store(&v->is_over, true);
    simba_locker_destroy(l);
    CHECK_CODE(simba_close(s, PATIENCE_MS), 0);
    return NULL;
}

/* One that is stopped in the middle of a transaction blocks all others of a store in files: then
 * it is let out first. */
void peer_stop(struct peer *p)
{
    for (bool blocks = true; blocks;) {
        struct visit v = {.peer = p};
        CHECK(kill(p->pid, SIGSTOP) == 0);
        pthread_t thread = spawn(visit_store, &v);
        for (int64_t end = simba_now() + 2000; !atomic_load(&v.is_over) && simba_now() < end;)
            nap(1);
        blocks = !atomic_load(&v.is_over);
        if (blocks)
            CHECK(kill(p->pid, SIGCONT) == 0);
        join(thread);
    }
}

/* ---- talking ------------------------------------------------------------------------------- */

/* False: it has ended. */
static bool try_line(struct peer *p, int64_t timeout_ms)
{
    int64_t until = simba_now() + timeout_ms;
    size_t n = 0;
    for (;;) {
        struct pollfd ready = {.fd = p->from, .events = POLLIN};
        int64_t left = timeout_ms == PEER_FOREVER ? -1 : until - simba_now();
        if (poll(&ready, 1, left < -1 ? 0 : (int)left) <= 0)
            suite_fail(__FILE__, __LINE__, "a peer answers in time");
        char c;
        ssize_t got = read(p->from, &c, 1);
        if (got <= 0)
            return false;
        if (c == '\n')
            break;
        if (n + 1 < sizeof p->line)
            p->line[n++] = c;
    }
    p->line[n] = '\0';
    return true;
}

static void get_line(struct peer *p, int64_t timeout_ms)
{
    if (!try_line(p, timeout_ms))
        suite_fail(__FILE__, __LINE__, "a peer answers instead of ending");
}

/* The first line is the result of simba_open. */
static void be_ready(struct peer *p)
{
    if (p->is_ready)
        return;
    get_line(p, PATIENCE_MS);
    if (strcmp(p->line, "0") != 0)
        suite_fail(__FILE__, __LINE__, p->line);
    p->is_ready = true;
}

bool peer_is_up(struct peer *p)
{
    struct pollfd ready = {.fd = p->from, .events = POLLIN};
    CHECK(poll(&ready, 1, PATIENCE_MS) == 1);
    return (ready.revents & POLLIN) != 0;
}

void peer_send(struct peer *p, const char *format, ...)
{
    char line[PEER_LINE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    CHECK(n > 0 && (size_t)n < sizeof line - 1);
    line[n] = '\n';
    CHECK(write(p->to, line, (size_t)n + 1) == n + 1);
}

const char *peer_reply(struct peer *p, int64_t timeout_ms)
{
    be_ready(p);
    get_line(p, timeout_ms);
    return p->line;
}

const char *peer_ask(struct peer *p, const char *command)
{
    peer_send(p, "%s", command);
    return peer_reply(p, PATIENCE_MS);
}

long long peer_number(struct peer *p, const char *command)
{
    return strtoll(peer_ask(p, command), NULL, 10);
}

bool peer_asked(struct peer *p, const char *command, int signal)
{
    char line[PEER_LINE_MAX];
    int n = snprintf(line, sizeof line, "%s\n", command);
    be_ready(p);
    if (write(p->to, line, (size_t)n) == n && try_line(p, PATIENCE_MS))
        return true;
    int status = gone(p);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    return false;
}

uint64_t peer_await_owner(struct peer *p)
{
    long long token;
    AWAIT((token = peer_number(p, "token")) != 0);
    return (uint64_t)token;
}

/* ---- the folder ---------------------------------------------------------------------------- */

static char folder[64];

const char *folder_make(void)
{
    snprintf(folder, sizeof folder, "/tmp/contract.XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    return folder;
}

const char *folder_path(const char *file)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, file);
    return path;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    return remove(path);
}

void folder_remove(void)
{
    CHECK(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0);
}

/* ---- the ledger ---------------------------------------------------------------------------- */

struct ledger *ledger_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct ledger)) == 0)
        map = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

/* Two places are compared in whole milliseconds rounded down: "before" is certain, so is a failure. */
static void compare(const struct tenure *a, const struct tenure *b)
{
    if (a->token == 0 || b->token == 0)
        return; /* its keeper was killed before it had written anything */
    const struct tenure *first = a->token < b->token ? a : b, *second = first == a ? b : a;
    int64_t to = atomic_load(&first->to), from = atomic_load(&second->from);
    if (first->token != second->token && (from == 0 || to <= from))
        return;
    dprintf(STDERR_FILENO, "token %llu was held until %lld, token %llu from %lld\n",
            (unsigned long long)first->token, (long long)to, (unsigned long long)second->token,
            (long long)from);
    _exit(1);
}

void ledger_check(const struct ledger *l)
{
    int n = atomic_load(&l->tenures);
    CHECK(n <= LEDGER_MAX);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            compare(&l->tenure[i], &l->tenure[j]);
}
