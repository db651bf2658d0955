/* worker.c: see worker.h. */
#include "backend/worker.h"

#include <errno.h>
#include <time.h>

#include "runtime/executor.h"

static void wait_for_work(struct worker *w)
{
    if (w->tick_ms == 0) {
        pthread_cond_wait(&w->work, &w->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += w->tick_ms / 1000;
    until.tv_nsec += w->tick_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&w->work, &w->lock, &until) == ETIMEDOUT && w->first == NULL) {
        pthread_mutex_unlock(&w->lock);
        w->idle(w->store);
        pthread_mutex_lock(&w->lock);
    }
}

static void *run(void *arg)
{
    struct worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->first == NULL && !w->stopping)
            wait_for_work(w);
        struct simba_request *batch = w->first;
        if (batch == NULL)
            break;
        w->first = NULL;
        w->last = &w->first;
        pthread_mutex_unlock(&w->lock);
        w->run(w->store, batch);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    w->end(w->store);
    return NULL;
}

int worker_start(struct worker *w, const char *name)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, &attr);
    pthread_condattr_destroy(&attr);
    w->last = &w->first;
    return thread_start(&w->thread, name, run, w);
}

void worker_submit(struct worker *w, struct simba_request *batch)
{
    pthread_mutex_lock(&w->lock);
    *w->last = batch;
    while (batch->next != NULL)
        batch = batch->next;
    w->last = &batch->next;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void worker_tick(struct worker *w, int64_t tick_ms)
{
    pthread_mutex_lock(&w->lock);
    if (w->tick_ms == 0 && tick_ms != 0)
        pthread_cond_signal(&w->work); /* it sleeps without end */
    w->tick_ms = tick_ms;
    pthread_mutex_unlock(&w->lock);
}

void worker_stop(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void worker_join(struct worker *w)
{
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
}
