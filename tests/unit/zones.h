/* zones.h: time zones for tests, made of bytes as they are in files: a table of changes, and a rule.
 * The bytes are made here, so that no test depends on the files of a machine. */
#ifndef UNIT_ZONES_H
#define UNIT_ZONES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/zone.h"

#define ZONE_BYTES_MAX 65536

struct zone_bytes {
    unsigned char at[ZONE_BYTES_MAX];
    size_t size;
};

static inline void zone_add(struct zone_bytes *b, const void *bytes, size_t size)
{
    assert_true(b->size + size <= sizeof b->at);
    memcpy(b->at + b->size, bytes, size);
    b->size += size;
}

static inline void zone_add_number(struct zone_bytes *b, int64_t value, size_t size)
{
    for (size_t i = size; i > 0; i--)
        b->at[b->size++] = (unsigned char)((uint64_t)value >> 8 * (i - 1));
}

struct zone_counts {
    int64_t is_utc, is_standard, leaps, times, types, letters;
};

static inline void zone_add_header(struct zone_bytes *b, char version, struct zone_counts n)
{
    zone_add(b, "TZif", 4);
    zone_add(b, &version, 1);
    zone_add(b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    zone_add_number(b, n.is_utc, 4);
    zone_add_number(b, n.is_standard, 4);
    zone_add_number(b, n.leaps, 4);
    zone_add_number(b, n.times, 4);
    zone_add_number(b, n.types, 4);
    zone_add_number(b, n.letters, 4);
}

/* A whole file: each change has a type of its own, the first type is before all of them. */
static inline void zone_make_file(struct zone_bytes *b, int32_t first,
                                  const struct zone_change *changes, size_t count, const char *rule)
{
    b->size = 0;
    zone_add_header(b, '2', (struct zone_counts){.types = 1, .letters = 4});
    zone_add(b, "\0\0\0\0\0\0UTC\0", 10);
    zone_add_header(
        b, '2',
        (struct zone_counts){.times = (int64_t)count, .types = (int64_t)count + 1, .letters = 4});
    for (size_t i = 0; i < count; i++)
        zone_add_number(b, changes[i].at, 8);
    for (size_t i = 0; i < count; i++)
        zone_add_number(b, (int64_t)i + 1, 1);
    zone_add_number(b, first, 4);
    zone_add(b, "\0\0", 2);
    for (size_t i = 0; i < count; i++) {
        zone_add_number(b, changes[i].offset, 4);
        zone_add(b, "\0\0", 2);
    }
    zone_add(b, "ANY\0\n", 5);
    zone_add(b, rule, strlen(rule));
    zone_add(b, "\n", 1);
}

/* By its rule alone. */
static inline void zone_of_rule(struct zone *z, const char *rule)
{
    static struct zone_bytes bytes;
    const char *why = NULL;
    zone_make_file(&bytes, 0, NULL, 0, rule);
    assert_int_equal(zone_parse(z, bytes.at, bytes.size, &why), 0);
    assert_null(why);
}
#endif
