/* async.c: many free mutexes, acquired and released one after the other by calls that wait, and all
 * at once by calls that do not.
 *
 *   async [URL] [--count N]        default memory: and 10,000 */
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static _Atomic uint32_t notified; /* results of 0 */

static void must(int code)
{
    if (code < 0)
        bench_die("%s", simba_error_text());
}

static void count_result(void *data, int code)
{
    (void)data;
    must(code);
    atomic_fetch_add(&notified, 1);
}

static void await_all(uint32_t count)
{
    while (atomic_load(&notified) < count)
        usleep(100);
    atomic_store(&notified, 0);
}

static void say(const char *what, int64_t began, size_t count)
{
    double each = (double)(bench_now() - began) / 1000 / (double)count;
    printf("%-36s %8.2f us per lock\n", what, each);
    bench_figure(what, -1, -1, each);
}

int main(int argc, char **argv)
{
    const char *url = "memory:";
    size_t count = 10000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtoul(argv[++i], NULL, 10);
        else
            url = argv[i];
    }
    simba_client *s;
    must(simba_open(url, NULL, &s));
    simba_locker **l = calloc(count, sizeof(simba_locker *));
    for (size_t i = 0; i < count && l != NULL; i++) {
        char mutex[32];
        snprintf(mutex, sizeof mutex, "async-%zu", i);
        must(simba_locker_create(s, mutex, NULL, &l[i]));
    }
    must(simba_locker_acquire(l[0], 60000)); /* connects */
    must(simba_locker_release(l[0]));

    int64_t began = bench_now();
    for (size_t i = 0; i < count; i++) {
        must(simba_locker_acquire(l[i], 60000));
        must(simba_locker_release(l[i]));
    }
    say("waiting, one after the other", began, count);

    began = bench_now();
    for (size_t i = 0; i < count; i++)
        must(simba_locker_acquire_async(l[i], 60000, count_result, NULL));
    await_all((uint32_t)count);
    for (size_t i = 0; i < count; i++)
        must(simba_locker_release_async(l[i], count_result, NULL));
    await_all((uint32_t)count);
    say("without waiting, all at once", began, count);
    free(l);
    must(simba_close(s, 60000));
    return 0;
}
