/* ticking.h: runs of a scheduler that have a nominal time, a tick: when the next is due, and its
 * claim in the note of the mutex. In turns by the thread of the run that is at work and, while none
 * is, by the loop. */
#ifndef RUNTIME_TICKING_H
#define RUNTIME_TICKING_H

#include <simba.h>

#include "core/ticks.h"

struct actor;

struct ticking {
    struct ticks ticks;
    struct cron cron;
    struct zone zone;
    int64_t store_ahead; /* ms: the store's clock, less CLOCK_BOOTTIME, when it was asked … */
    int64_t asked_at;    /* … then; 0: it is not known */

    /* tenure */
    struct actor *actor; /* known since the first */
    int64_t due;         /* when to look at the planned tick; NEVER: none comes in this tenure */
    bool has_read;       /* what was claimed before, and the store's clock */
    uint64_t unread;     /* attempts to read the note that failed, in a row */
    bool is_blocked;     /* what is claimed is long to come … */
    bool is_apart;       /* … this machine's clock is not the store's: both are counted */
    int64_t report_at;   /* that is said again */
};

/* One run, as its work sees it. */
struct simba_run {
    struct actor *actor;
    uint64_t token;
    int64_t tick;
};

/* Of a schedule that has ticks; allocated. An error with its text: SIMBA_EINVAL, SIMBA_ELIMIT. */
int ticking_create(const struct simba_schedule *schedule, struct ticking **out);

void ticking_lead(struct ticking *t, struct actor *a); /* a tenure begins, and ends: */
void ticking_leave(struct ticking *t);

/* By the loop at `due`: may a run begin? False: look again at `due`. */
bool ticking_is_due(struct ticking *t);

/* By the run, which is over then, or sooner: false: there is no work for it now. `due` is set
 * anew. */
bool ticking_begin(struct ticking *t, struct simba_run *run);
void ticking_end(struct ticking *t, const struct simba_run *run, bool is_done);
#endif
