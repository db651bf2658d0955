/* judge_tenures.c: tenures, made out of every yes; two owners, tokens, and the order of the
 * hand-over.
 *
 * `first` is after the first yes, `last` before the last one. One tenure can have come before
 * another, if last <= first of the other. If neither can have come before the other, there were
 * two owners, whatever happened between the readings of the clock. */
#include <assert.h>
#include <simba.h>
#include <stdlib.h>

#include "base/time.h"
#include "lab/torture/judge_work.h"

/* ---- building ------------------------------------------------------------------------------ */

static int compare_keys(unsigned mutex_a, uint64_t token_a, unsigned worker_a, unsigned life_a,
                        const struct entry *b)
{
    if (mutex_a != b->mutex)
        return mutex_a < b->mutex ? -1 : 1;
    if (token_a != b->token)
        return token_a < b->token ? -1 : 1;
    if (worker_a != b->worker)
        return worker_a < b->worker ? -1 : 1;
    return life_a != b->life ? (life_a < b->life ? -1 : 1) : 0;
}

static int by_tenure(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    int order = compare_keys(x->mutex, x->token, x->worker, x->life, y);
    return order != 0 ? order : (x->before > y->before) - (x->before < y->before);
}

static bool is_of(const struct judged_tenure *s, const struct entry *e)
{
    return compare_keys(s->seen.mutex, s->seen.token, s->seen.worker, s->seen.life, e) == 0;
}

