/* executor.c: callbacks on threads of your own. Here it is one thread with a queue: callbacks of
 * all contenders come one after the other, so that they need no lock between them; but a slow
 * one makes the others wait, which the library's own threads would not.
 *
 *     ./executor [URL]        memory: by default, a store inside this process only */
#include <pthread.h>
#include <simba.h>
#include <stdio.h>

#define CONTENDERS 4
#define QUEUE_MAX CONTENDERS /* at most one job of a handle is under way */

struct job {
    void (*run)(void *arg);
    void *arg;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job job[QUEUE_MAX];
    int first, count;
    int leads, ends; /* on the queue's thread only: how many lead, how many have ended */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* On the client's loop, which waits for it: takes the job and returns. */
static int submit(void *data, void (*run)(void *arg), void *arg)
{
    (void)data;
    int code = -1; /* a job that is not taken runs on a thread of the library */
    pthread_mutex_lock(&queue.lock);
    if (queue.count < QUEUE_MAX) {
        queue.job[(queue.first + queue.count++) % QUEUE_MAX] = (struct job){run, arg};
        pthread_cond_signal(&queue.changed);
        code = 0;
    }
    pthread_mutex_unlock(&queue.lock);
    return code;
}

static struct job take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0)
        pthread_cond_wait(&queue.changed, &queue.lock);
    struct job job = queue.job[queue.first];
    queue.first = (queue.first + 1) % QUEUE_MAX;
    queue.count--;
    pthread_mutex_unlock(&queue.lock);
    return job;
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    simba_contender **contender = data;
    printf("%s: mine, token %llu; %d of %d lead\n", mutex, (unsigned long long)state->after.token,
           ++queue.leads, CONTENDERS);
    simba_contender_destroy(*contender);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)state;
    printf("%s: given back; %d of %d lead\n", mutex, --queue.leads, CONTENDERS);
}

static void on_closed(void *data)
{
    (void)data;
    queue.ends++;
}

int main(int argc, char **argv)
{
    static simba_contender *contender[CONTENDERS];
    struct simba_executor executor = {.data = NULL, .submit = submit};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.executor = &executor;
    simba_client *client = NULL;
    int code = simba_open(argc > 1 ? argv[1] : "memory:", &options, &client);
    for (int i = 0; code == 0 && i < CONTENDERS; i++) {
        char mutex[32];
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        o.on_acquired = on_acquired;
        o.on_released = on_released;
        o.on_closed = on_closed;
        o.data = &contender[i];
        snprintf(mutex, sizeof mutex, "example-%d", i);
        code = simba_contender_create(client, mutex, &o, &contender[i]);
        if (code == 0)
            code = simba_contender_start(contender[i]);
    }
    while (code == 0 && queue.ends < CONTENDERS) { /* this thread is the executor's */
        struct job job = take();
        job.run(job.arg);
    }
    if (code == 0)
        code = simba_close(client, 10000);
    if (code != 0)
        fprintf(stderr, "executor: %s\n", simba_error_text());
    return code == 0 ? 0 : 1;
}
