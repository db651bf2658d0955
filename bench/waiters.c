/* waiters.c: many contenders of one process wait for one mutex. What does a hand-over cost?
 *
 *   waiters [URL] [--counts 1,10,100] [--seconds S]     default memory:, 1000, for 3 s
 *
 * For each count: the time from the stop of the owner to the next one's on_acquired, and how many
 * operations the store sees meanwhile: the release, and the attempts of those who were woken by it.
 * One of these would be enough; and there is the attempt of whoever left and came back. */
#include "rival.h"

#define COUNT_MAX 100000
#define SAMPLES_MAX 1000000

struct herd {
    const char *url;
    size_t count; /* of all that wait, beside the owner */
    int64_t run_ns;
};

static _Atomic(simba_contender *) leader;
static _Atomic uint32_t handovers; /* a futex */
static _Atomic int64_t acquired_at;

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)mutex, (void)state;
    atomic_store(&acquired_at, bench_now());
    atomic_store(&leader, *(simba_contender **)data);
    bench_add(&handovers);
}

static void must(int code)
{
    if (code < 0)
        bench_die("%s", simba_error_text());
}

static double *hand_over_for(int64_t run_ns, size_t *samples)
{
    double *took = calloc(SAMPLES_MAX, sizeof *took);
    int64_t end = bench_now() + run_ns;
    if (took == NULL)
        bench_die("out of memory");
    while ((bench_now() < end || *samples < 3) && *samples < SAMPLES_MAX) {
        uint32_t so_far = atomic_load(&handovers);
        simba_contender *now = atomic_load(&leader);
        int64_t began = bench_now();
        must(simba_contender_stop(now));
        bench_await(&handovers, so_far + 1);
        took[(*samples)++] = (double)(atomic_load(&acquired_at) - began) / 1000;
        must(simba_contender_wait(now, SIMBA_INITIAL, 10000));
        must(simba_contender_start(now));
    }
    return took;
}

static void run(void *arg)
{
    const struct herd *h = arg;
    simba_client *s;
    size_t all = h->count + 1, samples = 0;
    double n = (double)h->count;
    must(simba_open(h->url, NULL, &s));
    simba_contender **c = calloc(all, sizeof *c);
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = 120000; /* so that nobody asks because a lease ends */
    o.on_acquired = on_acquired;
    for (size_t i = 0; i < all; i++) {
        o.data = &c[i];
        must(simba_contender_create(s, "waited-for", &o, &c[i]));
        must(simba_contender_start(c[i]));
    }
    for (size_t i = 0; i < all; i++)
        must(simba_contender_wait(c[i], SIMBA_RUNNING, 60000));
    bench_await(&handovers, 1);
    struct simba_metrics before = SIMBA_METRICS_INIT, after = SIMBA_METRICS_INIT;
    simba_metrics_read(s, &before);
    double *took = hand_over_for(h->run_ns, &samples);
    simba_metrics_read(s, &after);
    bench_say("hand-over, p50, us", n, bench_median(took, samples));
    bench_say("hand-over, p99, us", n, bench_quantile(took, samples, 0.99));
    bench_say("operations of the store per hand-over", n,
              (double)(after.operation.count - before.operation.count) / (double)samples);
    must(simba_close(s, 60000));
    free(took);
    free(c);
}

int main(int argc, char **argv)
{
    struct herd h = {.url = "memory:", .run_ns = 3000000000};
    long point[BENCH_POINTS_MAX] = {1000};
    size_t points = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--counts") == 0)
            points = bench_points(argv[i++], value, COUNT_MAX, point);
        else if (strcmp(argv[i], "--seconds") == 0)
            h.run_ns = (int64_t)(bench_number(argv[i++], value, 0.1, 3600) * 1e9);
        else
            h.url = argv[i];
    }
    for (size_t i = 0; i < points; i++) {
        h.count = (size_t)point[i];
        bench_run(&(struct bench){.core = -1}, run, &h);
    }
    return 0;
}
