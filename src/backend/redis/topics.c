/* topics.c: see topics.h. */
#include "backend/redis/topics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINGER_MS 10000

int topics_init(struct topics *t, struct redis_connection *c)
{
    *t = (struct topics){.connection = c};
    if (hash_table_init(&t->by_mutex) == 0 && hash_table_init(&t->by_channel) == 0)
        return 0;
    hash_table_free(&t->by_mutex);
    return SIMBA_ELIMIT;
}

static void free_node(struct hash_node *node)
{
    free(node);
}

void topics_free(struct topics *t)
{
    hash_table_empty(&t->by_channel, free_node);
    hash_table_empty(&t->by_mutex, free_node);
    hash_table_free(&t->by_channel);
    hash_table_free(&t->by_mutex);
}

/* ---- finding ------------------------------------------------------------------------------- */

bool topics_mutex_of(const char *key, char mutex[SIMBA_MUTEX_MAX + 1])
{
    size_t n = strlen(key), prefix = strlen(TOPICS_PREFIX), suffix = strlen(TOPICS_SUFFIX);
    if (n <= prefix + suffix || n - prefix - suffix > SIMBA_MUTEX_MAX ||
        strncmp(key, TOPICS_PREFIX, prefix) != 0 || strcmp(key + n - suffix, TOPICS_SUFFIX) != 0)
        return false;
    memcpy(mutex, key + prefix, n - prefix - suffix);
    mutex[n - prefix - suffix] = '\0';
    return true;
}

struct topic *topics_find(const struct topics *t, const char *mutex)
{
    return (struct topic *)(void *)hash_table_find(&t->by_mutex, mutex);
}

struct topic *topics_find_key(const struct topics *t, const char *key)
{
    char mutex[SIMBA_MUTEX_MAX + 1];
    return topics_mutex_of(key, mutex) ? topics_find(t, mutex) : NULL;
}

static int write_channel(char channel[TOPICS_CHANNEL_MAX], const char *mutex, const char *id)
{
    return snprintf(channel, TOPICS_CHANNEL_MAX, TOPICS_PREFIX "%s" TOPICS_SUFFIX ":%s", mutex, id);
}

struct topic_waiter *topics_waiter(const struct topics *t, const char *mutex, const char *id)
{
    char channel[TOPICS_CHANNEL_MAX];
    if (t->by_channel.count == 0)
        return NULL;
    write_channel(channel, mutex, id);
    return topics_waiter_on(t, channel);
}

struct topic_waiter *topics_waiter_on(const struct topics *t, const char *channel)
{
    return (struct topic_waiter *)(void *)hash_table_find(&t->by_channel, channel);
}

struct topic_waiter *topics_first(const struct topic *topic)
{
    struct topic_waiter *first = NULL;
    for (struct topic_waiter *w = topic->waiters; w != NULL; w = w->next) {
        if (w->waits && (first == NULL || strcmp(w->score, first->score) < 0))
            first = w;
    }
    return first;
}

struct topic *topics_next(const struct topics *t, const struct topic *topic)
{
    return (struct topic *)(void *)hash_table_next(&t->by_mutex,
                                                   topic != NULL ? &topic->by_mutex : NULL);
}

static void note_interest(void *data, struct simba_watched *watched)
{
    *(enum simba_interest *)data = watched->interest;
}

bool topics_is_observed(const struct topics *t, const struct topic *topic)
{
    struct simba_host *host = t->connection->net->host;
    enum simba_interest interest = SIMBA_NO_INTEREST;
    host->watched(host, topic->mutex, note_interest, &interest);
    return interest == SIMBA_OBSERVES;
}

/* ---- subscribing --------------------------------------------------------------------------- */

void topics_say(struct topics *t, const char *command, const char *channel)
{
    if (t->connection->state == CONNECTION_READY)
        resp_command(&t->connection->out, command, channel);
}

static void subscribe(struct topics *t, enum subscription *sub, const char *channel)
{
    *sub = t->connection->state == CONNECTION_READY ? SUB_ASKED : SUB_NONE;
    topics_say(t, "SUBSCRIBE", channel);
}

static struct topic *add(struct topics *t, const char *mutex)
{
    size_t n = strlen(mutex), channel = strlen(TOPICS_PREFIX) + n + strlen(TOPICS_SUFFIX) + 1;
    struct topic *topic = calloc(1, sizeof *topic + n + 1 + channel);
    if (topic == NULL)
        return NULL;
    memcpy(topic->mutex, mutex, n + 1);
    topic->channel = topic->mutex + n + 1;
    snprintf(topic->channel, channel, TOPICS_PREFIX "%s" TOPICS_SUFFIX, mutex);
    topic->by_mutex.name = topic->mutex;
    hash_table_add(&t->by_mutex, &topic->by_mutex);
    return topic;
}

