/* topics.h: what the subscriber is told of, and for whom. Per mutex that is waited for or observed
 * there is a topic with the mutex' channel, and per waiter a channel of its own.
 *
 * Subscriptions outlive the wait for a while: who takes turns with others subscribes once. */
#ifndef BACKEND_REDIS_TOPICS_H
#define BACKEND_REDIS_TOPICS_H

#include "backend/redis/connection.h"
#include "base/hash_table.h"

#define TOPICS_PREFIX "simba:{"
#define TOPICS_SUFFIX "}"
#define TOPICS_CHANNEL_MAX 224

enum subscription { SUB_NONE, SUB_ASKED, SUB_ACTIVE };

struct topic_waiter {
    struct hash_node by_channel; /* first */
    struct topic *topic;
    struct topic_waiter *next, **pprev; /* of the topic */
    enum subscription sub;
    bool waits; /* else it lingers */
    bool tries; /* as soon as it hears */
    int64_t idle_since;
    int64_t rank; /* in the queue; -1: taken out of it, and woken */
    char score[32];
    uint32_t row;   /* of its topic, when it last ended a wait */
    const char *id; /* in the channel */
    char channel[];
};

struct topic {
    struct hash_node by_mutex; /* first */
    struct topic_waiter *waiters;
    enum subscription sub;
    bool is_taken;       /* the last message said so */
    int64_t ask_at;      /* simba_now(); 0: it is not among those that ask later */
    struct topic *later; /* the next of them */
    uint32_t row;        /* counts how often one of its waiters was woken: hand-overs in a row */
    int64_t row_began;   /* simba_now() */
    char *channel;       /* simba:{M} */
    char mutex[];
};

struct topics {
    struct redis_connection *connection;    /* where it is subscribed */
    struct hash_table by_mutex, by_channel; /* topics; waiters */
    struct topic *later;                    /* a list: those that ask a while later */
};

int topics_init(struct topics *t, struct redis_connection *c); /* 0, SIMBA_ELIMIT */
void topics_free(struct topics *t);

/* The name within simba:{NAME}; false: it is no such key. */
bool topics_mutex_of(const char *key, char mutex[SIMBA_MUTEX_MAX + 1]);

/* NULL: there is none. */
struct topic *topics_find(const struct topics *t, const char *mutex);
struct topic *topics_find_key(const struct topics *t, const char *key);
struct topic_waiter *topics_waiter(const struct topics *t, const char *mutex, const char *id);
struct topic_waiter *topics_waiter_on(const struct topics *t, const char *channel);
struct topic *topics_next(const struct topics *t,
                          const struct topic *topic);         /* p NULL: the first */
struct topic_waiter *topics_first(const struct topic *topic); /* the one that has waited longest */

/* Finds or adds and subscribes. NULL: out of memory. */
struct topic *topics_make(struct topics *t, const char *mutex);
struct topic_waiter *topics_make_waiter(struct topics *t, const char *mutex, const char *id);

/* Tells the server, if it is connected. */
void topics_say(struct topics *t, const char *command, const char *channel);
void topics_stop(struct topics *t, struct topic *topic); /* listening, if nobody needs it */

bool topics_is_observed(const struct topics *t, const struct topic *topic); /* by its name */
void topics_remove_later(struct topics *t, struct topic *topic);

void topics_connected(struct topics *t); /* subscribes to all */
void topics_disconnected(struct topics *t);
void topics_sweep(struct topics *t); /* removes what has lingered */
#endif
