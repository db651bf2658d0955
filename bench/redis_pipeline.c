/* redis_pipeline.c: many mutexes at once from one process: 64 threads with a locker each, against a
 * program that sends 64 scripts, reads 64 answers, and so on. */
#include <pthread.h>

#include "redis_raw.h"

#define LOCKERS 64

struct run {
    const struct bench *bench;
    const char *location;
    double *rate;
};

static void by_hand(void *arg)
{
    const struct run *run = arg;
    static struct raw_redis one[LOCKERS];
    struct raw_redis *first = raw_redis_open(run->location, "m", NULL);
    for (int i = 0; i < LOCKERS; i++) {
        char mutex[16];
        snprintf(mutex, sizeof mutex, "m%d", i);
        one[i] = *first;
        raw_redis_name(&one[i], mutex);
    }
    int64_t began = bench_now(), now = began;
    long count = 0;
    for (; now - began < run->bench->run_ns; now = bench_now(), count += LOCKERS) {
        for (int which = RAW_ACQUIRE; which <= RAW_RELEASE; which++) {
            for (int i = 0; i < LOCKERS; i++)
                raw_redis_ask(&one[i], (enum raw_script)which);
            for (int i = 0; i < LOCKERS; i++) {
                if (!raw_redis_hear(&one[i], (enum raw_script)which))
                    bench_die("by hand: refused");
            }
        }
    }
    *run->rate = (double)count * 1e9 / (double)(now - began);
}

struct worker {
    simba_locker *locker;
    int64_t until;
    long count;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    while (bench_now() < w->until) {
        if (simba_locker_acquire(w->locker, 60000) != 0 || simba_locker_release(w->locker) != 0)
            bench_die("%s", simba_error_text());
        w->count++;
    }
    return NULL;
}

static void by_library(void *arg)
{
    const struct run *run = arg;
    static struct worker worker[LOCKERS];
    pthread_t thread[LOCKERS];
    simba_client *client = NULL;
    if (simba_open(run->location, NULL, &client) != 0)
        bench_die("%s", simba_error_text());
    for (int i = 0; i < LOCKERS; i++) {
        char mutex[16];
        snprintf(mutex, sizeof mutex, "m%d", i);
        if (simba_locker_create(client, mutex, NULL, &worker[i].locker) != 0 ||
            simba_locker_acquire(worker[i].locker, 10000) != 0 ||
            simba_locker_release(worker[i].locker) != 0)
            bench_die("%s", simba_error_text());
    }
    int64_t began = bench_now();
    long count = 0;
    for (int i = 0; i < LOCKERS; i++) {
        worker[i].until = began + run->bench->run_ns;
        pthread_create(&thread[i], NULL, work, &worker[i]);
    }
    for (int i = 0; i < LOCKERS; i++) {
        pthread_join(thread[i], NULL);
        count += worker[i].count;
    }
    *run->rate = (double)count * 1e9 / (double)(bench_now() - began);
    simba_close(client, 10000);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(
        argc, argv, "redis: 64 lockers of one process, against 64 pipelined scripts by hand.", 7,
        0.5);
    static double rate[2][BENCH_ROUNDS_MAX];
    double *shared = bench_share(sizeof *shared);
    char location[LOCATION_MAX];
    for (int i = 0; i < b.rounds; i++) {
        for (int side = 0; side < 2; side++) {
            redis_begin(location);
            struct run run = {.bench = &b, .location = location, .rate = shared};
            bench_run(&b, side == 0 ? by_hand : by_library, &run);
            rate[side][i] = *shared;
        }
    }
    bench_head();
    bench_row("acquire + release, pairs per second", bench_median(rate[0], (size_t)b.rounds),
              bench_median(rate[1], (size_t)b.rounds), 0.85);
    return 0;
}
