/* ear.c: see ear.h. */
#include "backend/redis/ear.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define PREFIX "simba:{"
#define SUFFIX "}"

enum subscription { SUB_NONE, SUB_ASKED, SUB_HEARS };

struct waiter {
    struct table_node by_channel; /* first */
    struct place *place;
    struct waiter *next, **link; /* of the place */
    enum subscription sub;
    bool waits; /* else it lingers */
    bool tries; /* as soon as it hears */
    int64_t idle_since;
    int64_t rank;
    char score[32];
    const char *id; /* in the channel */
    char channel[];
};

struct place {
    struct table_node by_mutex; /* first */
    struct waiter *waiters;
    enum subscription sub;
    bool observed;
    bool is_taken; /* the last message said so */
    bool is_later;
    int64_t ask_at; /* simba_now() */
    struct place *later;
    char *channel; /* simba:{M} */
    char mutex[];
};

/* ---- names --------------------------------------------------------------------------------- */

bool ear_mutex_of(const char *key, const char **at, size_t *length)
{
    size_t n = strlen(key), prefix = strlen(PREFIX), suffix = strlen(SUFFIX);
    if (n <= prefix + suffix || strncmp(key, PREFIX, prefix) != 0 || key[n - 1] != '}')
        return false;
    *at = key + prefix;
    *length = n - prefix - suffix;
    return true;
}

static struct place *place_of_key(struct ear *e, const char *key)
{
    char mutex[SIMBA_MUTEX_MAX + 1];
    const char *at;
    size_t n;
    if (!ear_mutex_of(key, &at, &n) || n > SIMBA_MUTEX_MAX)
        return NULL;
    memcpy(mutex, at, n);
    mutex[n] = '\0';
    return (struct place *)(void *)table_find(&e->places, mutex);
}

static struct place *place_of(struct ear *e, const char *mutex)
{
    return (struct place *)(void *)table_find(&e->places, mutex);
}

static struct waiter *waiter_of(struct ear *e, const char *mutex, const char *id)
{
    char channel[CHANNEL_MAX];
    if (e->waiters.count == 0)
        return NULL;
    snprintf(channel, sizeof channel, PREFIX "%s" SUFFIX ":%s", mutex, id);
    return (struct waiter *)(void *)table_find(&e->waiters, channel);
}

/* ---- subscriptions ------------------------------------------------------------------------- */

static void say(struct ear *e, const char *command, const char *channel)
{
    if (e->link.state != LINK_READY)
        return;
    resp_begin(&e->link.out, 2);
    resp_word(&e->link.out, command);
    resp_word(&e->link.out, channel);
}

static void subscribe(struct ear *e, enum subscription *sub, const char *channel)
{
    *sub = SUB_NONE;
    if (e->link.state == LINK_READY) {
        say(e, "SUBSCRIBE", channel);
        *sub = SUB_ASKED;
    }
}

static void on_upkeep(uv_timer_t *timer);

static void open_ear(struct ear *e)
{
    if (e->is_open)
        return;
    e->is_open = true;
    link_open(&e->link);
    uv_timer_start(&e->upkeep, on_upkeep, EAR_UPKEEP_MS, EAR_UPKEEP_MS);
}

static struct place *make_place(struct ear *e, const char *mutex)
{
    struct place *p = place_of(e, mutex);
    if (p != NULL)
        return p;
    size_t n = strlen(mutex), channel = strlen(PREFIX) + n + strlen(SUFFIX) + 1;
    p = calloc(1, sizeof *p + n + 1 + channel);
    if (p == NULL)
        return NULL;
    memcpy(p->mutex, mutex, n + 1);
    p->channel = p->mutex + n + 1;
    snprintf(p->channel, channel, PREFIX "%s" SUFFIX, mutex);
    p->by_mutex.name = p->mutex;
    table_add(&e->places, &p->by_mutex);
    open_ear(e);
    subscribe(e, &p->sub, p->channel);
    return p;
}

static void remove_later(struct ear *e, struct place *p)
{
    for (struct place **at = &e->later; p->is_later && *at != NULL; at = &(*at)->later) {
        if (*at == p) {
            *at = p->later;
            p->is_later = false;
            return;
        }
    }
}

static void end_place(struct ear *e, struct place *p)
{
    if (p->waiters != NULL || p->observed)
        return;
    remove_later(e, p);
    say(e, "UNSUBSCRIBE", p->channel);
    table_remove(&e->places, &p->by_mutex);
    free(p);
}

