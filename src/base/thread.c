/* thread.c: see thread.h. */
#include "base/thread.h"

#include <signal.h>
#include <simba.h>
#include <stddef.h>

#define DETACHED_STACK (1u << 20) /* whatever the program has as its default */

static int start(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(out, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : SIMBA_ELIMIT;
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
