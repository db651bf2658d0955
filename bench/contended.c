/* contended.c: many threads of some processes take turns with one mutex, each coming back at once.
 *
 *   contended [URL] [--processes P] [--threads T] [--hold-us H] [--seconds S]
 *
 * URL is SIMBA_BENCH_URL by default. Reports how often the mutex changed hands, how evenly the
 * threads got it, and how long they waited. "Overtaken" is how often one other thread had it while
 * a thread waited: 1 where all take turns. */
#include <pthread.h>
#include <simba.h>

#include "bench.h"

#define THREADS_MAX 1024
#define WARM_UP_NS INT64_C(500000000)

struct share {
    _Atomic uint32_t ready, start;
    _Atomic int stop, inside;
    _Atomic uint32_t tenures[THREADS_MAX];
    struct waits {
        uint64_t count;
        int64_t sum, longest; /* ns */
        uint32_t overtaken;
    } waits[THREADS_MAX];
};

struct contended {
    const char *url;
    int processes, threads;
    int64_t hold_ns;
    struct share *share;
    _Atomic int *process; /* the number of the next one */
};

struct one {
    const struct contended *c;
    simba_client *client;
    int number; /* among the threads of all processes */
};

static void note_wait(const struct one *o, int64_t waited, const uint32_t *before)
{
    struct share *s = o->c->share;
    struct waits *w = &s->waits[o->number];
    w->count++;
    w->sum += waited;
    if (waited > w->longest)
        w->longest = waited;
    for (int i = 0; i < o->c->processes * o->c->threads; i++) {
        uint32_t overtook = atomic_load(&s->tenures[i]) - before[i];
        if (i != o->number && overtook > w->overtaken)
            w->overtaken = overtook;
    }
}

static void take_turn(const struct one *o, simba_locker *l)
{
    struct share *s = o->c->share;
    uint32_t before[THREADS_MAX];
    for (int i = 0; i < o->c->processes * o->c->threads; i++)
        before[i] = atomic_load(&s->tenures[i]);
    int64_t began = bench_now();
    int code = simba_locker_acquire(l, 60000);
    if (code != 0)
        bench_die("%s", simba_error_text());
    int64_t waited = bench_now() - began;
    if (atomic_fetch_add(&s->inside, 1) != 0)
        bench_die("two own the mutex");
    bench_sleep(o->c->hold_ns);
    if (atomic_load(&s->start) == 1 && atomic_load(&s->stop) == 0) {
        note_wait(o, waited, before);
        atomic_fetch_add(&s->tenures[o->number], 1);
    }
    atomic_fetch_sub(&s->inside, 1);
    if (simba_locker_release(l) != 0)
        bench_die("%s", simba_error_text());
}

static void *thread(void *arg)
{
    const struct one *o = arg;
    struct simba_handle_options options = SIMBA_HANDLE_OPTIONS_INIT;
    simba_locker *l = NULL;
    if (simba_locker_create(o->client, "contended", &options, &l) != 0)
        bench_die("%s", simba_error_text());
    bench_add(&o->c->share->ready);
    while (atomic_load(&o->c->share->stop) == 0)
        take_turn(o, l);
    simba_locker_destroy(l);
    return NULL;
}

static void process(void *arg)
{
    const struct contended *c = arg;
    int first = atomic_fetch_add(c->process, 1) * c->threads;
    pthread_t threads[THREADS_MAX];
    struct one one[THREADS_MAX];
    simba_client *client = NULL;
    if (simba_open(c->url, NULL, &client) != 0)
        bench_die("%s", simba_error_text());
    for (int i = 0; i < c->threads; i++) {
        one[i] = (struct one){.c = c, .client = client, .number = first + i};
        if (pthread_create(&threads[i], NULL, thread, &one[i]) != 0)
            bench_die("cannot start a thread");
    }
    for (int i = 0; i < c->threads; i++)
        pthread_join(threads[i], NULL);
    if (simba_close(client, 10000) != 0)
        bench_die("%s", simba_error_text());
}

static void print(const struct contended *c, double seconds)
{
    const struct share *s = c->share;
    uint64_t all = 0, least = UINT64_MAX, most = 0;
    int64_t sum = 0, longest = 0;
    uint32_t overtaken = 0;
    for (int i = 0; i < c->processes * c->threads; i++) {
        const struct waits *w = &s->waits[i];
        all += w->count;
        sum += w->sum;
        least = w->count < least ? w->count : least;
        most = w->count > most ? w->count : most;
        longest = w->longest > longest ? w->longest : longest;
        overtaken = w->overtaken > overtaken ? w->overtaken : overtaken;
    }
    double mean = all > 0 ? (double)sum / (double)all / 1e6 : 0;
    printf("%-34s %10.0f /s\n", "hand-overs", (double)all / seconds);
    printf("%-34s %10.1f  (%llu and %llu tenures)\n", "luckiest to unluckiest thread",
           least > 0 ? (double)most / (double)least : 0, (unsigned long long)most,
           (unsigned long long)least);
    printf("%-34s %10.1f ms mean, %.1f longest: %.1f times\n", "wait", mean, (double)longest / 1e6,
           mean > 0 ? (double)longest / 1e6 / mean : 0);
    printf("%-34s %10u times\n", "overtaken by one thread, at most", overtaken);
}

int main(int argc, char **argv)
{
    struct contended c = {.url = getenv("SIMBA_BENCH_URL"), .processes = 4, .threads = 8};
    double seconds = 3, hold_us = 100;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--processes") == 0)
            c.processes = (int)bench_number(argv[i++], value, 1, 64);
        else if (strcmp(argv[i], "--threads") == 0)
            c.threads = (int)bench_number(argv[i++], value, 1, THREADS_MAX / 64);
        else if (strcmp(argv[i], "--hold-us") == 0)
            hold_us = bench_number(argv[i++], value, 0, 1e6);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = bench_number(argv[i++], value, 0.1, 3600);
        else
            c.url = argv[i];
    }
    if (c.url == NULL || c.url[0] == '-')
        bench_die("contended [URL] [--processes 4] [--threads 8] [--hold-us 100] [--seconds 3]");
    c.hold_ns = (int64_t)(hold_us * 1e3);
    c.share = bench_share(sizeof *c.share);
    c.process = bench_share(sizeof *c.process);
    pid_t pid[64];
    for (int i = 0; i < c.processes; i++)
        pid[i] = bench_fork(&(struct bench){.core = -1}, process, &c);
    bench_await(&c.share->ready, (uint32_t)(c.processes * c.threads));
    bench_sleep(WARM_UP_NS);
    atomic_store(&c.share->start, 1);
    bench_sleep((int64_t)(seconds * 1e9));
    atomic_store(&c.share->stop, 1);
    for (int i = 0; i < c.processes; i++)
        bench_join(pid[i]);
    printf("%d processes of %d threads take turns, each holds it for %g us\n", c.processes,
           c.threads, hold_us);
    print(&c, seconds);
    return 0;
}
