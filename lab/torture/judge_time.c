/* judge_time.c: what must happen within a bound (C7, C9). A loaded machine can break a bound of
 * time, so what is missed is late, not wrong; and how late our own processes ran is allowed for. */
#include <simba.h>
#include <stdlib.h>

#include "base/time.h"
#include "lab/torture/fault.h"
#include "lab/torture/judge_work.h"

static enum finding_kind late(const struct judge_work *j)
{
    return j->rules->is_same_id ? FINDING_LIMIT : FINDING_LATE;
}

/* ---- takeovers ----------------------------------------------------------------------------- */

/* When a fault may have ended a tenure that nobody saw, because its owner was struck before it
 * could say yes: the next one is waited for from then on. Requests that were on their way may
 * arrive when the connection is well again. 0: not before `to`. */
static int64_t may_have_ended(const struct entry *f, unsigned mutex)
{
    if (f->kind == ENTRY_DEATH)
        return f->before;
    switch (fault_group_of((enum fault)f->detail)) {
    case GROUP_NETWORK:
    case GROUP_SERVER:
        return f->after;
    case GROUP_PROCESS:
        return f->before;
    default:
        return f->mutex == mutex || f->detail == FAULT_CLOSE ? f->after : 0;
    }
}

/* The moment from which the bound counts. */
static int64_t reference(const struct judge_work *j, unsigned mutex, int64_t from, int64_t to)
{
    int64_t since = from;
    for (size_t i = 0; i < j->h->fault_count && j->h->faults[i].before < to; i++) {
        int64_t at = may_have_ended(&j->h->faults[i], mutex);
        if (at > since)
            since = at < to ? at : to;
    }
    for (size_t i = 0; i < j->delays.count && j->delays.at[i]->before < to; i++) {
        const struct entry *e = j->delays.at[i];
        if (e->after > since && judge_is_long(j, e))
            since = e->after < to ? e->after : to;
    }
    return since;
}

/* Did somebody wait for it all the time, whom nothing struck? */
static bool is_waited_for(const struct judge_work *j, unsigned mutex, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->wants.count; i++) {
        const struct entry *e = j->wants.at[i];
        if (e->mutex != mutex || e->detail == 0 || e->before > from)
            continue;
        const struct entry *const *next = i + 1 < j->wants.count ? &j->wants.at[i + 1] : NULL;
        bool has_end = next != NULL && entry_compare_slot(e, *next) == 0;
        if ((!has_end || (*next)->before >= to) &&
            !judge_is_struck(j, e->worker, from - j->rules->lease, to))
            return true;
    }
    return false;
}

static struct takeover measure(struct judge_work *j, const struct judged_tenure *s,
                               const struct judged_tenure *next)
{
    const struct tenure_seen *t = &s->seen, *n = &next->seen;
    bool is_left = t->left != 0 && s->leave_code == 0;
    int64_t end = t->last;
    if (is_left && t->left > end)
        end = t->left;
    if (t->reason == SIMBA_RELEASED && s->released_to > end)
        end = s->released_to;
    struct takeover o = {.mutex = t->mutex,
                         .kind = is_left ? TAKEOVER_HANDOVER : TAKEOVER_EXPIRY,
                         .ns = n->first > end ? n->first - end : 0,
                         .bound = j->rules->takeover};
    if (o.ns <= o.bound)
        return o;
    int64_t since = reference(j, t->mutex, end, n->first);
    bool is_late = n->first - since > j->rules->takeover + j->h->delay;
    if (is_late && is_waited_for(j, t->mutex, since, n->first)) {
        o.bound += since - end;
        judge_find(j, late(j), since, n->worker, n->mutex, n->token,
                   "mutex %u had no owner for %.3f s at %.3f s, though somebody waited: more "
                   "than %.3f s",
                   t->mutex, (double)(n->first - since) / 1e9, judge_seconds(j, since),
                   (double)(j->rules->takeover + j->h->delay) / 1e9);
    } else {
        o.bound = 0;
    }
    return o;
}

void takeovers_check(struct judge_work *j)
{
    struct run_history *h = j->h;
    h->takeovers = malloc((j->judged_count + 1) * sizeof *h->takeovers);
    if (h->takeovers == NULL) {
        j->failed = true;
        return;
    }
    for (size_t i = 0; i + 1 < j->judged_count; i++) {
        if (j->tenures[i].seen.mutex == j->tenures[i + 1].seen.mutex)
            h->takeovers[h->takeover_count++] = measure(j, &j->tenures[i], &j->tenures[i + 1]);
    }
}

/* ---- when the faults have ended ------------------------------------------------------------ */

void calm_check(struct judge_work *j)
{
    int64_t calm = j->h->calm, bound = j->rules->live + j->h->delay;
    if (calm == j->rules->end)
        return; /* it was ended before */
    for (size_t mutex = 0; mutex < j->rules->mutexes; mutex++) {
        int64_t owned = NEVER;
        for (size_t i = 0; i < j->judged_count; i++) {
            const struct tenure_seen *t = &j->tenures[i].seen;
            int64_t at = t->first > calm ? t->first : t->last > calm ? calm : NEVER;
            if (t->mutex == mutex && at < owned)
                owned = at;
        }
        /* On a machine that is later than a request may take, none succeeds. */
        bool is_starved = j->h->delay > j->rules->lease / 2;
        if (owned == NEVER && j->rules->end - calm > bound)
            judge_find(j, is_starved ? late(j) : FINDING_WRONG, calm, FAULT_ON_ALL, (unsigned)mutex,
                       0,
                       "nobody has owned mutex %zu since the faults ended, %.3f s long; it must "
                       "not take more than %.3f s",
                       mutex, (double)(j->rules->end - calm) / 1e9, (double)bound / 1e9);
        else if (owned != NEVER && owned - calm > bound)
            judge_find(j, late(j), calm, FAULT_ON_ALL, (unsigned)mutex, 0,
                       "mutex %zu was owned %.3f s after the faults had ended, not within %.3f s",
                       mutex, (double)(owned - calm) / 1e9, (double)bound / 1e9);
    }
}

/* ---- calls --------------------------------------------------------------------------------- */

void calls_check(struct judge_work *j)
{
    static const char *const names[] = {[CALL_ACQUIRE] = "acquire",
                                        [CALL_RELEASE] = "release",
                                        [CALL_CLOSE] = "close",
                                        [CALL_EVICT] = "evict"};
    for (size_t i = 0; i < j->count; i++) {
        const struct entry *e = &j->entries[i];
        if (e->kind != ENTRY_CALL)
            continue;
        int64_t took = e->after - e->before - judge_frozen(j, e->worker, e->before, e->after);
        if (took > e->limit + j->h->delay)
            judge_find(j, late(j), e->before, e->worker, e->mutex, 0,
                       "%s of worker %u took %.3f s at %.3f s; its limit was %.3f s",
                       names[e->detail], e->worker, (double)took / 1e9, judge_seconds(j, e->before),
                       (double)e->limit / 1e9);
    }
}
