/* peer_main.c: what a peer does, in its own process. */
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "peer.h"
#include "suite.h"

static struct {
    const char *mutex;
    struct simba_handle_options like;
    simba_client *s;
    struct probe probe;
    bool has_probe;
    simba_locker *locker;
    simba_scheduler *scheduler;
    atomic_int runs;
    struct tenure *shift; /* of the scheduler's last tenure */
    atomic_bool stop;     /* the keeper of the ledger */
    struct ledger *ledger;
    pthread_t keeper;
    bool has_keeper;
    pthread_mutex_t lock; /* for the log */
    char log[PEER_LINE_MAX - 1];
} me = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reply(const char *text)
{
    char line[PEER_LINE_MAX];
    int n = snprintf(line, sizeof line, "%s", text);
    n = n < (int)sizeof line - 1 ? n : (int)sizeof line - 2;
    for (int i = 0; i < n; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    line[n] = '\n';
    CHECK(write(STDOUT_FILENO, line, (size_t)n + 1) == n + 1);
}

static void reply_number(long long number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", number);
    reply(text);
}

static void on_log(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level > SIMBA_LOG_WARN)
        return;
    pthread_mutex_lock(&me.lock);
    size_t n = strlen(me.log);
    snprintf(me.log + n, sizeof me.log - n, "%s; ", line);
    pthread_mutex_unlock(&me.lock);
}

/* ---- the ledger ---------------------------------------------------------------------------- */

static void follow(const simba_contender *c, uint64_t token)
{
    int index = atomic_fetch_add(&me.ledger->tenures, 1);
    CHECK(index < LEDGER_MAX);
    struct tenure *t = &me.ledger->tenure[index];
    t->token = token;
    for (bool is_first = true;; is_first = false) {
        int64_t before = simba_now();
        if (!simba_contender_owns(c, token))
            return;
        if (is_first)
            atomic_store(&t->from, simba_now());
        else
            atomic_store(&t->to, before);
        usleep(50);
    }
}

static void *keep_ledger(void *arg)
{
    (void)arg;
    while (!atomic_load(&me.stop)) {
        uint64_t token = simba_contender_token(me.probe.c);
        if (token != 0)
            follow(me.probe.c, token);
        usleep(200);
    }
    return NULL;
}

static int begin_ledger(const char *path)
{
    me.ledger = ledger_map(path);
    if (me.ledger == NULL || !me.has_probe)
        return -1;
    me.keeper = spawn(keep_ledger, NULL);
    me.has_keeper = true;
    return 0;
}

/* ---- the scheduler ------------------------------------------------------------------------- */

/* From the begin of a tenure's first run to the end of its last. */
static int work(void *data, const simba_run *run)
{
    (void)data;
    int64_t from = simba_now();
    if (me.shift == NULL || me.shift->token != simba_run_token(run)) {
        int index = atomic_fetch_add(&me.ledger->tenures, 1);
        CHECK(index < LEDGER_MAX);
        me.shift = &me.ledger->tenure[index];
        me.shift->token = simba_run_token(run);
        atomic_store(&me.shift->from, from);
    }
    usleep(1000);
    atomic_store(&me.shift->to, simba_now());
    atomic_fetch_add(&me.runs, 1);
    return 0;
}

static int begin_work(const char *path)
{
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    when.period_ms = 2;
    if (me.ledger == NULL)
        me.ledger = ledger_map(path);
    CHECK(me.ledger != NULL);
    if (me.scheduler == NULL)
        CHECK_OK(simba_scheduler_create(me.s, me.mutex, &when, work, &me.like, &me.scheduler));
    return simba_contender_start(simba_scheduler_contender(me.scheduler));
}

static int end_work(void)
{
    simba_contender *c = simba_scheduler_contender(me.scheduler);
    int code = simba_contender_stop(c);
    return code != 0 ? code : simba_contender_wait(c, SIMBA_INITIAL, PATIENCE_MS);
}

/* ---- commands ------------------------------------------------------------------------------ */

static int start(void)
{
    if (!me.has_probe)
        probe_create(&me.probe, me.s, me.mutex, &me.like);
    me.has_probe = true;
    return simba_contender_start(me.probe.c);
}

static int stop(void)
{
    int code = simba_contender_stop(me.probe.c);
    return code != 0 ? code : simba_contender_wait(me.probe.c, SIMBA_INITIAL, PATIENCE_MS);
}

static int acquire(int64_t timeout_ms)
{
    if (me.locker == NULL)
        CHECK_OK(simba_locker_create(me.s, me.mutex, &me.like, &me.locker));
    return simba_locker_acquire(me.locker, timeout_ms);
}

