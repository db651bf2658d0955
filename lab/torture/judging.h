/* judging.h: what the parts of the judge share. */
#ifndef LAB_TORTURE_JUDGING_H
#define LAB_TORTURE_JUDGING_H

#include "lab/torture/judge.h"

/* A tenure with what its worker wrote down beside. */
struct stay {
    struct tenure_seen seen;
    int64_t left_after;                 /* when the call returned by which it was left; 0: none */
    int64_t released_from, released_to; /* on_released; 0: none came */
    int32_t leave_code;
};

struct span {
    const struct entry **at;
    size_t count;
};

struct judging {
    const struct judge_rules *rules;
    struct history *h;
    const struct entry *entries;
    size_t count;
    struct stay *stays; /* by mutex and token */
    size_t stay_count;
    struct span wants;  /* by worker, life, mutex and time */
    struct span delays; /* by time */
    size_t finding_room;
    bool failed; /* out of memory */
};

/* The entries of a kind, sorted; free(s.at). */
struct span judging_select(struct judging *j, enum entry_kind kind,
                           int (*compare)(const void *, const void *));

/* -1, 0 or 1: by worker, life and mutex. */
int entry_compare_slot(const struct entry *a, const struct entry *b);

__attribute__((format(printf, 7, 8))) void judging_find(struct judging *j, enum finding_kind kind,
                                                        int64_t at, unsigned worker, unsigned mutex,
                                                        uint64_t token, const char *format, ...);
double judging_seconds(const struct judging *j, int64_t at); /* since the beginning */

/* WRONG, or LIMIT where a fault that the documents exclude struck the mutex not long before. */
enum finding_kind judging_wrong(const struct judging *j, unsigned mutex, int64_t at);

/* Of the time between the two, how much that worker was frozen by us. */
int64_t judging_frozen(const struct judging *j, unsigned worker, int64_t from, int64_t to);

/* Did a fault, or a machine that gave it no time to run, keep that worker from its work? */
bool judging_is_struck(const struct judging *j, unsigned worker, int64_t from, int64_t to);
bool judging_is_long(const struct judging *j, const struct entry *delay); /* for a lease */

bool tenures_build(struct judging *j);   /* judge_tenures.c: stays */
void tenures_check(struct judging *j);   /* two owners, tokens, order */
void callbacks_check(struct judging *j); /* judge_callbacks.c */
void takeovers_check(struct judging *j); /* judge_time.c: fills h->takeovers, too */
void calm_check(struct judging *j);
void calls_check(struct judging *j);
void lives_check(struct judging *j); /* judge_lives.c: deaths, leaks, whole records */
#endif
