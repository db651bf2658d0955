/* latch_node.c: a member's node: making it, finding it again, deleting it. What to send next is the
 * latch's decision (latch.c); here it is sent, and the latch is told what comes back.
 *
 * A node that is not wanted any more, but could not be deleted for want of a connection, is
 * deleted when there is one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/zookeeper/latch_member.h"

#define MAKES_MAX 5 /* of the mutex's node, which others remove when it is empty */

static const struct latch_result gone = {
    .reply = LATCH_NO_NODE, .code = SIMBA_ESTORE, .why = "the contender's node is gone"};
const struct latch_result zk_latch_node_unsent = {
    .reply = LATCH_REFUSED, .code = SIMBA_ESTORE, .why = "the connection to the server is lost"};
static const struct latch_result absurd = {
    .reply = LATCH_UNKNOWN,
    .code = SIMBA_ESTORE,
    .why = "the server's answer makes no sense: is this a ZooKeeper server, and is it well?"};

/* ---- making and freeing -------------------------------------------------------------------- */

struct latch_member *zk_latch_node_make(struct latch_session *s, const struct simba_request *q)
{
    struct latch_client *c = s->client;
    char uuid[LATCH_UUID_SIZE];
    struct latch_member *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    zk_latch_uuid(uuid, c->maker, c->nodes++);
    zk_latch_init(&m->latch, uuid);
    for (int i = 0; i < LATCH_ASKS; i++)
        m->flight[i] = (struct latch_flight){m, (enum latch_ask)i};
    m->session = s;
    pending_init(&m->asking);
    pending_init(&m->ending);
    snprintf(m->mutex, sizeof m->mutex, "%s", q->mutex);
    snprintf(m->id, sizeof m->id, "%s", q->id);
    m->node.name = m->mutex;
    m->is_member = true;
    hash_table_add(&c->members, &m->node);
    m->next = s->members;
    m->before = &s->members;
    if (m->next != NULL)
        m->next->before = &m->next;
    s->members = m;
    s->members_count++;
    zk_latch_session_keep(s);
    return m;
}

static void leave_members(struct latch_member *m)
{
    if (m->is_member)
        hash_table_remove(&m->session->client->members, &m->node);
    m->is_member = false;
}

static void unlink_unwatched(struct latch_member *m)
{
    struct latch_member **at = &m->session->unwatched;
    while (m->unwatched && *at != NULL) {
        if (*at == m) {
            *at = m->unwatched_next;
            m->unwatched = false;
        } else {
            at = &(*at)->unwatched_next;
        }
    }
}

void zk_latch_node_free(struct latch_member *m)
{
    assert(m->asking.first == NULL);
    assert(m->ending.first == NULL);
    leave_members(m);
    unlink_unwatched(m);
    *m->before = m->next;
    if (m->next != NULL)
        m->next->before = m->before;
    m->session->members_count--;
    free(m);
}

void zk_latch_node_refuse_asking(struct latch_member *m, const struct latch_result *r)
{
    zk_latch_client_fail(m->session->client, &m->asking, r->code, r->why);
}

void zk_latch_node_discard(struct latch_member *m)
{
    leave_members(m);
    m->latch.wanted = false;
    zk_latch_node_drive(m);
}

void zk_latch_node_vanished(struct latch_member *m)
{
    struct latch_client *c = m->session->client;
    bool tell = m->is_member && !m->over;
    int64_t until = c->now + zk_latch_session_timeout_ms(m->session);
    if (tell && m->granted && until > c->relied_until)
        c->relied_until = until;
    zk_latch_vanished(&m->latch);
    m->over = true;
    m->deleted = false;
    leave_members(m);
    zk_latch_node_refuse_asking(m, &gone);
    if (tell)
        zk_latch_queue_hint(m);
    zk_latch_node_drive(m);
}

/* ---- joining ------------------------------------------------------------------------------- */

bool zk_latch_node_send(struct latch_member *m, enum latch_ask ask, const char *node, bool watch)
{
    m->flights++;
    if (m->session->client->io->send(&m->flight[ask], node, watch))
        return true;
    m->flights--;
    return false;
}

static void make_path(struct latch_member *m)
{
    if (++m->makes > MAKES_MAX) {
        m->makes = 0;
        zk_latch_node_refuse_asking(m, &gone);
        return;
    }
    m->making = zk_latch_node_send(m, LATCH_ASK_PATH, "", false);
    if (!m->making)
        zk_latch_node_refuse_asking(m, &zk_latch_node_unsent);
}

