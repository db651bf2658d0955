/* judge.h: what broke a promise, found in the records alone. Pure: entries in, findings out.
 *
 * The promises are those of docs/guarantees.md (C1 …). What is certain from the clocks that were
 * read before and after each answer is WRONG; a bound of time that was missed is LATE, after what
 * the machine itself was late by; what a fault broke that the documents exclude is LIMIT. */
#ifndef LAB_TORTURE_JUDGE_H
#define LAB_TORTURE_JUDGE_H

#include "lab/torture/history.h"

/* All in ns. */
struct judge_rules {
    size_t workers, mutexes;
    int64_t begin, end;
    int64_t lease, margin; /* as the store keeps it; between the last yes and its end */
    int64_t takeover;      /* C7: after the last renewal another owns within this */
    int64_t live;          /* the same when the faults have ended: an outage may have been before */
    size_t dropped;        /* entries that did not fit into a record */
    bool is_same_id;       /* two workers have one id: bounds of time do not hold (C8) */
};

/* Fills h, but for what only the caller knows (store, command, seed, names). The entries are put
 * into another order. False: out of memory. */
bool judge_records(struct entry *entries, size_t count, const struct judge_rules *rules,
                   struct run_history *h);
void history_free(struct run_history *h);

size_t history_count(const struct run_history *h, enum finding_kind kind);
#endif
