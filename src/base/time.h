/* time.h: times are nanoseconds of the one clock that decides (clock.h); lengths that people and
 * stores give are milliseconds. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NEVER INT64_MAX
#endif
