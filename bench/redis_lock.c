/* redis_lock.c: a free mutex in Redis. */
#include "lock.h"
#include "redis_raw.h"

int main(int argc, char **argv)
{
    struct bench b = bench_begin(
        argc, argv,
        "redis: acquire and release a free mutex, against the same two scripts by hand.", 9, 0.5);
    bench_head();
    lock_compare(&b, &redis_contest, 1, 0.6);
    return 0;
}
