/* subscriber.h: the second connection, which is told of changes. It is open only while somebody
 * owns, waits or observes.
 *
 * What it hears is a reason to ask and nothing else:
 *   simba:{M}      "released": the first in the queue asks now, one of the others of this client a
 *                  random while later, unless "acquired" comes first; so a head of the queue
 *                  that is dead or stopped holds up nobody for long
 *   simba:{M}:ID   "released": ID has been taken out of the queue, and asks now
 *   simba:evicted  "simba:{M}": its owner was evicted, and renews now, in vain
 * Behind that, every few seconds: a PING, and a question which awaited mutexes are free. */
#ifndef BACKEND_REDIS_SUBSCRIBER_H
#define BACKEND_REDIS_SUBSCRIBER_H

#include "backend/redis/connection.h"
#include "backend/redis/topics.h"

#define GRANTED_MAX 8 /* the others learn of it with their next renewal */

/* Whether it may do all that it can. */
struct subscriber_trial {
    void (*denied)(void *data, const struct reply *error);
    void (*over)(void *data);
    void *data;
};

struct subscriber {
    struct simba_host *host;
    struct redis_connection connection;
    struct redis_connection *commands; /* whose server it listens to */
    struct topics topics;
    uv_timer_t upkeep, alarm;
    uint64_t rng;
    int64_t owns_until; /* somebody may own something until then: evictions are listened for */
    bool receives_evictions;
    size_t granted_count; /* mutexes that were granted before it heard of evictions */
    char granted[GRANTED_MAX][SIMBA_MUTEX_MAX + 1];
    bool was_denied;
    struct subscriber_trial trial; /* over NULL: none is under way */
};

/* Its topics are the caller's to make and to free; all else is 0. */
void subscriber_init(struct subscriber *sub, struct redis_network *net,
                     struct redis_connection *commands);
void subscriber_close(struct subscriber *sub);

/* The connection for commands is there (again). */
void subscriber_follow(struct subscriber *sub);

/* The contender asks now. Returns its first score; "": none. */
const char *subscriber_asks(struct subscriber *sub, const char *mutex, const char *id);
/* Released by another of this client, it may come before those of others who have waited longer. */
bool subscriber_overtakes(const struct subscriber *sub, const char *mutex, const char *id);
/* It was refused and is in the queue. Sent with the next flush. */
void subscriber_waits(struct subscriber *sub, const char *mutex, const char *id, const char *score,
                      int64_t rank);
/* It is free, but reserved for another who was woken, for so long. */
void subscriber_is_reserved(struct subscriber *sub, const char *mutex, int64_t left_ms);
void subscriber_ends(struct subscriber *sub, const char *mutex,
                     const char *id); /* waits no longer */
void subscriber_granted(struct subscriber *sub, const char *mutex, const char *id,
                        int64_t lease_ms);
void subscriber_renewed(struct subscriber *sub, int64_t lease_ms);
void subscriber_interest(struct subscriber *sub, const char *mutex, enum simba_interest interest);

void subscriber_try(struct subscriber *sub, const struct subscriber_trial *trial);
#endif
