/* delivery.h: records for one function of the user's, off the loop: a function that blocks must not
 * stop renewals. A bounded ring, emptied by one job at a time: on a simba-call thread, or inside of
 * simba_poll. The log and the trace are such. */
#ifndef RUNTIME_DELIVERY_H
#define RUNTIME_DELIVERY_H

#include "runtime/executor.h"

struct simba_client;

struct delivery {
    struct simba_client *client; /* whose records they are */
    struct executor *executor;
    void (*deliver)(struct delivery *d, const void *record); /* calls the user's function */
    bool (*refill_locked)(struct delivery *d); /* NULL, or: adds what is to be said at the end */
    pthread_mutex_t lock;
    char *ring;
    size_t size, max, first, count; /* of a record; of the ring, in records */
    bool busy;                      /* the user's function runs, or is about to */
    struct job job;
};

/* 0 or SIMBA_ELIMIT; delivery_free() follows in any case. deliver NULL: nothing is ever put. */
int delivery_init(struct delivery *d, struct simba_client *client, struct executor *executor,
                  void (*deliver)(struct delivery *, const void *), size_t size, size_t max);
void delivery_free(struct delivery *d); /* after the executor has stopped */
bool delivery_is_busy(struct delivery *d);

/* Between these two a record is filled in, under the lock of the ring; never under the client's. */
void delivery_lock(struct delivery *d);
void *delivery_add_locked(struct delivery *d); /* NULL: the ring is full */
void delivery_unlock(struct delivery *d);
#endif
