/* messages.h: what the subscriber hears, and who asks because of it. */
#ifndef BACKEND_REDIS_MESSAGES_H
#define BACKEND_REDIS_MESSAGES_H

#include "backend/redis/subscriber.h"

#define MESSAGES_EVICTIONS "simba:evicted" /* a channel */

/* A message, or that it is subscribed. */
void messages_take(struct subscriber *sub, const struct reply *r);

void messages_hint(struct subscriber *sub,
                   const struct topic_waiter *w); /* it asks now; NULL: nobody */

/* The first of those who wait for it asks after a random time, unless somebody takes it before. */
void messages_ask_later(struct subscriber *sub, struct topic *topic, int64_t least_ms,
                        int64_t most_ms);
#endif
