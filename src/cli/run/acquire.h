/* acquire.h: waiting for the lock. */
#ifndef CLI_RUN_ACQUIRE_H
#define CLI_RUN_ACQUIRE_H

#include <simba.h>

struct run_options;

/* How the wait has ended. */
struct acquisition {
    enum {
        ACQUIRED,
        HELD_BY_ANOTHER, /* which the options take without a word … */
        NOT_ACQUIRED     /* … and anything else, which has been said */
    } result;
    int code;   /* of NOT_ACQUIRED: how the command exits, … */
    int signal; /* … if not by this signal, which has ended the wait; 0: none has */
};

/* Waits for the lock, so long; 0: tries once. */
struct acquisition acquire(const struct run_options *opts, simba_locker *l, int64_t wait_ms);
#endif
