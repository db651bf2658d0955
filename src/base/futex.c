/* futex.c: see futex.h. */
#include "base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

bool futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until)
{
    while (atomic_load(word) == value) {
        int64_t left = until - clock_now();
        if (left <= 0)
            return false;
        struct timespec end = clock_slice_end(left);
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &end, NULL,
                FUTEX_BITSET_MATCH_ANY);
    }
    return true;
}

void futex_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    futex_wake(word);
}

/* ---- many who wait for a word each --------------------------------------------------------- */

enum { PENDING, AWAITED, DONE };

/* Never freed, because who was woken may read its group once more when all else is gone. */
static struct {
    _Alignas(64) _Atomic uint32_t wakeups;
} groups[FUTEX_GROUPS];
static _Atomic uint32_t slots_used;

uint32_t futex_new_slot(void)
{
    return atomic_fetch_add(&slots_used, 1) % (FUTEX_GROUPS * FUTEX_BITS);
}

bool futex_await(_Atomic uint32_t *word, uint32_t slot, int64_t until)
{
    _Atomic uint32_t *wakeups = &groups[slot / FUTEX_BITS].wakeups;
    uint32_t pending = PENDING, bit = UINT32_C(1) << slot % FUTEX_BITS;
    if (!atomic_compare_exchange_strong(word, &pending, AWAITED) && pending == DONE)
        return true;
    for (;;) {
        uint32_t before = atomic_load(wakeups); /* first this, then the word: no wakeup is missed */
        if (atomic_load(word) == DONE)
            return true;
        int64_t left = until == NEVER ? NEVER : until - clock_now();
        if (left <= 0)
            return false;
        struct timespec end = clock_slice_end(left);
        syscall(SYS_futex, wakeups, FUTEX_WAIT_BITSET_PRIVATE, before, until == NEVER ? NULL : &end,
                NULL, bit);
    }
}

bool futex_is_done(_Atomic uint32_t *word)
{
    return atomic_load(word) == DONE;
}

void futex_finish(struct futex_batch *r, _Atomic uint32_t *word, uint32_t slot)
{
    if (atomic_exchange(word, DONE) != AWAITED)
        return;
    r->groups |= UINT64_C(1) << slot / FUTEX_BITS;
    r->bits[slot / FUTEX_BITS] |= UINT32_C(1) << slot % FUTEX_BITS;
}

void futex_wake_batch(struct futex_batch *r)
{
    for (unsigned i = 0; r->groups >> i != 0; i++) {
        if ((r->groups >> i & 1) == 0)
            continue;
        atomic_fetch_add(&groups[i].wakeups, 1);
        syscall(SYS_futex, &groups[i].wakeups, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL,
                r->bits[i]);
        if (i == FUTEX_GROUPS - 1)
            break;
    }
}

void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
