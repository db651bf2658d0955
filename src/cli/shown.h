/* shown.h: names, lengths of time and times as people read them. */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any text as it can be shown to people, whoever wrote it: characters that move the cursor,
 * begin a line or turn the direction of text are question marks, and so is what is not UTF-8.
 * The result is not longer. */
#define SHOWN_MAX (SIMBA_ID_MAX + 16) /* for a name or an id */
const char *show_name(const char *name, char *out, size_t size);

/* "1.5s", "12s", "3m07s", "2h05m" */
#define DURATION_SIZE 24
const char *show_duration(int64_t ms, char out[static DURATION_SIZE]);

/* So many ms since 1970 UTC: "2026-11-15T03:00:00", and with_ms ".000" behind that. The length. */
#define TIME_SIZE 48
size_t show_time(int64_t ms, bool with_ms, char out[static TIME_SIZE]);

/* The nominal time of a run: "2026-11-15T03:00:00Z", with the milliseconds if there are any; offset_s: as
 * clocks show it that are so far ahead: "2026-11-15T04:00:00+01:00". */
const char *show_tick(int64_t tick, char out[static TIME_SIZE]);
const char *show_local_tick(int64_t tick, int32_t offset_s, char out[static TIME_SIZE]);
#endif
