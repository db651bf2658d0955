/* lock.h: how many times a second a free mutex is acquired and released, by some processes at once,
 * each with a mutex of its own. */
#ifndef BENCH_LOCK_H
#define BENCH_LOCK_H

#include "rival.h"

#define LOCK_WARM_UP 100
#define LOCK_CYCLES_MAX 1000000 /* remembered, per process */
#define LOCK_PROCESSES_MAX 8

struct lock_run {
    const struct bench *bench;
    const struct rival *rival;
    const char *location;
    int processes;
    struct lock_share {
        _Atomic uint32_t ready, start; /* futexes */
        _Atomic int enrolled;
        double rate[LOCK_PROCESSES_MAX];
        double cycle[LOCK_PROCESSES_MAX]; /* the median, in µs */
    } * share;
};

static inline void lock_process(void *arg)
{
    const struct lock_run *run = arg;
    struct lock_share *share = run->share;
    static double cycle[LOCK_CYCLES_MAX];
    char mutex[32];
    size_t count = 0;
    int me = atomic_fetch_add(&share->enrolled, 1);
    snprintf(mutex, sizeof mutex, "mutex-%d", me);
    void *one = run->rival->open(run->location, mutex, NULL);
    for (int i = 0; i < LOCK_WARM_UP; i++) {
        run->rival->acquire(one);
        run->rival->release(one);
    }
    bench_add(&share->ready);
    bench_await(&share->start, 1);
    int64_t began = bench_now(), last = began, now = began;
    while (now - began < run->bench->run_ns && count < LOCK_CYCLES_MAX) {
        run->rival->acquire(one);
        run->rival->release(one);
        now = bench_now();
        cycle[count++] = (double)(now - last) / 1000;
        last = now;
    }
    share->rate[me] = (double)count * 1e9 / (double)(now - began);
    run->rival->close(one);
    share->cycle[me] = bench_median(cycle, count);
}

static inline void lock_once(const struct contest *contest, struct lock_run *run, double *rate,
                             double *cycle)
{
    char location[LOCATION_MAX];
    pid_t process[LOCK_PROCESSES_MAX];
    struct lock_share *share = bench_share(sizeof *share);
    contest->begin(location);
    run->location = location;
    run->share = share;
    for (int i = 0; i < run->processes; i++)
        process[i] = bench_fork(run->bench, lock_process, run);
    bench_await(&share->ready, (uint32_t)run->processes);
    bench_set(&share->start, 1);
    for (int i = 0; i < run->processes; i++)
        bench_join(process[i]);
    contest->end(location);
    *rate = 0;
    for (int i = 0; i < run->processes; i++)
        *rate += share->rate[i];
    *cycle = bench_median(share->cycle, (size_t)run->processes);
    munmap(share, sizeof *share);
}

/* aim: of the rate, as part of the rival's. */
static inline void lock_compare(const struct bench *bench, const struct contest *contest,
                                int processes, double aim)
{
    static double rate[2][BENCH_ROUNDS_MAX], cycle[2][BENCH_ROUNDS_MAX];
    char label[64];
    const struct rival *rival[2] = {&contest->raw, &library};
    for (int i = 0; i < bench->rounds; i++) {
        for (int side = 0; side < 2; side++) {
            struct lock_run run = {.bench = bench, .rival = rival[side], .processes = processes};
            lock_once(contest, &run, &rate[side][i], &cycle[side][i]);
        }
    }
    size_t n = (size_t)bench->rounds;
    snprintf(label, sizeof label, "%d process%s: cycles per second", processes,
             processes == 1 ? "" : "es");
    bench_row(label, bench_median(rate[0], n), bench_median(rate[1], n), aim);
    snprintf(label, sizeof label, "%d process%s: a cycle, p50, us", processes,
             processes == 1 ? "" : "es");
    bench_row(label, bench_median(cycle[0], n), bench_median(cycle[1], n),
              processes == 1 ? -1 / aim : 0);
}
#endif