static void path_made(struct latch_member *m, const struct latch_result *r)
{
    m->making = false;
    if (r->reply != LATCH_DONE)
        zk_latch_node_refuse_asking(m, r);
}

static void created(struct latch_member *m, const struct latch_result *r)
{
    struct latch_session *s = m->session;
    zk_latch_created(&m->latch, r->reply, r->name, r->czxid, r->owner, s->id);
    if (r->reply == LATCH_DONE && m->latch.state == LATCH_LOST)
        r = &absurd;
    if (r->reply == LATCH_DONE) {
        m->makes = 0;
        if (s->connected)
            zk_session_deadline_wrote(&s->deadline, m->created_at, s->client->now);
    } else if (r->reply == LATCH_NO_NODE && s->connected && m->latch.wanted) {
        make_path(m);
    } else {
        zk_latch_node_refuse_asking(m, r);
    }
}

static void create(struct latch_member *m)
{
    char prefix[LATCH_NAME_SIZE];
    zk_latch_sent(&m->latch);
    zk_latch_prefix(prefix, sizeof prefix, m->latch.uuid);
    m->created_at = m->session->client->now;
    if (zk_latch_node_send(m, LATCH_ASK_CREATE, prefix, false))
        zk_latch_queue_read(m); /* right behind it: the server keeps their order */
    else
        created(m, &zk_latch_node_unsent);
}

/* ---- finding it again, leaving ------------------------------------------------------------- */

/* What cannot be done now is not tried again and again. */
static void note_failure(struct latch_member *m, const struct latch_result *r)
{
    if (r->reply == LATCH_DONE || r->reply == LATCH_NO_NODE)
        return;
    m->stuck = true;
    zk_latch_node_refuse_asking(m, r);
    zk_latch_client_fail(m->session->client, &m->ending, r->code, r->why);
}

static void found(struct latch_member *m, const struct latch_result *r)
{
    struct latch_view v = zk_latch_view_of(&m->latch, r->names, r->count);
    assert(v.own < 0 || r->names != NULL);
    zk_latch_found(&m->latch, r->reply, v.own >= 0 ? r->names[v.own] : NULL);
    note_failure(m, r);
}

static void stat(struct latch_member *m, const struct latch_result *r)
{
    zk_latch_stat(&m->latch, r->reply, r->czxid, r->owner, m->session->id);
    note_failure(m, r->reply == LATCH_DONE && m->latch.state == LATCH_LOST ? &absurd : r);
}

static void deleted(struct latch_member *m, const struct latch_result *r)
{
    m->deleted = r->reply == LATCH_DONE;
    zk_latch_deleted(&m->latch, r->reply);
    note_failure(m, r);
}

/* ---- what is next -------------------------------------------------------------------------- */

void zk_latch_node_replied(struct latch_member *m, enum latch_ask ask, const struct latch_result *r)
{
    if (ask == LATCH_ASK_PATH)
        path_made(m, r);
    else if (ask == LATCH_ASK_CREATE)
        created(m, r);
    else if (ask == LATCH_ASK_FIND)
        found(m, r);
    else if (ask == LATCH_ASK_STAT)
        stat(m, r);
    else if (ask == LATCH_ASK_DELETE)
        deleted(m, r);
    zk_latch_node_drive(m);
}

static void send_act(struct latch_member *m, enum latch_act act)
{
    enum latch_ask ask = act == LATCH_DELETE ? LATCH_ASK_DELETE
                         : act == LATCH_STAT ? LATCH_ASK_STAT
                                             : LATCH_ASK_FIND;
    zk_latch_sent(&m->latch);
    if (!zk_latch_node_send(m, ask, m->latch.name, false))
        zk_latch_node_replied(m, ask, &zk_latch_node_unsent);
}

/* Frees the member when nothing is left of it. */
void zk_latch_node_drive(struct latch_member *m)
{
    enum latch_act act = zk_latch_next(&m->latch);
    if (act == LATCH_END) {
        zk_latch_node_refuse_asking(m, &gone);
        zk_latch_queue_answer_ending(m);
        if (m->flights == 0 && !m->is_member)
            zk_latch_node_free(m);
        return;
    }
    if (!m->session->connected || m->making || m->stuck)
        return;
    if (act == LATCH_REST) {
        if (m->asking.first != NULL && m->latch.state == LATCH_IN)
            zk_latch_queue_read(m);
    } else if (act == LATCH_CREATE) {
        if (m->asking.first != NULL)
            create(m);
    } else {
        send_act(m, act);
    }
}
