/* timers.c: a pairing heap. Its links are inside the timers, so setting one never allocates and
 * never fails, which a renewal may rely on. Renewals come at few instants (period.h), so most
 * timers find one of the same time, and are a list behind that: taking them touches nothing
 * else. */
#include "runtime/timers.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/time.h"
#include "core/period.h"

#define FAR (250 * NS_PER_MS)

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

static struct timer **recent(struct timers *t, int64_t at)
{
    uint64_t hash = (uint64_t)at * UINT64_C(0x9e3779b97f4a7c15);
    return &t->recent[hash >> 56];
}

static bool is_set(const struct timers *t, const struct timer *timer)
{
    return timer == t->first || timer->before != NULL;
}

/* Whoever points to the timer points to the other, which may be NULL, from now on. */
static void replace(struct timers *t, const struct timer *timer, struct timer *other)
{
    struct timer *before = timer->before;
    if (timer == t->first)
        t->first = other;
    else if (before->child == timer)
        before->child = other;
    else if (before->same == timer)
        before->same = other;
    else
        before->next = other;
    if (other != NULL)
        other->before = before;
}

/* The next of the same time takes its place in the heap. */
static void promote_same(struct timers *t, struct timer *timer)
{
    struct timer *successor = timer->same;
    replace(t, timer, successor);
    successor->same = successor->next;
    successor->next = timer->next;
    successor->child = timer->child;
    struct timer *const led[] = {successor->same, successor->next, successor->child};
    for (size_t i = 0; i < 3; i++) {
        if (led[i] != NULL)
            led[i]->before = successor;
    }
}

static void unset(struct timers *t, struct timer *timer)
{
    struct timer **slot = recent(t, timer->at);
    if (*slot == timer)
        *slot = timer->same;
    if (timer->same != NULL) {
        promote_same(t, timer);
    } else if (timer == t->first) {
        t->first = meld_list(timer->child);
    } else {
        replace(t, timer, timer->next);
        t->first = meld(t->first, meld_list(timer->child));
    }
    *timer = (struct timer){.expire = timer->expire};
}

/* Behind one of the same time, if there is one to be found. */
static void join(struct timers *t, struct timer *timer)
{
    struct timer **slot = recent(t, timer->at), *other = *slot;
    if (other == NULL || other->at != timer->at) {
        *slot = timer;
        t->first = meld(t->first, timer);
        return;
    }
    timer->before = other;
    timer->next = other->same;
    if (timer->next != NULL)
        timer->next->before = timer;
    other->same = timer;
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
    join(t, timer);
}

void timers_set_about(struct timers *t, struct timer *timer, int64_t now, int64_t at)
{
    bool is_far = at != NEVER && at - now > FAR;
    timers_set(t, timer, is_far ? at + NS_PER_MS - at % NS_PER_MS : at);
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
    if (timer->same != NULL)
        timer = timer->same;
    unset(t, timer);
    return timer;
}