struct topic *topics_make(struct topics *t, const char *mutex)
{
    struct topic *topic = topics_find(t, mutex);
    if (topic == NULL)
        topic = add(t, mutex);
    if (topic != NULL && topic->sub == SUB_NONE)
        subscribe(t, &topic->sub, topic->channel);
    return topic;
}

static struct topic_waiter *add_waiter(struct topics *t, struct topic *topic, const char *id)
{
    char channel[TOPICS_CHANNEL_MAX];
    size_t n = (size_t)write_channel(channel, topic->mutex, id);
    assert(n < sizeof channel);
    struct topic_waiter *w = calloc(1, sizeof *w + n + 1);
    if (w == NULL)
        return NULL;
    memcpy(w->channel, channel, n + 1);
    w->id = w->channel + n - strlen(id);
    w->by_channel.name = w->channel;
    w->topic = topic;
    w->next = topic->waiters;
    w->pprev = &topic->waiters;
    if (w->next != NULL)
        w->next->pprev = &w->next;
    topic->waiters = w;
    hash_table_add(&t->by_channel, &w->by_channel);
    w->tries = true;
    subscribe(t, &w->sub, w->channel);
    return w;
}

struct topic_waiter *topics_make_waiter(struct topics *t, const char *mutex, const char *id)
{
    struct topic *topic = topics_make(t, mutex);
    struct topic_waiter *w = topics_waiter(t, mutex, id);
    return topic == NULL || w != NULL ? w : add_waiter(t, topic, id);
}

/* Where nobody waits for a mutex that is taken, what others do with it need not be heard. But each
 * waiter's own channel is kept for a while. */
void topics_stop(struct topics *t, struct topic *topic)
{
    if (!topic->is_taken || topic->sub != SUB_ACTIVE || topics_first(topic) != NULL ||
        topics_is_observed(t, topic))
        return;
    topics_say(t, "UNSUBSCRIBE", topic->channel);
    topic->sub = SUB_NONE;
    topic->is_taken = false;
}

void topics_remove_later(struct topics *t, struct topic *topic)
{
    struct topic **at = &t->later;
    if (topic->ask_at == 0)
        return;
    while (*at != topic)
        at = &(*at)->later;
    *at = topic->later;
    topic->ask_at = 0;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Messages may have been missed. One of those who wait for a mutex is enough to find out. */
void topics_connected(struct topics *t)
{
    for (struct topic *topic = topics_next(t, NULL); topic != NULL; topic = topics_next(t, topic)) {
        const struct topic_waiter *first = topics_first(topic);
        subscribe(t, &topic->sub, topic->channel);
        for (struct topic_waiter *w = topic->waiters; w != NULL; w = w->next) {
            w->tries = w->tries || w == first;
            subscribe(t, &w->sub, w->channel);
        }
    }
}

void topics_disconnected(struct topics *t)
{
    for (struct topic *topic = topics_next(t, NULL); topic != NULL; topic = topics_next(t, topic)) {
        topic->sub = SUB_NONE;
        for (struct topic_waiter *w = topic->waiters; w != NULL; w = w->next)
            w->sub = SUB_NONE;
    }
}

static void remove_waiter(struct topics *t, struct topic_waiter *w)
{
    topics_say(t, "UNSUBSCRIBE", w->channel);
    *w->pprev = w->next;
    if (w->next != NULL)
        w->next->pprev = w->pprev;
    hash_table_remove(&t->by_channel, &w->by_channel);
    free(w);
}

void topics_sweep(struct topics *t)
{
    int64_t now = simba_now();
    for (struct topic *topic = topics_next(t, NULL), *next; topic != NULL; topic = next) {
        next = topics_next(t, topic);
        for (struct topic_waiter *w = topic->waiters, *after; w != NULL; w = after) {
            after = w->next;
            if (!w->waits && now - w->idle_since >= LINGER_MS)
                remove_waiter(t, w);
        }
        if (topic->waiters != NULL || topics_is_observed(t, topic))
            continue;
        topics_say(t, "UNSUBSCRIBE", topic->channel);
        topics_remove_later(t, topic);
        hash_table_remove(&t->by_mutex, &topic->by_mutex);
        free(topic);
    }
}
