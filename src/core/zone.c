/* zone.c: which offset is in force. Before the last change in the file by the file; after it by the
 * rule at its end, for all years to come. */
#include "core/zone.h"

#include <assert.h>

#include "core/date.h"

#define DAY_S 86400
#define YEARS_AROUND 2 /* a rule's times lie up to a week outside of their year */

void zone_init_utc(struct zone *z)
{
    z->changes = 0;
    z->first = 0;
    z->has_rule = z->has_summer = false;
}

/* The midnight that begins the day, as if it were UTC. */
static int64_t day_of(const struct zone_date *d, int64_t year)
{
    int64_t new_year = date_to_days(year, 1, 1);
    if (d->kind == ZONE_DAY)
        return new_year + d->day;
    if (d->kind == ZONE_DAY_NO_LEAP) /* 29 February is not counted */
        return new_year + d->day - 1 + (d->day >= 60 && date_is_leap_year(year) ? 1 : 0);
    int64_t first = date_to_days(year, d->month, 1);
    int days = (d->day - date_weekday(first) + 7) % 7 + (d->week - 1) * 7;
    if (days >= date_days_in_month(year, d->month))
        days -= 7; /* the fifth is the last */
    return first + days;
}

/* Where summer time begins the instant that it ends, it goes on. */
static int32_t by_rule(const struct zone *z, int64_t at, int64_t *until)
{
    *until = ZONE_FOREVER;
    if (!z->has_summer)
        return z->standard;
    int64_t last = INT64_MIN;
    bool is_summer = false;
    int64_t this_year = date_of_days(date_floor_div(at, DAY_S)).year;
    for (int64_t year = this_year - YEARS_AROUND; year <= this_year + YEARS_AROUND; year++) {
        int64_t end = day_of(&z->end, year) * DAY_S + z->end.time - z->summer;
        int64_t begin = day_of(&z->begin, year) * DAY_S + z->begin.time - z->standard;
        for (int i = 0; i < 2; i++) {
            int64_t change = i == 0 ? end : begin;
            if (change > at && change < *until)
                *until = change;
            if (change <= at && (change > last || (change == last && i == 1))) {
                last = change;
                is_summer = i == 1;
            }
        }
    }
    assert(last != INT64_MIN);
    return is_summer ? z->summer : z->standard;
}

int32_t zone_offset(const struct zone *z, int64_t at, int64_t *until)
{
    size_t low = 0, high = z->changes; /* changes before low are at or before `at` */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (z->change[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->changes && z->has_rule)
        return by_rule(z, at, until);
    *until = low < z->changes ? z->change[low].at : ZONE_FOREVER;
    return low > 0 ? z->change[low - 1].offset : z->first;
}
