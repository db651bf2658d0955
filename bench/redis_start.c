/* redis_start.c: what `simba lock x true` costs a script, beside `flock f true`. */
#include "redis_raw.h"
#include "start.h"

#define ROUNDS 60
#define AIM 2.5

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv,
                                 "cold start: `simba lock x true` on redis:, against `flock f "
                                 "true`; microseconds.",
                                 ROUNDS, 1);
    char location[LOCATION_MAX];
    redis_begin(location);
    start_compare(&b, redis_folder, location, 1, AIM);
    return 0;
}