static void end_waiter(struct ear *e, struct waiter *w)
{
    say(e, "UNSUBSCRIBE", w->channel);
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    table_remove(&e->waiters, &w->by_channel);
    free(w);
}

static struct waiter *make_waiter(struct ear *e, const char *mutex, const char *id)
{
    struct place *p = make_place(e, mutex);
    char channel[CHANNEL_MAX];
    int n = snprintf(channel, sizeof channel, PREFIX "%s" SUFFIX ":%s", mutex, id);
    struct waiter *w = p != NULL ? calloc(1, sizeof *w + (size_t)n + 1) : NULL;
    if (w == NULL)
        return NULL;
    memcpy(w->channel, channel, (size_t)n + 1);
    w->id = w->channel + (size_t)n - strlen(id);
    w->by_channel.name = w->channel;
    w->place = p;
    struct waiter **last = &p->waiters;
    w->next = *last;
    w->link = last;
    if (w->next != NULL)
        w->next->link = &w->next;
    *last = w;
    w->tries = true;
    table_add(&e->waiters, &w->by_channel);
    subscribe(e, &w->sub, w->channel);
    return w;
}

/* ---- who asks ------------------------------------------------------------------------------ */

static void hint_waiter(struct ear *e, const struct waiter *w)
{
    struct simba_host *host = e->link.net->host;
    host->hint_one(host, w->place->mutex, w->id);
}

/* The one that has waited longest. */
static struct waiter *first_of(struct place *p)
{
    struct waiter *first = NULL;
    for (struct waiter *w = p->waiters; w != NULL; w = w->next) {
        if (w->waits && (first == NULL || strcmp(w->score, first->score) < 0))
            first = w;
    }
    return first;
}

static void set_alarm(struct ear *e);

static void on_alarm(uv_timer_t *timer)
{
    struct ear *e = timer->data;
    int64_t now = simba_now();
    for (struct place **at = &e->later; *at != NULL;) {
        struct place *p = *at;
        if (p->ask_at > now) {
            at = &p->later;
            continue;
        }
        *at = p->later;
        p->is_later = false;
        struct waiter *w = first_of(p);
        if (w != NULL)
            hint_waiter(e, w);
    }
    set_alarm(e);
}

static void set_alarm(struct ear *e)
{
    int64_t first = INT64_MAX, now = simba_now();
    for (const struct place *p = e->later; p != NULL; p = p->later)
        first = p->ask_at < first ? p->ask_at : first;
    if (first == INT64_MAX)
        uv_timer_stop(&e->alarm);
    else
        uv_timer_start(&e->alarm, on_alarm, first > now ? (uint64_t)(first - now) : 0, 0);
}

static void on_released(struct ear *e, struct place *p)
{
    struct waiter *w = first_of(p);
    p->is_taken = false;
    if (w == NULL)
        return;
    if (w->rank == 0) {
        hint_waiter(e, w);
        return;
    }
    if (p->is_later)
        return;
    p->ask_at = simba_now() + rng_between(&e->link.net->dice, EAR_LATER_MIN_MS, EAR_LATER_MAX_MS);
    p->is_later = true;
    p->later = e->later;
    e->later = p;
    set_alarm(e);
}

/* Where nobody waits for a mutex that is taken, what others do with it need not be heard. But each waiter's
 * own channel is kept for a while. */
static void stop_listening(struct ear *e, struct place *p)
{
    if (!p->is_taken || p->sub != SUB_HEARS || p->observed || first_of(p) != NULL)
        return;
    say(e, "UNSUBSCRIBE", p->channel);
    p->sub = SUB_NONE;
    p->is_taken = false;
}

static void on_acquired(struct ear *e, struct place *p)
{
    remove_later(e, p);
    p->is_taken = true;
    stop_listening(e, p);
}

void ear_free_mutex(struct ear *e, const char *key)
{
    struct place *p = place_of_key(e, key);
    struct waiter *w = p != NULL ? first_of(p) : NULL;
    if (w != NULL)
        hint_waiter(e, w);
}

/* ---- what is heard ------------------------------------------------------------------------- */

static bool begins(const struct reply *r, const char *with)
{
    return r->kind == REPLY_STRING && strncmp(r->text, with, strlen(with)) == 0;
}

