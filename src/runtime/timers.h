/* timers.h: what is due next, for any number of things. */
#ifndef RUNTIME_TIMERS_H
#define RUNTIME_TIMERS_H

#include <stdint.h>

/* Inside the thing that is to be woken; all zero: not set. */
struct timer {
    int64_t at;
    void (*expire)(struct timer *timer); /* whoever has popped it calls this; constant */
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
/* What is far away may be a millisecond late: then many things have the same alarm. */
void timers_set_about(struct timers *t, struct timer *timer, int64_t now, int64_t at);
int64_t timers_next(const struct timers *t);             /* NEVER: none */
struct timer *timers_pop(struct timers *t, int64_t now); /* a due one, or NULL */
#endif
