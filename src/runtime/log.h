/* log.h: lines for the user's log function, off the loop: a blocked terminal or a full pipe must
 * not stop renewals. What does not fit into the ring is counted and said. */
#ifndef RUNTIME_LOG_H
#define RUNTIME_LOG_H

#include <simba.h>

#include "runtime/delivery.h"

#define LOG_LINES_MAX 256
#define LOG_LINE_MAX 768 /* what is longer is cut at a word */

struct log {
    struct delivery delivery;                                            /* first */
    void (*write)(void *data, enum simba_level level, const char *line); /* NULL: silent */
    void *data;
    size_t dropped; /* under the lock of the delivery */
};

int log_init(struct log *log, struct simba_client *client, struct executor *executor,
             void (*write)(void *, enum simba_level, const char *), void *data);
void log_free(struct log *log); /* after the executor has stopped */

__attribute__((format(printf, 3, 4))) void log_put(struct log *log, enum simba_level level,
                                                   const char *format, ...);
#endif
