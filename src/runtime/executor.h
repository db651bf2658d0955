/* executor.h: the threads that run user code, so that neither the loop nor another handle waits
 * for it. Elastic: a job finds an idle thread or gets a new one, up to a limit; then it queues. */
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
    size_t threads, idle, queued;
    bool stopping, has_zombie;
    void (*notify)(void *arg); /* not NULL: no threads, jobs wait for executor_run */
    void *notify_arg;
    pthread_t zombie; /* the thread that ended last, not yet joined */
};

/* Starts one thread, which stays, so that submit cannot fail later; or none, and then notify
 * says that there is something to run. */
int executor_init(struct executor *x, void (*notify)(void *arg), void *arg);
bool executor_run(struct executor *x); /* all that waits; false: nothing did */
void executor_submit(struct executor *x, struct job *job);

/* Waits until the queue is empty and all threads have ended; false: not by then, call it again. */
bool executor_stop(struct executor *x, int64_t until);
void executor_free(struct executor *x); /* after that */
#endif
