/* judge_callbacks.c: C3, the order of the callbacks of each handle. */
#include <stdlib.h>

#include "lab/torture/judge_work.h"

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

/* The callbacks of a handle until now. */
struct past {
    const struct entry *last; /* but for on_endangered */
    const struct entry *released, *endangered;
    bool is_owner;
};

/* What is wrong with `now`, after these; NULL: nothing. */
static const char *fault_of(const struct past *p, const struct entry *now)
{
    if (now->detail == CALLBACK_ENDANGERED)
        return p->released != NULL && now->before < p->released->after
                   ? "on_endangered while on_released ran"
                   : NULL;
    if (now->detail == CALLBACK_RELEASED && p->endangered != NULL &&
        now->before < p->endangered->after)
        return "on_released while on_endangered ran";
    if (p->last != NULL && p->last->detail == CALLBACK_CLOSED)
        return "a callback after on_closed";
    if (p->last != NULL && now->before < p->last->after)
        return "two callbacks at once";
    if (now->detail == CALLBACK_ACQUIRED && p->is_owner)
        return "on_acquired twice, without on_released between";
    if (now->detail == CALLBACK_RELEASED && !p->is_owner)
        return "on_released without on_acquired before";
    if ((now->detail == CALLBACK_STOPPED || now->detail == CALLBACK_CLOSED) && p->is_owner)
        return "on_stopped or on_closed without on_released before";
    return NULL;
}

static void remember(struct past *p, const struct entry *now)
{
    if (now->detail == CALLBACK_ENDANGERED) {
        p->endangered = now;
        return;
    }
    p->last = now;
    if (now->detail == CALLBACK_ACQUIRED)
        p->is_owner = true;
    if (now->detail == CALLBACK_RELEASED) {
        p->is_owner = false;
        p->released = now;
    }
}

static void check_handle(struct judge_work *j, const struct entry **at, size_t count)
{
    struct past past = {.last = NULL};
    for (size_t i = 0; i < count; i++) {
        const struct entry *now = at[i];
        const char *fault = fault_of(&past, now);
        if (fault != NULL)
            judge_find(j, FINDING_WRONG, now->before, now->worker, now->mutex, now->token,
                       "callbacks of worker %u on mutex %u out of order at %.3f s: %s", now->worker,
                       now->mutex, judge_seconds(j, now->before), fault);
        remember(&past, now);
    }
}

void callbacks_check(struct judge_work *j)
{
    struct entry_span s = judge_select(j, ENTRY_CALLBACK, by_handle);
    for (size_t i = 0, n; i < s.count; i += n) {
        for (n = 1; i + n < s.count && is_same_handle(s.at[i], s.at[i + n]);)
            n++;
        check_handle(j, s.at + i, n);
    }
    free(s.at);
}
