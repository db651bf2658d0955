/* worker.h: a thread for a store whose client library blocks. It takes what has gathered since it
 * last looked as one batch. */
#ifndef BACKEND_WORKER_H
#define BACKEND_WORKER_H

#include <pthread.h>
#include <simba/backend.h>

struct worker {
    void *store;
    void (*run)(void *store, struct simba_request *batch); /* answers all of it */
    void (*idle)(void *store);                             /* every tick_ms */
    void (*end)(void *store);                              /* the last thing on the thread */

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t work;
    struct simba_request *first, **last;
    int64_t tick_ms, next_tick; /* on the worker's clock, ns */
    bool stopping;
    pthread_t thread;
};

int worker_start(struct worker *w, const char *name); /* the four above are set */
void worker_submit(struct worker *w, struct simba_request *batch);
void worker_tick(struct worker *w, int64_t tick_ms); /* from now on; at the start 1 s */
void worker_stop(struct worker *w); /* does not wait; what is queued is run first */
void worker_join(struct worker *w);
#endif
