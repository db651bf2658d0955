/* holder.c: see holder.h. A thread makes its record when it first acquires a lock; a key of pthreads
 * notes its end. The record goes with the last who points to it. */
#include "runtime/holder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct holder {
    _Atomic uint32_t pointers;
    _Atomic bool ended;
};

static pthread_key_t key;
static bool has_key;
static _Thread_local struct holder *self;

static void on_end(void *arg)
{
    struct holder *h = arg;
    self = NULL; /* a later destructor may acquire again */
    atomic_store(&h->ended, true);
    holder_drop(h);
}

__attribute__((constructor)) static void make_key(void)
{
    has_key = pthread_key_create(&key, on_end) == 0;
}

/* Nobody may call on_end when the library is gone. */
__attribute__((destructor)) static void delete_key(void)
{
    if (has_key)
        pthread_key_delete(key);
}

struct holder *holder_self(void)
{
    if (self != NULL)
        return self;
    struct holder *h = malloc(sizeof *h);
    if (h == NULL)
        return NULL;
    *h = (struct holder){.pointers = 1};
    if (!has_key || pthread_setspecific(key, h) != 0) {
        free(h);
        return NULL;
    }
    self = h;
    return h;
}

struct holder *holder_keep(struct holder *h)
{
    atomic_fetch_add(&h->pointers, 1);
    return h;
}

void holder_drop(struct holder *h)
{
    if (h != NULL && atomic_fetch_sub(&h->pointers, 1) == 1)
        free(h);
}

bool holder_has_ended(const struct holder *h)
{
    return atomic_load(&h->ended);
}
