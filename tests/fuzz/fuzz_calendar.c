/* fuzz_calendar.c: whatever comes as a cron expression, a TZif file or a note, the parsers say yes or
 * say why not; and what they took, the calendar can search: ticks rise, and lie after what was asked.
 * The first byte is the length of the expression, 8 follow as an instant, then the expression, then
 * the file; a note is tried as all that is left. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/ticks.h"

#define HEAD 9
#define INSTANT_MAX INT64_C(260000000000000)

static void try_ticks(const struct cron *c, const struct zone *z, int64_t after)
{
    for (int i = 0; i < 3; i++) {
        int64_t tick = calendar_next(c, z, after);
        assert(tick > after);
        if (tick == CALENDAR_NEVER)
            return;
        assert(calendar_next(c, z, tick - 1) == tick);
        assert(calendar_last(c, z, tick - 1, tick) == tick);
        char text[TICK_TEXT_SIZE];
        int64_t again;
        tick_write(text, tick);
        assert(tick_read(text, strlen(text), &again));
        assert(again == tick);
        after = tick;
    }
}

static void try_zone(const struct zone *z, int64_t at)
{
    for (int i = 0; i < 5; i++) {
        int64_t until;
        int32_t offset = zone_offset(z, at, &until);
        assert(until > at);
        assert(offset >= -ZONE_OFFSET_MAX && offset <= ZONE_OFFSET_MAX);
        if (until > INSTANT_MAX / 1000)
            return;
        at = until;
    }
}

static void try_note(const uint8_t *data, size_t size)
{
    struct ticks t = {.period = 1000};
    char note[64], again[TICKS_NOTE_SIZE];
    size_t length = size < sizeof note ? size : sizeof note - 1;
    memcpy(note, data, length);
    note[length] = '\0';
    if (ticks_begin(&t, note) != 0 || t.claimed == 0)
        return;
    t.planned = t.claimed;
    t.at_least_once = true;
    assert(ticks_note(&t, true, again));
    int64_t claimed = t.claimed;
    assert(ticks_begin(&t, again) == 0);
    assert(t.claimed == claimed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct zone zone;
    struct cron cron;
    const char *rule = NULL;
    char text[CRON_TEXT_MAX + 2], why[CRON_WHY_SIZE];
    uint64_t instant;
    try_note(data, size);
    if (size < HEAD)
        return 0;
    memcpy(&instant, data + 1, sizeof instant);
    int64_t after = (int64_t)(instant % INSTANT_MAX);
    size_t length = data[0];
    if (length > size - HEAD)
        length = size - HEAD;
    memcpy(text, data + HEAD, length);
    text[length] = '\0';
    bool has_zone = zone_parse(&zone, data + HEAD + length, size - HEAD - length, &rule) == 0;
    assert(has_zone == (rule == NULL));
    if (has_zone)
        try_zone(&zone, after / 1000);
    else
        zone_init_utc(&zone);
    if (cron_parse(&cron, text, why, sizeof why) == 0)
        try_ticks(&cron, &zone, after);
    else
        assert(why[0] != '\0');
    return 0;
}
