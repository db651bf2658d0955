/* shown.c: see shown.h. */
#include "cli/shown.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

const char *show_name(const char *name, char *out, size_t size)
{
    size_t n = 0, length;
    uint32_t point;
    for (const char *at = name; *at != '\0'; at += length > 0 ? length : 1) {
        length = text_utf8(at, &point);
        bool is_shown = length > 0 && !text_is_hidden(point);
        size_t bytes = is_shown ? length : 1;
        if (n + bytes >= size)
            break;
        memcpy(out + n, is_shown ? at : "?", bytes);
        n += bytes;
    }
    out[n] = '\0';
    return out;
}

const char *show_duration(int64_t ms, char out[static DURATION_SIZE])
{
    struct text t;
    text_init(&t, out, DURATION_SIZE);
    text_add_steady_duration(&t, ms);
    return out;
}

size_t show_time(int64_t ms, bool with_ms, char out[static TIME_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    size_t length = strftime(out, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &t);
    if (with_ms)
        length += (size_t)snprintf(out + length, TIME_SIZE - length, ".%03d", (int)(ms % 1000));
    return length;
}

const char *show_tick(int64_t tick, char out[static TIME_SIZE])
{
    size_t length = show_time(tick, tick % 1000 != 0, out);
    snprintf(out + length, TIME_SIZE - length, "Z");
    return out;
}

const char *show_local_tick(int64_t tick, int32_t offset_s, char out[static TIME_SIZE])
{
    size_t length = show_time(tick + offset_s * INT64_C(1000), tick % 1000 != 0, out);
    int minutes = (offset_s < 0 ? -offset_s : offset_s) / 60;
    snprintf(out + length, TIME_SIZE - length, "%c%02d:%02d", offset_s < 0 ? '-' : '+',
             minutes / 60, minutes % 60);
    return out;
}
