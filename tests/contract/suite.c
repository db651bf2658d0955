/* suite.c: checks, names, leases, clients, the referee and the fault switches of the tests. */
#include "suite.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <simba/backend.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *the_url;
static bool the_length;

void suite_set(const char *url, bool is_long)
{
    the_url = url;
    the_length = is_long;
}

const char *suite_url(void)
{
    return the_url;
}

bool suite_is_memory(void)
{
    return strncmp(the_url, "memory:", 7) == 0;
}

bool suite_is_sqlite(void)
{
    return strncmp(the_url, "sqlite:", 7) == 0;
}

bool suite_is_redis(void)
{
    return strncmp(the_url, "redis", 5) == 0;
}

bool suite_is_long(void)
{
    return the_length;
}

/* ---- checks -------------------------------------------------------------------------------- */

static const char *base(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

/* _exit: other threads may be anywhere, and a leak report would only hide the line that matters. */
_Noreturn void suite_fail(const char *file, int line, const char *what)
{
    dprintf(STDERR_FILENO, "%s:%d: not true: %s\n", base(file), line, what);
    _exit(1);
}

_Noreturn void suite_skip(const char *reason)
{
    dprintf(STDERR_FILENO, "%s", reason);
    _exit(EXIT_SKIP);
}

void suite_check_code(const char *file, int line, const char *call, int got, int want)
{
    if (got == want)
        return;
    dprintf(STDERR_FILENO, "%s:%d: %s gave %d (%s), not %d (%s)\n", base(file), line, call, got,
            simba_strerror(got), want, simba_strerror(want));
    if (got < 0)
        dprintf(STDERR_FILENO, "    the error says: %s\n", simba_error_text());
    _exit(1);
}

void check_close_refused(simba_client *s, const char *part)
{
    AWAIT((CHECK_CODE(simba_close(s, 20), SIMBA_ETIMEOUT), 1) &&
          strstr(simba_error_text(), part) != NULL);
}

int acquire_until_refused(simba_locker *l, int64_t timeout_ms)
{
    int code = SIMBA_ETIMEOUT;
    while (code == SIMBA_ETIMEOUT)
        code = simba_locker_acquire(l, timeout_ms);
    return code;
}

void suite_check_refused(const char *file, int line, const char *call, int got, int want,
                         const char *part)
{
    suite_check_code(file, line, call, got, want);
    const char *text = simba_error_text();
    if (text != NULL && *text != '\0' && (part == NULL || strstr(text, part) != NULL))
        return;
    dprintf(STDERR_FILENO, "%s:%d: the error of %s should name \"%s\" but says: %s\n", base(file),
            line, call, part != NULL ? part : "what is wrong", text != NULL ? text : "(null)");
    _exit(1);
}

/* ---- small helpers ------------------------------------------------------------------------- */

void nap(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* The store may remember earlier runs: pid, time and a counter together do not come again. */
const char *fresh(const char *tag)
{
    static char names[64][SIMBA_MUTEX_MAX + 1];
    static atomic_int used;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int n = atomic_fetch_add(&used, 1);
    CHECK(n < 64);
    snprintf(names[n], sizeof names[n], "t%llx.%d.%d.%s", (unsigned long long)now.tv_sec,
             (int)getpid(), n, tag);
    return names[n];
}

struct simba_handle_options lease(int64_t ttl_ms, int64_t transition_ms)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = ttl_ms;
    o.transition_ms = transition_ms;
    o.renew_ms = ttl_ms > 1000 ? 100 : ttl_ms / 5;
    return o;
}

struct simba_handle_options lease_long(void)
{
    return lease(40000, 20000);
}

struct simba_handle_options lease_short(void)
{
    return lease(2000, 1000);
}

struct simba_handle_options lease_steady(void)
{
    return lease(4000, 4000);
}

struct simba_handle_options lease_tiny(void)
{
    return lease(400, 200);
}

struct simba_options suite_options(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    if (!suite_is_memory())
        o.command_timeout_ms = PATIENCE_MS / 2;
    return o;
}

simba_client *client_open(void)
{
    struct simba_options o = suite_options();
    simba_client *s = NULL;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    CHECK(s != NULL);
    return s;
}

simba_client *client_open_quick(int64_t command_timeout_ms)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.command_timeout_ms = command_timeout_ms;
    simba_client *s = NULL;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    return s;
}

void client_close(simba_client *s)
{
    CHECK_OK(simba_close(s, PATIENCE_MS));
}

void client_poll(simba_client *s)
{
    struct pollfd fd = {.fd = simba_poll_fd(s), .events = POLLIN};
    int64_t wait = simba_poll_timeout(s);
    CHECK(poll(&fd, 1, wait < 0 || wait > 1000 ? 1000 : (int)wait) >= 0);
    CHECK_OK(simba_poll(s));
}

/* ---- what the store has answered ------------------------------------------------------------- */

/* The first one only: events come one at a time. */
static void note_time(_Atomic int64_t *at, const struct simba_event *e)
{
    if (atomic_load(at) == 0)
        atomic_store(at, e->began_us + e->duration_us);
}

