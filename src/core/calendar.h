/* calendar.h: when a cron expression comes, in a time zone. Its instants are ticks: milliseconds
 * since 1970 UTC.
 *
 * Where clocks are changed, as Vixie cron does it. A time of day (neither minute nor hour begins
 * with a star) comes once a day: one that is skipped comes the instant after the gap, one that is
 * repeated comes the first time. Expressions with a star there follow the time that really passes:
 * every hour is every 60 minutes, also in that night. */
#ifndef CORE_CALENDAR_H
#define CORE_CALENDAR_H

#include "core/cron.h"
#include "core/zone.h"

#define CALENDAR_NEVER INT64_MAX /* not before the year 10000 */

/* The first tick later than `after`, which is 0 or more. */
int64_t calendar_next(const struct cron *c, const struct zone *z, int64_t after);

/* The last tick that is later than `after` and not later than `until`; 0: there is none. */
int64_t calendar_last(const struct cron *c, const struct zone *z, int64_t after, int64_t until);
#endif
