/* list.c: very many mutexes are held in a store: how long does simba_list take, how long until an
 * observer of all has told of each, and do renewals of the same client stall meanwhile?
 *
 *   list URL [--counts 1000,10000]       default 100,000
 *
 * One process holds them, for an hour, so that it renews nothing. Another one lists and observes;
 * its client also keeps a few mutexes that it renews every 20 ms, and each renewal is timed. */
#include "rival.h"

#define COUNT_MAX 1000000
#define KEPT 8
#define RENEW_MS 20
#define HOUR_MS 3600000
#define CALM_NS 2000000000
#define PATIENCE_MS 300000
#define STARTED_AT_ONCE 5000

static _Atomic uint32_t owned, notified, listed;
static _Atomic int64_t longest_us, renewals, lost;

struct fill {
    const char *url;
    size_t count;
    _Atomic uint32_t *ready;
};

static void must(int code)
{
    if (code < 0)
        bench_die("%s", simba_error_text());
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex, (void)state;
    atomic_fetch_add(&owned, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex;
    if (state->reason != SIMBA_RELEASED)
        atomic_fetch_add(&lost, 1);
}

static void await_owned(size_t count)
{
    int64_t until = bench_now() + PATIENCE_MS * INT64_C(1000000);
    while (atomic_load(&owned) < count && bench_now() < until)
        bench_sleep(200000);
    if (atomic_load(&owned) < count)
        bench_die("%u of %zu are owned, and no more come", atomic_load(&owned), count);
}

static void hold(simba_client *s, const char *kind, size_t count, int64_t ttl_ms, int64_t renew_ms)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = ttl_ms;
    o.renew_ms = renew_ms;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    for (size_t i = 0; i < count; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        simba_contender *c = NULL;
        snprintf(mutex, sizeof mutex, "%s-%zu-leader", kind, i);
        must(simba_contender_create(s, mutex, &o, &c));
        must(simba_contender_start(c));
        if (i % STARTED_AT_ONCE == 0)
            await_owned(i);
    }
    await_owned(count);
}

/* Killed when it is not needed any more. */
static void fill(void *arg)
{
    const struct fill *f = arg;
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    o.command_timeout_ms = PATIENCE_MS; /* an answer that is given up costs an hour here */
    must(simba_open(f->url, &o, &s));
    hold(s, "service", f->count, HOUR_MS, SIMBA_DEFAULT);
    bench_set(f->ready, 1);
    pause();
}

/* ---- the one that lists -------------------------------------------------------------------- */

static void on_event(void *data, const struct simba_event *e)
{
    (void)data;
    if (e->kind != SIMBA_EVENT_EXCHANGE || strcmp(e->name, "renew") != 0)
        return;
    atomic_fetch_add(&renewals, 1);
    if (e->duration_us > atomic_load(&longest_us))
        atomic_store(&longest_us, e->duration_us);
}

static void on_entry(void *data, const struct simba_entry *entry)
{
    (void)data, (void)entry;
    atomic_fetch_add(&listed, 1);
}

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex;
    if (state->after.id[0] != '\0')
        atomic_fetch_add(&notified, 1);
}

/* How long the longest renewal since the last call took, in ms. One that is under way counts when it
 * is answered. */
static double longest(void)
{
    int64_t seen = atomic_load(&renewals), until = bench_now() + PATIENCE_MS * INT64_C(1000000);
    while (atomic_load(&renewals) < seen + KEPT && bench_now() < until)
        bench_sleep(1000000);
    return (double)atomic_exchange(&longest_us, 0) / 1000;
}

static void inspect(void *arg)
{
    const struct fill *f = arg;
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct simba_handle_options h = SIMBA_HANDLE_OPTIONS_INIT;
    simba_client *s = NULL;
    simba_observer *all = NULL;
    double n = (double)f->count;
    o.trace = on_event;
    must(simba_open(f->url, &o, &s));
    hold(s, "kept", KEPT, 10000, RENEW_MS);
    longest();
    bench_sleep(CALM_NS);
    bench_say("longest renewal before, ms", n, longest());
    int64_t began = bench_now();
    must(simba_list(s, NULL, PATIENCE_MS, on_entry, NULL));
    bench_say("simba_list, ms", n, (double)(bench_now() - began) / 1e6);
    bench_say("longest renewal during simba_list, ms", n, longest());
    if (atomic_load(&listed) != f->count + KEPT)
        bench_die("%u were listed, not %zu", atomic_load(&listed), f->count + KEPT);
    double before = bench_resident();
    h.on_changed = on_changed;
    began = bench_now();
    must(simba_observer_create(s, NULL, &h, &all));
    while (atomic_load(&notified) < f->count &&
           bench_now() - began < PATIENCE_MS * INT64_C(1000000))
        bench_sleep(1000000);
    bench_say("observer of all: until it has told of each, ms", n,
              (double)(bench_now() - began) / 1e6);
    bench_say("longest renewal during that, ms", n, longest());
    bench_say("observer of all: memory, bytes for each", n, (bench_resident() - before) / n);
    if (atomic_load(&notified) < f->count)
        bench_die("the observer told of %u, not of %zu", atomic_load(&notified), f->count);
    bench_sleep(CALM_NS);
    double cpu = bench_cpu_s();
    bench_sleep(CALM_NS);
    bench_say("observer of all: CPU when nothing changes, %", n,
              100 * (bench_cpu_s() - cpu) * 1e9 / CALM_NS);
    bench_say("lost meanwhile", n, (double)atomic_load(&lost));
    _exit(atomic_load(&lost) > 0); /* without giving back: the store is thrown away */
}

int main(int argc, char **argv)
{
    struct fill f = {.ready = bench_share(sizeof *f.ready)};
    long point[BENCH_POINTS_MAX] = {100000};
    size_t points = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--counts") == 0)
            points = bench_points(argv[i], i + 1 < argc ? argv[i + 1] : NULL, COUNT_MAX, point),
            i++;
        else
            f.url = argv[i];
    }
    if (f.url == NULL || points != 1)
        bench_die("run it as: tests/servers/redis build/bench/list @URL@ --counts 100000, a server "
                  "for each count");
    f.count = (size_t)point[0] - KEPT; /* so that all together are so many */
    pid_t filler = bench_fork(&(struct bench){.core = -1}, fill, &f);
    while (atomic_load(f.ready) == 0) {
        if (waitpid(filler, NULL, WNOHANG) == filler)
            bench_die("the store could not be filled");
        bench_sleep(10000000);
    }
    pid_t reader = bench_fork(&(struct bench){.core = -1}, inspect, &f);
    bench_join(reader);
    kill(filler, SIGKILL);
    waitpid(filler, NULL, 0);
    return 0;
}
