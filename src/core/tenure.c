/* tenure.c: see tenure.h. */
#include "core/tenure.h"

#include <string.h>

#include "core/period.h"

bool tenure_is_same(const struct tenure *a, const struct tenure *later)
{
    if (a->id == NULL || later->id == NULL)
        return a->id == later->id;
    if (strcmp(a->id, later->id) != 0)
        return false;
    if (a->token != 0 && later->token != 0)
        return a->token == later->token;
    return !later->aged || later->acquired_at <= a->seen_at;
}

/* It began before `before` was last seen, or was asked about before its end was. */
static bool is_late(const struct tenure *before, const struct tenure *end, const struct tenure *now)
{
    return now->aged ? now->acquired_at <= before->seen_at : now->asked_at <= end->asked_at;
}

bool tenure_is_old(const struct tenure *before, const struct tenure *last, const struct tenure *now)
{
    const struct tenure *known = last->id != NULL ? last : before;
    if (known->id == NULL)
        return false;
    if (now->token != 0 && now->token != known->token)
        return now->token < known->token;
    return now->id != NULL && last->id == NULL && strcmp(now->id, before->id) == 0 &&
           is_late(before, last, now);
}

/* What was left was rounded down by the store, so it was up to a millisecond more. */
static bool was_seen_at_its_end(const struct tenure *t)
{
    return t->until - t->asked_at + NS_PER_MS <= period_margin_least(t->lease);
}

enum simba_reason tenure_end(const struct tenure *was, const struct tenure *next)
{
    if (was->evicted)
        return SIMBA_EVICTED;
    /* An answer that was long under way leaves it open when the next one began: the latest counts. */
    int64_t began = next->acquired_at + next->seen_at - next->asked_at;
    bool next_began_before = next->id != NULL && next->aged && began < was->until;
    if (next->seen_at < was->until || next_began_before)
        return SIMBA_RELEASED;
    return was_seen_at_its_end(was) ? SIMBA_EXPIRED : SIMBA_UNSEEN;
}
