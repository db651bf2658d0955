/* calendar.c: see calendar.h. Times in here are seconds: `at` since 1970 UTC, `local` the same of
 * what clocks in the zone show. */
#include "core/calendar.h"

#include <assert.h>

#include "core/date.h"

#define MINUTE_S 60
#define DAY_MINUTES 1440
#define MS_PER_S 1000
#define WINDOW_MS INT64_C(3600000) /* how far back to search first; then twice as far */

/* A minute of the day, from `minute` on; -1: none on this day. */
static int next_minute(const struct cron *c, int minute)
{
    for (int hour = minute / 60; hour < 24; hour++, minute = hour * 60) {
        if ((c->hours >> hour & 1) == 0)
            continue;
        for (int m = minute % 60; m < 60; m++)
            if ((c->minutes >> m & 1) != 0)
                return hour * 60 + m;
    }
    return -1;
}

/* The day, from `days` on. The expression comes, so the search ends; 40 years are the most. */
static int64_t next_day(const struct cron *c, int64_t days)
{
    for (;;) {
        struct date d = date_of_days(days);
        if (d.year > DATE_YEAR_MAX)
            return CALENDAR_NEVER;
        if (cron_has_day(c, d.month, d.day, date_weekday(days)))
            return days;
        if ((c->months >> d.month & 1) == 0)
            days = date_to_days(d.year, d.month, date_days_in_month(d.year, d.month));
        days++;
    }
}

/* The first time that fits, at or after `local`, whatever the zone does. */
static int64_t next_local(const struct cron *c, int64_t local)
{
    int64_t minutes = date_floor_div(local + MINUTE_S - 1, MINUTE_S);
    int64_t days = date_floor_div(minutes, DAY_MINUTES);
    int minute = (int)(minutes - days * DAY_MINUTES);
    for (;;) {
        int64_t day = next_day(c, days);
        if (day == CALENDAR_NEVER)
            return CALENDAR_NEVER;
        int found = next_minute(c, day == days ? minute : 0);
        if (found >= 0)
            return (day * DAY_MINUTES + found) * MINUTE_S;
        days = day + 1;
        minute = 0;
    }
}

/* The first instant when clocks in the zone show `local` or more. */
static int64_t first_at(const struct zone *z, int64_t local)
{
    int64_t begin = local - ZONE_OFFSET_MAX;
    for (;;) {
        int64_t until, at = local - zone_offset(z, begin, &until);
        if (at < begin)
            at = begin; /* the gap has just ended */
        if (at < until)
            return at;
        begin = until;
    }
}

static int64_t next_fixed(const struct cron *c, const struct zone *z, int64_t after)
{
    int64_t until, local = after + zone_offset(z, after, &until) + 1;
    for (;;) {
        local = next_local(c, local);
        if (local == CALENDAR_NEVER)
            return CALENDAR_NEVER;
        int64_t at = first_at(z, local);
        if (at > after)
            return at;
        local++; /* it was there, before the clocks were set back */
    }
}

static int64_t next_elapsed(const struct cron *c, const struct zone *z, int64_t after)
{
    for (int64_t begin = after + 1;;) {
        int64_t until, offset = zone_offset(z, begin, &until);
        int64_t local = next_local(c, begin + offset);
        if (local == CALENDAR_NEVER)
            return CALENDAR_NEVER;
        if (local - offset < until)
            return local - offset;
        begin = until;
    }
}

int64_t calendar_next(const struct cron *c, const struct zone *z, int64_t after)
{
    assert(after >= 0);
    if (date_of_days(after / MS_PER_S / MINUTE_S / DAY_MINUTES).year > DATE_YEAR_MAX)
        return CALENDAR_NEVER;
    bool follows_elapsed = c->any_minute || c->any_hour;
    int64_t at =
        follows_elapsed ? next_elapsed(c, z, after / MS_PER_S) : next_fixed(c, z, after / MS_PER_S);
    return at == CALENDAR_NEVER ? CALENDAR_NEVER : at * MS_PER_S;
}

int64_t calendar_last(const struct cron *c, const struct zone *z, int64_t after, int64_t until)
{
    assert(after >= 0);
    for (int64_t window = WINDOW_MS;; window *= 2) {
        int64_t begin = until - after > window ? until - window : after;
        int64_t tick = calendar_next(c, z, begin), last = 0;
        for (; tick <= until; tick = calendar_next(c, z, tick))
            last = tick;
        if (last != 0 || begin == after)
            return last;
    }
}
