/* futex.c: see futex.h. The kernel's relative timeouts do not run during suspend, so the wait is
 * in slices and the clock decides. */
#include "runtime/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/clock.h"

#define SLICE (INT64_C(60000) * NS_PER_MS)

bool futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until)
{
    while (atomic_load(word) == value) {
        int64_t left = until - clock_now();
        if (left <= 0)
            return false;
        if (left > SLICE)
            left = SLICE;
        struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
    }
    return true;
}

void futex_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    futex_wake(word);
}

enum { PENDING, AWAITED, DONE };

void futex_await(_Atomic uint32_t *word)
{
    uint32_t pending = PENDING;
    if (atomic_compare_exchange_strong(word, &pending, AWAITED))
        futex_wait(word, AWAITED, NEVER);
}

void futex_finish(_Atomic uint32_t *word)
{
    if (atomic_exchange(word, DONE) == AWAITED)
        futex_wake(word);
}

void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
