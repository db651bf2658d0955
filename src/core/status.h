/* status.h: the life of a contender as its user sees it.
 *
 *              start             answered            stop
 *   INITIAL ----------> STARTING --------> RUNNING --------> STOPPING
 *      ^                 |    |                                 ^ |
 *      |     failed      |    |              stop               | | idle
 *      +-----------------+    +---------------------------------+ |
 *      +----------------------------------------------------------+
 *
 * Every other move is refused and changes nothing. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <simba.h>

enum status_event {
    STATUS_START,
    STATUS_ANSWERED, /* the store was reached once */
    STATUS_FAILED,   /* the store will never take this request */
    STATUS_STOP,
    STATUS_IDLE /* handed over, nothing runs */
};

/* The next status, or SIMBA_ESTATE. */
int status_next(enum simba_status status, enum status_event event);
const char *status_name(enum simba_status status);
#endif
