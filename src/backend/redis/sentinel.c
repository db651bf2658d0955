/* sentinel.c: asks the sentinels, one after the other, who is the master. Whether that one agrees is
 * seen in its greeting; if not, all is asked anew after a pause, since a failover is under way. */
#include <stdio.h>
#include <string.h>

#include "backend/redis/redis.h"

static void ask_next(struct redis *s, const char *why)
{
    if (s->sentinels_asked == s->config.sentinels) {
        char text[LINK_TEXT_MAX];
        snprintf(text, sizeof text, "%.200s", why);
        link_fail(&s->link, SIMBA_ESTORE, "no sentinel knows the master '%.64s': %s",
                  s->config.master, text);
        return;
    }
    s->sentinels_asked++;
    s->sentinel_at = (s->sentinel_at + 1) % s->config.sentinels;
    link_open(&s->sentinel);
}

void sentinel_ask(struct redis *s)
{
    link_shut(&s->sentinel);
    s->sentinels_asked = 0;
    ask_next(s, "");
}

static void find(struct link *l)
{
    struct redis *s = l->data;
    link_go(l, &s->config.sentinel[s->sentinel_at]);
}

static void ask(struct link *l, const char *question)
{
    const struct redis *s = l->data;
    resp_begin(&l->out, 3);
    resp_word(&l->out, "SENTINEL");
    resp_word(&l->out, question);
    resp_word(&l->out, s->config.master);
}

static void on_ready(struct link *l)
{
    struct redis *s = l->data;
    s->sentinel_told_term = false;
    ask(l, "MASTER");
    ask(l, "get-master-addr-by-name");
    link_watch(l);
    link_flush(l);
}

/* Each failover has a greater config-epoch. A server that was replaced, and is the master again before it
 * could be made a replica, does not know of it: only this number tells. */
static int64_t term_in(const struct reply *r)
{
    uint64_t term;
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (reply_equals(reply_at(r, i), "config-epoch") && reply_digits(reply_at(r, i + 1), &term))
            return term <= (uint64_t)TERM_MAX ? (int64_t)term : 0;
    }
    return 0;
}

static void on_reply(struct link *l, const struct reply *r)
{
    struct redis *s = l->data;
    if (!s->sentinel_told_term) {
        s->sentinel_told_term = true;
        s->net.term = term_in(r);
        return;
    }
    const struct reply *host = reply_at(r, 0);
    struct address master = {.host = ""};
    uint64_t port;
    char why[LINK_TEXT_MAX] = "it does not know that name";
    bool found = r->kind == REPLY_ARRAY && reply_is_text(host) && host->length > 0 &&
                 host->length < sizeof master.host && reply_digits(reply_at(r, 1), &port) &&
                 port > 0 && port < 65536;
    if (r->kind == REPLY_ERROR)
        link_refusal(r, why, sizeof why);
    if (found) {
        memcpy(master.host, host->text, host->length + 1);
        master.port = (int)port;
    }
    link_shut(l);
    if (found && s->link.state == LINK_FINDING)
        link_go(&s->link, &master);
    else if (s->link.state == LINK_FINDING)
        ask_next(s, why);
}

static void on_down(struct link *l)
{
    struct redis *s = l->data;
    if (s->link.state == LINK_FINDING)
        ask_next(s, l->why);
}

/* It has one question, which is open while the connection is. */
static int64_t oldest(struct link *l)
{
    (void)l;
    return 1;
}

static const struct link_use use = {
    .is_sentinel = true,
    .find = find,
    .ready = on_ready,
    .reply = on_reply,
    .down = on_down,
};

void sentinel_init(struct redis *s)
{
    link_init(&s->sentinel, &s->net, &use, s);
    s->sentinel.oldest = oldest;
    s->sentinel_at = s->config.sentinels > 0 ? s->config.sentinels - 1 : 0;
}
