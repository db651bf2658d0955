/* interest.h: the mutexes that somebody in this client waits for, owns or observes. The store gives
 * hints of these. One record per mutex, however many handles; stores ask for it on any thread. */
#ifndef RUNTIME_INTEREST_H
#define RUNTIME_INTEREST_H

#include <pthread.h>
#include <simba/backend.h>
#include <stdatomic.h>

#include "base/hash_table.h"

struct interests {
    _Atomic uint32_t observers; /* handles that observe a mutex, or all; and of them: */
    _Atomic uint32_t of_all;    /* those that observe all */

    /* The innermost lock of all; with it, the table. Under it a store's each() runs. */
    pthread_mutex_t lock;
    struct hash_table mutexes;
};

struct simba;

int interest_init(struct simba *s);  /* 0 or SIMBA_ELIMIT; and what the store may ask */
void interest_free(struct simba *s); /* also if that failed */

/* A handle's interest in the mutex ("": in all) changes. 1: so does *most, what all handles
 * together want to hear; 0: it does not; SIMBA_ELIMIT: nothing was changed. */
int interest_change(struct simba *s, const char *mutex, enum simba_interest before,
                    enum simba_interest now, enum simba_interest *most);
#endif
