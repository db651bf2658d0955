/* cron.h: a cron expression, as a crontab has it: minute, hour, day of the month, month, day of the
 * week; or @hourly, @daily and the like. When it comes next is calendar.h's. */
#ifndef CORE_CRON_H
#define CORE_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRON_TEXT_MAX 256 /* bytes of an expression */
#define CRON_WHY_SIZE 160 /* room for what is wrong with one */

struct cron {
    uint64_t minutes;             /* bit n: in minute n */
    uint32_t hours, days, months; /* likewise; days and months from bit 1 on */
    uint8_t weekdays;             /* bit 0: Sunday */
    bool any_day, any_weekday;    /* the field begins with a star */
    bool any_minute, any_hour;    /* likewise */
};

/* SIMBA_EINVAL: `why` says what is wrong, as the end of a sentence. Also if it would never come, as
 * the 30th of February. */
int cron_parse(struct cron *c, const char *text, char *why, size_t size);

/* Vixie cron's rule: where both days are restricted (neither field begins with a star), one of them
 * is enough. */
bool cron_has_day(const struct cron *c, int month, int day, int weekday);
#endif
