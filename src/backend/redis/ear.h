/* ear.h: the second connection, which listens. It is open only while somebody owns, waits or observes.
 *
 * What it hears is a reason to ask and nothing else. Per mutex that is waited for there is a place:
 *   simba:{M}      "released": the first in the queue asks now, one of the others of this client a
 *                  random while later, unless "acquired" comes first; so a head of the queue that is
 *                  dead or stopped holds up nobody for long
 *   simba:{M}:ID   "released": ID has been taken out of the queue, and asks now
 * and for all who own something
 *   simba:evicted  "simba:{M}": its owner was evicted, and renews now, in vain
 * Behind that, every few seconds: a PING, and a look at which of the mutexes waited for are free.
 *
 * Subscriptions outlive the wait for a while: who takes turns with others subscribes once. */
#ifndef BACKEND_REDIS_EAR_H
#define BACKEND_REDIS_EAR_H

#include "backend/redis/link.h"
#include "base/table.h"

#define EAR_UPKEEP_MS 5000
#define EAR_LINGER_MS 10000
#define EAR_LATER_MIN_MS 100 /* after a "released" that was meant for somebody else */
#define EAR_LATER_MAX_MS 1000
#define CHANNEL_MAX 224
#define EAR_UNHEARD_MAX 8 /* the others learn of it with their next renewal */
#define EVICTIONS "simba:evicted"

struct ear {
    struct link link;
    const struct link *commands;  /* whose server it listens to */
    struct table places, waiters; /* by mutex; by channel */
    struct place *later;          /* a list: those that ask a while later */
    uv_timer_t upkeep, alarm;
    bool observes_all, is_open;
    int64_t owns_until; /* somebody may own something until then: evictions are listened for */
    bool hears_evictions;
    size_t unheard; /* mutexes that were granted before it heard of evictions */
    char granted[EAR_UNHEARD_MAX][SIMBA_MUTEX_MAX + 1];
    int64_t asked_at; /* a PING is not answered; 0: none is */
    unsigned pings;   /* that are not answered */
    bool was_denied;
    bool tries; /* whether it may: ear_try() */
    void (*denied)(struct ear *e, const struct reply *r);
    void (*tried)(struct ear *e); /* tries is over */
    void (*look)(struct ear *e);  /* the upkeep's question: which mutexes are free */
};

int ear_init(struct ear *e); /* 0, SIMBA_ELIMIT */
void ear_begin(struct ear *e, struct net *net, const struct link *commands);
void ear_close(struct ear *e);
void ear_free(struct ear *e); /* after net->empty, or instead of ear_begin */

/* The connection for commands is there (again). */
void ear_follow(struct ear *e);

/* The contender was refused and is in the queue. Sent with the next link_flush(&e->link). */
void ear_waits(struct ear *e, const char *mutex, const char *id, const char *score, int64_t rank);
void ear_ends(struct ear *e, const char *mutex, const char *id); /* it waits no longer */
/* The contender asks now. Returns its first score; "": none. */
const char *ear_asks(struct ear *e, const char *mutex, const char *id);
/* Somebody owns this mutex, or has renewed (NULL), for so long. */
void ear_owns(struct ear *e, const char *mutex, int64_t lease_ms);
void ear_interest(struct ear *e, const char *mutex, enum simba_interest interest);

/* Finds out whether it may do all that it can; errors go to denied(). */
void ear_try(struct ear *e);

/* This mutex may be free, though no message said so. */
void ear_free_mutex(struct ear *e, const char *key);

/* Calls for the key of each mutex that somebody waits for. */
void ear_each(struct ear *e, void (*call)(void *data, const char *key), void *data);

/* The name within simba:{NAME}, of `length` bytes at *at; false: it is no such key. */
bool ear_mutex_of(const char *key, const char **at, size_t *length);
#endif
