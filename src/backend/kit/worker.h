/* worker.h: a thread for a store whose client library blocks. It takes what has gathered since
 * it last took them as one batch. A thread that would only wait for it may do its work instead,
 * as long as that needs no waiting: one of them at a time is `busy`. */
#ifndef BACKEND_KIT_WORKER_H
#define BACKEND_KIT_WORKER_H

#include <pthread.h>

#include "backend/kit/pending.h"

struct kit_worker {
    void *store;
    /* Takes from the batch what it wants to do at once, does it, and returns that; NULL: all of it
     * would have to wait, and it may not. */
    struct simba_request *(*run)(void *store, struct simba_request **batch, bool may_wait);
    void (*answer)(void *store, struct simba_request *done); /* while others go on */
    void (*idle)(void *store);                               /* every tick_ms */
    void (*end)(void *store);                                /* the last thing on the thread */

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t work;
    struct pending pending;
    int64_t tick_ms, next_tick; /* on the worker's clock, ns */
    bool busy, stopping;
    bool awaited; /* the thread waits until nobody is busy, without a timeout */
    const char *name;
    bool has_thread;
    pthread_t thread;
};

/* All of the above are set. The thread is started when there is something for it to do. */
void worker_init(struct kit_worker *w, const char *name);
void worker_submit(struct kit_worker *w, struct simba_request *batch); /* and then: */
void worker_work(struct kit_worker *w, bool here); /* here: on the calling thread, if it can */

void worker_tick(struct kit_worker *w, int64_t tick_ms); /* from now on; at the start 1 s */
void worker_need(struct kit_worker *w); /* ticks, also while there is nothing else to do */
void worker_stop(struct kit_worker *w); /* does not wait; what is queued is run first */
void worker_join(struct kit_worker *w);
#endif
