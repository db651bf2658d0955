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

struct topic_waiter *topics_first(const struct topic *p)
{
    struct topic_waiter *first = NULL;
    for (struct topic_waiter *w = p->waiters; w != NULL; w = w->next) {
        if (w->waits && (first == NULL || strcmp(w->score, first->score) < 0))
            first = w;
    }
    return first;
}

struct topic *topics_next(const struct topics *t, const struct topic *p)
{
    return (struct topic *)(void *)hash_table_next(&t->by_mutex, p != NULL ? &p->by_mutex : NULL);
}

static void note_interest(void *data, struct simba_watched *watched)
{
    *(enum simba_interest *)data = watched->interest;
}

bool topics_is_observed(const struct topics *t, const struct topic *p)
{
    struct simba_host *host = t->connection->net->host;
    enum simba_interest interest = SIMBA_NO_INTEREST;
    host->watched(host, p->mutex, note_interest, &interest);
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
    struct topic *p = calloc(1, sizeof *p + n + 1 + channel);
    if (p == NULL)
        return NULL;
    memcpy(p->mutex, mutex, n + 1);
    p->channel = p->mutex + n + 1;
    snprintf(p->channel, channel, TOPICS_PREFIX "%s" TOPICS_SUFFIX, mutex);
    p->by_mutex.name = p->mutex;
    hash_table_add(&t->by_mutex, &p->by_mutex);
    return p;
}

struct topic *topics_make(struct topics *t, const char *mutex)
{
    struct topic *p = topics_find(t, mutex);
    if (p == NULL)
        p = add(t, mutex);
    if (p != NULL && p->sub == SUB_NONE)
        subscribe(t, &p->sub, p->channel);
    return p;
}

static struct topic_waiter *add_waiter(struct topics *t, struct topic *p, const char *id)
{
    char channel[TOPICS_CHANNEL_MAX];
    size_t n = (size_t)write_channel(channel, p->mutex, id);
    assert(n < sizeof channel);
    struct topic_waiter *w = calloc(1, sizeof *w + n + 1);
    if (w == NULL)
        return NULL;
    memcpy(w->channel, channel, n + 1);
    w->id = w->channel + n - strlen(id);
    w->by_channel.name = w->channel;
    w->topic = p;
    w->next = p->waiters;
    w->pprev = &p->waiters;
    if (w->next != NULL)
        w->next->pprev = &w->next;
    p->waiters = w;
    hash_table_add(&t->by_channel, &w->by_channel);
    w->tries = true;
    subscribe(t, &w->sub, w->channel);
    return w;
}

struct topic_waiter *topics_make_waiter(struct topics *t, const char *mutex, const char *id)
{
    struct topic *p = topics_make(t, mutex);
    struct topic_waiter *w = topics_waiter(t, mutex, id);
    return p == NULL || w != NULL ? w : add_waiter(t, p, id);
}

/* Where nobody waits for a mutex that is taken, what others do with it need not be heard. But each
 * waiter's own channel is kept for a while. */
void topics_stop(struct topics *t, struct topic *p)
{
    if (!p->is_taken || p->sub != SUB_ACTIVE || topics_first(p) != NULL || topics_is_observed(t, p))
        return;
    topics_say(t, "UNSUBSCRIBE", p->channel);
    p->sub = SUB_NONE;
    p->is_taken = false;
}

void topics_remove_later(struct topics *t, struct topic *p)
{
    struct topic **at = &t->later;
    if (p->ask_at == 0)
        return;
    while (*at != p)
        at = &(*at)->later;
    *at = p->later;
    p->ask_at = 0;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Messages may have been missed. One of those who wait for a mutex is enough to find out. */
void topics_connected(struct topics *t)
{
    for (struct topic *p = topics_next(t, NULL); p != NULL; p = topics_next(t, p)) {
        const struct topic_waiter *first = topics_first(p);
        subscribe(t, &p->sub, p->channel);
        for (struct topic_waiter *w = p->waiters; w != NULL; w = w->next) {
            w->tries = w->tries || w == first;
            subscribe(t, &w->sub, w->channel);
        }
    }
}

void topics_disconnected(struct topics *t)
{
    for (struct topic *p = topics_next(t, NULL); p != NULL; p = topics_next(t, p)) {
        p->sub = SUB_NONE;
        for (struct topic_waiter *w = p->waiters; w != NULL; w = w->next)
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
    for (struct topic *p = topics_next(t, NULL), *next; p != NULL; p = next) {
        next = topics_next(t, p);
        for (struct topic_waiter *w = p->waiters, *after; w != NULL; w = after) {
            after = w->next;
            if (!w->waits && now - w->idle_since >= LINGER_MS)
                remove_waiter(t, w);
        }
        if (p->waiters != NULL || topics_is_observed(t, p))
            continue;
        topics_say(t, "UNSUBSCRIBE", p->channel);
        topics_remove_later(t, p);
        hash_table_remove(&t->by_mutex, &p->by_mutex);
        free(p);
    }
}
