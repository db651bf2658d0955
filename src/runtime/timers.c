/* timers.c: a pairing heap. Its links are inside the timers, so setting one never allocates and
 * never fails, which a renewal may rely on. */
#include "runtime/timers.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/period.h"

/* Both are roots without siblings, or NULL. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (b->at < a->at) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    b->before = a;
    b->next = a->child;
    if (a->child != NULL)
        a->child->before = b;
    a->child = b;
    return a;
}

/* Makes one heap of a list of siblings: pairs from the left, then all from the right. */
static struct timer *meld_list(struct timer *list)
{
    struct timer *pairs = NULL;
    while (list != NULL) {
        struct timer *a = list, *b = list->next;
        list = b == NULL ? NULL : b->next;
        a->next = NULL;
        if (b != NULL)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct timer *heap = NULL;
    while (pairs != NULL) {
        struct timer *next = pairs->next;
        pairs->next = NULL;
        heap = meld(heap, pairs);
        pairs = next;
    }
    if (heap != NULL)
        heap->before = NULL;
    return heap;
}

static bool is_set(const struct timers *t, const struct timer *timer)
{
    return timer == t->first || timer->before != NULL;
}

static void unset(struct timers *t, struct timer *timer)
{
    struct timer *below = meld_list(timer->child);
    if (timer == t->first) {
        t->first = below;
    } else {
        if (timer->before->child == timer)
            timer->before->child = timer->next;
        else
            timer->before->next = timer->next;
        if (timer->next != NULL)
            timer->next->before = timer->before;
        t->first = meld(t->first, below);
    }
    *timer = (struct timer){.at = 0};
}

void timers_set(struct timers *t, struct timer *timer, int64_t at)
{
    if (is_set(t, timer)) {
        if (timer->at == at)
            return;
        unset(t, timer);
    }
    if (at == NEVER)
        return;
    assert(timer->child == NULL);
    timer->at = at;
    t->first = meld(t->first, timer);
}

int64_t timers_next(const struct timers *t)
{
    return t->first == NULL ? NEVER : t->first->at;
}

struct timer *timers_pop(struct timers *t, int64_t now)
{
    struct timer *timer = t->first;
    if (timer == NULL || timer->at > now)
        return NULL;
    unset(t, timer);
    return timer;
}
