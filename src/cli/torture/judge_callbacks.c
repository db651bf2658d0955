/* judge_callbacks.c: C3, the order of the callbacks of each handle. */
#include <stdlib.h>

#include "cli/torture/judging.h"

static int by_handle(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    int slot = entry_compare_slot(x, y);
    if (slot != 0)
        return slot;
    if (x->limit != y->limit)
        return x->limit < y->limit ? -1 : 1;
    return (x->before > y->before) - (x->before < y->before);
}

static bool is_same_handle(const struct entry *a, const struct entry *b)
{
    return entry_compare_slot(a, b) == 0 && a->limit == b->limit;
}

/* What is wrong with `now` right after `last`, and on_released that came last; NULL: nothing. */
static const char *fault_of(const struct entry *last, const struct entry *released, bool is_owner,
                            const struct entry *now)
{
    if (now->detail == CALLBACK_ENDANGERED)
        return released != NULL && now->before < released->after
                   ? "on_endangered while on_released ran"
                   : NULL;
    if (last != NULL && last->detail == CALLBACK_CLOSED)
        return "a callback after on_closed";
    if (last != NULL && now->before < last->after)
        return "two callbacks at once";
    if (now->detail == CALLBACK_ACQUIRED && is_owner)
        return "on_acquired twice, without on_released between";
    if (now->detail == CALLBACK_RELEASED && !is_owner)
        return "on_released without on_acquired before";
    if ((now->detail == CALLBACK_STOPPED || now->detail == CALLBACK_CLOSED) && is_owner)
        return "on_stopped or on_closed without on_released before";
    return NULL;
}

static void check_handle(struct judging *j, const struct entry **at, size_t count)
{
    const struct entry *last = NULL, *released = NULL;
    bool is_owner = false;
    for (size_t i = 0; i < count; i++) {
        const struct entry *now = at[i];
        const char *fault = fault_of(last, released, is_owner, now);
        if (fault != NULL)
            judging_find(j, FINDING_WRONG, now->before, now->worker, now->mutex, now->token,
                         "callbacks of worker %u on mutex %u out of order at %.3f s: %s",
                         now->worker, now->mutex, judging_seconds(j, now->before), fault);
        if (now->detail == CALLBACK_ENDANGERED)
            continue;
        last = now;
        if (now->detail == CALLBACK_ACQUIRED)
            is_owner = true;
        if (now->detail == CALLBACK_RELEASED) {
            is_owner = false;
            released = now;
        }
    }
}

void callbacks_check(struct judging *j)
{
    struct span s = judging_select(j, ENTRY_CALLBACK, by_handle);
    for (size_t i = 0, n; i < s.count; i += n) {
        for (n = 1; i + n < s.count && is_same_handle(s.at[i], s.at[i + n]);)
            n++;
        check_handle(j, s.at + i, n);
    }
    free(s.at);
}
