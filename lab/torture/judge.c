/* judge.c: the way from entries to a history with findings. */
#include "lab/torture/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "lab/torture/fault.h"
#include "lab/torture/judge_work.h"

#define DELAY_PART 8       /* of the lease: who was late by more may have lost it */
#define FINDINGS_MAX 10000 /* a store that is wrong is wrong often */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int entry_compare_slot(const struct entry *a, const struct entry *b)
{
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    return compare_numbers(a->mutex, b->mutex);
}

struct entry_span judge_select(struct judge_work *j, enum entry_kind kind,
                               int (*compare)(const void *, const void *))
{
    struct entry_span s = {.count = 0};
    for (size_t i = 0; i < j->count; i++)
        s.count += j->entries[i].kind == kind;
    s.at = malloc((s.count + 1) * sizeof *s.at);
    if (s.at == NULL) {
        j->failed = true;
        return (struct entry_span){NULL, 0};
    }
    size_t n = 0;
    for (size_t i = 0; i < j->count; i++) {
        if (j->entries[i].kind == kind)
            s.at[n++] = &j->entries[i];
    }
    qsort(s.at, s.count, sizeof *s.at, compare);
    return s;
}

/* ---- findings ------------------------------------------------------------------------------ */

double judge_seconds(const struct judge_work *j, int64_t at)
{
    return (double)(at - j->rules->begin) / 1e9;
}

void judge_find(struct judge_work *j, enum finding_kind kind, int64_t at, unsigned worker,
                unsigned mutex, uint64_t token, const char *format, ...)
{
    struct run_history *h = j->h;
    va_list args;
    if (h->finding_count >= FINDINGS_MAX)
        return;
    if (h->finding_count == j->finding_room) {
        size_t room = j->finding_room == 0 ? 16 : 2 * j->finding_room;
        struct judge_finding *more = realloc(h->findings, room * sizeof *more);
        if (more == NULL) {
            j->failed = true;
            return;
        }
        h->findings = more;
        j->finding_room = room;
    }
    struct judge_finding *f = &h->findings[h->finding_count++];
    *f = (struct judge_finding){kind, at, (uint16_t)worker, (uint16_t)mutex, token, ""};
    va_start(args, format);
    (void)!vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

enum finding_kind judge_wrong(const struct judge_work *j, unsigned mutex, int64_t at)
{
    for (size_t i = 0; i < j->h->fault_count; i++) {
        const struct entry *f = &j->h->faults[i];
        bool is_excluded = f->kind == ENTRY_FAULT && fault_is_limit((enum fault)f->detail) &&
                           (f->detail != FAULT_EVICT_FORCED || f->mutex == mutex);
        if (is_excluded && f->before <= at && at <= f->after + 2 * j->rules->lease)
            return FINDING_LIMIT;
    }
    return FINDING_WRONG;
}

size_t history_count(const struct run_history *h, enum finding_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < h->finding_count; i++)
        n += h->findings[i].kind == kind;
    return n;
}

/* ---- faults -------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    return compare_numbers(x->before, y->before);
}

static int faults_by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return compare_numbers(x->before, y->before);
}

static void build_faults(struct judge_work *j)
{
    struct run_history *h = j->h;
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++)
        count += j->entries[i].kind == ENTRY_FAULT || j->entries[i].kind == ENTRY_DEATH;
    h->faults = malloc((count + 1) * sizeof *h->faults);
    if (h->faults == NULL) {
        j->failed = true;
        return;
    }
    for (size_t i = 0; i < j->count; i++) {
        const struct entry *e = &j->entries[i];
        if (e->kind == ENTRY_FAULT || e->kind == ENTRY_DEATH)
            h->faults[h->fault_count++] = *e;
        else if (e->kind == ENTRY_CALM)
            h->calm = e->before;
    }
    qsort(h->faults, h->fault_count, sizeof *h->faults, faults_by_time);
}

int64_t judge_frozen(const struct judge_work *j, unsigned worker, int64_t from, int64_t to)
{
    int64_t sum = 0, counted = from; /* freezes of one worker may overlap */
    for (size_t i = 0; i < j->h->fault_count; i++) {
        const struct entry *f = &j->h->faults[i];
        if (f->kind != ENTRY_FAULT || f->detail != FAULT_FREEZE || f->worker != worker)
            continue;
        int64_t begin = f->before > counted ? f->before : counted;
        int64_t end = f->after < to ? f->after : to;
        if (end > begin) {
            sum += end - begin;
            counted = end;
        }
    }
    return sum;
}

