/* interest.h: the mutexes that somebody in this client waits for, owns or observes. The store gives
 * hints of these. One record per mutex, however many handles; stores ask for it on any thread. A
 * store that does not ask who waits is spared those records: an acquisition costs none. */
#ifndef RUNTIME_INTEREST_H
#define RUNTIME_INTEREST_H

#include <pthread.h>
#include <simba/backend.h>
#include <stdatomic.h>

#include "base/hash_table.h"

struct interests {
    _Atomic uint32_t observed; /* mutexes that are observed, and one more if all are */
    atomic_bool all_observed;

    /* The innermost lock of all; with it, the table. Under it a store's each() runs. */
    pthread_mutex_t lock;
    struct hash_table mutexes;
};

struct simba_client;

int interest_init(struct simba_client *s);  /* 0 or SIMBA_ELIMIT; and what the store may ask */
void interest_free(struct simba_client *s); /* also if that failed */

/* What all handles together want to hear of the mutex ("": of all) was this, and is now the most.
 * 0; SIMBA_ELIMIT: nothing was changed. */
int interest_change(struct simba_client *s, const char *mutex, enum simba_interest was,
                    enum simba_interest most);
#endif
