/* worker.c: see worker.h. */
#include "backend/worker.h"

#include <time.h>

#include "runtime/executor.h"

static int64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The tick comes in time however busy the store is. */
static void tick_if_due(struct worker *w)
{
    if (monotonic() < w->next_tick)
        return;
    pthread_mutex_unlock(&w->lock);
    w->idle(w->store);
    pthread_mutex_lock(&w->lock);
    w->next_tick = monotonic() + w->tick_ms * 1000000;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        tick_if_due(w);
        struct simba_request *batch = w->first;
        if (batch == NULL) {
            if (w->stopping)
                break;
            struct timespec until = {.tv_sec = w->next_tick / 1000000000,
                                     .tv_nsec = w->next_tick % 1000000000};
            pthread_cond_timedwait(&w->work, &w->lock, &until);
            continue;
        }
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
    w->tick_ms = 1000;
    w->next_tick = monotonic() + w->tick_ms * 1000000;
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
    if (tick_ms < w->tick_ms)
        w->next_tick = monotonic() + tick_ms * 1000000;
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
