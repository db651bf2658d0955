/* queue.h: who comes next, where several processes want the same mutex, and how one that waits
 * learns of a release. For servers with locks by name that belong to a connection and are given
 * in the order in which they were asked for: MariaDB's and MySQL's GET_LOCK.
 *
 * Each mutex has such a lock, its queue lock. It decides nothing: the row does, as always. Losing
 * it costs a poll.
 *
 *   - Who owns a mutex for a while has its queue lock, on the connection that all handles share.
 *   - Who waits, and has seen by a poll that it will take longer, asks for the queue lock, on a
 *     connection of its own that waits there. It gets it with the release, and then asks for the
 *     mutex.
 *   - Giving a queue lock back tells whether others wait for it. If so, this client asks for the
 *     mutex only when it has the queue lock. Meanwhile its handles are refused without a question
 *     to the server, for a moment only: then the row is asked all the same, so that a process
 *     that is stopped while it has the queue lock holds up nobody for longer.
 *   - While a client has the queue lock, each of its handles gets the mutex at most twice.
 *
 * All on the loop's thread. Clients that know nothing of it, the JVM's, may come in between. */
#ifndef BACKEND_SQL_QUEUE_H
#define BACKEND_SQL_QUEUE_H

#include <simba/backend.h>
#include <uv.h>

#include "base/hash_table.h"

#define QUEUE_WAITERS_MAX 4    /* connections that wait; for other mutexes there are polls */
#define QUEUE_MUTEXES_MAX 256  /* whose queue locks are held while they are owned */
#define QUEUE_SERVED_MAX 32    /* tenures between getting a queue lock and giving it back */
#define QUEUE_HOLD_BACK_MS 100 /* how long one that does not come keeps us from asking the row */
#define QUEUE_UNUSED_MS 5      /* one that nobody of this client makes use of goes on */

struct sql;
struct sql_item;
struct sql_job;
struct sql_session;

enum queue_state {
    QUEUE_OFFLINE,
    QUEUE_ASKING, /* whether the server has room for a connection */
    QUEUE_CONNECTING,
    QUEUE_IDLE,    /* connected; has no queue lock */
    QUEUE_WAITING, /* for the queue lock */
    QUEUE_OURS,    /* has it */
    QUEUE_ENDING   /* gives it back */
};

/* A connection that waits for the queue lock of one mutex. */
struct queue_waiter {
    struct sql *store;
    enum queue_state state;
    struct queue_connection *connection; /* queue_connection.c */
    char mutex[SIMBA_MUTEX_MAX + 1];     /* "": none */
    int64_t since;      /* simba_now(): of the state, or of the last tenure's end */
    int64_t again_at;   /* simba_now(): before, the owner may take it; 0: not */
    bool is_contested;  /* other processes wait for it, too */
    bool is_owned;      /* while OURS: by a handle of this client */
    bool is_leaving;    /* while OURS: its owner gives it back */
    bool is_asked;      /* while OURS: a handle of this client asks for it just now */
    bool is_refused;    /* while OURS: and was refused */
    int asks;           /* and has asked again so often */
    int holds;          /* while WAITING: how often it has held back, and then was granted it */
    bool expects;       /* another handle of this client waits */
    bool has_held_back; /* since it waits: a request */
    uint32_t served[QUEUE_SERVED_MAX]; /* hashes of their ids: a mistake costs little */
    size_t served_count;
    char owner[SIMBA_ID_MAX + 1]; /* as last seen, with its token and the end of its lease */
    uint64_t token;
    int64_t until; /* simba_now() */
};

struct sql_queue {
    struct hash_table owned; /* struct queue_owned: of the mutexes that we own, or have owned */
    struct queue_waiter waiter[QUEUE_WAITERS_MAX];
    uv_timer_t timer;
    struct sql_job *jobs; /* for the shared connection, the last first; no renewal waits for them */
    bool is_next;         /* one of them: they take turns with requests */
    int64_t off_until;    /* simba_now(): the server has refused such a lock */
    int64_t retry_at;     /* simba_now(): no more connections before */
    int64_t room_at;      /* simba_now(): to ask whether there is still room for them */
};

