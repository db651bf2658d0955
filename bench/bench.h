/* bench.h: the frame of the benchmarks. A figure of one machine at one time means little, so
 * each is set beside that of a rival, a program that does the same by hand. Both run in turns,
 * each time in a fresh process, all on one core, and the medians are compared.
 *
 * All here is for programs of one file each: failures end the program. */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_ROUNDS_MAX 1000

struct bench {
    int rounds;
    int core;       /* everything runs there; -1: anywhere */
    uint32_t count; /* of what is counted, not timed; 0: as the program has it */
    int64_t run_ns;
};

_Noreturn __attribute__((format(printf, 1, 2))) static inline void bench_die(const char *format,
                                                                             ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- time ---------------------------------------------------------------------------------- */

static inline int64_t bench_now(void) /* ns */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void bench_sleep(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

/* ---- the command line ---------------------------------------------------------------------- */

static inline double bench_number(const char *option, const char *text, double least, double most)
{
    char *end = NULL;
    double value = text != NULL ? strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0' || value < least || value > most)
        bench_die("%s needs a number from %g to %g", option, least, most);
    return value;
}

/* what: one line that says what is compared; it is printed first. */
static inline struct bench bench_begin(int argc, char **argv, const char *what, int rounds,
                                       double seconds)
{
    struct bench b = {.rounds = rounds, .core = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--rounds") == 0) {
            b.rounds = (int)bench_number(argv[i], value, 1, BENCH_ROUNDS_MAX);
        } else if (strcmp(argv[i], "--count") == 0) {
            b.count = (uint32_t)bench_number(argv[i], value, 1, 1e6);
        } else if (strcmp(argv[i], "--core") == 0) {
            b.core = (int)bench_number(argv[i], value, -1, CPU_SETSIZE - 1);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            seconds = bench_number(argv[i], value, 0.01, 3600);
        } else {
            bool asked = strcmp(argv[i], "--help") == 0;
            fprintf(asked ? stdout : stderr,
                    "%s [--rounds %d] [--seconds %g] [--count N] [--core N]\n%s\n"
                    "--seconds is the length of one run, --count how many hand-overs are made in "
                    "all; --core -1 leaves the choice to the kernel.\n",
                    program_invocation_short_name, rounds, seconds, what);
            exit(asked ? 0 : 64);
        }
    }
    b.run_ns = (int64_t)(seconds * 1e9);
    printf("%s\n", what);
    fflush(stdout);
    return b;
}

/* ---- processes ----------------------------------------------------------------------------- */

/* Zeroed memory that forked processes share. */
static inline void *bench_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("no shared memory: %s", strerror(errno));
    return memory;
}

static inline void bench_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < 0)
        return;
    CPU_SET((unsigned)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("cannot run on core %d alone: %s", core, strerror(errno));
}

/* A child that ends with its parent. */
static inline pid_t bench_fork(const struct bench *b, void (*run)(void *arg), void *arg)
{
    fflush(stdout);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        bench_die("cannot fork: %s", strerror(errno));
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    bench_pin(b->core);
    run(arg);
    fflush(stdout);
    _exit(0);
}

static inline void bench_join(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_die("a run failed");
}

static inline void bench_run(const struct bench *b, void (*run)(void *arg), void *arg)
{
    bench_join(bench_fork(b, run, arg));
}

/* ---- a word that processes wait on --------------------------------------------------------- */

static inline void bench_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline void bench_add(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline void bench_await(_Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t now; (now = atomic_load(word)) != value;)
        syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double bench_quantile(double *values, size_t count, double q)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, bench_compare);
    size_t at = (size_t)(q * (double)count);
    return values[at < count ? at : count - 1];
}

static inline double bench_median(double *values, size_t count)
{
    return bench_quantile(values, count, 0.5);
}

/* ---- counts, for curves --------------------------------------------------------------------- */

#define BENCH_POINTS_MAX 16

/* "1,10,100": returns how many there are. */
static inline size_t bench_points(const char *option, const char *text, long most,
                                  long out[BENCH_POINTS_MAX])
{
    size_t n = 0;
    for (char *end = NULL; text != NULL && n < BENCH_POINTS_MAX; text = end + 1) {
        out[n] = strtol(text, &end, 10);
        if (end == text || out[n] < 1 || out[n] > most || (*end != ',' && *end != '\0'))
            break;
        n++;
        if (*end == '\0')
            return n;
    }
    bench_die("%s needs numbers from 1 to %ld with commas between them, %d at most", option, most,
              BENCH_POINTS_MAX);
}

/* ---- what a process uses -------------------------------------------------------------------- */

static inline double bench_cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline double bench_resident(void) /* bytes */
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* ---- the table ----------------------------------------------------------------------------- */

/* For scripts/bench: each figure is also a line of JSON in the file that SIMBA_BENCH_FIGURES names.
 * x: where on a curve, < 0: it is none; raw: the rival's, < 0: there is none. */
static inline void bench_figure(const char *name, double x, double raw, double ours)
{
    const char *path = getenv("SIMBA_BENCH_FIGURES");
    FILE *f = path != NULL ? fopen(path, "ae") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "{\"name\": \"%s\", \"ours\": %.6g", name, ours);
    if (x >= 0)
        fprintf(f, ", \"x\": %.10g", x);
    if (raw >= 0)
        fprintf(f, ", \"raw\": %.6g, \"ratio\": %.4g", raw, raw > 0 ? ours / raw : 0);
    fprintf(f, "}\n");
    fclose(f);
}

/* A point of a curve, or a figure without a rival. */
static inline void bench_say(const char *name, double x, double ours)
{
    if (x >= 0)
        printf("%9.0f  %-44s %12.1f\n", x, name, ours);
    else
        printf("%-44s %12.1f\n", name, ours);
    fflush(stdout);
    bench_figure(name, x, -1, ours);
}

static inline void bench_head(void)
{
    printf("%-34s %10s %10s %7s\n", "", "by hand", "Simba", "ratio");
}

/* target > 0: the ratio should be at least that; < 0: at most; 0: none. */
static inline void bench_row(const char *label, double raw, double ours, double target)
{
    double ratio = raw > 0 ? ours / raw : 0;
    printf("%-34s %10.1f %10.1f %7.2f", label, raw, ours, ratio);
    bench_figure(label, -1, raw, ours);
    if (target != 0) {
        bool met = target > 0 ? ratio >= target : ratio <= -target;
        printf("   aim %s %.2f%s", target > 0 ? ">=" : "<=", target > 0 ? target : -target,
               met ? "" : ", missed");
    }
    printf("\n");
    fflush(stdout);
}
#endif
