/* delivery.c: see delivery.h. A record stays in its place until the user's function is through
 * with it. */
#include "runtime/delivery.h"

#include <simba.h>
#include <stdlib.h>

#include "runtime/client.h"

static bool is_left_locked(struct delivery *d)
{
    return d->count > 0 || (d->refill_locked != NULL && d->refill_locked(d));
}

static void drop_first_locked(struct delivery *d)
{
    d->first = (d->first + 1) % d->max;
    d->count--;
}

struct delivering {
    struct delivery *delivery;
    struct simba_client *client_before;
};

/* The user's function has ended its thread; what is left is delivered on another. */
static void thread_ends(void *arg)
{
    struct delivering *now = arg;
    struct delivery *d = now->delivery;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    thread_client = now->client_before;
    pthread_mutex_lock(&d->lock);
    drop_first_locked(d);
    d->busy = is_left_locked(d);
    bool submit = d->busy;
    pthread_mutex_unlock(&d->lock);
    if (submit)
        executor_submit(d->executor, &d->job);
}

static void deliver_one(struct delivery *d, const void *record, int cancel)
{
    struct delivering now = {d, thread_client};
    thread_client = d->client; /* so that it cannot wait for itself */
    pthread_cleanup_push(thread_ends, &now);
    pthread_setcancelstate(cancel, NULL);
    d->deliver(d, record);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    thread_client = now.client_before;
}

static void deliver_all(void *arg)
{
    struct delivery *d = arg;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&d->lock);
    while (is_left_locked(d)) {
        const void *record = d->ring + d->first * d->size;
        pthread_mutex_unlock(&d->lock);
        deliver_one(d, record, cancel);
        pthread_mutex_lock(&d->lock);
        drop_first_locked(d);
    }
    d->busy = false;
    pthread_mutex_unlock(&d->lock);
    pthread_setcancelstate(cancel, NULL);
}

int delivery_init(struct delivery *d, struct simba_client *client, struct executor *executor,
                  void (*deliver)(struct delivery *, const void *), size_t size, size_t max)
{
    *d = (struct delivery){
        .client = client, .executor = executor, .deliver = deliver, .size = size, .max = max};
    d->job = (struct job){.run = deliver_all, .arg = d};
    pthread_mutex_init(&d->lock, NULL);
    if (deliver == NULL)
        return 0;
    d->ring = malloc(max * size); /* not calloc, which would touch it all: few records are put */
    return d->ring == NULL ? SIMBA_ELIMIT : 0;
}

void delivery_free(struct delivery *d)
{
    pthread_mutex_destroy(&d->lock);
    free(d->ring);
}

bool delivery_is_busy(struct delivery *d)
{
    pthread_mutex_lock(&d->lock);
    bool busy = d->busy;
    pthread_mutex_unlock(&d->lock);
    return busy;
}

void delivery_lock(struct delivery *d)
{
    pthread_mutex_lock(&d->lock);
}

void *delivery_add_locked(struct delivery *d)
{
    if (d->count == d->max)
        return NULL;
    return d->ring + (d->first + d->count++) % d->max * d->size;
}

void delivery_unlock(struct delivery *d)
{
    bool submit = !d->busy;
    d->busy = true;
    pthread_mutex_unlock(&d->lock);
    if (submit)
        executor_submit(d->executor, &d->job);
}