static struct judged_tenure *find_stay(struct judge_work *j, const struct entry *e)
{
    size_t low = 0, high = j->judged_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tenure_seen *t = &j->tenures[middle].seen;
        if (compare_keys(t->mutex, t->token, t->worker, t->life, e) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < j->judged_count && is_of(&j->tenures[low], e) ? &j->tenures[low] : NULL;
}

static void add_yes(struct judge_work *j, const struct entry *e)
{
    struct judged_tenure *s = j->judged_count > 0 ? &j->tenures[j->judged_count - 1] : NULL;
    j->h->answers++;
    if (s == NULL || !is_of(s, e)) {
        assert(j->tenures != NULL);
        s = &j->tenures[j->judged_count++];
        *s = (struct judged_tenure){.seen = {.token = e->token,
                                             .first = e->after,
                                             .last = e->before,
                                             .worker = e->worker,
                                             .life = e->life,
                                             .mutex = e->mutex}};
    }
    if (e->after < s->seen.first)
        s->seen.first = e->after;
    if (e->before > s->seen.last)
        s->seen.last = e->before;
}

static void add_end(struct judge_work *j, const struct entry *e)
{
    struct judged_tenure *s = find_stay(j, e);
    if (s == NULL)
        return; /* it ended before anybody could ask */
    if (e->kind == ENTRY_LEAVE) {
        s->leave_code = e->code;
        s->left_after = e->after;
        s->seen.left = e->code == 0 || e->code == SIMBA_ESTORE ? e->before : 0;
    } else if (e->detail == CALLBACK_RELEASED) {
        s->released_from = e->before;
        s->released_to = e->after;
        s->seen.reason = (uint8_t)e->code;
    }
}

bool tenures_build(struct judge_work *j)
{
    struct entry_span yes = judge_select(j, ENTRY_YES, by_tenure);
    j->tenures = calloc(yes.count + 1, sizeof *j->tenures);
    if (j->tenures == NULL || yes.at == NULL) {
        j->failed = true;
        free(yes.at);
        return false;
    }
    for (size_t i = 0; i < yes.count; i++) {
        if (yes.at[i]->before > yes.at[i]->after || yes.at[i]->token == 0)
            judge_find(j, FINDING_WRONG, yes.at[i]->before, yes.at[i]->worker, yes.at[i]->mutex,
                       yes.at[i]->token, "a yes without a token, or with a clock that ran back");
        else
            add_yes(j, yes.at[i]);
    }
    free(yes.at);
    for (size_t i = 0; i < j->count; i++) {
        if (j->entries[i].kind == ENTRY_LEAVE || j->entries[i].kind == ENTRY_CALLBACK)
            add_end(j, &j->entries[i]);
    }
    return true;
}

/* ---- checks -------------------------------------------------------------------------------- */

static void find_two(struct judge_work *j, struct judged_tenure *low, struct judged_tenure *high)
{
    struct tenure_seen *a = &low->seen, *b = &high->seen;
    bool is_overlap = b->last > a->first;
    int64_t from = a->first > b->first ? a->first : b->first;
    int64_t to = a->last < b->last ? a->last : b->last;
    enum finding_kind kind = judge_wrong(j, a->mutex, b->first);
    a->is_wrong = b->is_wrong = true;
    if (is_overlap)
        judge_find(j, kind, from, b->worker, b->mutex, b->token,
                   "two owners of mutex %u for %.1f ms at %.3f s: worker %u with token %llu, and "
                   "worker %u with token %llu",
                   a->mutex, (double)(to > from ? to - from : 0) / 1e6, judge_seconds(j, from),
                   a->worker, (unsigned long long)a->token, b->worker,
                   (unsigned long long)b->token);
    else
        judge_find(j, kind, a->first, a->worker, a->mutex, a->token,
                   "a token of mutex %u fell at %.3f s: worker %u had %llu after worker %u had "
                   "had %llu",
                   a->mutex, judge_seconds(j, a->first), a->worker, (unsigned long long)a->token,
                   b->worker, (unsigned long long)b->token);
}

/* In the order of tokens: whoever has a lower one must have ended before. */
static void check_tokens(struct judge_work *j)
{
    struct judged_tenure *latest = NULL; /* of the lower tokens, the one that was held last */
    for (size_t i = 0; i < j->judged_count; i++) {
        struct judged_tenure *s = &j->tenures[i], *before = i > 0 ? s - 1 : NULL;
        if (latest != NULL && latest->seen.mutex != s->seen.mutex)
            latest = NULL;
        if (before != NULL && before->seen.mutex == s->seen.mutex &&
            before->seen.token == s->seen.token) {
            before->seen.is_wrong = s->seen.is_wrong = true;
            judge_find(j, judge_wrong(j, s->seen.mutex, s->seen.first), s->seen.first,
                       s->seen.worker, s->seen.mutex, s->seen.token,
                       "token %llu of mutex %u was given twice: to worker %u and to worker %u",
                       (unsigned long long)s->seen.token, s->seen.mutex, before->seen.worker,
                       s->seen.worker);
        }
        if (latest != NULL && latest->seen.last > s->seen.first)
            find_two(j, latest, s);
        if (latest == NULL || s->seen.last > latest->seen.last)
            latest = s;
    }
}

static void check_own_end(struct judge_work *j, struct judged_tenure *s)
{
    struct tenure_seen *t = &s->seen;
    const char *what = NULL;
    if (s->left_after != 0 && t->last > s->left_after)
        what = "after it had left";
    else if (s->released_from != 0 && t->last > s->released_from)
        what = "after its on_released had begun";
    if (what == NULL)
        return;
    t->is_wrong = true;
    judge_find(j, judge_wrong(j, t->mutex, t->last), t->last, t->worker, t->mutex, t->token,
               "worker %u said that it owns mutex %u at %.3f s, %s", t->worker, t->mutex,
               judge_seconds(j, t->last), what);
}

/* C4: while on_released runs, the mutex is kept. Before the end of the margin the store cannot have
 * taken it by the clock, so it was given back too early. Later, the lease may have run out: nothing
 * renews it in a process that was struck, or that got no time to run. */
static void check_order(struct judge_work *j, struct judged_tenure *s, struct judged_tenure *next)
{
    struct tenure_seen *t = &s->seen, *n = &next->seen;
    if (t->reason != SIMBA_RELEASED || n->first >= s->released_to)
        return;
    bool is_early = n->first < t->last + j->rules->margin;
    if (is_early) {
        t->is_wrong = n->is_wrong = true;
        judge_find(j, judge_wrong(j, t->mutex, n->first), n->first, n->worker, n->mutex, n->token,
                   "worker %u owned mutex %u at %.3f s, %.1f ms before on_released of worker %u "
                   "had ended, who left in order",
                   n->worker, n->mutex, judge_seconds(j, n->first),
                   (double)(s->released_to - n->first) / 1e6, t->worker);
    } else if (!judge_is_struck(j, t->worker, t->last - j->rules->lease, n->first)) {
        judge_find(j, FINDING_LATE, n->first, t->worker, t->mutex, t->token,
                   "the lease ran out while worker %u left mutex %u in order at %.3f s", t->worker,
                   t->mutex, judge_seconds(j, n->first));
    }
}

void tenures_check(struct judge_work *j)
{
    check_tokens(j);
    for (size_t i = 0; i < j->judged_count; i++) {
        struct judged_tenure *s = &j->tenures[i];
        check_own_end(j, s);
        if (i + 1 < j->judged_count && s[1].seen.mutex == s->seen.mutex)
            check_order(j, s, s + 1);
    }
}
