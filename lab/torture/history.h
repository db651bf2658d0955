/* history.h: what has happened, made out of the records: the judge finds mistakes in it, the page
 * draws it. */
#ifndef LAB_TORTURE_HISTORY_H
#define LAB_TORTURE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lab/torture/record.h"

/* One tenure, as its worker saw it. It was held for certain from `first` (after the first yes) to
 * `last` (before the last yes). */
struct tenure_seen {
    uint64_t token;
    int64_t first, last;
    int64_t left; /* when its owner ended it by itself (the call began); 0: it did not */
    uint16_t worker, life, mutex;
    uint8_t reason; /* enum simba_reason of on_released; 0: none came */
    bool is_wrong;  /* a finding names it */
};

enum takeover_kind {
    TAKEOVER_HANDOVER, /* the last owner left by itself */
    TAKEOVER_EXPIRY    /* it did not: killed, stopped, cut off, evicted */
};
struct takeover {
    uint16_t mutex;
    uint8_t kind;
    int64_t ns;    /* from the end of one tenure to the beginning of the next */
    int64_t bound; /* what the guarantees allow for; 0: none, a fault kept all away */
};

/* WRONG: a promise was broken. LATE: a bound of time was. LIMIT: broken by a fault that the
 * documents exclude. */
enum finding_kind { FINDING_WRONG, FINDING_LATE, FINDING_LIMIT };
struct judge_finding {
    enum finding_kind kind;
    int64_t at;
    uint16_t worker, mutex;
    uint64_t token;
    char text[240];
};

struct run_history {
    int64_t begin, end, calm; /* calm: when the faults ended */
    size_t workers, mutexes;
    struct tenure_seen *tenures; /* sorted by mutex, then `first` */
    size_t tenure_count;
    struct takeover *takeovers;
    size_t takeover_count;
    struct entry *faults; /* ENTRY_FAULT and ENTRY_DEATH, sorted by `before` */
    size_t fault_count;
    struct judge_finding *findings;
    size_t finding_count;
    uint64_t answers; /* how many yes */
    char store[256], command[512];
    uint64_t seed;
    int64_t lease_ms, bound_ms;
    int64_t delay; /* ns: how late a process or the store was at most; bounds allow for it */
    /* For the page. Borrowed; NULL, also as an element: it shows the number. */
    const char *const *fault_names; /* what was done, by `detail` of an ENTRY_FAULT: "stopped" */
    size_t fault_name_count;
    const char *const *worker_kinds; /* by the number of the worker: "locker" */
};

/* `worker` of an ENTRY_FAULT that struck all of them: of the server, or of the whole network. */
#define FAULT_ON_ALL UINT16_MAX

/* Writes a page of HTML that needs nothing else. 0, or -1 with errno. */
int page_write(FILE *out, const struct run_history *h);

#endif
