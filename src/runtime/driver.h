/* driver.h: who drives a client. The rule is on top of driver.c. */
#ifndef RUNTIME_DRIVER_H
#define RUNTIME_DRIVER_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct simba_client;
struct call;

enum baton { BATON_WAITS, BATON_TURNS, BATON_RESTS };

struct driver {
    pthread_t thread;          /* the client's own; there is none with no_thread */
    _Atomic(pthread_t) poller; /* no_thread: the thread that polled last, or opened the client */
    bool any_thread;           /* the store lends SIMBA_LEND_STORE; constant from the start on */

    uv_prepare_t before_sleep; /* whoever is inside of libuv, from here on */
    uv_check_t after_sleep;
    uv_timer_t limit;   /* of a caller that drives */
    bool limit_reached; /* by that caller */
    bool here;          /* the thread that polls has nothing else to do */
    bool turned;        /* a turn had something to do */

    enum baton baton;    /* under the client's lock, from here on */
    struct call *call;   /* of the caller that is inside of libuv; NULL: there is none */
    unsigned callers;    /* threads of others that have the baton, or work for the store */
    bool wanted;         /* a turn is, and nobody has been told yet: driver_unlock does */
    bool woken;          /* somebody has been told, and has not begun its turn */
    bool many_callers;   /* several callers at once: one thread for all makes larger batches */
    int64_t rests_until; /* the own thread leaves the gate then */
};

void driver_init(struct simba_client *s);
int driver_start(struct simba_client *s); /* the own thread: 0 or SIMBA_ELIMIT */
void driver_discard(struct simba_client *s,
                    bool store_open);     /* instead of that, if opening fails */
void driver_end(struct simba_client *s);  /* when nothing is left to drive */
void driver_join(struct simba_client *s); /* and after that */

/* The client's lock. */
void driver_lock(struct simba_client *s);
void driver_want_locked(struct simba_client *s); /* a turn */
void driver_unlock(struct simba_client *s);      /* and wakes whoever has to take it */

/* The same; but the calling thread drives the client instead, where it may. call: the result that
 * it waits for; NULL: none. here: it has nothing else to do, and may work for the store as well. */
#define DRIVER_HERE_MIN (100 * NS_PER_MS) /* who waits less must not be kept by the store */
void driver_unlock_turn(struct simba_client *s, struct call *call, bool here);

bool driver_is_here(const struct simba_client *s); /* this thread is inside of libuv */

/* A client that the host program polls (SIMBA_NO_THREAD). */
void driver_start_polled(struct simba_client *s);     /* instead of a thread of ours */
void driver_take_over(struct simba_client *s);        /* from now on by this thread */
bool driver_polls_here(const struct simba_client *s); /* this thread is the one that polls */
void driver_notify(void *s);                          /* there is something to poll for */

/* futex_wait(); the thread that polls goes on with that meanwhile. If a callback ends that thread,
 * thread_ends(arg) ends the wait. */
bool driver_wait(struct simba_client *s, _Atomic uint32_t *word, uint32_t value, int64_t until,
                 void (*thread_ends)(void *arg), void *arg);

/* A thread that is not ours goes inside of libuv, and comes out. */
struct driver_visit {
    const struct simba_client *inside_before;
    int cancel;
    sigset_t signals;
};
void driver_enter(struct driver_visit *v, const struct simba_client *s);
void driver_leave(const struct driver_visit *v);
#endif
