/* sqlite_idle.c: what it costs to wait. One process owns a mutex in an SQLite file, a second one
 * waits for it: how often its threads wake up, and how long they work, according to the kernel.
 * The owner is shown as well. A program by hand that sleeps on a futex would do neither, so
 * there is no rival. */
#include <dirent.h>
#include <sys/resource.h>

#include "sqlite_raw.h"

#define AIM 5.0 /* wake-ups per second of the one that waits */
#define PATIENCE_MS 3600000

struct idle {
    const char *location;
    bool waits;
    _Atomic uint32_t *ready;
};

struct usage {
    double wakeups, cpu_ms;
    int threads;
};

static void stay(void *arg)
{
    const struct idle *i = arg;
    struct library *l = library.open(i->location, "bench", NULL);
    if (!i->waits)
        library.acquire(l);
    bench_set(i->ready, 1);
    if (i->waits)
        simba_locker_acquire(l->locker, PATIENCE_MS);
    pause(); /* killed */
}

/* The numbers behind one field of a file in /proc; 0 if it is not there. */
static double field(const char *path, const char *name)
{
    char line[256];
    double value = 0;
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtod(line + strlen(name), NULL);
    }
    if (f != NULL)
        fclose(f);
    return value;
}

static struct usage usage_of(pid_t process)
{
    char path[300];
    struct usage u = {.threads = 0};
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        u.threads++;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)process, e->d_name);
        u.wakeups += field(path, "voluntary_ctxt_switches:");
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)process, e->d_name);
        u.cpu_ms += field(path, "") / 1e6;
    }
    if (d != NULL)
        closedir(d);
    return u;
}

static void print_usage(const char *who, struct usage from, struct usage to, double seconds)
{
    printf("%-34s %10.1f %10.2f %10d\n", who, (to.wakeups - from.wakeups) / seconds,
           (to.cpu_ms - from.cpu_ms) / seconds, to.threads);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(
        argc, argv, "sqlite: one process owns a mutex, another waits for it: what both use.", 1,
        10);
    char location[LOCATION_MAX];
    pid_t process[2];
    struct usage before[2], after[2];
    _Atomic uint32_t *ready = bench_share(2 * sizeof *ready);
    sqlite_begin(location);
    for (int i = 0; i < 2; i++) {
        struct idle idle = {.location = location, .waits = i == 1, .ready = &ready[i]};
        process[i] = bench_fork(&b, stay, &idle);
        bench_await(&ready[i], 1);
    }
    bench_sleep(1000000000);
    int64_t began = bench_now();
    for (int i = 0; i < 2; i++)
        before[i] = usage_of(process[i]);
    bench_sleep(b.run_ns);
    for (int i = 0; i < 2; i++)
        after[i] = usage_of(process[i]);
    double seconds = (double)(bench_now() - began) / 1e9;
    for (int i = 0; i < 2; i++) {
        kill(process[i], SIGKILL);
        waitpid(process[i], NULL, 0);
    }
    sqlite_end(location);
    printf("%-34s %10s %10s %10s\n", "", "wake-ups/s", "CPU ms/s", "threads");
    print_usage("the one that waits", before[1], after[1], seconds);
    print_usage("the owner", before[0], after[0], seconds);
    double rate = (after[1].wakeups - before[1].wakeups) / seconds;
    bench_figure("a waiter, wake-ups per second", -1, -1, rate);
    printf("over %.1f s; aim: fewer than %.0f wake-ups per second of the one that waits%s\n",
           seconds, AIM, rate < AIM ? "" : ", missed");
    return 0;
}
