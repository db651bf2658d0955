/* contend.c: threads of some processes contend for one mutex, each coming back at once: how often it
 * changes hands, how evenly it is shared, and how long the unluckiest wait.
 *
 *   contend URL [--processes 1,2,4] [--threads N] [--seconds S] [--hold US]
 *
 * Default: 4 processes of 8 threads, for 3 s, each holding it for 100 us. Each thread has a locker,
 * each process a client. "Overtaken" is how often one other thread had it while a thread waited: 1
 * where all take turns. Not memory:, which is in one process. */
#include <pthread.h>

#include "rival.h"

#define PROCESSES_MAX 64
#define THREADS_MAX 16
#define ALL_MAX (PROCESSES_MAX * THREADS_MAX)
#define ACQUIRE_MS 60000
#define WARM_UP_NS 500000000

struct share {
    _Atomic uint32_t ready, begun;
    _Atomic int stop, inside;
    _Atomic uint32_t turns[ALL_MAX];
    struct waits {
        double count, sum_us, longest_us;
        uint32_t overtaken;
    } waits[ALL_MAX];
};

struct contention {
    const char *url;
    int processes, threads;
    int64_t run_ns, hold_ns;
    struct share *share;
    _Atomic int enrolled; /* of the threads of this process */
    int process;
    simba_client *client;
};

static void count_wait(const struct contention *c, int me, int64_t waited, const uint32_t *before)
{
    struct share *s = c->share;
    struct waits *w = &s->waits[me];
    double us = (double)waited / 1000;
    w->count++;
    w->sum_us += us;
    w->longest_us = us > w->longest_us ? us : w->longest_us;
    for (int i = 0; i < c->processes * c->threads; i++) {
        uint32_t overtook = atomic_load(&s->turns[i]) - before[i];
        if (i != me && overtook > w->overtaken)
            w->overtaken = overtook;
    }
}

static void take_turn(const struct contention *c, int me, simba_locker *l)
{
    struct share *s = c->share;
    uint32_t before[ALL_MAX];
    for (int i = 0; i < c->processes * c->threads; i++)
        before[i] = atomic_load(&s->turns[i]);
    int64_t from = bench_now();
    if (simba_locker_acquire(l, ACQUIRE_MS) != 0)
        bench_die("%s", simba_error_text());
    int64_t waited = bench_now() - from;
    if (atomic_fetch_add(&s->inside, 1) != 0)
        bench_die("two own the mutex");
    bench_sleep(c->hold_ns);
    if (atomic_load(&s->begun) == 1 && atomic_load(&s->stop) == 0) {
        count_wait(c, me, waited, before);
        atomic_fetch_add(&s->turns[me], 1);
    }
    atomic_fetch_sub(&s->inside, 1);
    if (simba_locker_release(l) != 0)
        bench_die("%s", simba_error_text());
}

static void *contend(void *arg)
{
    struct contention *c = arg;
    simba_locker *l = NULL;
    int me = c->process * c->threads + atomic_fetch_add(&c->enrolled, 1);
    if (simba_locker_create(c->client, "contended", NULL, &l) != 0)
        bench_die("%s", simba_error_text());
    bench_add(&c->share->ready);
    while (atomic_load(&c->share->stop) == 0)
        take_turn(c, me, l);
    simba_locker_destroy(l);
    return NULL;
}

static void process(void *arg)
{
    struct contention *c = arg;
    pthread_t thread[THREADS_MAX];
    if (simba_open(c->url, NULL, &c->client) != 0)
        bench_die("%s", simba_error_text());
    for (int i = 0; i < c->threads; i++) {
        if (pthread_create(&thread[i], NULL, contend, c) != 0)
            bench_die("cannot start a thread");
    }
    for (int i = 0; i < c->threads; i++)
        pthread_join(thread[i], NULL);
    if (simba_close(c->client, 20000) != 0)
        bench_die("%s", simba_error_text());
}

static void print_shares(const struct contention *c, double seconds)
{
    double x = c->processes, count = 0, sum = 0, longest = 0, most = 0, least = 1e18;
    uint32_t overtaken = 0;
    for (int i = 0; i < c->processes * c->threads; i++) {
        const struct waits *w = &c->share->waits[i];
        count += w->count;
        sum += w->sum_us;
        most = w->count > most ? w->count : most;
        least = w->count < least ? w->count : least;
        longest = w->longest_us > longest ? w->longest_us : longest;
        overtaken = w->overtaken > overtaken ? w->overtaken : overtaken;
    }
    double mean = count > 0 ? sum / count : 0;
    bench_say("hand-overs per second", x, count / seconds);
    bench_say("turns of the luckiest to the unluckiest", x, least > 0 ? most / least : most);
    bench_say("wait, mean, us", x, mean);
    bench_say("wait, longest, us", x, longest);
    bench_say("longest wait to the mean", x, mean > 0 ? longest / mean : 0);
    bench_say("overtaken by one other, at most", x, overtaken);
    if (least < 1)
        printf("           some have not had their turn\n");
}

static void run(struct contention *c)
{
    pid_t pid[PROCESSES_MAX];
    c->share = bench_share(sizeof *c->share);
    for (int i = 0; i < c->processes; i++) {
        c->process = i;
        pid[i] = bench_fork(&(struct bench){.core = -1}, process, c);
    }
    bench_await(&c->share->ready, (uint32_t)(c->processes * c->threads));
    bench_sleep(WARM_UP_NS);
    int64_t from = bench_now();
    atomic_store(&c->share->begun, 1);
    bench_sleep(c->run_ns);
    atomic_store(&c->share->stop, 1);
    double seconds = (double)(bench_now() - from) / 1e9;
    for (int i = 0; i < c->processes; i++)
        bench_join(pid[i]);
    print_shares(c, seconds);
    munmap(c->share, sizeof *c->share);
}

int main(int argc, char **argv)
{
    struct contention c = {.threads = 8, .run_ns = 3000000000, .hold_ns = 100000};
    long point[BENCH_POINTS_MAX] = {4};
    size_t points = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--processes") == 0)
            points = bench_points(argv[i++], value, PROCESSES_MAX, point);
        else if (strcmp(argv[i], "--threads") == 0)
            c.threads = (int)bench_number(argv[i++], value, 1, THREADS_MAX);
        else if (strcmp(argv[i], "--seconds") == 0)
            c.run_ns = (int64_t)(bench_number(argv[i++], value, 0.1, 3600) * 1e9);
        else if (strcmp(argv[i], "--hold") == 0)
            c.hold_ns = (int64_t)(bench_number(argv[i++], value, 0, 1e6) * 1e3);
        else
            c.url = argv[i];
    }
    if (c.url == NULL)
        bench_die("missing URL of a store that processes share, as in sqlite:/tmp/new/locks.db");
    for (size_t i = 0; i < points; i++) {
        c.processes = (int)point[i];
        run(&c);
    }
    return 0;
}
