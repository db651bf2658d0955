/* waiters.c: many contenders of one process wait for one mutex. What does a hand-over cost?
 *
 *   waiters [URL] [--count N] [--handovers H]     default memory:, 2,000 and 500
 *
 * Reports how many operations the store sees per hand-over: the release, and the attempts of those
 * who were woken by it. One would be enough. */
#include <simba.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(simba_contender *) leader;
static atomic_int handovers;

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)mutex, (void)state;
    atomic_fetch_add(&handovers, 1);
    atomic_store(&leader, *(simba_contender **)data);
}

static void die(const char *what)
{
    fprintf(stderr, "waiters: %s: %s\n", what, simba_error_text());
    exit(1);
}

int main(int argc, char **argv)
{
    const char *url = "memory:";
    size_t count = 2000;
    int wanted = 500;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--handovers") == 0 && i + 1 < argc)
            wanted = atoi(argv[++i]);
        else
            url = argv[i];
    }
    simba_client *s;
    if (simba_open(url, NULL, &s) < 0)
        die("open");
    simba_contender **c = calloc(count, sizeof *c);
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = 120000; /* so that nobody asks because a lease ends */
    o.on_acquired = on_acquired;
    for (size_t i = 0; i < count; i++) {
        o.data = &c[i];
        if (simba_contender_create(s, "waited-for", &o, &c[i]) < 0 ||
            simba_contender_start(c[i]) < 0)
            die("contender");
    }
    for (size_t i = 0; i < count; i++) {
        if (simba_contender_wait(c[i], SIMBA_RUNNING, 60000) < 0)
            die("wait");
    }
    while (atomic_load(&leader) == NULL)
        usleep(1000);
    struct simba_metrics before = SIMBA_METRICS_INIT, after = SIMBA_METRICS_INIT;
    simba_metrics_read(s, &before);
    int64_t began = simba_now();
    for (int i = 0; i < wanted; i++) {
        int so_far = atomic_load(&handovers);
        simba_contender *now = atomic_load(&leader);
        if (simba_contender_stop(now) < 0)
            die("stop");
        while (atomic_load(&handovers) == so_far)
            usleep(10);
        if (simba_contender_wait(now, SIMBA_INITIAL, 10000) < 0 || simba_contender_start(now) < 0)
            die("start again");
    }
    simba_metrics_read(s, &after);
    double n = wanted;
    printf("%-44s %zu\n", "waiting in one process", count);
    printf("%-44s %.2f (one of them by whoever left and came back)\n", "attempts per hand-over",
           (double)(after.attempts - before.attempts) / n);
    printf("%-44s %.2f\n", "operations of the store per hand-over",
           (double)(after.operation.count - before.operation.count) / n);
    printf("%-44s %.0f us\n", "time per hand-over", (double)(simba_now() - began) * 1e3 / n);
    return simba_close(s, 60000) == 0 ? 0 : 1;
}
