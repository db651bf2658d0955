/* thread.h: threads of ours. All signals are blocked in them, so that they reach the user's. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* 0 or SIMBA_ELIMIT. name NULL: it names itself, as one must that may have ended when this
 * returns. */
int thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg);

/* One that nobody waits for: it may hang in a call that cannot be stopped. */
int thread_start_detached(void *(*run)(void *arg), void *arg);
#endif
