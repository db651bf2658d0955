/* thread.c: see thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <simba.h>
#include <stddef.h>

#include "base/clock.h"

#define DETACHED_STACK (1u << 20) /* whatever the program has as its default */

static int start(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(out, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    errno = rc;
    return SIMBA_ELIMIT;
}

int thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg)
{
    int rc = start(out, NULL, run, arg);
    if (rc == 0 && name != NULL)
        pthread_setname_np(*out, name);
    return rc;
}

int thread_start_detached(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, DETACHED_STACK);
    int rc = start(&thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return rc;
}

void thread_condition_init(pthread_cond_t *out)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(out, &attributes);
    pthread_condattr_destroy(&attributes);
}

void thread_wait_ms(pthread_cond_t *changed, pthread_mutex_t *lock, int64_t ms)
{
    struct timespec until = clock_slice_end(ms > 0 ? ms * NS_PER_MS : 0);
    pthread_cond_timedwait(changed, lock, &until);
}