/* What others say of this mutex: the channel, for those who observe all, or its owner was evicted. */
static void on_change(struct ear *e, const struct reply *key)
{
    struct simba_host *host = e->link.net->host;
    char mutex[SIMBA_MUTEX_MAX + 1];
    const char *at;
    size_t n;
    if (!reply_is_text(key) || !ear_mutex_of(key->text, &at, &n) || n > SIMBA_MUTEX_MAX)
        return;
    memcpy(mutex, at, n);
    mutex[n] = '\0';
    host->hint(host, mutex);
}

static void on_message(struct ear *e, const struct reply *channel, const struct reply *what)
{
    struct simba_host *host = e->link.net->host;
    bool released = begins(what, "released@@"), acquired = begins(what, "acquired@@");
    if (reply_equals(channel, EVICTIONS)) {
        on_change(e, what);
        return;
    }
    if (!reply_is_text(channel) || (!released && !acquired))
        return; /* not in our words */
    struct waiter *w = (struct waiter *)(void *)table_find(&e->waiters, channel->text);
    if (w != NULL && released)
        hint_waiter(e, w);
    struct place *p = place_of_key(e, channel->text);
    if (p == NULL)
        return;
    if (p->observed)
        host->hint(host, p->mutex);
    if (released)
        on_released(e, p);
    else
        on_acquired(e, p);
}

/* From here on nothing gets lost; what was before this, only asking can tell. */
static void on_subscribed(struct ear *e, const struct reply *channel)
{
    struct simba_host *host = e->link.net->host;
    struct waiter *w = (struct waiter *)(void *)table_find(&e->waiters, channel->text);
    if (strcmp(channel->text, EVICTIONS) == 0) {
        e->hears_evictions = true;
        while (e->unheard > 0)
            host->hint(host, e->granted[--e->unheard]);
    }
    if (w != NULL && w->sub != SUB_HEARS) {
        w->sub = SUB_HEARS;
        if (w->waits && w->tries)
            hint_waiter(e, w);
        w->tries = false;
    }
    struct place *p = place_of_key(e, channel->text);
    if (p == NULL || p->sub == SUB_HEARS)
        return;
    p->sub = SUB_HEARS;
    w = first_of(p);
    if (p->observed)
        host->hint(host, p->mutex);
    else if (w != NULL && w->sub == SUB_HEARS) /* else it tries when it hears */
        hint_waiter(e, w);
}

static void end_tries(struct ear *e)
{
    bool tried = e->tries;
    e->tries = false;
    if (tried)
        e->tried(e);
}

static void on_reply(struct link *l, const struct reply *r)
{
    struct ear *e = l->data;
    const struct reply *kind = reply_at(r, 0), *channel = reply_at(r, 1);
    if (r->kind == REPLY_ERROR)
        e->denied(e, r);
    if (r->kind == REPLY_ERROR && !e->was_denied) {
        char why[LINK_TEXT_MAX], line[LINK_TEXT_MAX + 64];
        link_refusal(r, why, sizeof why);
        snprintf(line, sizeof line, "cannot listen, so waiting takes longer: %s", why);
        l->net->host->log(l->net->host, SIMBA_LOG_WARN, line);
        e->was_denied = true;
    } else if (reply_equals(kind, "message")) {
        on_message(e, channel, reply_at(r, 2));
    } else if (reply_equals(kind, "pmessage")) {
        on_change(e, reply_at(r, 2));
    } else if (reply_equals(kind, "subscribe") && reply_is_text(channel)) {
        on_subscribed(e, channel);
    } else if (reply_equals(kind, "psubscribe")) {
        l->net->host->hint(l->net->host, NULL);
    } else if (reply_equals(kind, "pong") || reply_equals(r, "PONG")) {
        e->asked_at = 0;
        if (e->pings > 0 && --e->pings == 0)
            end_tries(e); /* they were sent before */
    }
}

/* ---- the connection ------------------------------------------------------------------------ */

static void send_ping(struct ear *e)
{
    resp_begin(&e->link.out, 1);
    resp_word(&e->link.out, "PING");
    e->pings++;
    e->asked_at = simba_now();
    link_watch(&e->link);
}

