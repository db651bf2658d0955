/* plan.h: which fault strikes whom, when and for how long. Drawn before anything happens: the same
 * seed draws the same plan, on every machine. Pure. */
#ifndef LAB_TORTURE_PLAN_H
#define LAB_TORTURE_PLAN_H

#include "lab/torture/fault.h"

struct plan_options {
    uint64_t seed;
    size_t workers, mutexes;
    int64_t length; /* of the faults, in ns */
    int64_t lease;  /* in ns; faults last for up to twice as long, and come several times in it */
    fault_set faults;
};

struct strike {
    int64_t at;             /* from the beginning of the faults, in ns */
    int64_t lasts;          /* in ns: frozen, cut off, or gone for so long */
    int64_t amount;         /* in ms, of a delay */
    uint16_t worker, mutex; /* worker: of a server fault FAULT_ON_ALL */
    uint8_t fault;
};

/* Sorted by `at`; NULL: out of memory. No fault at all: an empty one. The caller frees it. */
struct strike *plan_draw(const struct plan_options *o, size_t *count);

/* The seed of a life of a worker, which draws what it does by itself. */
uint64_t plan_worker_seed(uint64_t seed, unsigned worker, unsigned life);
#endif
