/* client.h: one client and all that belongs to it.
 *
 * Who owns what:
 *   the baton      everything not said otherwise: machines, timers, requests, the store. One
 *                  thread has it at a time (driver.h)
 *   `lock`         the inbox, visible statuses, what contender_state() shows; held for a few
 *                  instructions, never while user code or a store runs
 *   atomics        the published deadline and token, read by is_owner() anywhere
 * API calls put a post into the inbox and wake whoever drives; see docs/threads.md. */
#ifndef RUNTIME_CLIENT_H
#define RUNTIME_CLIENT_H

#include <pthread.h>
#include <simba/backend.h>
#include <stdatomic.h>

#include "base/hash_table.h"
#include "core/url.h"
#include "runtime/actor.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "runtime/interest.h"
#include "runtime/log.h"
#include "runtime/loop.h"
#include "runtime/metrics.h"
#include "runtime/request.h"
#include "runtime/timers.h"
#include "runtime/trace.h"
#include "runtime/turn.h"

struct simba_client {
    struct simba_host host; /* first: the store hands this back */
    const struct simba_backend *backend;
    void *store;
    struct simba_url url;
    struct period_options timing; /* defaults of the handles */
    struct period period;         /* from those, shared by handles that change nothing */
    struct simba_executor executor_user;
    bool has_executor_user, no_thread;
    struct executor executor; /* for callbacks and the log */
    struct executor workers;  /* for scheduled work */
    struct log log;
    struct trace trace;
    char *labels;        /* of its metrics, in order of their names; NULL: none */
    uint32_t generation; /* of the process that opened it: base/fork.h */
    struct metrics metrics;
    struct loop loop;
    struct driver driver;
    struct interests interests;

    /* whoever has the baton */
    struct timers timers;
    struct hash_table actors; /* by mutex */
    uint32_t waits;           /* of all actors so far */
    size_t quiet;             /* actors that are closed and wait for nothing but answers */
    struct requests requests;
    struct turn turn;

    pthread_mutex_t lock; /* and under it: */
    struct inbox inbox;
    uint64_t serial; /* of what callers publish: begins above SERIAL_OF_OPTION */
    size_t actors_count;
    _Atomic bool closing; /* is_owner() reads it without the lock */
    const struct thread_ref
        *closer; /* the last thread that called simba_close; only to be compared */
    char close_held[SIMBA_MUTEX_MAX + 1]; /* what close waits for, held by a thread; "": nothing */
    bool store_closing, store_closed, over; /* over: the loop takes nothing more */

    _Atomic uint32_t callbacks; /* that are with an executor */
    _Atomic uint32_t kept;      /* mutexes, by at_least alone */
    _Atomic uint32_t ended;     /* the loop has ended; futex */
};

/* Marks the thread as running code of this client: 'callback of' or 'loop of'. */
extern _Thread_local struct simba_client *thread_client;
extern _Thread_local struct actor *thread_actor;

bool client_is_forked(const struct simba_client *s);
int client_check(const struct simba_client *s); /* 0 or SIMBA_EFORKED */

/* Is this thread inside of its loop, or of a poll that goes on only after it? Nothing can be
 * waited for. */
bool client_is_here(const struct simba_client *s);

/* Would waiting here, for the actor or (NULL) for the whole client, wait for this very thread? */
bool client_would_deadlock(const struct simba_client *s, const struct actor *a);
#endif