static void send_tries(struct ear *e)
{
    say(e, "SUBSCRIBE", "simba:rights");
    say(e, "UNSUBSCRIBE", "simba:rights");
    if (!e->observes_all) { /* else it has been tried */
        say(e, "PSUBSCRIBE", PREFIX "*" SUFFIX);
        say(e, "PUNSUBSCRIBE", PREFIX "*" SUFFIX);
    }
    send_ping(e);
}

void ear_try(struct ear *e)
{
    e->tries = true;
    open_ear(e);
    if (e->link.state == LINK_READY)
        send_tries(e);
    link_flush(&e->link);
}

/* Messages may have been missed. One of those who wait for a mutex is enough to find out. */
static void on_ready(struct link *l)
{
    struct ear *e = l->data;
    e->asked_at = 0;
    e->pings = 0;
    e->was_denied = false;
    for (size_t i = 0; i < e->places.buckets; i++) {
        for (struct table_node *n = e->places.bucket[i]; n != NULL; n = n->next) {
            struct place *p = (struct place *)(void *)n;
            struct waiter *first = first_of(p);
            subscribe(e, &p->sub, p->channel);
            for (struct waiter *w = p->waiters; w != NULL; w = w->next) {
                w->tries = w->tries || w == first;
                subscribe(e, &w->sub, w->channel);
            }
        }
    }
    say(e, "SUBSCRIBE", EVICTIONS);
    if (e->observes_all)
        say(e, "PSUBSCRIBE", PREFIX "*" SUFFIX);
    if (e->tries)
        send_tries(e);
    link_flush(l);
}

static void on_down(struct link *l)
{
    struct ear *e = l->data;
    for (size_t i = 0; i < e->places.buckets; i++) {
        for (struct table_node *n = e->places.bucket[i]; n != NULL; n = n->next)
            ((struct place *)(void *)n)->sub = SUB_NONE;
    }
    for (size_t i = 0; i < e->waiters.buckets; i++) {
        for (struct table_node *n = e->waiters.bucket[i]; n != NULL; n = n->next)
            ((struct waiter *)(void *)n)->sub = SUB_NONE;
    }
    e->hears_evictions = false;
    e->asked_at = 0;
    e->pings = 0;
    end_tries(e);
}

static void find_server(struct link *l)
{
    struct ear *e = l->data;
    if (e->commands->state == LINK_READY)
        link_go(l, &e->commands->address);
    else
        link_fail(l, SIMBA_ESTORE, "the server is not there");
}

/* It listens to the server that is talked to, also after a failover that the old one survived. */
void ear_follow(struct ear *e)
{
    const struct address *now = &e->commands->address, *before = &e->link.address;
    bool moved = strcmp(now->host, before->host) != 0 || now->port != before->port;
    if (!e->is_open)
        return;
    if (moved && e->link.state != LINK_DOWN) {
        on_down(&e->link);
        link_shut(&e->link);
    }
    link_hurry(&e->link);
}

static int64_t oldest(struct link *l)
{
    return ((struct ear *)l->data)->asked_at;
}

static const struct link_use use = {
    .keeps_trying = true,
    .find = find_server,
    .ready = on_ready,
    .reply = on_reply,
    .down = on_down,
};

/* ---- upkeep -------------------------------------------------------------------------------- */

static void sweep(struct ear *e)
{
    int64_t now = simba_now();
    for (size_t i = 0; i < e->waiters.buckets; i++) {
        for (struct table_node *n = e->waiters.bucket[i], *next; n != NULL; n = next) {
            struct waiter *w = (struct waiter *)(void *)n;
            next = n->next;
            if (!w->waits && now - w->idle_since >= EAR_LINGER_MS)
                end_waiter(e, w);
        }
    }
    for (size_t i = 0; i < e->places.buckets; i++) {
        for (struct table_node *n = e->places.bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            end_place(e, (struct place *)(void *)n);
        }
    }
}

static void on_upkeep(uv_timer_t *timer)
{
    struct ear *e = timer->data;
    sweep(e);
    if (e->places.count == 0 && !e->observes_all && !e->tries && e->owns_until < simba_now()) {
        e->is_open = e->hears_evictions = false;
        link_shut(&e->link);
        uv_timer_stop(&e->upkeep);
        return;
    }
    e->look(e);
    if (e->link.state != LINK_READY)
        return;
    if (e->asked_at == 0)
        send_ping(e);
    link_flush(&e->link);
}

