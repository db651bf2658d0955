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

static struct simba_request *take_all(struct worker *w)
{
    struct simba_request *batch = w->first;
    w->first = NULL;
    w->last = &w->first;
    return batch;
}

static struct simba_request **end_of(struct simba_request **list)
{
    while (*list != NULL)
        list = &(*list)->next;
    return list;
}

static void put_back(struct worker *w, struct simba_request *rest)
{
    *end_of(&rest) = w->first;
    w->first = rest;
    w->last = end_of(&w->first);
}

/* Under the lock, which it gives up meanwhile. */
static void do_part(struct worker *w, bool patient)
{
    struct simba_request *batch = take_all(w);
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    struct simba_request *done = w->run(w->store, &batch, patient);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    put_back(w, batch);
    bool signal = w->awaited || (!patient && w->first != NULL);
    pthread_mutex_unlock(&w->lock);
    if (signal)
        pthread_cond_signal(&w->work);
    if (done != NULL)
        w->answer(w->store, done);
    pthread_mutex_lock(&w->lock);
}

static void tick(struct worker *w)
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
    struct worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        if (w->busy) { /* who works for us signals when it is done */
            w->awaited = true;
            pthread_cond_wait(&w->work, &w->lock);
            w->awaited = false;
        } else if (monotonic() >= w->next_tick) { /* in time, however busy the store is */
            tick(w);
        } else if (w->first != NULL) {
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
static bool need_thread(struct worker *w)
{
    if (!w->has_thread)
        w->has_thread = thread_start(&w->thread, w->name, run, w) == 0;
    return w->has_thread;
}

void worker_init(struct worker *w, const char *name)
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
    w->name = name;
}

void worker_submit(struct worker *w, struct simba_request *batch)
{
    pthread_mutex_lock(&w->lock);
    *w->last = batch;
    w->last = end_of(w->last);
    pthread_mutex_unlock(&w->lock);
}

void worker_work(struct worker *w, bool here)
{
    pthread_mutex_lock(&w->lock);
    if (w->first != NULL && here && !w->busy)
        do_part(w, false);
    bool left = w->first != NULL;
    while (left && !need_thread(w)) { /* then whoever is here */
        if (!w->busy)
            do_part(w, true);
        left = w->first != NULL && !w->busy;
    }
    pthread_mutex_unlock(&w->lock);
    if (left)
        pthread_cond_signal(&w->work);
}

void worker_tick(struct worker *w, int64_t tick_ms, bool needed)
{
    pthread_mutex_lock(&w->lock);
    if (needed)
        (void)need_thread(w); /* without it the lease is waited for */
    if (tick_ms < w->tick_ms)
        w->next_tick = monotonic() + tick_ms * 1000000;
    w->tick_ms = tick_ms;
    pthread_mutex_unlock(&w->lock);
}

void worker_stop(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    bool has_thread = w->has_thread;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (!has_thread)
        w->end(w->store);
}

void worker_join(struct worker *w)
{
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
}
