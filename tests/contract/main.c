/* main.c: runs the contract suite against a store.
 *
 * Every test runs in a process of its own, so that a crash or a hang is one failed test and the
 * memory: store starts empty. The runner stays single-threaded: it forks, collects exits and kills,
 * by pid, what outlives the watchdog. A child's output goes to an unlinked file and is shown only
 * if it failed. */
#include "suite.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define JOBS_MAX 64
#define OUTPUT_MAX 16384 /* bytes of a failed test's output that are shown */

/* What is expected of a store, for whoever sees a test of it fail; NULL: of one of ours. */
static const struct {
    const struct test *tests;
    const char *expected;
} groups[] = {
    {jvm_kit_tests, "what the JVM original promises of contenders: acquire, release, hand over"},
    {token_tests,
     "CONTEND gives each tenure a token above all earlier ones of its mutex, and RENEW keeps it"},
    {callback_tests,
     "callbacks alternate and do not overlap, whatever the store answers, and when"},
    {handover_tests,
     "after a RELEASE the next CONTEND is granted; until then RENEW keeps the lease"},
    {executor_tests, "callbacks run where the user wants; renewals go on meanwhile"},
    {status_tests,
     "a contender starts and stops in order; the first answer of the store makes it RUNNING"},
    {stop_tests, "a stop releases what is owned, and LEAVE is answered"},
    {close_tests, "close() answers what is open with SIMBA_ECANCELED, calls closed() once, and "
                  "leaves no tenure"},
    {exclusion_tests,
     "CONTEND grants only what is free or has expired; RENEW and RELEASE compare id and token"},
    {fault_tests, "an owner ends by its own clock when answers are late, lost, doubled or wrong"},
    {locker_tests,
     "a lock is granted to one at a time, RENEWed while it is held, and free after RELEASE"},
    {locker_fault_tests,
     "a locker tells that its lease was lost; RENEW and RELEASE say SIMBA_ELOST then"},
    {locker_async_tests, "locks without waiting: many at once, each with exactly one result"},
    {locker_async_order_tests,
     "a result comes before every other callback, and nothing is RELEASEd while it is told"},
    {read_tests,
     "READ names the owner, its token and how long its lease lasts, on the store's clock"},
    {fork_tests, "a child owns nothing, and the parent's RENEW and RELEASE still work"},
    {name_tests,
     "every valid name of a mutex is one mutex of its own; others are refused with words"},
    {option_tests, "the lease is ttl + transition long, as CONTEND and RENEW ask for it"},
    {observer_tests,
     "READ shows each change of the owner; a store that hints, hints observers, too"},
    {list_tests,
     "LIST finds each mutex that is owned; EVICT compares token and id, and ends that tenure only"},
    {note_tests, "PUBLISH writes only if RENEW would succeed, in one step; READ and LIST show it"},
    {embed_tests,
     "the store works without a thread of the library: it waits only by the loop it was given"},
    {metrics_tests, "requests, answers and hints are counted; a hint wakes one of those who wait"},
    {trace_tests, "each exchange, tenure, callback and run is one event, in order, with its times"},
    {progress_tests, "a tenure that nobody RENEWs any more is free when its lease has ended"},
    {at_least_tests, "a tenure is RENEWed after its user's stop, and RELEASEd when that is due"},
    {scheduler_tests, "scheduled work runs only on the owner, and ends before its RELEASE"},
    {scheduler_work_tests, "work that hangs or fails holds up its own mutex only"},
    {scheduler_ticks_tests, "ticks are claimed in the note, and the next leader goes on from them"},
    {scheduler_thread_tests, "works share threads, and wake up when their tenure ends"},
    {thread_end_tests, "a callback or work that ends its thread ends nothing else"},
    {process_tests,
     "processes that are killed or stopped: their lease expires on the store's clock, not before"},
    {sqlite_fault_tests, NULL},
    {sqlite_waking_tests, NULL},
    {sqlite_refused_path_tests, NULL},
    {sqlite_file_tests, NULL},
    {sqlite_damage_tests, NULL},
    {sqlite_unreadable_tests, NULL},
#ifdef CONTRACT_REDIS
    {redis_fault_tests, NULL},
    {redis_forget_tests, NULL},
    {redis_fact_tests, NULL},
    {redis_sentinel_tests, NULL},
    {redis_queue_tests, NULL},
    {redis_reserved_tests, NULL},
    {redis_module_tests, NULL},
    {redis_rights_tests, NULL},
#endif
#ifdef CONTRACT_SQL
    {sql_tests, NULL},
    {sql_table_tests, NULL},
    {sql_clock_tests, NULL},
    {sql_push_tests, NULL},
    {sql_queue_tests, NULL},
    {sql_pass_tests, NULL},
    {sql_module_tests, NULL},
    {sql_safety_tests, NULL},
    {sql_job_tests, NULL},
    {sql_note_tests, NULL},
#endif
#ifdef CONTRACT_ZOOKEEPER
    {zookeeper_fault_tests, NULL},
    {zookeeper_ensemble_tests, NULL},
    {zookeeper_doctor_tests, NULL},
    {zookeeper_absurd_tests, NULL},
#endif
};

