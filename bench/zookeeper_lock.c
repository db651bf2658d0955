/* zookeeper_lock.c: a free mutex in ZooKeeper, against the C client by hand. */
#include "lock.h"
#include "zookeeper_raw.h"

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "zookeeper: acquire and release a free mutex, against create + "
                                 "children + delete by hand.",
                                 9, 1);
    bench_head();
    lock_compare(&b, &zookeeper_contest, 1, 0.8);
    return 0;
}