bool judge_is_long(const struct judge_work *j, const struct entry *delay)
{
    return delay->after - delay->before > j->rules->lease / DELAY_PART;
}

bool judge_is_struck(const struct judge_work *j, unsigned worker, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->h->fault_count && j->h->faults[i].before < to; i++) {
        const struct entry *f = &j->h->faults[i];
        if ((f->worker == worker || f->worker == FAULT_ON_ALL) && f->after > from)
            return true;
    }
    for (size_t i = 0; i < j->delays.count && j->delays.at[i]->before < to; i++) {
        if (j->delays.at[i]->after > from && judge_is_long(j, j->delays.at[i]))
            return true;
    }
    return false;
}

/* The store answered late because we had struck it. */
static bool is_excused(const struct judge_work *j, const struct entry *delay)
{
    for (size_t i = 0; delay->detail == DELAY_OF_STORE && i < j->h->fault_count; i++) {
        const struct entry *f = &j->h->faults[i];
        if (f->kind == ENTRY_FAULT && fault_group_of((enum fault)f->detail) == GROUP_SERVER &&
            f->before < delay->after && f->after > delay->before)
            return true;
    }
    return false;
}

/* How late a process of ours ran, or the store answered, at most, though we had not struck it. */
static int64_t find_delay(const struct judge_work *j)
{
    int64_t most = DELAY_LEAST;
    for (size_t i = 0; i < j->delays.count; i++) {
        const struct entry *e = j->delays.at[i];
        int64_t late = e->after - e->before - judge_frozen(j, e->worker, e->before, e->after);
        if (late > most && !is_excused(j, e))
            most = late;
    }
    return most;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int by_slot_and_time(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    int slot = entry_compare_slot(x, y);
    return slot != 0 ? slot : compare_numbers(x->before, y->before);
}

static int findings_by_time(const void *a, const void *b)
{
    const struct judge_finding *x = a, *y = b;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : compare_numbers(x->at, y->at);
}

static int tenures_by_first(const void *a, const void *b)
{
    const struct tenure_seen *x = a, *y = b;
    return x->mutex != y->mutex ? (x->mutex < y->mutex ? -1 : 1)
                                : compare_numbers(x->first, y->first);
}

/* Those that a finding names are marked; the page shows them. */
static void build_tenures(struct judge_work *j)
{
    struct run_history *h = j->h;
    h->tenures = malloc((j->judged_count + 1) * sizeof *h->tenures);
    if (h->tenures == NULL) {
        j->failed = true;
        return;
    }
    for (size_t i = 0; i < j->judged_count; i++)
        h->tenures[i] = j->tenures[i].seen;
    h->tenure_count = j->judged_count;
    qsort(h->tenures, h->tenure_count, sizeof *h->tenures, tenures_by_first);
}

bool judge_records(struct entry *entries, size_t count, const struct judge_rules *rules,
                   struct run_history *h)
{
    struct judge_work j = {.rules = rules, .h = h, .entries = entries, .count = count};
    h->begin = rules->begin;
    h->end = h->calm = rules->end;
    h->workers = rules->workers;
    h->mutexes = rules->mutexes;
    h->lease_ms = rules->lease / NS_PER_MS;
    h->bound_ms = rules->takeover / NS_PER_MS;
    build_faults(&j);
    j.wants = judge_select(&j, ENTRY_WANT, by_slot_and_time);
    j.delays = judge_select(&j, ENTRY_DELAYED, by_time);
    if (!j.failed && tenures_build(&j)) {
        h->delay = find_delay(&j);
        tenures_check(&j);
        callbacks_check(&j);
        takeovers_check(&j);
        calm_check(&j);
        calls_check(&j);
        lives_check(&j);
        build_tenures(&j);
    }
    free(j.tenures);
    free(j.wants.at);
    free(j.delays.at);
    if (h->finding_count > 0)
        qsort(h->findings, h->finding_count, sizeof *h->findings, findings_by_time);
    return !j.failed;
}

void history_free(struct run_history *h)
{
    free(h->tenures);
    free(h->takeovers);
    free(h->faults);
    free(h->findings);
}