#ifdef CONTRACT_ZOOKEEPER
/* The client library writes what it would log into memory that all threads share, and does not read
 * it. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libzookeeper_st.so\n";
}
#endif

struct settings {
    const char *url, *only;
    int jobs, repeat, limit_s;
    bool list, is_long;
};

struct job {
    const struct test *test;
    pid_t pid; /* 0: the place is free */
    int number;
    int64_t began;
    bool killed;
    const char *expected;
    FILE *output;
};

struct tally {
    int number, passed, failed, skipped, left_out;
};

static void usage(FILE *to)
{
    fputs("usage: contract [-j N] [--only PATTERN] [--list] [--long] [--repeat N] [--timeout S] "
          "[URL]\n"
          "Runs the contract suite against the store at URL (default memory:contract).\n"
          "  -j N            at most N tests at once (default 4)\n"
          "  --only PATTERN  tests whose name matches the pattern or contains it\n"
          "  --list          show the names and stop\n"
          "  --long          some tests for half a minute instead of seconds\n"
          "  --repeat N      every test N times\n"
          "  --timeout S     the watchdog's limit for one test (default 60)\n",
          to);
}

static int number(const char *text, int least, int most)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && n >= least && n <= most)
        return (int)n;
    fprintf(stderr, "contract: '%s' is not a number from %d to %d\n", text, least, most);
    exit(64);
}

static struct settings parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"jobs", required_argument, NULL, 'j'},   {"only", required_argument, NULL, 'o'},
        {"list", no_argument, NULL, 'l'},         {"long", no_argument, NULL, 'L'},
        {"repeat", required_argument, NULL, 'r'}, {"timeout", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    struct settings s = {.url = "memory:contract", .jobs = 4, .repeat = 1, .limit_s = 60};
    for (int c; (c = getopt_long(argc, argv, "j:h", options, NULL)) != -1;) {
        switch (c) {
        case 'j':
            s.jobs = number(optarg, 1, JOBS_MAX);
            break;
        case 'o':
            s.only = optarg;
            break;
        case 'l':
            s.list = true;
            break;
        case 'L':
            s.is_long = true;
            break;
        case 'r':
            s.repeat = number(optarg, 1, 1000000);
            break;
        case 't':
            s.limit_s = number(optarg, 1, 3600);
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(64);
        }
    }
    if (getenv("SIMBA_TCK_URL") != NULL) /* from simba tck: argv is no place for a password */
        s.url = getenv("SIMBA_TCK_URL");
    if (optind < argc)
        s.url = argv[optind++];
    if (optind < argc) {
        usage(stderr);
        exit(64);
    }
    return s;
}

static bool is_wanted(const struct settings *s, const struct test *t)
{
    return s->only == NULL || fnmatch(s->only, t->name, 0) == 0 || strstr(t->name, s->only) != NULL;
}

/* ---- one test ------------------------------------------------------------------------------ */

/* In the example's store (examples/backend.c) a process that a test stops may hold up all others of
 * the folder: so each test has a folder of its own. */
static const char *url_of_test(const char *url, int number)
{
    static char own[1024], folder[1000];
    size_t n = strcspn(url, "?");
    if (strncmp(url, "dir:", 4) != 0 || strlen(url) > sizeof folder - 16)
        return url;
    snprintf(folder, sizeof folder, "%.*s/test%d", (int)(n - 4), url + 4, number);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return url;
    snprintf(own, sizeof own, "dir:%s%s", folder, url + n);
    return own;
}

