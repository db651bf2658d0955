/* run.h: the run itself: workers, faults, the calm after them. */
#ifndef LAB_TORTURE_RUN_H
#define LAB_TORTURE_RUN_H

#include "lab/torture/torture.h"

struct run_outcome {
    int64_t begin, end;
    int signal; /* that ended it early; 0: none */
    bool has_lost_proxy;
};

/* False: see errno. `live`: within so many ns of the last fault each mutex has an owner. */
bool run_all(struct torture *t, int64_t live, struct run_outcome *out);
#endif
