/* cold_start.c: what `simba lock x true` costs a script, beside `flock f true`. */
#include "start.h"

#define ROUNDS 60
#define AIM 1.8

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "cold start: `simba lock x true` on sqlite:, against `flock f "
                                 "true`; microseconds.",
                                 ROUNDS, 1);
    start_compare_sqlite(&b, 1, AIM);
    return 0;
}
