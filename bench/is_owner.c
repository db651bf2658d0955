/* is_owner.c: what simba_contender_is_owner costs, beside the clock read that it cannot do without.
 *
 * Both are measured in turns within one run and the medians compared, so that a change of the
 * machine's speed meets both alike. */
#include <simba.h>

#include "bench.h"

#define ROUNDS 401
#define CALLS 20000

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double clock_round(void)
{
    volatile int64_t sink = 0;
    int64_t began = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; i++)
        sink = nanoseconds(CLOCK_BOOTTIME);
    (void)sink;
    return (double)(nanoseconds(CLOCK_MONOTONIC) - began) / CALLS;
}

/* Counts the answers, so that a tenure that was lost meanwhile cannot pass for a fast one. */
static double owner_round(const simba_contender *c)
{
    int yes = 0;
    int64_t began = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; i++)
        yes += simba_contender_is_owner(c);
    double each = (double)(nanoseconds(CLOCK_MONOTONIC) - began) / CALLS;
    if (yes != CALLS) {
        fprintf(stderr, "is_owner: the tenure was lost during the measurement\n");
        exit(1);
    }
    return each;
}

int main(void)
{
    static double clock_ns[ROUNDS], owner_ns[ROUNDS];
    simba_client *s = NULL;
    simba_contender *c = NULL;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = 3600000; /* no renewal falls into the measurement */
    if (simba_open("memory:", NULL, &s) != 0 || simba_contender_create(s, "bench", &o, &c) != 0 ||
        simba_contender_start(c) != 0) {
        fprintf(stderr, "is_owner: %s\n", simba_error_text());
        return 1;
    }
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; !simba_contender_is_owner(c); i++) {
        if (i == 10000) {
            fprintf(stderr, "is_owner: not elected within 10 s\n");
            return 1;
        }
        nanosleep(&moment, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        clock_ns[i] = clock_round();
        owner_ns[i] = owner_round(c);
    }
    double clock_each = bench_median(clock_ns, ROUNDS), owner_each = bench_median(owner_ns, ROUNDS);
    printf("clock_gettime(CLOCK_BOOTTIME)  %7.1f ns\n", clock_each);
    printf("simba_contender_is_owner       %7.1f ns\n", owner_each);
    printf("difference                     %7.1f ns\n", owner_each - clock_each);
    bench_figure("is_owner beside a clock read, ns", -1, clock_each, owner_each);
    printf("Medians of %d rounds of %d calls, in turns; the difference is what the answer costs "
           "beyond reading the clock.\n",
           ROUNDS, CALLS);
    return simba_close(s, 10000) == 0 ? 0 : 1;
}