/* A group of its own, so that what a test forks goes with it; dies with the runner. exit() and not
 * _exit(), so that a leak fails the test under a sanitizer. */
static _Noreturn void child(const struct settings *s, const struct job *j, pid_t runner)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner)
        _exit(1);
    dup2(fileno(j->output), STDOUT_FILENO);
    dup2(fileno(j->output), STDERR_FILENO);
    suite_set(url_of_test(s->url, j->number), s->is_long);
    j->test->run();
    exit(0);
}

static void launch(const struct settings *s, struct job *j, const struct test *t, int n,
                   const char *expected)
{
    *j = (struct job){.test = t, .number = n, .expected = expected};
    j->began = simba_now();
    j->output = tmpfile();
    if (j->output == NULL) {
        perror("contract: a file for the output");
        exit(1);
    }
    fflush(stdout);
    pid_t runner = getpid();
    j->pid = fork();
    if (j->pid < 0) {
        perror("contract: fork");
        exit(1);
    }
    if (j->pid == 0)
        child(s, j, runner);
    setpgid(j->pid, j->pid); /* whoever comes first; the other fails harmlessly */
}

static void show_output(FILE *output)
{
    static char text[OUTPUT_MAX + 1];
    rewind(output);
    size_t n = fread(text, 1, OUTPUT_MAX, output);
    text[n] = '\0';
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        printf("         %s\n", line);
    if (n == OUTPUT_MAX)
        printf("         ... (cut here)\n");
}

static void finish_skipped(struct job *j, struct tally *sum)
{
    char reason[256];
    rewind(j->output);
    reason[fread(reason, 1, sizeof reason - 1, j->output)] = '\0';
    printf("skip %3d %s: %s\n", j->number, j->test->name, reason);
    sum->skipped++;
    fclose(j->output);
    j->pid = 0;
}

static void finish(const struct settings *s, struct job *j, int status, struct tally *sum)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
        finish_skipped(j, sum);
        return;
    }
    double seconds = (double)(simba_now() - j->began) / 1000;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf("%s %3d %s (%.2f s)", ok ? "ok  " : "FAIL", j->number, j->test->name, seconds);
    if (j->killed)
        printf(": killed by the watchdog after %d s", s->limit_s);
    else if (WIFSIGNALED(status))
        printf(": %s", strsignal(WTERMSIG(status)));
    else if (!ok)
        printf(": exit %d", WEXITSTATUS(status));
    printf("\n");
    if (!ok)
        show_output(j->output);
    if (!ok && j->expected != NULL)
        printf("         expected of the store: %s\n", j->expected);
    fflush(stdout);
    fclose(j->output);
    *(ok ? &sum->passed : &sum->failed) += 1;
    j->pid = 0;
}

/* Waits until a place is free, or with all until every place is. */
static struct job *collect(const struct settings *s, struct job *jobs, struct tally *sum, bool all)
{
    for (;; nap(5)) {
        struct job *free_slot = NULL;
        int busy = 0;
        for (int i = 0; i < s->jobs; i++) {
            struct job *j = &jobs[i];
            int status;
            if (j->pid != 0 && waitpid(j->pid, &status, WNOHANG) == j->pid)
                finish(s, j, status, sum);
            if (j->pid == 0) {
                free_slot = j;
                continue;
            }
            busy++;
            int64_t limit = s->limit_s + (s->is_long ? j->test->extra_s : 0);
            if (!j->killed && simba_now() - j->began > limit * 1000) {
                j->killed = true;
                kill(-j->pid, SIGKILL);
            }
        }
        if (all ? busy == 0 : free_slot != NULL)
            return free_slot;
    }
}

/* ---- all tests ----------------------------------------------------------------------------- */

static bool is_at(const char *scheme)
{
    return strncmp(suite_url(), scheme, strlen(scheme)) == 0;
}

/* A test of another store is left out: nothing is missing. A test that finds out that it cannot run
 * here is skipped. */
