/* children.h: the processes of a run, as the torturer knows them. */
#ifndef LAB_TORTURE_CHILDREN_H
#define LAB_TORTURE_CHILDREN_H

#include <sys/types.h>

#include "cli/run/signals.h"
#include "lab/torture/record.h"
#include "lab/torture/torture.h"

struct child {
    pid_t pid; /* 0: gone */
    unsigned life;
    bool is_killed, is_ending; /* by us */
    int64_t gone_at, restart_at;
    int64_t frozen_at, thaw_at;   /* 0: not frozen */
    uint8_t fault;                /* that it is gone by */
    uint8_t net_fault;            /* of its connections … */
    int64_t net_since, net_until; /* … if that is not 0 */
};

struct run {
    struct torture *t;
    struct worker_record *record;
    struct signals signals;
    struct child children[WORKERS_MAX + 1]; /* the last one is the operator */
    struct strike *plan;
    size_t strikes, next_strike, done;
    int64_t begin, calm;
    int64_t shown_at;
    int signal; /* that ended it; 0: none */
    bool is_terminal, is_calm, has_lost_proxy;
    int64_t server_until; /* the fault of the server lasts */
    uint64_t orders;
};

/* An entry of the torturer's own. */
void run_add(struct run *r, enum entry_kind kind, unsigned worker, unsigned life, unsigned detail,
             int64_t before, int64_t after);

bool child_start(struct run *r, unsigned number); /* false: no process can be had */
void child_kill(struct child *k);
void child_freeze(struct child *k, int64_t now, int64_t until);
void child_thaw(struct run *r, unsigned number, int64_t now);
void child_end(struct run *r, unsigned number); /* asks it to end in order */
void child_restart(struct run *r, unsigned number, int64_t now);
void child_mend_network(struct run *r, unsigned number);

/* Takes note of those that have ended; each is asked for by its number. is_late: who had to be
 * killed should have ended before. */
void children_reap(struct run *r, bool is_late);
bool children_are_there(const struct run *r);
#endif
