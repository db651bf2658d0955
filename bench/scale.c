/* scale.c: many contenders of one process, each owning its mutex, for a while: none may be lost.
 *
 *   scale [URL] [--count N] [--seconds S]     default memory:, 100,000 for 60 s, ttl 10 s
 *
 * Says how long it took until all owned, what a contender costs in memory (beyond the names) and,
 * while all are merely renewed, in CPU. Not a comparison: there is no raw program that does this. */
#include <simba.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static atomic_size_t owned, lost;

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex, (void)state;
    atomic_fetch_add(&owned, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    if (state->reason == SIMBA_RELEASED)
        return;
    if (atomic_fetch_add(&lost, 1) < 5)
        fprintf(stderr, "scale: %s was lost, reason %d\n", mutex, (int)state->reason);
}

static void say(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level <= SIMBA_LOG_WARN)
        fprintf(stderr, "scale: %s\n", line);
}

static size_t resident(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void die(const char *what)
{
    fprintf(stderr, "scale: %s: %s\n", what, simba_error_text());
    exit(1);
}

int main(int argc, char **argv)
{
    const char *url = "memory:";
    size_t count = 100000;
    unsigned seconds = 60;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            url = argv[i];
    }
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.log = say;
    simba_client *s;
    if (simba_open(url, &options, &s) < 0)
        die("open");
    simba_contender **c = calloc(count, sizeof *c);
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    size_t names = 0, before = resident();
    int64_t began = simba_now();
    for (size_t i = 0; i < count; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        names += (size_t)snprintf(mutex, sizeof mutex, "service-%zu-leader", i) + 1;
        if (simba_contender_create(s, mutex, &o, &c[i]) < 0 || simba_contender_start(c[i]) < 0)
            die(mutex);
        names += strlen(simba_contender_id(c[i])) + 1;
    }
    while (atomic_load(&owned) < count && simba_now() - began < 120000)
        usleep(10000);
    printf("%-44s %zu of %zu after %.1f s\n", "owned", atomic_load(&owned), count,
           (double)(simba_now() - began) / 1e3);
    double cpu = cpu_seconds();
    int64_t from = simba_now();
    while (simba_now() - from < (int64_t)seconds * 1000)
        usleep(100000);
    double used = cpu_seconds() - cpu, wall = (double)(simba_now() - from) / 1e3;
    size_t still = 0;
    for (size_t i = 0; i < count; i++)
        still += simba_contender_is_owner(c[i]);
    printf("%-44s %.0f (and %.0f for names)\n", "resident bytes per contender, beyond names",
           ((double)(resident() - before) - (double)names) / (double)count,
           (double)names / (double)count);
    printf("%-44s %.1f %% of a core\n", "CPU while they are renewed", 100 * used / wall);
    printf("%-44s %zu; lost %zu\n", "still owned after that", still, atomic_load(&lost));
    if (simba_close(s, 60000) < 0)
        die("close");
    free(c);
    return still == count && atomic_load(&lost) == 0 ? 0 : 1;
}
