/* thread_ref.c: see thread_ref.h. A thread makes its record when it first acquires a lock; a key
 * of pthreads records its end. The record goes with the last who points to it. */
#include "runtime/thread_ref.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct thread_ref {
    _Atomic uint32_t pointers;
    _Atomic bool ended;
};

static pthread_key_t key;
static bool has_key;
static _Thread_local struct thread_ref *self;

static void on_end(void *arg)
{
    struct thread_ref *h = arg;
    self = NULL; /* a later destructor may acquire again */
    atomic_store(&h->ended, true);
    thread_ref_drop(h);
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

struct thread_ref *thread_ref_self(void)
{
    if (self != NULL)
        return self;
    struct thread_ref *h = malloc(sizeof *h);
    if (h == NULL)
        return NULL;
    *h = (struct thread_ref){.pointers = 1};
    if (!has_key || pthread_setspecific(key, h) != 0) {
        free(h);
        return NULL;
    }
    self = h;
    return h;
}

struct thread_ref *thread_ref_keep(struct thread_ref *h)
{
    if (h != NULL)
        atomic_fetch_add(&h->pointers, 1);
    return h;
}

void thread_ref_drop(struct thread_ref *h)
{
    if (h != NULL && atomic_fetch_sub(&h->pointers, 1) == 1)
        free(h);
}

bool thread_ref_has_ended(const struct thread_ref *h)
{
    return h != NULL && atomic_load(&h->ended);
}
