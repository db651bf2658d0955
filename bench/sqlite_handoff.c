/* sqlite_handoff.c: a mutex in an SQLite file, handed from one process to another. By hand this
 * is a transaction, a word in shared memory that the other sleeps on, a transaction. */
#include "handoff.h"
#include "sqlite_raw.h"

#define HANDOVERS 10000

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "sqlite: hand a mutex to a process that waits for it, against two "
                                 "transactions and a futex by hand.",
                                 10, 1);
    bench_head();
    return handoff_compare(&b, &sqlite_contest, HANDOVERS, 2) == 0 ? 0 : 1;
}
