/* messages.c: see messages.h. */
#include "backend/redis/messages.h"

#include <string.h>

#include "base/rng.h"

#define LATER_MIN_MS 100 /* after a "released" that was meant for somebody else */
#define LATER_MAX_MS 1000

/* ---- who asks ------------------------------------------------------------------------------ */

void messages_hint(struct subscriber *sub, const struct topic_waiter *w)
{
    if (w != NULL)
        sub->host->hint_one(sub->host, w->topic->mutex, w->id);
}

static void set_alarm(struct subscriber *sub);

static void on_alarm(uv_timer_t *timer)
{
    struct subscriber *sub = timer->data;
    int64_t now = simba_now();
    for (struct topic *topic = sub->topics.later, *next; topic != NULL; topic = next) {
        next = topic->later;
        if (topic->ask_at <= now) {
            topics_remove_later(&sub->topics, topic);
            messages_hint(sub, topics_first(topic));
        }
    }
    set_alarm(sub);
}

static void set_alarm(struct subscriber *sub)
{
    int64_t first = INT64_MAX;
    for (const struct topic *topic = sub->topics.later; topic != NULL; topic = topic->later)
        first = topic->ask_at < first ? topic->ask_at : first;
    if (first == INT64_MAX)
        uv_timer_stop(&sub->alarm);
    else
        handles_start_timer(&sub->alarm, on_alarm, first - simba_now());
}

void messages_ask_later(struct subscriber *sub, struct topic *topic, int64_t least_ms,
                        int64_t most_ms)
{
    int64_t at = simba_now() + rng_between(&sub->rng, least_ms, most_ms);
    if (topic->ask_at != 0 && topic->ask_at <= at)
        return;
    if (topic->ask_at == 0) {
        topic->later = sub->topics.later;
        sub->topics.later = topic;
    }
    topic->ask_at = at;
    set_alarm(sub);
}

static void on_released(struct subscriber *sub, struct topic *topic)
{
    struct topic_waiter *w = topics_first(topic);
    topic->is_taken = false;
    if (w == NULL)
        return;
    if (w->rank == 0) /* not at once: "acquired" may come right behind it */
        messages_ask_later(sub, topic, 0, 0);
    else
        messages_ask_later(sub, topic, LATER_MIN_MS, LATER_MAX_MS);
}

/* It is out of the queue, and its turn: with it begins a row of hand-overs to others of this
 * client. */
static void on_woken(struct subscriber *sub, struct topic_waiter *w)
{
    w->rank = -1;
    w->topic->row++;
    w->topic->row_began = simba_now();
    messages_hint(sub, w);
}

static void on_acquired(struct subscriber *sub, struct topic *topic)
{
    topics_remove_later(&sub->topics, topic);
    topic->is_taken = true;
    topics_stop(&sub->topics, topic);
}

/* ---- what is heard ------------------------------------------------------------------------- */

static bool begins(const struct reply *r, const char *with)
{
    return r->kind == REPLY_STRING && strncmp(r->text, with, strlen(with)) == 0;
}

/* Of this key: a message for those who observe all, or its owner was evicted. */
static void on_change(struct subscriber *sub, const struct reply *key)
{
    char mutex[SIMBA_MUTEX_MAX + 1];
    if (reply_is_text(key) && topics_mutex_of(key->text, mutex))
        sub->host->hint(sub->host, mutex);
}

static void on_message(struct subscriber *sub, const struct reply *channel,
                       const struct reply *what)
{
    bool released = begins(what, "released@@"), acquired = begins(what, "acquired@@");
    if (reply_equals(channel, MESSAGES_EVICTIONS)) {
        on_change(sub, what);
        return;
    }
    if (!reply_is_text(channel) || (!released && !acquired))
        return; /* not one of our messages */
    struct topic_waiter *w = released ? topics_waiter_on(&sub->topics, channel->text) : NULL;
    if (w != NULL)
        on_woken(sub, w);
    struct topic *topic = topics_find_key(&sub->topics, channel->text);
    if (topic == NULL)
        return;
    if (topics_is_observed(&sub->topics, topic))
        sub->host->hint(sub->host, topic->mutex);
    if (released)
        on_released(sub, topic);
    else
        on_acquired(sub, topic);
}

/* From here on nothing gets lost; what was before this, only asking can tell. */
static void on_subscribed(struct subscriber *sub, const struct reply *channel)
{
    struct topic_waiter *w = topics_waiter_on(&sub->topics, channel->text);
    if (strcmp(channel->text, MESSAGES_EVICTIONS) == 0) {
        sub->receives_evictions = true;
        while (sub->granted_count > 0)
            sub->host->hint(sub->host, sub->granted[--sub->granted_count]);
    }
    if (w != NULL && w->sub != SUB_ACTIVE) {
        w->sub = SUB_ACTIVE;
        if (w->waits && w->tries)
            messages_hint(sub, w);
        w->tries = false;
    }
    struct topic *topic = topics_find_key(&sub->topics, channel->text);
    if (topic == NULL || topic->sub == SUB_ACTIVE)
        return;
    topic->sub = SUB_ACTIVE;
    w = topics_first(topic);
    if (topics_is_observed(&sub->topics, topic))
        sub->host->hint(sub->host, topic->mutex);
    else if (w != NULL && w->sub == SUB_ACTIVE) /* else it tries when it hears */
        messages_hint(sub, w);
}

void messages_take(struct subscriber *sub, const struct reply *r)
{
    const struct reply *kind = reply_at(r, 0), *channel = reply_at(r, 1);
    if (reply_equals(kind, "message"))
        on_message(sub, channel, reply_at(r, 2));
    else if (reply_equals(kind, "pmessage"))
        on_change(sub, reply_at(r, 2));
    else if (reply_equals(kind, "subscribe") && reply_is_text(channel))
        on_subscribed(sub, channel);
    else if (reply_equals(kind, "psubscribe"))
        sub->host->hint(sub->host, NULL);
}
