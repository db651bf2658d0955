/* sqlite_herd.c: 200 `simba lock x true` at once on one file, beside 200 `flock f true`: how long until
 * the last has had its turn. */
#include "start.h"

#define ROUNDS 5
#define AT_ONCE 200
#define AIM 3

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "sqlite: 200 `simba lock x true` at once, against 200 `flock f "
                                 "true`; microseconds.",
                                 ROUNDS, 1);
    start_compare_sqlite(&b, AT_ONCE, AIM);
    return 0;
}
