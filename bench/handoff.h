/* handoff.h: two processes hand one mutex to and fro: how long it takes from the moment one calls
 * release to the moment the other's acquire has returned, and whether a wake-up is ever lost.
 *
 * The one that waits is given a while to fall asleep. Every fourth time it is not: the release
 * then falls into the middle of its try, where wake-ups would get lost. Those do not count as
 * samples, but as slow ones. A third process on the same core does nothing but notice when the
 * machine stands still, so that its stalls do not pass for lost wake-ups. Those of the disk do. */
#ifndef BENCH_HANDOFF_H
#define BENCH_HANDOFF_H

#include "rival.h"

#define HANDOFF_PAUSE_NS 1000000
#define HANDOFF_SLOW_US 400000 /* only the slow poll behind the wakeup takes that long */
#define HANDOFF_MAX 1000000
#define HANDOFF_NAP_NS 10000000
#define HANDOFF_STALL_NS 100000000
#define HANDOFF_STALLS_MAX 1000

struct handoff_run {
    const struct bench *bench;
    const struct rival *rival;
    const char *location;
    uint32_t count;
    struct handoff_share {
        _Atomic uint32_t asked, acquired; /* futexes: how many times so far */
        _Atomic uint32_t futex;
        _Atomic int player;
        _Atomic int64_t released_at;
        _Atomic uint32_t stalls;
        int64_t stall_began[HANDOFF_STALLS_MAX], stall_ended[HANDOFF_STALLS_MAX];
        struct handoff_sample {
            int64_t ended;
            double took; /* µs */
        } sample[];
    } * share;
};

static inline bool handoff_is_race(uint32_t i)
{
    return i % 4 == 3;
}

static inline void handoff_watch_machine(void *arg)
{
    struct handoff_share *share = ((const struct handoff_run *)arg)->share;
    for (int64_t before = bench_now(), now;; before = now) {
        bench_sleep(HANDOFF_NAP_NS);
        now = bench_now();
        uint32_t i = atomic_load(&share->stalls);
        if (now - before < HANDOFF_STALL_NS || i == HANDOFF_STALLS_MAX)
            continue;
        share->stall_began[i] = before;
        share->stall_ended[i] = now;
        atomic_store(&share->stalls, i + 1);
    }
}

/* Slow, and not because everything was. */
static inline bool handoff_is_lost(const struct handoff_share *share, int64_t ended, double took_us)
{
    int64_t began = ended - (int64_t)(took_us * 1000), stalled = 0;
    for (uint32_t i = 0; i < atomic_load(&share->stalls); i++) {
        int64_t from = share->stall_began[i] > began ? share->stall_began[i] : began;
        int64_t to = share->stall_ended[i] < ended ? share->stall_ended[i] : ended;
        stalled += to > from ? to - from : 0;
    }
    return took_us - (double)stalled / 1000 > HANDOFF_SLOW_US;
}

/* Acquisition number i is the player's whose turn it is: even ones, odd ones. */
static inline void handoff_player(void *arg)
{
    const struct handoff_run *run = arg;
    struct handoff_share *share = run->share;
    void *one = run->rival->open(run->location, "ball", &share->futex);
    uint32_t random = 12345;
    for (uint32_t i = (uint32_t)atomic_fetch_add(&share->player, 1); i <= run->count; i += 2) {
        bench_await(&share->acquired, i);
        bench_set(&share->asked, i);
        run->rival->acquire(one);
        int64_t now = bench_now(), took = now - atomic_load(&share->released_at);
        share->sample[i] = (struct handoff_sample){now, (double)took / 1000};
        bench_set(&share->acquired, i + 1);
        if (i < run->count) {
            random = random * 1664525 + 1013904223;
            bench_await(&share->asked, i + 1);
            bench_sleep(handoff_is_race(i + 1) ? (random >> 8) % 300000 : HANDOFF_PAUSE_NS);
        }
        atomic_store(&share->released_at, bench_now());
        run->rival->release(one);
    }
    run->rival->close(one);
}

/* Appends the samples; returns how many were slow. */
static inline size_t handoff_once(const struct contest *contest, struct handoff_run *run,
                                  double *sample, size_t *samples)
{
    char location[LOCATION_MAX];
    size_t size = sizeof *run->share + (run->count + 1) * sizeof run->share->sample[0], slow = 0;
    run->share = bench_share(size);
    contest->begin(location);
    run->location = location;
    pid_t player[2], watch = bench_fork(run->bench, handoff_watch_machine, run);
    for (int i = 0; i < 2; i++)
        player[i] = bench_fork(run->bench, handoff_player, run);
    for (int i = 0; i < 2; i++)
        bench_join(player[i]);
    contest->end(location);
    bench_sleep(2 * HANDOFF_NAP_NS); /* it sees the last stall, too */
    kill(watch, SIGKILL);
    waitpid(watch, NULL, 0);
    for (uint32_t i = 1; i <= run->count; i++) { /* the first was not handed over */
        const struct handoff_sample *one = &run->share->sample[i];
        slow += handoff_is_lost(run->share, one->ended, one->took);
        if (!handoff_is_race(i))
            sample[(*samples)++] = one->took;
    }
    munmap(run->share, size);
    return slow;
}

/* aim: of the median, as multiple of the rival's. Returns how many of the library's were slow. */
static inline size_t handoff_compare(const struct bench *bench, const struct contest *contest,
                                     uint32_t count, double aim)
{
    static double sample[2][HANDOFF_MAX];
    size_t samples[2] = {0, 0}, slow[2] = {0, 0};
    const struct rival *rival[2] = {&contest->raw, &library};
    if (bench->count > 0)
        count = bench->count;
    uint32_t each = (count + (uint32_t)bench->rounds - 1) / (uint32_t)bench->rounds;
    for (int i = 0; i < bench->rounds; i++) {
        for (int side = 0; side < 2; side++) {
            struct handoff_run run = {.bench = bench, .rival = rival[side], .count = each};
            slow[side] += handoff_once(contest, &run, sample[side], &samples[side]);
        }
    }
    static const struct {
        const char *label;
        double q;
    } line[] = {{"release to acquired, p50, us", 0.5},
                {"release to acquired, p90, us", 0.9},
                {"release to acquired, p99, us", 0.99},
                {"release to acquired, longest, us", 1}};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        bench_row(line[i].label, bench_quantile(sample[0], samples[0], line[i].q),
                  bench_quantile(sample[1], samples[1], line[i].q), i == 0 ? -aim : 0);
    printf("%-34s %10zu %10zu           of %u each; aim 0\n", "over 400 ms: a lost wake-up",
           slow[0], slow[1], each * (uint32_t)bench->rounds);
    bench_figure("lost wake-ups", -1, (double)slow[0], (double)slow[1]);
    return slow[1];
}
#endif
