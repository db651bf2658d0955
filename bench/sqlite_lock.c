/* sqlite_lock.c: a free mutex in an SQLite file. */
#include "lock.h"
#include "sqlite_raw.h"

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "sqlite: acquire and release a free mutex, against the same two "
                                 "transactions by hand.",
                                 9, 0.5);
    bench_head();
    lock_compare(&b, &sqlite_contest, 1, 0.6);
    lock_compare(&b, &sqlite_contest, 8, 0.7);
    return 0;
}
