/* zookeeper_lock.c: a free mutex in ZooKeeper; against the C client by hand, and against kazoo's
 * Lock, the usual one in Python, if that is installed. */
#include "lock.h"
#include "zookeeper_raw.h"

static double kazoo(const struct bench *b)
{
    char command[512], line[64] = "";
    const char *url = getenv("SIMBA_BENCH_URL");
    char pin[32] = "";
    if (b->core >= 0)
        snprintf(pin, sizeof pin, "taskset -c %d ", b->core);
    snprintf(command, sizeof command, "%s/usr/bin/python3 bench/zookeeper_kazoo.py '%.200s' %g",
             pin, url, (double)b->run_ns / 1e9);
    FILE *f = popen(command, "r");
    bool read = f != NULL && fgets(line, sizeof line, f) != NULL;
    if (f != NULL)
        pclose(f);
    return read ? strtod(line, NULL) : 0;
}

static double simba_rate(const struct bench *b)
{
    struct lock_run run = {.bench = b, .rival = &library, .processes = 1};
    double rate, cycle;
    lock_once(&zookeeper_contest, &run, &rate, &cycle);
    return rate;
}

int main(int argc, char **argv)
{
    static double rate[2][BENCH_ROUNDS_MAX];
    struct bench b = bench_begin(argc, argv,
                                 "zookeeper: acquire and release a free mutex, against create + "
                                 "children + delete by hand, and against kazoo.",
                                 9, 1);
    bench_head();
    lock_compare(&b, &zookeeper_contest, 1, 0.8);
    int rounds = b.rounds > 3 ? 3 : b.rounds;
    for (int i = 0; i < rounds; i++) {
        rate[0][i] = kazoo(&b);
        rate[1][i] = simba_rate(&b);
        if (rate[0][i] <= 0) {
            printf("kazoo is not there (Debian: python3-kazoo): not compared\n");
            return 0;
        }
    }
    bench_row("kazoo's Lock: cycles per second", bench_median(rate[0], (size_t)rounds),
              bench_median(rate[1], (size_t)rounds), 2);
    return 0;
}
