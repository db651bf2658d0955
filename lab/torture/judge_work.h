/* judge_work.h: what the parts of the judge share. */
#ifndef LAB_TORTURE_JUDGE_WORK_H
#define LAB_TORTURE_JUDGE_WORK_H

#include "lab/torture/judge.h"

/* A tenure with what its worker wrote down beside. */
struct judged_tenure {
    struct tenure_seen seen;
    int64_t left_after;                 /* when the call returned by which it was left; 0: none */
    int64_t released_from, released_to; /* on_released; 0: none came */
    int32_t leave_code;
};

struct entry_span {
    const struct entry **at;
    size_t count;
};

struct judge_work {
    const struct judge_rules *rules;
    struct run_history *h;
    const struct entry *entries;
    size_t count;
    struct judged_tenure *tenures; /* by mutex and token */
    size_t judged_count;
    struct entry_span wants;  /* by worker, life, mutex and time */
    struct entry_span delays; /* by time */
    size_t finding_room;
    bool failed; /* out of memory */
};

/* The entries of a kind, sorted; free(s.at). */
struct entry_span judge_select(struct judge_work *j, enum entry_kind kind,
                               int (*compare)(const void *, const void *));

/* -1, 0 or 1: by worker, life and mutex. */
int entry_compare_slot(const struct entry *a, const struct entry *b);

__attribute__((format(printf, 7, 8))) void judge_find(struct judge_work *j, enum finding_kind kind,
                                                      int64_t at, unsigned worker, unsigned mutex,
                                                      uint64_t token, const char *format, ...);
double judge_seconds(const struct judge_work *j, int64_t at); /* since the beginning */

/* WRONG, or LIMIT where a fault that the documents exclude struck the mutex not long before. */
enum finding_kind judge_wrong(const struct judge_work *j, unsigned mutex, int64_t at);

/* Of the time between the two, how much that worker was frozen by us. */
int64_t judge_frozen(const struct judge_work *j, unsigned worker, int64_t from, int64_t to);

/* Did a fault, or a machine that gave it no time to run, keep that worker from its work? */
bool judge_is_struck(const struct judge_work *j, unsigned worker, int64_t from, int64_t to);
bool judge_is_long(const struct judge_work *j, const struct entry *delay); /* for a lease */

bool tenures_build(struct judge_work *j);   /* judge_tenures.c: tenures */
void tenures_check(struct judge_work *j);   /* two owners, tokens, order */
void callbacks_check(struct judge_work *j); /* judge_callbacks.c */
void takeovers_check(struct judge_work *j); /* judge_time.c: fills h->takeovers, too */
void calm_check(struct judge_work *j);
void calls_check(struct judge_work *j);
void lives_check(struct judge_work *j); /* judge_lives.c: deaths, leaks, whole records */
#endif
