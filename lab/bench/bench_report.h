/* bench_report.h: what simba bench has measured, and how it is shown. */
#ifndef LAB_BENCH_REPORT_H
#define LAB_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX 1000000 /* of a kind; more are not kept */

struct cli;

struct samples {
    int64_t *us;
    size_t count;
    bool is_sorted;
};

struct bench_report {
    struct samples pairs, handovers, renewals;
    int64_t ms; /* measured for so long */
    long rate;  /* operations per second, at most; 0: no limit */
    /* How long at least one renewal was under way, and up to when: those that are sent together
     * count once. */
    int64_t busy_us, busy_until;
};

bool bench_report_init(struct bench_report *r); /* false: out of memory */
void bench_report_free(struct bench_report *r);

bool samples_full(const struct samples *s);
void samples_add(struct samples *s, int64_t us);
int64_t samples_quantile(struct samples *s, double q); /* sorts them; 0: there are none */

/* A renewal was under way from then to then; in the order of their ends. */
void bench_report_renewed(struct bench_report *r, int64_t began_us, int64_t ended_us);

/* The store carries so many renewals per second on one connection; 0: unknown. */
double bench_report_renewals_per_s(const struct bench_report *r);

/* So many mutexes could be kept; 0: unknown. */
int64_t bench_report_mutexes(const struct bench_report *r, int64_t ttl_ms);

void bench_report_print(const struct cli *c, struct bench_report *r, bool is_interrupted);
#endif
