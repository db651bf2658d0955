/* peer.c: what the programs in bench/peers measure of other libraries, of ours: see
 * bench/peers/compare for the figures and the line of JSON.
 *
 *   peer URL [SECONDS] */
#include <pthread.h>
#include <semaphore.h>

#include "rival.h"

#define ASLEEP_NS 3000000
#define SAMPLES_MAX 1000000

struct waiter {
    void *one;
    sem_t go, done;
    int64_t got_at;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    while (sem_wait(&w->go) == 0) {
        library.acquire(w->one);
        w->got_at = bench_now();
        library.release(w->one);
        sem_post(&w->done);
    }
    return NULL;
}

static double handover_us(void *one, const char *url, int64_t run_ns)
{
    static double took[SAMPLES_MAX];
    struct waiter w = {.one = library.open(url, "peer", NULL)};
    pthread_t thread;
    size_t n = 0;
    sem_init(&w.go, 0, 0);
    sem_init(&w.done, 0, 0);
    pthread_create(&thread, NULL, wait_for_it, &w);
    for (int64_t end = bench_now() + run_ns; bench_now() < end && n < SAMPLES_MAX;) {
        library.acquire(one);
        sem_post(&w.go);
        bench_sleep(ASLEEP_NS);
        int64_t began = bench_now();
        library.release(one);
        sem_wait(&w.done);
        took[n++] = (double)(w.got_at - began) / 1000;
    }
    return bench_median(took, n);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        bench_die("peer URL [SECONDS]");
    int64_t run_ns = (int64_t)(bench_number("SECONDS", argc > 2 ? argv[2] : "2", 0.1, 3600) * 1e9);
    void *one = library.open(argv[1], "peer", NULL);
    library.acquire(one);
    int64_t first = bench_now(), now = first;
    library.release(one);
    long pairs = 0;
    int64_t began = bench_now();
    for (; now < began + run_ns; now = bench_now(), pairs++) {
        library.acquire(one);
        library.release(one);
    }
    double rate = (double)pairs * 1e9 / (double)(now - began);
    double handover = handover_us(one, argv[1], run_ns);
    printf("{\"first_ns\": %lld, \"pairs_per_s\": %.1f, \"handover_us\": %.1f}\n", (long long)first,
           rate, handover);
    bench_figure("hand-over, p50, us", -1, -1, handover);
    return 0;
}