void hear(void *heard, const struct simba_event *e)
{
    struct heard *h = heard;
    if (e->kind != SIMBA_EVENT_EXCHANGE || strcmp(e->name, "contend") != 0 ||
        e->began_us < atomic_load(&h->since_us))
        return;
    if (e->code == SIMBA_EHELD)
        note_time(&h->held_us, e);
    note_time(&h->any_us, e);
}

simba_client *client_open_hearing(struct heard *heard)
{
    struct simba_options o = suite_options();
    simba_client *s = NULL;
    o.trace = hear;
    o.trace_data = heard;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    return s;
}

void hear_anew(struct heard *heard)
{
    atomic_store(&heard->since_us, simba_now() * 1000);
    atomic_store(&heard->any_us, 0);
    atomic_store(&heard->held_us, 0);
}

void check_in_vain(struct heard *heard, int code, int64_t timeout_ms, simba_client *polled)
{
    int64_t ended = (simba_now() + 1) * 1000;
    _Atomic int64_t *awaited = code == SIMBA_ETIMEOUT ? &heard->held_us : &heard->any_us;
    for (int64_t until = simba_now() + PATIENCE_MS; atomic_load(awaited) == 0;) {
        CHECK(simba_now() < until);
        if (polled != NULL)
            client_poll(polled);
        else
            nap(1);
    }
    int64_t held = atomic_load(&heard->held_us), after = held - atomic_load(&heard->since_us);
    CHECK(code == SIMBA_ETIMEOUT || code == SIMBA_ESTORE);
    CHECK(code == SIMBA_ESTORE || held <= ended);
    CHECK(code == SIMBA_ETIMEOUT || held == 0 || after >= timeout_ms * 1000 / 2);
}

/* ---- ports --------------------------------------------------------------------------------- */

/* Below what the system gives to connections (32768 and above, as it comes), and low enough for the
 * bus of a cluster, ten thousand above it. */
#define PORT_FIRST 10240
#define PORTS 10000

static int bind_port(int type, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The same number of UDP, which nobody uses here, is held until the process ends: so that another
 * test does not draw it. */
int port_draw(void)
{
    for (int tries = 0; tries < 1000; tries++) {
        unsigned random;
        CHECK(getrandom(&random, sizeof random, 0) == sizeof random);
        int port = PORT_FIRST + (int)(random % PORTS), held = bind_port(SOCK_DGRAM, port);
        int fd = held >= 0 ? bind_port(SOCK_STREAM, port) : -1;
        if (fd >= 0) {
            close(fd);
            return port;
        }
        if (held >= 0)
            close(held);
    }
    suite_fail(__FILE__, __LINE__, "a port is free");
}

int count_threads(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], is[32] = "";
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "re");
        if (comm != NULL && fgets(is, sizeof is, comm) != NULL)
            is[strcspn(is, "\n")] = '\0';
        if (comm != NULL) /* else it has ended meanwhile */
            fclose(comm);
        count += comm != NULL && (name == NULL || strcmp(is, name) == 0);
    }
    closedir(tasks);
    return count;
}

pthread_t spawn(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}

void join(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- the referee --------------------------------------------------------------------------- */

static void compare(const struct referee *r, int i)
{
    const simba_contender *a = r->probe[i]->c;
    uint64_t token = simba_contender_token(a);
    if (token == 0)
        return;
    for (int j = 0; j < r->probes; j++) {
        if (j == i || !simba_contender_is_owner(r->probe[j]->c))
            continue;
        if (!simba_contender_owns(a, token))
            return;
        dprintf(STDERR_FILENO, "two owners at once: %s with token %llu, and %s\n",
                simba_contender_id(a), (unsigned long long)token,
                simba_contender_id(r->probe[j]->c));
        _exit(1);
    }
}

static void *referee_run(void *arg)
{
    struct referee *r = arg;
    const struct timespec pause = {.tv_nsec = 50000}; /* the tests run on few cores */
    while (!atomic_load(&r->stop)) {
        for (int i = 0; i < r->probes; i++)
            compare(r, i);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

void referee_begin(struct referee *r)
{
    CHECK(r->probes <= REFEREE_MAX);
    atomic_store(&r->stop, false);
    r->thread = spawn(referee_run, r);
}

void referee_end(struct referee *r)
{
    atomic_store(&r->stop, true);
    join(r->thread);
}

/* ---- the fault switches -------------------------------------------------------------------- */

void store_set(enum fault fault)
{
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    f.hang = fault == HANG;
    f.fail = fault == FAIL;
    f.lose_answer = fault == LOSE_ANSWER ? 100 : 0;
    f.lose_hint = fault == LOSE_HINT ? 100 : 0;
    f.duplicate = fault == DUPLICATE ? 100 : 0;
    CHECK_OK(simba_memory_set_faults(suite_url(), &f));
}

void store_delay(int64_t ms)
{
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    f.delay_ms = ms;
    CHECK_OK(simba_memory_set_faults(suite_url(), &f));
}

void store_evict(const char *mutex, bool forced)
{
    simba_client *other = client_open();
    CHECK_OK(simba_evict(other, mutex, NULL, forced, PATIENCE_MS));
    client_close(other);
}
