/* log.h: lines for the user's log function, off the loop: a blocked terminal or a full pipe must
 * not stop renewals. What does not fit into the queue is counted and said. */
#ifndef RUNTIME_LOG_H
#define RUNTIME_LOG_H

#include <simba.h>

#include "runtime/executor.h"

#define LOG_LINES_MAX 256
#define LOG_LINE_MAX 384

struct log_line {
    enum simba_level level;
    char text[LOG_LINE_MAX];
};

struct simba_client;

struct log {
    struct simba_client *client;                                         /* whose lines they are */
    void (*write)(void *data, enum simba_level level, const char *line); /* NULL: silent */
    void *data;
    struct executor *executor;
    pthread_mutex_t lock;
    struct log_line *line; /* a ring */
    size_t first, count, dropped;
    bool writing;
    struct job job;
};

int log_init(struct log *log, struct simba_client *client, struct executor *executor,
             void (*write)(void *, enum simba_level, const char *), void *data);
bool log_is_writing(struct log *log); /* the user's function runs, or is about to */
void log_free(struct log *log);       /* after the executor has stopped */

__attribute__((format(printf, 3, 4))) void log_put(struct log *log, enum simba_level level,
                                                   const char *format, ...);
#endif
