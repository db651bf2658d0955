/* report.c: what is shown at the end of a run: a small table, the findings, and one line that says
 * what was shown. */
#include "lab/torture/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/data.h"
#include "lab/torture/judge.h"

#define FINDINGS_SHOWN 20

static const char *const finding_names[] = {
    [FINDING_WRONG] = "wrong", [FINDING_LATE] = "late", [FINDING_LIMIT] = "limit"};

struct times {
    size_t count, bounded;
    int64_t p50, p99, max;
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct times measure(const struct run_history *h, enum takeover_kind kind)
{
    struct times t = {.count = 0};
    int64_t *all = malloc((h->takeover_count + 1) * sizeof *all);
    for (size_t i = 0; all != NULL && i < h->takeover_count; i++) {
        if (h->takeovers[i].kind == kind) {
            all[t.count++] = h->takeovers[i].ns;
            t.bounded += h->takeovers[i].bound != 0;
        }
    }
    if (t.count > 0) {
        qsort(all, t.count, sizeof *all, by_size);
        t.p50 = all[t.count / 2];
        t.p99 = all[t.count * 99 / 100];
        t.max = all[t.count - 1];
    }
    free(all);
    return t;
}

static size_t count_fault(const struct run_history *h, int fault)
{
    size_t n = 0;
    for (size_t i = 0; i < h->fault_count; i++)
        n += h->faults[i].kind == ENTRY_FAULT && (fault < 0 || h->faults[i].detail == fault);
    return n;
}

/* "1.2 ms", "3.45 s"; out holds 24 bytes. */
static const char *show(int64_t ns, char *out)
{
    if (ns < 1000 * NS_PER_MS)
        snprintf(out, 24, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(out, 24, "%.2f s", (double)ns / 1e9);
    return out;
}

static void print_times(const char *name, const struct times *t, const struct run_history *h)
{
    char p50[24], p99[24], max[24], bound[24];
    if (t->count == 0) {
        printf("%-11s none\n", name);
        return;
    }
    printf("%-11s %zu: p50 %s, p99 %s, max %s; bound %s", name, t->count, show(t->p50, p50),
           show(t->p99, p99), show(t->max, max), show(h->bound_ms * NS_PER_MS, bound));
    if (t->bounded < t->count)
        printf(", %zu longer while faults kept everybody away", t->count - t->bounded);
    putchar('\n');
}

static void print_findings(const struct run_history *h)
{
    size_t shown[3] = {0};
    for (size_t i = 0; i < h->finding_count; i++) {
        const struct judge_finding *f = &h->findings[i];
        if (shown[f->kind]++ < FINDINGS_SHOWN)
            printf("%-11s %s\n", f->kind == FINDING_WRONG ? "WRONG" : finding_names[f->kind],
                   f->text);
    }
    for (int kind = 0; kind < 3; kind++) {
        if (shown[kind] > FINDINGS_SHOWN)
            printf("%-11s … and %zu more\n", finding_names[kind], shown[kind] - FINDINGS_SHOWN);
    }
}

static void print_table(const struct run_history *h, const struct times *handovers,
                        const struct times *takeovers)
{
    char delay[24];
    const char *separator = "";
    printf("faults      ");
    for (int i = 0; i < FAULT_KINDS; i++) {
        size_t n = count_fault(h, i);
        if (n > 0) {
            printf("%s%s %zu", separator, fault_names[i], n);
            separator = ", ";
        }
    }
    printf("%s\ntenures     %zu, and %" PRIu64 " times yes\n", *separator == '\0' ? "none" : "",
           h->tenure_count, h->answers);
    print_times("hand-overs", handovers, h);
    print_times("takeovers", takeovers, h);
    printf("machine     ran us, and the store answered, up to %s late: bounds allow for that\n",
           show(h->delay, delay));
    print_findings(h);
}

/* What was shown, and no more. */
static void print_conclusion(const struct run_history *h, const struct times *handovers,
                             const struct times *takeovers)
{
    size_t wrong = history_count(h, FINDING_WRONG), late = history_count(h, FINDING_LATE);
    size_t limits = history_count(h, FINDING_LIMIT);
    printf("simba: torture %s: %lld s, seed %" PRIu64 ": %zu hand-overs and %zu takeovers on %zu "
           "mutexes by %zu processes, %zu faults: ",
           h->store, (long long)((h->calm - h->begin) / 1000000000), h->seed, handovers->count,
           takeovers->count, h->mutexes, h->workers, count_fault(h, -1));
    if (h->tenure_count == 0)
        printf("nobody ever owned anything: that shows nothing");
    else if (wrong > 0)
        printf("%zu times WRONG", wrong);
    else if (limits > 0)
        printf("nothing was wrong but %zu times by what the guarantees exclude", limits);
    else
        printf("never two owners");
    if (late > 0)
        printf(", %zu times late", late);
    putchar('\n');
}

/* Those with a bound, so that several runs can be put together. */
static struct json_buffer takeover_times(const struct run_history *h)
{
    struct json_buffer list = {.is_line = true};
    const char *separator = "";
    json_buffer_add(&list, "[");
    for (size_t i = 0; i < h->takeover_count; i++) {
        const struct takeover *t = &h->takeovers[i];
        if (t->kind != TAKEOVER_EXPIRY || t->bound == 0)
            continue;
        json_buffer_add(&list, separator);
        json_buffer_real(&list, (double)t->ns / 1e6);
        separator = ",";
    }
    json_buffer_add(&list, "]");
    return list;
}

static void print_json_report(const struct run_history *h, const struct times *handovers,
                              const struct times *takeovers)
{
    for (size_t i = 0; i < h->finding_count; i++) {
        const struct judge_finding *f = &h->findings[i];
        print_json("{s:s, s:s, s:f, s:i, s:i, s:I}", "finding", finding_names[f->kind], "text",
                   f->text, "at_s", (double)(f->at - h->begin) / 1e9, "worker", (int)f->worker,
                   "mutex", (int)f->mutex, "token", (long long)f->token);
    }
    struct json_buffer times = takeover_times(h);
    print_json("{s:s, s:I, s:f, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:f, s:f, s:i, s:f, s:f, s:f, "
               "s:f, s:i, s:i, s:i, s:j}",
               "store", h->store, "seed", (long long)h->seed, "seconds",
               (double)(h->calm - h->begin) / 1e9, "processes", (int)h->workers, "mutexes",
               (int)h->mutexes, "faults", (int)count_fault(h, -1), "tenures", (int)h->tenure_count,
               "answers", (long long)h->answers, "lease_ms", (int)h->lease_ms, "handovers",
               (int)handovers->count, "handover_p50_ms", (double)handovers->p50 / 1e6,
               "handover_max_ms", (double)handovers->max / 1e6, "takeovers", (int)takeovers->count,
               "takeover_p50_ms", (double)takeovers->p50 / 1e6, "takeover_max_ms",
               (double)takeovers->max / 1e6, "bound_ms", (double)h->bound_ms, "delay_ms",
               (double)h->delay / 1e6, "wrong", (int)history_count(h, FINDING_WRONG), "late",
               (int)history_count(h, FINDING_LATE), "limits", (int)history_count(h, FINDING_LIMIT),
               "takeovers_ms", &times);
}

void report_print(const struct torture *t, const struct run_history *h)
{
    struct times handovers = measure(h, TAKEOVER_HANDOVER), takeovers = measure(h, TAKEOVER_EXPIRY);
    if (t->c->json) {
        print_json_report(h, &handovers, &takeovers);
        return;
    }
    if (!t->c->quiet)
        print_table(h, &handovers, &takeovers);
    print_conclusion(h, &handovers, &takeovers);
}
