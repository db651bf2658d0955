/* worker.c: see worker.h. */
#include "backend/kit/worker.h"

#include <time.h>

#include "base/thread.h"

static int64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Under the lock, which it gives up meanwhile. */
static void do_part(struct kit_worker *w, bool may_wait)
{
    struct simba_request *batch = pending_take(&w->pending);
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    struct simba_request *done = w->run(w->store, &batch, may_wait);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    pending_put_back(&w->pending, batch);
    bool signal = w->awaited || (!may_wait && w->pending.first != NULL);
    pthread_mutex_unlock(&w->lock);
    if (signal)
        pthread_cond_signal(&w->work);
    if (done != NULL)
        w->answer(w->store, done);
    pthread_mutex_lock(&w->lock);
}

static void tick(struct kit_worker *w)
{
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    w->idle(w->store);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    w->next_tick = monotonic() + w->tick_ms * 1000000;
}

static void *run(void *arg)
{
    struct kit_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        if (w->busy) { /* who works for us signals when it is done */
            w->awaited = true;
            pthread_cond_wait(&w->work, &w->lock);
            w->awaited = false;
        } else if (monotonic() >= w->next_tick) { /* in time, however busy the store is */
            tick(w);
        } else if (w->pending.first != NULL) {
            do_part(w, true);
        } else if (w->stopping) {
            break;
        } else {
            struct timespec until = {.tv_sec = w->next_tick / 1000000000,
                                     .tv_nsec = w->next_tick % 1000000000};
            pthread_cond_timedwait(&w->work, &w->lock, &until);
        }
    }
    pthread_mutex_unlock(&w->lock);
    w->end(w->store);
    return NULL;
}

/* Under the lock; false: none is to be had. */
static bool need_thread(struct kit_worker *w)
{
    if (!w->has_thread)
        w->has_thread = thread_start(&w->thread, w->name, run, w) == 0;
    return w->has_thread;
}

void worker_init(struct kit_worker *w, const char *name)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, &attr);
    pthread_condattr_destroy(&attr);
    pending_init(&w->pending);
    w->tick_ms = 1000;
    w->next_tick = monotonic() + w->tick_ms * 1000000;
    w->name = name;
}

void worker_submit(struct kit_worker *w, struct simba_request *batch)
{
    pthread_mutex_lock(&w->lock);
    pending_add(&w->pending, batch);
    pthread_mutex_unlock(&w->lock);
}

void worker_work(struct kit_worker *w, bool here)
{
    pthread_mutex_lock(&w->lock);
    if (w->pending.first != NULL && here && !w->busy)
        do_part(w, false);
    bool left = w->pending.first != NULL;
    while (left && !need_thread(w)) { /* then whoever is here */
        if (!w->busy)
            do_part(w, true);
        left = w->pending.first != NULL && !w->busy;
    }
    pthread_mutex_unlock(&w->lock);
    if (left)
        pthread_cond_signal(&w->work);
}

void worker_tick(struct kit_worker *w, int64_t tick_ms)
{
    pthread_mutex_lock(&w->lock);
    if (tick_ms < w->tick_ms) {
        w->next_tick = monotonic() + tick_ms * 1000000;
        pthread_cond_signal(&w->work); /* it sleeps until the one before */
    }
    w->tick_ms = tick_ms;
    pthread_mutex_unlock(&w->lock);
}

void worker_need(struct kit_worker *w)
{
    pthread_mutex_lock(&w->lock);
    (void)need_thread(w); /* without it the lease is waited for */
    pthread_mutex_unlock(&w->lock);
}

void worker_stop(struct kit_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    bool has_thread = w->has_thread;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (!has_thread)
        w->end(w->store);
}

void worker_join(struct kit_worker *w)
{
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
}
