/* poll.h: a client that the host program polls (SIMBA_NO_THREAD). */
#ifndef RUNTIME_POLL_H
#define RUNTIME_POLL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct simba_client;

void poll_start(struct simba_client *s);         /* instead of a thread of ours */
void poll_take_over(struct simba_client *s);     /* from now on by this thread */
bool poll_is_here(const struct simba_client *s); /* this thread is the one that polls */
void poll_notify(void *s);                       /* there is something to poll for */

/* futex_wait(); the thread that polls goes on with that meanwhile. If a callback ends that thread,
 * thread_ends(arg) ends the wait. */
bool poll_wait(struct simba_client *s, _Atomic uint32_t *word, uint32_t value, int64_t until,
               void (*thread_ends)(void *arg), void *arg);
#endif
