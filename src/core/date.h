/* date.h: days and dates of the Gregorian calendar, as arithmetic. Days are counted from
 * 1970-01-01, which is day 0; a month is 1 to 12, a weekday 0 (Sunday) to 6. */
#ifndef CORE_DATE_H
#define CORE_DATE_H

#include <stdbool.h>
#include <stdint.h>

#define DATE_YEAR_MAX 9999 /* nothing is planned beyond it */

struct date {
    int64_t year;
    int month, day;
};

int64_t date_to_days(int64_t year, int month, int day); /* day: may lie outside of the month */
struct date date_of_days(int64_t days);
int date_days_in_month(int64_t year, int month);
bool date_is_leap_year(int64_t year);
int date_weekday(int64_t days);

/* Rounds down, also below zero. */
int64_t date_floor_div(int64_t a, int64_t b);
#endif