int sql_queue_open(struct sql *s);   /* 0, SIMBA_ELIMIT */
void sql_queue_reset(struct sql *s); /* the connection that all share is gone */
void sql_queue_close(struct sql *s);
void sql_queue_free(struct sql *s);
bool sql_queue_is_steady(const struct sql *s); /* nothing waits to be watched, see sql_work() */

bool sql_queue_holds_back(struct sql *s, struct simba_request *q); /* refused: not its turn */

bool sql_queue_may_pass(struct sql *s, const char *mutex); /* see pass.h */

/* What became of a request. */
void sql_queue_granted(struct sql *s, const struct sql_item *item);
void sql_queue_refused(struct sql *s, const struct sql_item *item); /* another owns it */
void sql_queue_renewed(struct sql *s, const char *mutex);
void sql_queue_ended(struct sql *s, const char *mutex); /* our tenure has */

void sql_queue_saw_held(struct sql *s, const struct sql_item *item); /* a poll did */
void sql_queue_left(struct sql *s, const char *mutex);               /* nobody is interested */
void sql_queue_done(struct sql *s, const struct sql_job *job);       /* on the shared connection */
struct sql_job *sql_queue_take_job(struct sql *s); /* NULL: requests come first, or there is none */
void sql_queue_failed(struct sql *s); /* the server refuses such locks, for now at least */
bool sql_queue_is_off(const struct sql *s);

/* queue_owned.c: what we own without a waiter's queue lock. Keep: in how many ms again. */
void queue_owned_ask(struct sql *s, int op, const char *mutex); /* on the shared connection */
void queue_owned_granted(struct sql *s, const char *mutex);
void queue_owned_renewed(struct sql *s, const char *mutex);
void queue_owned_ended(struct sql *s, const char *mutex);
bool queue_owned_has_lock(const struct sql *s, const char *mutex);
int64_t queue_owned_keep(struct sql *s, int64_t now);
void queue_owned_forget(struct sql *s);

void queue_contested(struct sql *s, const char *mutex); /* ask only with the queue lock */
void queue_set_timer(struct sql *s, int64_t ms);        /* in so long at the latest */

/* queue_waiter.c. Take: one that has nothing to do, for this mutex; NULL: none. Begin: to wait.
 * End: gives the queue lock back. Let ask: whoever was held back. Keep: in how many ms again. */
bool queue_waiter_is_wanted(struct sql *s, const char *mutex); /* and no handle of ours has it */
struct queue_waiter *queue_waiter_of(struct sql *s, const char *mutex); /* NULL: none */
struct queue_waiter *queue_waiter_take(struct sql *s, const char *mutex);
void queue_waiter_heard_room(struct sql *s, const char *mutex, bool has_room);
void queue_waiter_begin(struct queue_waiter *w);
void queue_waiter_end(struct queue_waiter *w);
void queue_waiter_let_ask(struct queue_waiter *w);
void queue_waiter_forget(struct queue_waiter *w);
int64_t queue_waiter_keep(struct queue_waiter *w, int64_t now);

/* queue_connection.c. Begin: connects; then connected() follows, or lost(). Ask: runs a statement
 * about the queue lock; then answered() follows, or lost(). */
bool queue_connection_begin(struct queue_waiter *w);
void queue_connection_made(struct queue_waiter *w,
                           const struct sql_session *session); /* NULL: not */
bool queue_connection_ask(struct queue_waiter *w, int op);
void queue_connection_close(struct queue_waiter *w);
bool queue_connection_is_armed(const struct queue_waiter *w);

void queue_connected(struct queue_waiter *w);
void queue_answered(struct queue_waiter *w, int op, const struct sql_item *item);
void queue_lost(struct queue_waiter *w);
#endif
