/* start.h: `simba lock x true` beside `flock f true`: how long each takes, from fork to reaped, and how
 * much of the processor it needs, with all that it starts. Both are started in turns, from the same
 * process; the command is that of the same build. */
#ifndef BENCH_START_H
#define BENCH_START_H

#include <spawn.h>
#include <sys/resource.h>

#include "bench.h"

#define START_PATH_MAX 4096

extern char **environ;

/* Microseconds. The time of the processor depends less on what else the machine does. */
struct start_cost {
    double wall, processor;
};

static inline double start_processor(void)
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r); /* those that were waited for, and theirs */
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* `count` at once, until the last has ended. */
static inline struct start_cost start_many(char *const argv[], int count)
{
    pid_t pid[count];
    int64_t began = bench_now();
    double processor = start_processor();
    for (int i = 0; i < count; i++) {
        if (posix_spawnp(&pid[i], argv[0], NULL, NULL, argv, environ) != 0)
            bench_die("cannot start %s: %s", argv[0], strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        int status;
        if (waitpid(pid[i], &status, 0) != pid[i] || status != 0)
            bench_die("%s failed", argv[0]);
    }
    return (struct start_cost){.wall = (double)(bench_now() - began) / 1e3,
                               .processor = start_processor() - processor};
}

/* SIMBA_BENCH_COMMAND, or that of this build. */
static inline void start_find_simba(char out[START_PATH_MAX])
{
    const char *given = getenv("SIMBA_BENCH_COMMAND");
    if (given != NULL) {
        snprintf(out, START_PATH_MAX, "%s", given);
        return;
    }
    ssize_t n = readlink("/proc/self/exe", out, START_PATH_MAX - 1);
    if (n <= 0)
        bench_die("cannot find myself");
    out[n] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(out, '/') = '\0';
    size_t length = strlen(out);
    if (length + sizeof "/simba" > START_PATH_MAX)
        bench_die("the path is too long");
    memcpy(out + length, "/simba", sizeof "/simba");
}

/* folder: its name ends in XXXXXX; flock's file is in it, and maybe the store. aim: of the ratio. */
static inline void start_compare(const struct bench *b, char *folder, char *url, int count,
                                 double aim)
{
    static double wall[2][BENCH_ROUNDS_MAX], processor[2][BENCH_ROUNDS_MAX];
    char simba[START_PATH_MAX], file[START_PATH_MAX];
    size_t rounds = (size_t)b->rounds;
    start_find_simba(simba);
    snprintf(file, sizeof file, "%s/f", folder);
    char *command[2][7] = {{"flock", file, "true"}, {simba, "-u", url, "lock", "x", "true"}};
    bench_pin(b->core);
    for (int which = 0; which < 2; which++)
        start_many(command[which], 1); /* files are made, scripts are loaded */
    for (int i = 0; i < 2 * b->rounds; i++) {
        struct start_cost cost = start_many(command[i % 2], count);
        wall[i % 2][i / 2] = cost.wall;
        processor[i % 2][i / 2] = cost.processor;
    }
    printf("%-34s %10s %10s %7s\n", "", "flock", "simba lock", "ratio");
    bench_row("median", bench_median(wall[0], rounds), bench_median(wall[1], rounds), -aim);
    bench_row("lower quartile", bench_quantile(wall[0], rounds, 0.25),
              bench_quantile(wall[1], rounds, 0.25), 0);
    bench_row("processor, median", bench_median(processor[0], rounds),
              bench_median(processor[1], rounds), 0);
}

/* On sqlite:, in a folder of its own. */
static inline void start_compare_sqlite(const struct bench *b, int count, double aim)
{
    char folder[] = "/tmp/simba-bench-XXXXXX", url[64];
    if (mkdtemp(folder) == NULL)
        bench_die("no folder: %s", strerror(errno));
    snprintf(url, sizeof url, "sqlite:%s/locks.db", folder);
    start_compare(b, folder, url, count, aim);
    char *tidy[] = {"rm", "-rf", folder, NULL};
    start_many(tidy, 1);
}
#endif
