/* worker.c: contends for a mutex and writes down every time that it was the owner, for judge.py:
 *     WORKER MUTEX TOKEN BEFORE_NS AFTER_NS
 * owns(token) said yes at some moment between the two readings of the clock. At most one line
 * per ms. Now and then it stops and starts again, so that the mutex changes hands. */
#include <inttypes.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void restart(simba_contender *c)
{
    if (simba_contender_stop(c) == 0)
        simba_contender_wait(c, SIMBA_INITIAL, 60000);
    simba_contender_start(c);
}

int main(int argc, char **argv)
{
    simba_client *s = NULL;
    simba_contender *c = NULL;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    if (argc != 6) {
        fprintf(stderr, "usage: torture_worker URL MUTEX NAME SECONDS SEED\n");
        return 64;
    }
    const char *mutex = argv[2], *name = argv[3];
    int64_t end = now_ns() + strtoll(argv[4], NULL, 10) * INT64_C(1000000000), tenure_end = 0;
    unsigned seed = (unsigned)strtoul(argv[5], NULL, 10);
    uint64_t last = 0;
    if (simba_open(argv[1], NULL, &s) != 0 || simba_contender_create(s, mutex, &o, &c) != 0 ||
        simba_contender_start(c) != 0) {
        fprintf(stderr, "torture_worker: %s\n", simba_error_text());
        return 125;
    }
    while (now_ns() < end) {
        uint64_t token = simba_contender_token(c);
        int64_t before = now_ns();
        bool is_owner = token != 0 && simba_contender_owns(c, token);
        int64_t after = now_ns();
        if (is_owner)
            printf("%s %s %" PRIu64 " %" PRId64 " %" PRId64 "\n", name, mutex, token, before,
                   after);
        if (is_owner && token != last)
            tenure_end = after + rand_r(&seed) % 4000 * INT64_C(1000000);
        last = is_owner ? token : last;
        if (is_owner && after > tenure_end)
            restart(c);
        nap_us(1000);
    }
    fflush(stdout);
    simba_contender_stop(c);
    simba_close(s, 5000);
    return 0;
}
