/* scale.c: many contenders of one process, each owning its mutex, for a while: none may be lost.
 *
 *   scale [URL] [--counts 1000,10000] [--seconds S] [--ttl S]
 *
 * Default: memory:, 100,000, 10 s, 20 s.
 *
 * For each count, in a process of its own: how long it took until all owned, what a contender costs
 * in memory (beyond the names) and, while all are merely renewed, in CPU, at this ttl and for a
 * renewal. Not a comparison: there is no raw program that does this. */
#include "rival.h"

#define COUNT_MAX 2000000
#define PATIENCE_NS INT64_C(240000000000)

struct scale {
    const char *url;
    size_t count;
    int64_t run_ns, ttl_ms;
};

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

static void on_log(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level <= SIMBA_LOG_WARN && strstr(line, "dropped") == NULL)
        fprintf(stderr, "scale: %s\n", line);
}

/* Returns the bytes of their names and ids. */
static size_t start_all(simba_client *s, const struct scale *p, simba_contender **c)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    size_t names = 0;
    o.ttl_ms = p->ttl_ms;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    for (size_t i = 0; i < p->count; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        names += (size_t)snprintf(mutex, sizeof mutex, "service-%zu-leader", i) + 1;
        if (simba_contender_create(s, mutex, &o, &c[i]) < 0 || simba_contender_start(c[i]) < 0)
            bench_die("%s: %s", mutex, simba_error_text());
        names += strlen(simba_contender_id(c[i])) + 1;
    }
    return names;
}

static void keep(const struct scale *p, simba_client *s)
{
    struct simba_metrics before = SIMBA_METRICS_INIT, after = SIMBA_METRICS_INIT;
    double n = (double)p->count, cpu = bench_cpu_s();
    int64_t from = bench_now();
    simba_metrics_read(s, &before);
    bench_sleep(p->run_ns);
    simba_metrics_read(s, &after);
    double used = bench_cpu_s() - cpu, wall = (double)(bench_now() - from) / 1e9;
    double renewals = (double)(after.renewals - before.renewals);
    bench_say("CPU while they are renewed, % of a core", n, 100 * used / wall);
    bench_say("renewals per second", n, renewals / wall);
    if (renewals > 0)
        bench_say("CPU per renewal, us", n, used * 1e6 / renewals);
}

static void hold(void *arg)
{
    const struct scale *p = arg;
    struct simba_options options = SIMBA_OPTIONS_INIT;
    simba_client *s;
    simba_contender **c = calloc(p->count, sizeof *c);
    double n = (double)p->count;
    options.log = on_log;
    if (c == NULL || simba_open(p->url, &options, &s) < 0)
        bench_die("%s", simba_error_text());
    double before = bench_resident();
    int64_t began = bench_now();
    size_t names = start_all(s, p, c);
    while (atomic_load(&owned) < p->count && bench_now() - began < PATIENCE_NS)
        bench_sleep(1000000);
    bench_say("until all are owned, ms", n, (double)(bench_now() - began) / 1e6);
    keep(p, s);
    size_t still = 0;
    for (size_t i = 0; i < p->count; i++)
        still += simba_contender_is_owner(c[i]);
    bench_say("memory of each beyond its names, bytes", n,
              (bench_resident() - before - (double)names) / n);
    bench_say("lost", n, (double)(p->count - still));
    if (still != p->count || atomic_load(&lost) > 0)
        bench_die("%zu are not owned any more", p->count - still);
    if (simba_close(s, 120000) < 0) /* gives them back: the next count begins with an empty store */
        bench_die("%s", simba_error_text());
    free(c);
}

int main(int argc, char **argv)
{
    struct scale p = {.url = "memory:", .run_ns = 10000000000, .ttl_ms = 20000};
    long point[BENCH_POINTS_MAX] = {100000};
    size_t points = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--counts") == 0)
            points = bench_points(argv[i++], value, COUNT_MAX, point);
        else if (strcmp(argv[i], "--seconds") == 0)
            p.run_ns = (int64_t)(bench_number(argv[i++], value, 1, 3600) * 1e9);
        else if (strcmp(argv[i], "--ttl") == 0)
            p.ttl_ms = (int64_t)(bench_number(argv[i++], value, 1, 3600) * 1e3);
        else
            p.url = argv[i];
    }
    for (size_t i = 0; i < points; i++) {
        p.count = (size_t)point[i];
        bench_run(&(struct bench){.core = -1}, hold, &p);
    }
    return 0;
}
