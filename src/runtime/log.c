/* log.c: lines on their way to the user's log function. */
#include "runtime/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

struct log_line {
    enum simba_level level;
    char text[LOG_LINE_MAX];
};

static void write_line(struct delivery *d, const void *record)
{
    const struct log *log = (struct log *)(void *)d;
    const struct log_line *line = record;
    log->write(log->data, line->level, line->text);
}

/* Said when the ring is empty: so it fits. */
static bool say_dropped_locked(struct delivery *d)
{
    struct log *log = (struct log *)(void *)d;
    if (log->dropped == 0)
        return false;
    struct log_line *line = delivery_add_locked(d);
    line->level = SIMBA_LOG_WARN;
    snprintf(line->text, sizeof line->text, "%zu log lines were dropped: too slow a log",
             log->dropped);
    log->dropped = 0;
    return true;
}

int log_init(struct log *log, struct simba_client *client, struct executor *executor,
             void (*write)(void *, enum simba_level, const char *), void *data)
{
    *log = (struct log){.write = write, .data = data};
    int rc = delivery_init(&log->delivery, client, executor, write != NULL ? write_line : NULL,
                           sizeof(struct log_line), LOG_LINES_MAX);
    log->delivery.refill_locked = say_dropped_locked;
    return rc;
}

void log_free(struct log *log)
{
    delivery_free(&log->delivery);
}

void log_put(struct log *log, enum simba_level level, const char *format, ...)
{
    if (log->write == NULL)
        return;
    delivery_lock(&log->delivery);
    struct log_line *line = delivery_add_locked(&log->delivery);
    if (line == NULL) {
        log->dropped++;
    } else {
        line->level = level;
        va_list args;
        va_start(args, format);
        char raw[2 * sizeof line->text];
        struct text escaped;
        vsnprintf(raw, sizeof raw, format, args);
        va_end(args);
        text_init(&escaped, line->text, sizeof line->text);
        text_add_escaped(&escaped, raw);
        text_end(&escaped);
    }
    delivery_unlock(&log->delivery);
}
