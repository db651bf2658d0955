/* thread.h: threads of ours. All signals are blocked in them, so that they reach the user's. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* 0, or SIMBA_ELIMIT and errno. name NULL: it names itself, as one must that may have ended when this
 * returns. */
int thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg);

/* One that nobody waits for: it may hang in a call that cannot be stopped. */
int thread_start_detached(void *(*run)(void *arg), void *arg);

/* A condition, and waiting for it so long at most, by a clock that nobody sets. */
void thread_condition_init(pthread_cond_t *out);
void thread_wait_ms(pthread_cond_t *changed, pthread_mutex_t *lock, int64_t ms);
#endif
