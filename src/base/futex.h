/* futex.h: a word that one thread changes and others wait for. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits while *word == value, at most until the time (clock_now); false: the time has come. */
bool futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until);

/* Sets the word and wakes all. The memory may be gone as soon as the value is set: a waiter that
 * sees it may return and free it. */
void futex_set(_Atomic uint32_t *word, uint32_t value);
/* For words that begin as 0 and are finished once; costs nothing where nobody sleeps. A waiter
 * sleeps on the word of its group, and has a slot (a bit) of its own there: so one call to the
 * kernel wakes all whose words are finished at once, and only those. */
#define FUTEX_GROUPS 64
#define FUTEX_BITS 32
struct futex_batch {
    uint64_t groups;
    uint32_t bits[FUTEX_GROUPS];
};
uint32_t futex_new_slot(void); /* for those who never wait at the same time */
bool futex_await(_Atomic uint32_t *word, uint32_t slot, int64_t until); /* false: as futex_wait */
bool futex_is_done(_Atomic uint32_t *word);
void futex_finish(struct futex_batch *r, _Atomic uint32_t *word,
                  uint32_t slot);             /* it may be gone then */
void futex_wake_batch(struct futex_batch *r); /* once, after those */

void futex_wake(_Atomic uint32_t *word); /* after setting it by other means */
#endif
