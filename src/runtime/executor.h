/* executor.h: the threads that run user code, so that neither the loop nor another handle waits
 * for it. Elastic: a job finds an idle thread or gets a new one, up to a limit; then it queues.
 * A client has two: for callbacks, and for scheduled work. */
#ifndef RUNTIME_EXECUTOR_H
#define RUNTIME_EXECUTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXECUTOR_THREADS_MAX 256
#define EXECUTOR_IDLE_MS 5000

struct job { /* inside the thing it is about; at most once in the queue */
    struct job *next;
    void (*run)(void *arg);
    void *arg;
};

struct executor {
    pthread_mutex_t lock;
    pthread_cond_t work, empty;
    struct job *first, **last;
    const char *name; /* of its threads */
    size_t least, most;
    size_t threads, idle, queued;
    bool waking; /* an idle thread was signalled, and does not run yet */
    bool stopping, has_zombie;
    void (*notify)(void *arg); /* not NULL: no threads, jobs wait for executor_run */
    void *notify_arg;
    pthread_t zombie; /* the thread that ended last, not yet joined */
};

/* least 1: starts one thread, which stays, so that submit cannot fail later. least 0: none stays,
 * and a job for which no thread can be had is refused. */
int executor_init(struct executor *x, const char *name, size_t least, size_t most);

/* No threads: notify says that there is something for executor_run. */
void executor_init_polled(struct executor *x, void (*notify)(void *arg), void *arg);
bool executor_run(struct executor *x); /* all that waits; false: nothing did */

int executor_submit(struct executor *x, struct job *job); /* 0, or SIMBA_ELIMIT: refused */

/* Waits until the queue is empty and all threads have ended; false: not by then, call it again. */
bool executor_stop(struct executor *x, int64_t until);
void executor_free(struct executor *x); /* after that */
#endif
