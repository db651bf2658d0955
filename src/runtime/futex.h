/* futex.h: a word that one thread changes and others wait for. */
#ifndef RUNTIME_FUTEX_H
#define RUNTIME_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits while *word == value, at most until the time (clock_now); false: the time has come. */
bool futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until);

/* Sets the word and wakes all. The memory may be gone as soon as the value is set: a waiter that
 * sees it may return and free it. */
void futex_set(_Atomic uint32_t *word, uint32_t value);
/* For a word that begins as 0 and is finished once; costs nothing if nobody sleeps. After the
 * finish the word may be gone. */
void futex_await(_Atomic uint32_t *word);
void futex_finish(_Atomic uint32_t *word);
void futex_wake(_Atomic uint32_t *word); /* after setting it by other means */
#endif
