/* cold_start.c: what `simba lock x true` costs a script, beside `flock f true`. Both are started in
 * turns, from the same process; the time is that from fork to reaped. */
#include <fcntl.h>
#include <spawn.h>

#include "bench.h"

#define ROUNDS 60
#define AIM 1.8

extern char **environ;

static double run_once(char *const argv[])
{
    int status;
    pid_t pid;
    int64_t began = bench_now();
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        bench_die("cannot start %s: %s", argv[0], strerror(errno));
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("%s failed", argv[0]);
    return (double)(bench_now() - began) / 1e3;
}

/* The command of the same build. */
static void find_simba(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0)
        bench_die("cannot find myself");
    out[n] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(out, '/') = '\0';
    size_t length = strlen(out);
    if (length + sizeof "/simba" > size)
        bench_die("the path is too long");
    memcpy(out + length, "/simba", sizeof "/simba");
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "cold start: `simba lock x true` on sqlite:, against `flock f "
                                 "true`; microseconds.",
                                 ROUNDS, 1);
    static double raw[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX];
    char simba[4096], folder[] = "/tmp/simba-bench-XXXXXX", file[64], url[64];
    find_simba(simba, sizeof simba);
    if (mkdtemp(folder) == NULL)
        bench_die("no folder: %s", strerror(errno));
    snprintf(file, sizeof file, "%s/f", folder);
    snprintf(url, sizeof url, "sqlite:%s/locks.db", folder);
    setenv("SIMBA_URL", url, 1);
    char *by_flock[] = {"flock", file, "true", NULL},
         *by_simba[] = {simba, "lock", "x", "true", NULL};
    bench_pin(b.core);
    run_once(by_flock);
    run_once(by_simba); /* the files are made */
    for (int i = 0; i < b.rounds; i++) {
        raw[i] = run_once(by_flock);
        ours[i] = run_once(by_simba);
    }
    printf("%-34s %10s %10s %7s\n", "", "flock", "simba lock", "ratio");
    bench_row("median", bench_median(raw, (size_t)b.rounds), bench_median(ours, (size_t)b.rounds),
              -AIM);
    bench_row("lower quartile", bench_quantile(raw, (size_t)b.rounds, 0.25),
              bench_quantile(ours, (size_t)b.rounds, 0.25), 0);
    char *tidy[] = {"rm", "-rf", folder, NULL};
    run_once(tidy);
    return 0;
}
