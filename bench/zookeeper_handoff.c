/* zookeeper_handoff.c: a mutex in ZooKeeper, handed from one process to another. By hand this is a
 * delete, a watch that fires, a look at the children. */
#include "handoff.h"
#include "zookeeper_raw.h"

#define HANDOVERS 2000

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "zookeeper: hand a mutex to a process that waits for it, against "
                                 "delete, watch and children by hand.",
                                 10, 1);
    bench_head();
    return handoff_compare(&b, &zookeeper_contest, HANDOVERS, 1.3) == 0 ? 0 : 1;
}
