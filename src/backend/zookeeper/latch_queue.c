/* latch_queue.c: what a member reads of the others, its watches, and what its contender is told.
 *
 * A tenure is a node: granted once, to one request, when a list of the children shows it as the
 * lowest. That list may be old, but our node is in it, and whatever joined before ours and is
 * still there is in it, too; so nobody can be in front of us later. If another leads, a watch is
 * left on the member right in front, whose end is hinted to this contender alone.
 *
 * An owner has two watches: on its node, and on the mutex's, where an eviction without force
 * leaves a mark, "evict CZXID". The owner's own node is not touched by it, since a write to it
 * would use up the watch of whoever is next. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/zookeeper/latch_member.h"
#include "backend/zookeeper/path.h"

#define EVICTION "evict "

/* ---- answers ------------------------------------------------------------------------------- */

void zk_latch_queue_hint(struct latch_member *m)
{
    struct latch_client *c = m->session->client;
    c->host->hint_one(c->host, m->mutex, m->id);
}

/* Nobody waits with this node any longer. LEAVE also wants to know who owns the mutex now. */
void zk_latch_queue_answer_ending(struct latch_member *m)
{
    struct latch_session *s = m->session;
    struct latch_client *c = s->client;
    struct simba_request *list = pending_take(&m->ending);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        if (list->op == SIMBA_RELEASE)
            pending_refuse(c->host, list, m->deleted ? 0 : SIMBA_ELOST, NULL);
        else if (s->connected)
            c->io->read(s, list);
        else
            zk_latch_client_refuse(c, list, SIMBA_ESTORE, s->why);
    }
}

#define LEFT_OVER                                                                            \
    "a node in front has the id of this contender: it is left over from before, or another " \
    "contender has the same id"

/* A node in front of ours that bears our own id is one that its contender has given up, and that we
 * have yet to delete. It must not be taken for a tenure of ours whose grant got lost. */
static void answer_other(struct latch_member *m)
{
    struct latch_client *c = m->session->client;
    bool left_over = strcmp(m->leader_id, m->id) == 0;
    struct simba_answer a = {.id = left_over ? NULL : m->leader_id,
                             .token = left_over ? 0 : m->leader_token,
                             .left_ms = zk_latch_session_timeout_ms(m->session),
                             .age_ms = -1,
                             .text = left_over ? LEFT_OVER : NULL};
    struct simba_request *list = pending_take(&m->asking);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        c->host->answer(c->host, list, &a);
    }
}

static void watch_own_later(struct latch_member *m)
{
    if (m->unwatched)
        return;
    m->unwatched = true;
    m->unwatched_next = m->session->unwatched;
    m->session->unwatched = m;
    zk_latch_session_watch_own_soon(m->session);
}

/* Ours is the lowest. To one request it is granted; who asks later is only told whose it is, and
 * knows by its id whether it asked before. */
static void answer_own(struct latch_member *m)
{
    struct latch_session *s = m->session;
    struct latch_client *c = s->client;
    struct simba_request *list = pending_take(&m->asking);
    if (!(m->granted ? zk_latch_session_is_fresh(s) : zk_latch_session_can_begin(s))) {
        zk_latch_session_stall(s, list);
        return;
    }
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        struct simba_answer a = {.granted = !m->granted,
                                 .id = m->id,
                                 .token = (uint64_t)m->latch.czxid,
                                 .left_ms = zk_latch_session_left(s),
                                 .age_ms = -1};
        if (!m->granted) {
            m->granted = true;
            m->lease_ms = list->ttl_ms + list->transition_ms;
            watch_own_later(m);
        }
        c->host->answer(c->host, list, &a);
    }
}

/* ---- reading the queue --------------------------------------------------------------------- */

/* Somebody is in front: watch the last of them, and learn who leads. */
static void wait_behind(struct latch_member *m, const char *ahead, const char *leader)
{
    bool one = strcmp(ahead, leader) == 0;
    bool known = strcmp(m->leader, leader) == 0;
    bool watched = strcmp(m->watched, ahead) == 0;
    snprintf(m->watched, sizeof m->watched, "%s", ahead);
    snprintf(m->leader, sizeof m->leader, "%s", leader);
    m->again = false;
    if (!watched && !one && !zk_latch_node_send(m, LATCH_ASK_AHEAD, ahead, true))
        m->watched[0] = '\0';
    if (known && watched) {
        answer_other(m);
        return;
    }
    m->reading = zk_latch_node_send(m, LATCH_ASK_LEADER, leader, one && !watched);
    if (!m->reading) {
        m->leader[0] = '\0';
        m->watched[0] = '\0';
        zk_latch_node_refuse_asking(m, &zk_latch_node_unsent);
    }
}

static void leader_is(struct latch_member *m, const struct latch_result *r)
{
    m->reading = false;
    if (r->reply == LATCH_DONE) {
        zk_path_show_id(m->leader_id, r->data, r->length);
        m->leader_token = (uint64_t)r->czxid;
        if (!m->again)
            answer_other(m);
        return;
    }
    m->leader[0] = '\0';
    m->watched[0] = '\0';
    if (r->reply != LATCH_NO_NODE) /* if it is gone: read again */
        zk_latch_node_refuse_asking(m, r);
}

/* A node that we made and that no member is for: its deletion was acknowledged and is not true,
 * which happened to an ensemble under a storm of partitions (T104), or it outlived its session.
 * It would stay for as long as its session lives. Nobody relies on it: its name is ours alone,
 * and owners whose node vanished, perhaps only for the server that we asked, have ended by
 * relied_until. */
