/* judge_lives.c: how the processes of the workers ended: crashes, leaks, records with gaps. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lab/torture/judge_work.h"

#define LEAK_BYTES (1 << 20) /* libraries keep some memory for later */

static int by_slot(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    return entry_compare_slot(x, y);
}

/* Is there an entry of that life? */
static bool has(const struct entry_span *s, const struct entry *life)
{
    struct entry key = {.worker = life->worker, .life = life->life};
    const struct entry *wanted = &key;
    return s->count > 0 && bsearch(&wanted, s->at, s->count, sizeof *s->at, by_slot) != NULL;
}

static void check_death(struct judge_work *j, const struct entry *e,
                        const struct entry_span *starts, const struct entry_span *ends)
{
    double at = judge_seconds(j, e->before);
    if (e->detail == DEATH_BY_US)
        return;
    if (e->detail == DEATH_HUNG)
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "worker %u did not end when it was asked to, and was killed at %.3f s",
                   e->worker, at);
    else if (WIFSIGNALED(e->code))
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0, "worker %u crashed at %.3f s: %s",
                   e->worker, at, strsignal(WTERMSIG(e->code)));
    else if (WEXITSTATUS(e->code) != 0)
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "worker %u failed at %.3f s, with status %d", e->worker, at,
                   WEXITSTATUS(e->code));
    else if (!has(starts, e) || !has(ends, e))
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "the record of worker %u that ended at %.3f s is not whole", e->worker, at);
}

static void check_resources(struct judge_work *j, const struct entry *e)
{
    if (e->limit > 0)
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "worker %u has %lld descriptors more at its end than at its beginning",
                   e->worker, (long long)e->limit);
    if (e->code > 0)
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "worker %u has %d threads more at its end than at its beginning", e->worker,
                   e->code);
    if (e->token > LEAK_BYTES)
        judge_find(j, FINDING_WRONG, e->before, e->worker, 0, 0,
                   "worker %u has %.1f MB more of memory at its end than at its beginning",
                   e->worker, (double)e->token / 1e6);
}

void lives_check(struct judge_work *j)
{
    struct entry_span starts = judge_select(j, ENTRY_START, by_slot);
    struct entry_span ends = judge_select(j, ENTRY_END, by_slot);
    for (size_t i = 0; i < j->count; i++) {
        if (j->entries[i].kind == ENTRY_DEATH)
            check_death(j, &j->entries[i], &starts, &ends);
        else if (j->entries[i].kind == ENTRY_RESOURCES)
            check_resources(j, &j->entries[i]);
    }
    if (j->rules->dropped > 0)
        judge_find(j, FINDING_WRONG, j->rules->end, FAULT_ON_ALL, 0, 0,
                   "the record is not whole: %zu entries had no room", j->rules->dropped);
    free(starts.at);
    free(ends.at);
}
