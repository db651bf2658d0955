/* postgres_handoff.c: a mutex in a PostgreSQL server, handed from one process to another. By
 * hand this is a statement that also notifies, and one by the other, who listens. Run as
 * postgres_lock. */
#include "handoff.h"
#include "postgres_raw.h"

#define HANDOVERS 1500

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "postgresql: hand a mutex to a process that waits for it, against "
                                 "NOTIFY by hand.",
                                 5, 1);
    bench_head();
    return handoff_compare(&b, &postgres_contest, HANDOVERS, 1.4) == 0 ? 0 : 1;
}
