/* executor.c: see executor.h. Each ending thread joins the one that ended before it, so that none
 * is left running when the executor is gone and nobody has to keep a list. */
#include "runtime/executor.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

/* One that is being woken is enough: when it takes its job, it wakes the next if there are more. So
 * jobs that come faster than threads wake are run by those that are awake. */
static void wake_one_locked(struct executor *x)
{
    if (x->waking || x->idle == 0)
        return;
    x->waking = true;
    pthread_cond_signal(&x->work);
}

static struct job *take_locked(struct executor *x)
{
    struct job *job = x->first;
    if (job != NULL) {
        x->first = job->next;
        if (x->first == NULL)
            x->last = &x->first;
        x->queued--;
    }
    return job;
}

/* Waits for work; false: none came for a while, or the executor ends. */
static bool wait_locked(struct executor *x)
{
    struct timespec until = clock_slice_end(EXECUTOR_IDLE_MS * NS_PER_MS);
    bool late = false;
    x->idle++;
    while (x->first == NULL && !x->stopping && !(late && x->threads > x->least)) {
        if (x->threads <= x->least) /* these stay */
            pthread_cond_wait(&x->work, &x->lock);
        else
            late = pthread_cond_timedwait(&x->work, &x->lock, &until) == ETIMEDOUT;
        x->waking = false;
    }
    x->idle--;
    return x->first != NULL;
}

static void serve_locked(struct executor *x);

/* Unlocks. */
static void leave_locked(struct executor *x)
{
    bool join = x->has_zombie;
    pthread_t before = x->zombie;
    x->has_zombie = true;
    x->zombie = pthread_self();
    if (--x->threads == 0)
        pthread_cond_broadcast(&x->empty);
    pthread_mutex_unlock(&x->lock);
    if (join)
        pthread_join(before, NULL);
}

static void *run_thread(void *arg)
{
    struct executor *x = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_mutex_lock(&x->lock);
    serve_locked(x);
    leave_locked(x);
    return NULL;
}

static int add_thread_locked(struct executor *x)
{
    pthread_t thread;
    int rc = thread_start(&thread, x->name, run_thread, x);
    if (rc == 0)
        x->threads++;
    return rc;
}

/* A job has ended its thread, by pthread_exit or because it was cancelled: another goes on. If
 * there is none to be had, this one does, in its last moments. Where none needs to stay, every job
 * in the queue has another thread. */
static void replace_thread(void *arg)
{
    struct executor *x = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_mutex_lock(&x->lock);
    if (x->least > 0 && add_thread_locked(x) < 0 && x->threads == 1)
        serve_locked(x);
    leave_locked(x);
}

/* Jobs are run with cancellation as it is in a new thread; they see to it that only user code is
 * cancelled. */
static void serve_locked(struct executor *x)
{
    do {
        struct job *job = take_locked(x);
        if (job == NULL)
            continue;
        if (x->first != NULL)
            wake_one_locked(x);
        pthread_mutex_unlock(&x->lock);
        pthread_cleanup_push(replace_thread, x);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        job->run(job->arg);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        pthread_cleanup_pop(0);
        pthread_mutex_lock(&x->lock);
    } while (wait_locked(x));
}

static void init(struct executor *x)
{
    x->last = &x->first;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->work, &attr);
    pthread_cond_init(&x->empty, &attr);
    pthread_condattr_destroy(&attr);
}

int executor_init(struct executor *x, const char *name, size_t least, size_t most)
{
    assert(least <= 1);
    *x = (struct executor){.name = name, .least = least, .most = most};
    init(x);
    if (least == 0)
        return 0;
    pthread_mutex_lock(&x->lock);
    int rc = add_thread_locked(x);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

void executor_init_polled(struct executor *x, void (*notify)(void *arg), void *arg)
{
    *x = (struct executor){.notify = notify, .notify_arg = arg};
    init(x);
}

bool executor_run(struct executor *x)
{
    struct job *job;
    bool any = false;
    do {
        pthread_mutex_lock(&x->lock);
        job = take_locked(x);
        pthread_mutex_unlock(&x->lock);
        if (job != NULL)
            job->run(job->arg);
        any = any || job != NULL;
    } while (job != NULL);
    return any;
}

int executor_submit(struct executor *x, struct job *job)
{
    pthread_mutex_lock(&x->lock);
    bool add = x->notify == NULL && x->queued >= x->idle && x->threads < x->most;
    int rc = add ? add_thread_locked(x) : 0;
    if (rc < 0 && x->least == 0) {
        pthread_mutex_unlock(&x->lock);
        return rc;
    } /* else the job waits for a thread that is there */
    assert(x->threads > 0 || x->notify != NULL);
    job->next = NULL;
    *x->last = job;
    x->last = &job->next;
    x->queued++;
    if (!add)
        wake_one_locked(x);
    pthread_mutex_unlock(&x->lock);
    if (x->notify != NULL)
        x->notify(x->notify_arg);
    return 0;
}

bool executor_stop(struct executor *x, int64_t until)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&x->lock);
    x->stopping = true;
    pthread_cond_broadcast(&x->work);
    while (x->threads > 0) {
        int64_t left = until - clock_now();
        if (left <= 0)
            break;
        struct timespec end = clock_slice_end(left);
        pthread_cond_timedwait(&x->empty, &x->lock, &end);
    }
    bool ended = x->threads == 0;
    pthread_mutex_unlock(&x->lock);
    pthread_setcancelstate(cancel, NULL);
    return ended;
}

void executor_free(struct executor *x)
{
    assert(x->threads == 0);
    if (x->has_zombie)
        pthread_join(x->zombie, NULL);
    pthread_cond_destroy(&x->work);
    pthread_cond_destroy(&x->empty);
    pthread_mutex_destroy(&x->lock);
}
