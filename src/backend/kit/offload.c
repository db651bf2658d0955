/* offload.c: see offload.h. Under the lock: the list of calls that have run, which are
 * forgotten, and whether the loop still listens. The last of loop and threads frees. */
#include "backend/kit/offload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "base/time.h"

#define EXIT_WAIT_MS 5000 /* calls have timeouts of their own, but not the look-up in them */

struct offload {
    uv_async_t wake;
    void *shared;
    void (*free_shared)(void *shared);
    void (*on_closed)(void *data);
    void *data;

    pthread_mutex_t lock; /* for the rest */
    unsigned users;       /* the loop, and each thread */
    bool is_closed;
    struct offload_call *ran;
};

/* ---- exit ---------------------------------------------------------------------------------- */

static _Atomic uint32_t running; /* of those that exit() must wait for */

static void await_all(void)
{
    int64_t until = clock_after_ms(clock_now(), EXIT_WAIT_MS);
    uint32_t left;
    while ((left = atomic_load(&running)) > 0 && futex_wait(&running, left, until))
        ;
}

static void forget_all(void)
{
    atomic_store(&running, 0);
}

static void register_exit(void)
{
    (void)!atexit(await_all);
    (void)!pthread_atfork(NULL, NULL, forget_all); /* a child has no threads of its parent's */
}

static void begin_run(const struct offload_call *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!c->holds_exit)
        return;
    pthread_once(&once, register_exit);
    atomic_fetch_add(&running, 1);
}

static void end_run(bool held_exit)
{
    if (!held_exit)
        return;
    atomic_fetch_sub(&running, 1);
    futex_wake(&running);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void leave(struct offload *o)
{
    pthread_mutex_lock(&o->lock);
    bool last = --o->users == 0;
    pthread_mutex_unlock(&o->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&o->lock);
    if (o->free_shared != NULL)
        o->free_shared(o->shared);
    free(o);
}

static void *run(void *arg)
{
    struct offload_call *c = arg;
    struct offload *o = c->offload;
    bool held_exit = c->holds_exit; /* c may be gone at the end */
    c->run(c);
    pthread_mutex_lock(&o->lock);
    bool is_wanted = !o->is_closed && !c->is_forgotten;
    c->has_run = true;
    if (is_wanted) {
        c->next = o->ran;
        o->ran = c;
        uv_async_send(&o->wake);
    }
    pthread_mutex_unlock(&o->lock);
    if (!is_wanted)
        c->free(c);
    leave(o);
    end_run(held_exit);
    return NULL;
}

static void on_wake(uv_async_t *wake)
{
    struct offload *o = wake->data;
    for (;;) {
        pthread_mutex_lock(&o->lock);
        struct offload_call *c = o->ran;
        if (c != NULL)
            o->ran = c->next;
        pthread_mutex_unlock(&o->lock);
        if (c == NULL)
            return;
        c->done(c);
        c->free(c);
    }
}

struct offload *offload_open(uv_loop_t *loop, void *shared, void (*free_shared)(void *shared))
{
    struct offload *o = calloc(1, sizeof *o);
    if (o == NULL || uv_async_init(loop, &o->wake, on_wake) != 0) {
        free(o);
        return NULL;
    }
    o->shared = shared;
    o->free_shared = free_shared;
    pthread_mutex_init(&o->lock, NULL);
    o->wake.data = o;
    o->users = 1;
    return o;
}

void *offload_shared(const struct offload_call *c)
{
    return c->offload->shared;
}

static void on_closed(uv_handle_t *handle)
{
    struct offload *o = handle->data;
    void (*closed)(void *) = o->on_closed;
    void *data = o->data;
    leave(o);
    closed(data);
}

void offload_close(struct offload *o, void (*closed)(void *data), void *data)
{
    o->on_closed = closed;
    o->data = data;
    pthread_mutex_lock(&o->lock);
    o->is_closed = true;
    struct offload_call *ran = o->ran;
    o->ran = NULL;
    pthread_mutex_unlock(&o->lock);
    for (struct offload_call *next; ran != NULL; ran = next) {
        next = ran->next;
        ran->free(ran);
    }
    uv_close((uv_handle_t *)&o->wake, on_closed);
}

int offload_start(struct offload *o, struct offload_call *c)
{
    c->offload = o;
    pthread_mutex_lock(&o->lock);
    o->users++;
    pthread_mutex_unlock(&o->lock);
    begin_run(c);
    int rc = thread_start_detached(run, c);
    if (rc != 0) {
        end_run(c->holds_exit);
        leave(o);
        c->free(c);
    }
    return rc;
}

void offload_forget(struct offload_call *c)
{
    struct offload *o = c->offload;
    pthread_mutex_lock(&o->lock);
    c->is_forgotten = true;
    bool waits = c->has_run; /* in the list, then: what was taken from it is not forgotten */
    for (struct offload_call **at = &o->ran; waits && *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    pthread_mutex_unlock(&o->lock);
    if (waits)
        c->free(c);
}
