/* messages.c: see messages.h. */
#include "backend/redis/messages.h"

#include <string.h>

#include "base/rng.h"

#define LATER_MIN_MS 100 /* after a "released" that was meant for somebody else */
#define LATER_MAX_MS 1000

/* ---- who asks ------------------------------------------------------------------------------ */

void messages_hint(struct subscriber *e, const struct topic_waiter *w)
{
    if (w != NULL)
        e->host->hint_one(e->host, w->topic->mutex, w->id);
}

static void set_alarm(struct subscriber *e);

static void on_alarm(uv_timer_t *timer)
{
    struct subscriber *e = timer->data;
    int64_t now = simba_now();
    for (struct topic *p = e->topics.later, *next; p != NULL; p = next) {
        next = p->later;
        if (p->ask_at <= now) {
            topics_remove_later(&e->topics, p);
            messages_hint(e, topics_first(p));
        }
    }
    set_alarm(e);
}

static void set_alarm(struct subscriber *e)
{
    int64_t first = INT64_MAX;
    for (const struct topic *p = e->topics.later; p != NULL; p = p->later)
        first = p->ask_at < first ? p->ask_at : first;
    if (first == INT64_MAX)
        uv_timer_stop(&e->alarm);
    else
        handles_start_timer(&e->alarm, on_alarm, first - simba_now());
}

void messages_ask_later(struct subscriber *e, struct topic *p, int64_t least_ms, int64_t most_ms)
{
    int64_t at = simba_now() + rng_between(&e->rng, least_ms, most_ms);
    if (p->ask_at != 0 && p->ask_at <= at)
        return;
    if (p->ask_at == 0) {
        p->later = e->topics.later;
        e->topics.later = p;
    }
    p->ask_at = at;
    set_alarm(e);
}

static void on_released(struct subscriber *e, struct topic *p)
{
    struct topic_waiter *w = topics_first(p);
    p->is_taken = false;
    if (w == NULL)
        return;
    if (w->rank == 0) /* not at once: "acquired" may come right behind it */
        messages_ask_later(e, p, 0, 0);
    else
        messages_ask_later(e, p, LATER_MIN_MS, LATER_MAX_MS);
}

/* It is out of the queue, and its turn: with it begins a row of hand-overs to others of this
 * client. */
static void on_woken(struct subscriber *e, struct topic_waiter *w)
{
    w->rank = -1;
    w->topic->row++;
    w->topic->row_began = simba_now();
    messages_hint(e, w);
}

static void on_acquired(struct subscriber *e, struct topic *p)
{
    topics_remove_later(&e->topics, p);
    p->is_taken = true;
    topics_stop(&e->topics, p);
}

/* ---- what is heard ------------------------------------------------------------------------- */

static bool begins(const struct reply *r, const char *with)
{
    return r->kind == REPLY_STRING && strncmp(r->text, with, strlen(with)) == 0;
}

/* Of this key: a message for those who observe all, or its owner was evicted. */
static void on_change(struct subscriber *e, const struct reply *key)
{
    char mutex[SIMBA_MUTEX_MAX + 1];
    if (reply_is_text(key) && topics_mutex_of(key->text, mutex))
        e->host->hint(e->host, mutex);
}

static void on_message(struct subscriber *e, const struct reply *channel, const struct reply *what)
{
    bool released = begins(what, "released@@"), acquired = begins(what, "acquired@@");
    if (reply_equals(channel, MESSAGES_EVICTIONS)) {
        on_change(e, what);
        return;
    }
    if (!reply_is_text(channel) || (!released && !acquired))
        return; /* not one of our messages */
    struct topic_waiter *w = released ? topics_waiter_on(&e->topics, channel->text) : NULL;
    if (w != NULL)
        on_woken(e, w);
    struct topic *p = topics_find_key(&e->topics, channel->text);
    if (p == NULL)
        return;
    if (topics_is_observed(&e->topics, p))
        e->host->hint(e->host, p->mutex);
    if (released)
        on_released(e, p);
    else
        on_acquired(e, p);
}

/* From here on nothing gets lost; what was before this, only asking can tell. */
static void on_subscribed(struct subscriber *e, const struct reply *channel)
{
    struct topic_waiter *w = topics_waiter_on(&e->topics, channel->text);
    if (strcmp(channel->text, MESSAGES_EVICTIONS) == 0) {
        e->receives_evictions = true;
        while (e->granted_count > 0)
            e->host->hint(e->host, e->granted[--e->granted_count]);
    }
    if (w != NULL && w->sub != SUB_ACTIVE) {
        w->sub = SUB_ACTIVE;
        if (w->waits && w->tries)
            messages_hint(e, w);
        w->tries = false;
    }
    struct topic *p = topics_find_key(&e->topics, channel->text);
    if (p == NULL || p->sub == SUB_ACTIVE)
        return;
    p->sub = SUB_ACTIVE;
    w = topics_first(p);
    if (topics_is_observed(&e->topics, p))
        e->host->hint(e->host, p->mutex);
    else if (w != NULL && w->sub == SUB_ACTIVE) /* else it tries when it hears */
        messages_hint(e, w);
}

void messages_take(struct subscriber *e, const struct reply *r)
{
    const struct reply *kind = reply_at(r, 0), *channel = reply_at(r, 1);
    if (reply_equals(kind, "message"))
        on_message(e, channel, reply_at(r, 2));
    else if (reply_equals(kind, "pmessage"))
        on_change(e, reply_at(r, 2));
    else if (reply_equals(kind, "subscribe") && reply_is_text(channel))
        on_subscribed(e, channel);
    else if (reply_equals(kind, "psubscribe"))
        e->host->hint(e->host, NULL);
}