static void read_owner(void)
{
    char text[PEER_LINE_MAX];
    struct simba_owner o;
    int code = simba_read(me.s, me.mutex, PATIENCE_MS, &o);
    if (code == 0)
        snprintf(text, sizeof text, "0 %llu %lld", (unsigned long long)o.token,
                 o.token == 0 ? 0 : (long long)(o.transition_at - simba_now()));
    else
        snprintf(text, sizeof text, "%d 0 0 %.2000s", code, simba_error_text());
    reply(text);
}

/* Adds one to the number in the file and leaves the token there: as plainly as can be, since
 * nothing but the lock guards it. */
static void count_one(const char *path, uint64_t token)
{
    unsigned long long n = 0, before = 0;
    char text[64] = "";
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && pread(fd, text, sizeof text - 1, 0) >= 0);
    if (text[0] != '\0')
        CHECK(sscanf(text, "%llu %llu", &n, &before) == 2);
    CHECK(token > before);
    int length = snprintf(text, sizeof text, "%20llu %20llu\n", n + 1, (unsigned long long)token);
    CHECK(pwrite(fd, text, (size_t)length, 0) == length);
    close(fd);
}

static int count(const char *args)
{
    char path[128];
    int cycles;
    CHECK(sscanf(args, "%d %127s", &cycles, path) == 2);
    for (int i = 0; i < cycles; i++) {
        CHECK_OK(acquire(SIMBA_FOREVER));
        count_one(path, simba_locker_token(me.locker));
        CHECK_OK(simba_locker_release(me.locker));
    }
    return 0;
}

/* It reads our input, whose end is the end of the test. We are killed, so nothing else comes. */
static int make_child(void)
{
    pid_t child = fork();
    char c;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        while (read(STDIN_FILENO, &c, 1) > 0)
            ;
        _exit(0);
    }
    return (int)child;
}

static void reply_log(void)
{
    pthread_mutex_lock(&me.lock);
    reply(me.log);
    pthread_mutex_unlock(&me.lock);
}

static void obey(char *line)
{
    char *args = line + strcspn(line, " ");
    if (*args != '\0')
        *args++ = '\0';
    if (strcmp(line, "start") == 0)
        reply_number(start());
    else if (strcmp(line, "wait") == 0)
        reply_number(simba_contender_wait(me.probe.c, SIMBA_RUNNING, PATIENCE_MS));
    else if (strcmp(line, "stop") == 0)
        reply_number(stop());
    else if (strcmp(line, "token") == 0)
        reply_number((long long)simba_contender_token(me.probe.c));
    else if (strcmp(line, "owns") == 0)
        reply_number(simba_contender_owns(me.probe.c, strtoull(args, NULL, 10)));
    else if (strcmp(line, "acquire") == 0)
        reply_number(acquire(strtoll(args, NULL, 10)));
    else if (strcmp(line, "release") == 0)
        reply_number(simba_locker_release(me.locker));
    else if (strcmp(line, "held") == 0)
        reply_number((long long)simba_locker_token(me.locker));
    else if (strcmp(line, "read") == 0)
        read_owner();
    else if (strcmp(line, "count") == 0)
        reply_number(count(args));
    else if (strcmp(line, "ledger") == 0)
        reply_number(begin_ledger(args));
    else if (strcmp(line, "work") == 0)
        reply_number(begin_work(args));
    else if (strcmp(line, "rest") == 0)
        reply_number(end_work());
    else if (strcmp(line, "runs") == 0)
        reply_number(atomic_load(&me.runs));
    else if (strcmp(line, "fork") == 0)
        reply_number(make_child());
    else if (strcmp(line, "now") == 0)
        reply_number(simba_now());
    else if (strcmp(line, "log") == 0)
        reply_log();
    else if (strcmp(line, "fail") == 0)
        reply_number(flaky_set(args) ? 0 : -1);
    else
        suite_fail(__FILE__, __LINE__, line);
}

/* URL MUTEX TTL TRANSITION RENEW COMMAND_TIMEOUT flaky|sound */
int peer_main(int argc, char **argv)
{
    CHECK(argc == 7);
    signal(SIGBUS, SIG_DFL); /* seen by the test, also with a sanitizer */
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.log = on_log;
    me.mutex = argv[1];
    me.like = lease(strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
    me.like.renew_ms = strtoll(argv[4], NULL, 10);
    if (strcmp(argv[5], "0") != 0)
        o.command_timeout_ms = strtoll(argv[5], NULL, 10);
    if (strcmp(argv[6], "flaky") == 0)
        flaky_register();
    suite_set(argv[0], false);
    int code = simba_open(argv[0], &o, &me.s);
    reply(code == 0 ? "0" : simba_error_text());
    if (code != 0)
        return 1;
    FILE *in = fdopen(STDIN_FILENO, "r");
    static char line[PEER_LINE_MAX];
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        obey(line);
    }
    atomic_store(&me.stop, true);
    if (me.has_probe)
        simba_contender_stop(me.probe.c);
    if (me.has_keeper)
        join(me.keeper);
    client_close(me.s);
    return 0;
}