static void remove_forgotten(struct latch_member *m, char *const *names, int count)
{
    struct latch_client *c = m->session->client;
    int siblings = 0;
    for (int i = 0; i < count; i++)
        siblings += zk_latch_is_sibling(&m->latch, names[i]);
    if (siblings <= zk_latch_client_count(c, m->mutex) || c->now < c->relied_until)
        return;
    for (int i = 0; i < count; i++) {
        if (!zk_latch_is_sibling(&m->latch, names[i]) || zk_latch_client_knows(c, names[i]))
            continue;
        c->host->log(c->host, SIMBA_LOG_WARN,
                     "a node of ours that was deleted is still there: deleting it again");
        zk_latch_node_send(m, LATCH_ASK_REMOVE, names[i], false);
    }
}

/* False: the member is gone, and perhaps freed. */
static bool listed(struct latch_member *m, const struct latch_result *r)
{
    m->reading = false;
    if (r->reply != LATCH_DONE && r->reply != LATCH_NO_NODE)
        zk_latch_node_refuse_asking(m, r);
    else if (m->latch.state == LATCH_IN) {
        struct latch_view v = zk_latch_view_of(&m->latch, r->names, r->count);
        remove_forgotten(m, r->names, r->count);
        if (v.orphan >= 0) {
            zk_latch_node_send(m, LATCH_ASK_REMOVE, r->names[v.orphan], false);
            m->again = true;
        }
        if (v.own < 0) {
            zk_latch_node_vanished(m);
            return false;
        }
        if (v.ahead >= 0)
            wait_behind(m, r->names[v.ahead], r->names[v.leader]);
        else if (m->latch.wanted && !m->over)
            answer_own(m);
    }
    return true;
}

void zk_latch_queue_read(struct latch_member *m)
{
    if (m->reading)
        return;
    m->reading = true;
    m->again = false;
    if (!zk_latch_node_send(m, LATCH_ASK_LIST, "", false))
        zk_latch_queue_replied(m, LATCH_ASK_LIST, &zk_latch_node_unsent);
}

/* ---- watches ------------------------------------------------------------------------------- */

bool zk_latch_queue_parse_eviction(const char *data, int length, int64_t *czxid)
{
    char text[64];
    size_t n = strlen(EVICTION);
    if (data == NULL || length <= (int)n || length >= (int)sizeof text)
        return false;
    memcpy(text, data, (size_t)length);
    text[length] = '\0';
    if (strncmp(text, EVICTION, n) != 0)
        return false;
    *czxid = (int64_t)strtoll(text + n, NULL, 10);
    return *czxid > 0;
}

void zk_latch_queue_format_eviction(char *out, size_t size, uint64_t token)
{
    snprintf(out, size, EVICTION "%" PRIu64, token);
}

/* An owner hears of the end of its node, and of an eviction in the data of the mutex's. */
void zk_latch_queue_watch_own(struct latch_member *m)
{
    m->unwatched = false;
    if (!m->is_member || m->over || m->latch.state != LATCH_IN)
        return;
    zk_latch_node_send(m, LATCH_ASK_OWN, m->latch.name, true);
    zk_latch_node_send(m, LATCH_ASK_EVICTION, "", true);
}

static void own_watched(struct latch_member *m, const struct latch_result *r)
{
    if (r->reply != LATCH_DONE && m->is_member && !m->over)
        watch_own_later(m);
}

static void eviction_is(struct latch_member *m, const struct latch_result *r)
{
    int64_t czxid;
    if (r->reply == LATCH_DONE && zk_latch_queue_parse_eviction(r->data, r->length, &czxid) &&
        czxid == m->latch.czxid && m->is_member && !m->over) {
        m->over = true;
        zk_latch_queue_hint(m);
    }
    own_watched(m, r);
}

static void heard_of(struct latch_member *m, const char *node, bool deleted)
{
    if (node[0] == '\0') {
        if (m->granted && !m->over && !deleted && m->session->connected)
            zk_latch_node_send(m, LATCH_ASK_EVICTION, "", true);
    } else if (strcmp(node, m->latch.name) == 0) {
        if (deleted && m->latch.state == LATCH_IN)
            zk_latch_node_vanished(m);
        else if (!deleted && m->session->connected)
            zk_latch_node_send(m, LATCH_ASK_OWN, node, true);
    } else if (strcmp(node, m->watched) == 0) {
        m->watched[0] = '\0';
        m->again = true;
        zk_latch_queue_hint(m);
    }
}

void zk_latch_queue_event(struct latch_session *s, const char *mutex, const char *node,
                          bool deleted, int64_t now)
{
    struct hash_node *next;
    s->client->now = now;
    for (struct hash_node *n = hash_table_find(&s->client->members, mutex); n != NULL; n = next) {
        struct latch_member *m = (struct latch_member *)(void *)n;
        next = hash_table_find_next(n);
        if (m->session == s)
            heard_of(m, node, deleted);
    }
}

/* ---- what comes back ----------------------------------------------------------------------- */

void zk_latch_queue_replied(struct latch_member *m, enum latch_ask ask,
                            const struct latch_result *r)
{
    if (ask == LATCH_ASK_LIST) {
        if (!listed(m, r))
            return;
    } else if (ask == LATCH_ASK_LEADER) {
        leader_is(m, r);
    } else if (ask == LATCH_ASK_AHEAD && r->reply != LATCH_DONE) {
        m->watched[0] = '\0';
        m->again = true;
    } else if (ask == LATCH_ASK_OWN) {
        if (r->reply == LATCH_NO_NODE && m->latch.state == LATCH_IN) {
            zk_latch_node_vanished(m);
            return;
        }
        own_watched(m, r);
    } else if (ask == LATCH_ASK_EVICTION) {
        eviction_is(m, r);
    }
    zk_latch_node_drive(m);
}
