/* postgres_lock.c: a free mutex in a PostgreSQL server.
 *   SIMBA_TEST_DURABLE=1 tests/servers/postgres env SIMBA_BENCH_URL=@URL@ \
 *       SIMBA_MODULE_PATH=$PWD/build/modules build/bench/postgres_lock
 * The server should be on the same core: taskset -c 1 before it all. */
#include "lock.h"
#include "postgres_raw.h"

int main(int argc, char **argv)
{
    struct bench b =
        bench_begin(argc, argv,
                    "postgresql: acquire and release a free mutex, against the same two "
                    "statements by hand.",
                    7, 0.5);
    bench_head();
    lock_compare(&b, &postgres_contest, 1, 0.8);
    return 0;
}