static bool suits(const struct test *t)
{
    switch (t->needs) {
    case MEMORY_FAULTS:
        return suite_is_memory();
    case SEVERAL_PROCESSES:
    case PROCESSES_PUSH:
        return !suite_is_memory();
    case SQLITE_ONLY:
        return suite_is_sqlite();
    case REDIS_ONLY:
        return is_at("redis:");
    case SQL_ONLY: /* they make users of their own, who do not know how to encrypt */
        return (is_at("mysql:") || is_at("mariadb:") || is_at("postgresql:")) &&
               strstr(suite_url(), "tls_ca=") == NULL;
    case ZOOKEEPER_ONLY: /* of one server: the test starts its own ensemble, if it needs one */
        return is_at("zookeeper:") && strchr(suite_url(), ',') == NULL;
    case ZOOKEEPER_ALL:
        return is_at("zookeeper:");
    default:
        return true;
    }
}

/* Our own stores push, and a test of them that needs it fails if they do not. */
static bool is_ours(void)
{
    static const char *const schemes[] = {"memory:",  "sqlite:",   "redis",      "mysql:",
                                          "mariadb:", "postgres:", "zookeeper:", "postgresql:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (is_at(schemes[i]))
            return true;
    }
    return false;
}

/* Finds out in a process of its own, so that the runner has no threads. What cannot be found out is
 * left to the tests to say. */
static bool pushes(void)
{
    int status;
    if (is_ours())
        return true;
    pid_t pid = fork();
    if (pid == 0)
        _exit(suite_pushes() ? 0 : EXIT_SKIP);
    return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
           WEXITSTATUS(status) != EXIT_SKIP;
}

static bool is_skipped(const struct test *t, struct tally *sum)
{
    static int known = -1;
    if (t->needs != PUSHES && t->needs != PROCESSES_PUSH)
        return false;
    if (known < 0)
        known = pushes();
    if (known)
        return false;
    printf("skip %3d %s: the store does not push (no hint came %d s after a release): who waits "
           "asks when the lease ends\n",
           sum->number, t->name, PUSH_MS / 1000);
    sum->skipped++;
    return true;
}

static void run_all(const struct settings *s, struct tally *sum)
{
    static struct job jobs[JOBS_MAX];
    suite_set(s->url, s->is_long);
    for (int round = 0; round < s->repeat; round++) {
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
            for (const struct test *t = groups[i].tests; t->name != NULL; t++) {
                if (!is_wanted(s, t))
                    continue;
                sum->number++;
                if (!suits(t)) {
                    sum->left_out++;
                    continue;
                }
                if (is_skipped(t, sum))
                    continue;
                struct job *slot = collect(s, jobs, sum, false);
                launch(s, slot, t, sum->number, groups[i].expected);
            }
        }
    }
    collect(s, jobs, sum, true);
}

static void list(const struct settings *s)
{
    static const char *const needs[] = {
        [ANY_STORE] = "",
        [PUSHES] = " (stores that push)",
        [MEMORY_FAULTS] = " (memory: only)",
        [SEVERAL_PROCESSES] = " (not memory:)",
        [PROCESSES_PUSH] = " (stores that push, not memory:)",
        [SQLITE_ONLY] = " (sqlite: only)",
        [REDIS_ONLY] = " (redis: only)",
        [SQL_ONLY] = " (mysql: and postgresql: only)",
        [ZOOKEEPER_ONLY] = " (zookeeper: only)",
        [ZOOKEEPER_ALL] = " (zookeeper: only)",
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (const struct test *t = groups[i].tests; t->name != NULL; t++)
            if (is_wanted(s, t))
                printf("%s%s\n", t->name, needs[t->needs]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--peer") == 0)
        return peer_main(argc - 2, argv + 2);
    struct settings s = parse(argc, argv);
    if (s.list) {
        list(&s);
        return 0;
    }
    struct tally sum = {0};
    run_all(&s, &sum);
    if (sum.left_out > 0)
        printf("%d tests are for other stores (--list says for which)\n", sum.left_out);
    printf("%d passed, %d failed", sum.passed, sum.failed);
    if (sum.skipped > 0)
        printf(", %d skipped", sum.skipped);
    printf("\n");
    if (sum.number == 0)
        fprintf(stderr, "contract: no test matches '%s'\n", s.only);
    return sum.failed == 0 && sum.number > 0 ? 0 : 1;
}
