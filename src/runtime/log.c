/* log.c: a bounded ring of lines, emptied by one job at a time. */
#include "runtime/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "runtime/client.h"

struct writing {
    struct log *log;
    struct simba_client *client_before;
};

/* The user's function has ended its thread; the lines that are left are written on another. */
static void writing_over(void *arg)
{
    struct writing *w = arg;
    struct log *log = w->log;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    thread_client = w->client_before;
    pthread_mutex_lock(&log->lock);
    log->writing = log->count > 0 || log->dropped > 0;
    bool submit = log->writing;
    pthread_mutex_unlock(&log->lock);
    if (submit)
        executor_submit(log->executor, &log->job);
}

static void write_one(struct log *log, const struct log_line *line, int cancel)
{
    struct writing w = {log, thread_client};
    thread_client = log->client; /* so that it cannot wait for itself */
    pthread_cleanup_push(writing_over, &w);
    pthread_setcancelstate(cancel, NULL);
    log->write(log->data, line->level, line->text);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    thread_client = w.client_before;
}

static void write_lines(void *arg)
{
    struct log *log = arg;
    struct log_line line;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&log->lock);
    while (log->count > 0 || log->dropped > 0) {
        if (log->count > 0) {
            line = log->line[log->first];
            log->first = (log->first + 1) % LOG_LINES_MAX;
            log->count--;
        } else {
            line.level = SIMBA_LOG_WARN;
            snprintf(line.text, sizeof line.text, "%zu log lines were dropped: too slow a log",
                     log->dropped);
            log->dropped = 0;
        }
        pthread_mutex_unlock(&log->lock);
        write_one(log, &line, cancel);
        pthread_mutex_lock(&log->lock);
    }
    log->writing = false;
    pthread_mutex_unlock(&log->lock);
    pthread_setcancelstate(cancel, NULL);
}

int log_init(struct log *log, struct simba_client *client, struct executor *executor,
             void (*write)(void *, enum simba_level, const char *), void *data)
{
    *log = (struct log){.client = client, .write = write, .data = data, .executor = executor};
    log->job = (struct job){.run = write_lines, .arg = log};
    pthread_mutex_init(&log->lock, NULL);
    if (write == NULL)
        return 0;
    log->line = calloc(LOG_LINES_MAX, sizeof *log->line);
    return log->line == NULL ? SIMBA_ELIMIT : 0;
}

bool log_is_writing(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    bool writing = log->writing;
    pthread_mutex_unlock(&log->lock);
    return writing;
}

void log_free(struct log *log)
{
    pthread_mutex_destroy(&log->lock);
    free(log->line);
}

void log_put(struct log *log, enum simba_level level, const char *format, ...)
{
    if (log->write == NULL)
        return;
    pthread_mutex_lock(&log->lock);
    if (log->count == LOG_LINES_MAX) {
        log->dropped++;
    } else {
        struct log_line *line = &log->line[(log->first + log->count++) % LOG_LINES_MAX];
        line->level = level;
        va_list args;
        va_start(args, format);
        char raw[sizeof line->text];
        struct text escaped;
        vsnprintf(raw, sizeof raw, format, args);
        va_end(args);
        text_init(&escaped, line->text, sizeof line->text);
        text_add_escaped(&escaped, raw);
    }
    bool submit = !log->writing;
    log->writing = true;
    pthread_mutex_unlock(&log->lock);
    if (submit)
        executor_submit(log->executor, &log->job);
}