void ear_each(struct ear *e, void (*call)(void *data, const char *key), void *data)
{
    for (size_t i = 0; i < e->places.buckets; i++) {
        for (struct table_node *n = e->places.bucket[i]; n != NULL; n = n->next) {
            struct place *p = (struct place *)(void *)n;
            if (first_of(p) != NULL)
                call(data, p->channel);
        }
    }
}

/* ---- from outside -------------------------------------------------------------------------- */

void ear_waits(struct ear *e, const char *mutex, const char *id, const char *score, int64_t rank)
{
    struct waiter *w = waiter_of(e, mutex, id);
    if (w == NULL)
        w = make_waiter(e, mutex, id);
    if (w == NULL)
        return; /* without memory it waits for the end of the lease */
    if (w->score[0] == '\0')
        snprintf(w->score, sizeof w->score, "%s", score);
    w->waits = true;
    w->rank = rank;
    if (w->place->sub == SUB_NONE)
        subscribe(e, &w->place->sub, w->place->channel);
}

void ear_ends(struct ear *e, const char *mutex, const char *id)
{
    struct waiter *w = waiter_of(e, mutex, id);
    if (w == NULL || !w->waits)
        return;
    w->waits = false;
    w->score[0] = '\0';
    w->idle_since = simba_now();
    stop_listening(e, w->place);
}

/* The message that it is free may be here before the answer that it was not: so who asks is counted
 * as one who waits, and as the first, if it can hear already. */
const char *ear_asks(struct ear *e, const char *mutex, const char *id)
{
    struct waiter *w = waiter_of(e, mutex, id);
    if (w == NULL)
        return "";
    if (!w->waits) {
        w->waits = true;
        w->rank = 0;
    }
    return w->score;
}

void ear_interest(struct ear *e, const char *mutex, enum simba_interest interest)
{
    bool observes = interest == SIMBA_OBSERVES;
    if (mutex == NULL) {
        if (observes && !e->observes_all)
            say(e, "PSUBSCRIBE", PREFIX "*" SUFFIX);
        else if (!observes && e->observes_all)
            say(e, "PUNSUBSCRIBE", PREFIX "*" SUFFIX);
        e->observes_all = observes;
        if (observes)
            open_ear(e);
    } else {
        struct place *p = observes ? make_place(e, mutex) : place_of(e, mutex);
        if (p != NULL)
            p->observed = observes;
        if (p != NULL && observes && p->sub == SUB_NONE)
            subscribe(e, &p->sub, p->channel);
        if (p != NULL && interest == SIMBA_NO_INTEREST) {
            for (struct waiter *w = p->waiters; w != NULL; w = w->next)
                ear_ends(e, mutex, w->id);
        }
    }
    link_flush(&e->link);
}

void ear_owns(struct ear *e, const char *mutex, int64_t lease_ms)
{
    e->owns_until = simba_now() + lease_ms;
    open_ear(e);
    if (mutex != NULL && !e->hears_evictions && e->unheard < EAR_UNHEARD_MAX)
        snprintf(e->granted[e->unheard++], sizeof e->granted[0], "%s", mutex);
}

int ear_init(struct ear *e)
{
    *e = (struct ear){.is_open = false};
    if (table_init(&e->places) != 0)
        return SIMBA_ELIMIT;
    if (table_init(&e->waiters) != 0) {
        table_free(&e->places);
        return SIMBA_ELIMIT;
    }
    return 0;
}

void ear_begin(struct ear *e, struct net *net, const struct link *commands)
{
    e->commands = commands;
    link_init(&e->link, net, &use, e);
    e->link.oldest = oldest;
    uv_timer_init(net->host->loop, &e->upkeep);
    uv_timer_init(net->host->loop, &e->alarm);
    e->upkeep.data = e;
    e->alarm.data = e;
    net->handles += 2;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct net *net = ((struct ear *)handle->data)->link.net;
    if (--net->handles == 0)
        net->empty(net);
}

void ear_close(struct ear *e)
{
    link_close(&e->link);
    uv_close((uv_handle_t *)&e->upkeep, on_timer_closed);
    uv_close((uv_handle_t *)&e->alarm, on_timer_closed);
}

static void free_node(struct table_node *node)
{
    free(node);
}

void ear_free(struct ear *e)
{
    table_empty(&e->waiters, free_node);
    table_empty(&e->places, free_node);
    table_free(&e->waiters);
    table_free(&e->places);
}
