/* candidate.h: the keeper of elect and schedule: a contender that leads again and again, and runs
 * commands while it does. */
#ifndef CLI_RUN_CANDIDATE_H
#define CLI_RUN_CANDIDATE_H

#include <stdatomic.h>

#include "cli/run/hindrance.h"
#include "cli/run/keeper.h"
#include "cli/step.h"

struct candidate {
    struct keeper keeper;
    simba_contender *contender; /* set by create() */
    /* Set before candidate_run(): */
    void *data;
    bool (*accepts)(void *data, const struct outcome *o); /* of keeper_launch(), on the main thread;
                                                             false: step down */

    /* under the keeper's lock: */
    int64_t again_at; /* contend again then; 0: as usual */
    /* lead no more; try again at once, after a ttl, after a lease */
    enum { STAY, STEP_ASIDE, STEP_DOWN, STEP_BACK } leave;
    bool is_stop_said;    /* that a scheduler has stopped itself */
    uint64_t left_tenure; /* the last one that was left because the guard has ended it */
    struct step end;      /* it is to end, and how */

    atomic_bool is_started; /* the store has answered, and what is to be said of that is said */
    struct hindrance hindrance;
};

/* Opens the store, contends until a signal, hands over in order, and exits. create() gets data. */
_Noreturn void candidate_run(struct candidate *c, const struct run_options *opts,
                             struct step (*create)(void *data));

/* From any thread: */
void candidate_end(struct candidate *c, int code);
void candidate_flush(struct candidate *c); /* stdout; if nobody reads it, that is the end */
#endif
