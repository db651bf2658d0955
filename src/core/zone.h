/* zone.h: a time zone: which offset from UTC is in force when. Read from the bytes of a TZif file
 * (RFC 8536), as they are below /usr/share/zoneinfo; whoever calls reads the file. */
#ifndef CORE_ZONE_H
#define CORE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZONE_CHANGES_MAX 1024 /* the longest of 2025 has some 250 */
#define ZONE_OFFSET_MAX 93600 /* s, either way: 26 h */
#define ZONE_FOREVER INT64_MAX

struct zone_change {
    int64_t at;     /* s since 1970 UTC */
    int32_t offset; /* s, from then on; east of Greenwich is positive */
};

/* A day of every year, and a time on it. */
struct zone_date {
    enum { ZONE_MONTH_WEEK, ZONE_DAY_NO_LEAP, ZONE_DAY } kind; /* as M10.5.0, J300, 299 */
    int month, week, day;
    int32_t time; /* s after that midnight, local; up to a week before or after */
};

struct zone {
    size_t changes;
    int32_t first; /* the offset before the first change */
    /* After the last change: */
    bool has_rule, has_summer;
    int32_t standard, summer;
    struct zone_date begin, end; /* of summer time */
    struct zone_change change[ZONE_CHANGES_MAX];
};

void zone_init_utc(struct zone *z);

/* SIMBA_EINVAL: *why (a constant) says what is wrong with the bytes. */
int zone_parse(struct zone *z, const void *bytes, size_t size, const char **why);

/* The offset at `at`, and until when, exclusively: ZONE_FOREVER, or later than `at`. */
int32_t zone_offset(const struct zone *z, int64_t at, int64_t *until);
#endif
