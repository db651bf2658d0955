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

/* ---- many who wait for a word each ----------------------------------------------------------- */

enum { PENDING, AWAITED, DONE };

/* Never freed, because who was woken may look at its bell once more when all else is gone. */
static struct {
    _Alignas(64) _Atomic uint32_t strokes;
} bells[FUTEX_BELLS];
static _Atomic uint32_t seats;

uint32_t futex_seat(void)
{
    return atomic_fetch_add(&seats, 1) % (FUTEX_BELLS * FUTEX_BITS);
}

bool futex_await(_Atomic uint32_t *word, uint32_t seat, int64_t until)
{
    _Atomic uint32_t *strokes = &bells[seat / FUTEX_BITS].strokes;
    uint32_t pending = PENDING, bit = UINT32_C(1) << seat % FUTEX_BITS;
    if (!atomic_compare_exchange_strong(word, &pending, AWAITED) && pending == DONE)
        return true;
    for (;;) {
        uint32_t before = atomic_load(strokes); /* first this, then the word: no stroke is missed */
        if (atomic_load(word) == DONE)
            return true;
        int64_t left = until == NEVER ? NEVER : until - clock_now();
        if (left <= 0)
            return false;
        struct timespec end = clock_slice_end(left);
        syscall(SYS_futex, strokes, FUTEX_WAIT_BITSET_PRIVATE, before, until == NEVER ? NULL : &end,
                NULL, bit);
    }
}

bool futex_is_done(_Atomic uint32_t *word)
{
    return atomic_load(word) == DONE;
}

void futex_finish(struct futex_ringing *r, _Atomic uint32_t *word, uint32_t seat)
{
    if (atomic_exchange(word, DONE) != AWAITED)
        return;
    r->bells |= UINT64_C(1) << seat / FUTEX_BITS;
    r->bits[seat / FUTEX_BITS] |= UINT32_C(1) << seat % FUTEX_BITS;
}

void futex_ring(struct futex_ringing *r)
{
    for (unsigned i = 0; r->bells >> i != 0; i++) {
        if ((r->bells >> i & 1) == 0)
            continue;
        atomic_fetch_add(&bells[i].strokes, 1);
        syscall(SYS_futex, &bells[i].strokes, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL,
                r->bits[i]);
        if (i == FUTEX_BELLS - 1)
            break;
    }
}

void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
