/* redis_handoff.c: a mutex in Redis, handed from one process to another. By hand this is a
 * script, a message, a script. */
#include "handoff.h"
#include "redis_raw.h"

#define HANDOVERS 5000

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "redis: hand a mutex to a process that waits for it, against two "
                                 "scripts and a message by hand.",
                                 10, 1);
    bench_head();
    return handoff_compare(&b, &redis_contest, HANDOVERS, 1.3) == 0 ? 0 : 1;
}
