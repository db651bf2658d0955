/* timers.h: which machine is due next, for any number of machines. */
#ifndef RUNTIME_TIMERS_H
#define RUNTIME_TIMERS_H

#include <stdint.h>

/* Inside the thing that is to be woken; all zero: not set. */
struct timer {
    int64_t at;
    struct timer *child, *next;
    struct timer *same;   /* the first of those of the same time, which are not in the heap */
    struct timer *before; /* whoever has it as child or same, else the sibling before */
};

#define TIMERS_RECENT 256

struct timers {
    struct timer *first;                 /* NULL: none */
    struct timer *recent[TIMERS_RECENT]; /* by their time: which others may join; or NULL */
};

void timers_set(struct timers *t, struct timer *timer, int64_t at); /* NEVER: unset */
int64_t timers_next(const struct timers *t);                        /* NEVER: none */
struct timer *timers_pop(struct timers *t, int64_t now);            /* a due one, or NULL */
#endif
