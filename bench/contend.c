/* contend.c: processes contend for one mutex, each holding it for a moment: how often it changes
 * hands, how evenly it is shared, and how long the unluckiest wait.
 *
 *   contend URL [--processes 1,2,4] [--threads N] [--seconds S] [--hold US]
 *
 * Default: 4 processes with one thread each, for 3 s, holding for 100 us. Each thread has a locker,
 * each process a client. Not memory:, which is in one process. */
#include <pthread.h>

#include "rival.h"

#define PROCESSES_MAX 256
#define THREADS_MAX 64
#define ACQUIRE_MS 60000

struct share {
    _Atomic uint32_t ready, start, stop;
    struct tally {
        double turns, waited_us, longest_us;
    } tally[PROCESSES_MAX * THREADS_MAX];
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

static void *contend(void *arg)
{
    struct contention *c = arg;
    struct tally mine = {.turns = 0};
    simba_locker *l = NULL;
    int me = c->process * c->threads + atomic_fetch_add(&c->enrolled, 1);
    if (simba_locker_create(c->client, "contended", NULL, &l) != 0)
        bench_die("%s", simba_error_text());
    bench_add(&c->share->ready);
    bench_await(&c->share->start, 1);
    while (atomic_load(&c->share->stop) == 0) {
        int64_t began = bench_now();
        if (simba_locker_acquire(l, ACQUIRE_MS) != 0)
            bench_die("%s", simba_error_text());
        int64_t now = bench_now();
        double waited = (double)(now - began) / 1000;
        for (int64_t until = now + c->hold_ns; bench_now() < until;)
            ; /* as work would: the processor is busy */
        if (simba_locker_release(l) != 0)
            bench_die("%s", simba_error_text());
        if (atomic_load(&c->share->stop) != 0)
            break;
        mine.turns++;
        mine.waited_us += waited;
        mine.longest_us = waited > mine.longest_us ? waited : mine.longest_us;
    }
    c->share->tally[me] = mine;
    return NULL;
}

static void process(void *arg)
{
    struct contention *c = arg;
    pthread_t thread[THREADS_MAX];
    struct simba_owner owner;
    if (simba_open(c->url, NULL, &c->client) != 0 ||
        simba_read(c->client, "contended", ACQUIRE_MS, &owner) != 0) /* it is connected */
        bench_die("%s", simba_error_text());
    for (int i = 0; i < c->threads; i++)
        pthread_create(&thread[i], NULL, contend, c);
    for (int i = 0; i < c->threads; i++)
        pthread_join(thread[i], NULL);
    if (simba_close(c->client, 20000) != 0)
        bench_die("%s", simba_error_text());
}

static void print_tally(const struct contention *c, double seconds)
{
    double x = c->processes, n = (double)c->processes * c->threads;
    double turns = 0, waited = 0, longest = 0, most = 0, least = 1e18;
    for (int i = 0; i < c->processes * c->threads; i++) {
        const struct tally *t = &c->share->tally[i];
        turns += t->turns;
        waited += t->waited_us;
        most = t->turns > most ? t->turns : most;
        least = t->turns < least ? t->turns : least;
        longest = t->longest_us > longest ? t->longest_us : longest;
    }
    bench_say("acquisitions per second", x, turns / seconds);
    bench_say("acquisitions, luckiest to unluckiest", x, least > 0 ? most / least : most);
    bench_say("wait, mean, us", x, turns > 0 ? waited / turns : 0);
    bench_say("wait, longest, us", x, longest);
    if (turns < n)
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
    int64_t began = bench_now();
    bench_set(&c->share->start, 1);
    bench_sleep(c->run_ns);
    atomic_store(&c->share->stop, 1);
    double seconds = (double)(bench_now() - began) / 1e9;
    for (int i = 0; i < c->processes; i++)
        bench_join(pid[i]);
    print_tally(c, seconds);
    munmap(c->share, sizeof *c->share);
}

int main(int argc, char **argv)
{
    struct contention c = {.threads = 1, .run_ns = 3000000000, .hold_ns = 100000};
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
