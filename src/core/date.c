/* date.c: see date.h. A year is taken to begin in March, so that its last day is the one that is
 * sometimes missing; 400 years are 146,097 days. */
#include "core/date.h"

#include <assert.h>

#define ERA_YEARS 400
#define ERA_DAYS 146097
#define ERA_TO_1970 719468 /* days from 0000-03-01 */

int64_t date_floor_div(int64_t a, int64_t b)
{
    assert(b > 0);
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

bool date_is_leap_year(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int date_days_in_month(int64_t year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert(month >= 1 && month <= 12);
    return days[month - 1] + (month == 2 && date_is_leap_year(year) ? 1 : 0);
}

int64_t date_to_days(int64_t year, int month, int day)
{
    assert(month >= 1 && month <= 12);
    int64_t since_march = (month + 9) % 12;
    int64_t y = since_march >= 10 ? year - 1 : year;
    int64_t era = date_floor_div(y, ERA_YEARS);
    int64_t of_era = y - era * ERA_YEARS;
    int64_t of_year = (153 * since_march + 2) / 5 + day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - ERA_TO_1970;
}

struct date date_of_days(int64_t days)
{
    int64_t era = date_floor_div(days + ERA_TO_1970, ERA_DAYS);
    int64_t of_era = days + ERA_TO_1970 - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int since_march = (int)((5 * of_year + 2) / 153);
    int month = since_march < 10 ? since_march + 3 : since_march - 9;
    return (struct date){
        .year = era * ERA_YEARS + year + (month <= 2 ? 1 : 0),
        .month = month,
        .day = (int)(of_year - (153 * since_march + 2) / 5) + 1,
    };
}

int date_weekday(int64_t days)
{
    int64_t since_thursday = days - date_floor_div(days, 7) * 7; /* 1970 began with one */
    return (int)((since_thursday + 4) % 7);
}
