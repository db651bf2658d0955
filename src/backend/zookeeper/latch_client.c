/* latch_client.c: what contenders ask for: CONTEND, RENEW, RELEASE, LEAVE, PUBLISH.
 *
 * - CONTEND joins if need be (latch_node.c), and reads the queue (latch_queue.c).
 * - RENEW asks the server nothing: our session stands, and nobody has told us that the node is gone.
 * - A tenure that its contender has not renewed for a whole lease is over, as in every store, even if
 *   the session lives on: the node is deleted (latch_session.c). */
#include "backend/zookeeper/latch_client.h"

#include <string.h>

#include "backend/zookeeper/latch_member.h"

int zk_latch_client_init(struct latch_client *c, struct simba_host *host, const struct latch_io *io)
{
    c->host = host;
    c->io = io;
    return hash_table_init(&c->members);
}

void zk_latch_client_free(struct latch_client *c)
{
    hash_table_free(&c->members);
}

/* ---- its members --------------------------------------------------------------------------- */

static struct latch_member *find(const struct latch_client *c, const char *mutex, const char *id)
{
    struct hash_node *n = hash_table_find(&c->members, mutex);
    for (; n != NULL; n = hash_table_find_next(n)) {
        struct latch_member *m = (struct latch_member *)(void *)n;
        if (strcmp(m->id, id) == 0)
            return m;
    }
    return NULL;
}

/* Also among those that wait for their deletion. */
static struct latch_member *find_token(const struct latch_client *c, const struct simba_request *q)
{
    struct latch_member *m = find(c, q->mutex, q->id);
    if (m != NULL && (uint64_t)m->latch.czxid == q->token)
        return m;
    for (const struct latch_session *s = c->sessions; s != NULL; s = s->next) {
        for (m = s->members; m != NULL; m = m->next) {
            if ((uint64_t)m->latch.czxid == q->token && strcmp(m->mutex, q->mutex) == 0 &&
                strcmp(m->id, q->id) == 0)
                return m;
        }
    }
    return NULL;
}

int zk_latch_client_count(const struct latch_client *c, const char *mutex)
{
    int count = 0;
    for (struct hash_node *n = hash_table_find(&c->members, mutex); n != NULL;
         n = hash_table_find_next(n))
        count += ((struct latch_member *)(void *)n)->latch.state == LATCH_IN;
    return count;
}

bool zk_latch_client_knows(const struct latch_client *c, const char *node)
{
    for (const struct latch_session *s = c->sessions; s != NULL; s = s->next) {
        for (const struct latch_member *m = s->members; m != NULL; m = m->next) {
            if (zk_latch_is_for(&m->latch, node))
                return true;
        }
    }
    return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

void zk_latch_client_refuse(struct latch_client *c, struct simba_request *q, int code,
                            const char *why)
{
    c->refused = true;
    pending_refuse(c->host, q, code, why);
}

void zk_latch_client_fail(struct latch_client *c, struct pending *waiting, int code,
                          const char *why)
{
    c->refused = c->refused || waiting->first != NULL;
    pending_fail(waiting, c->host, code, why);
}

static void contend(struct latch_client *c, struct simba_request *q)
{
    struct latch_member *m = find(c, q->mutex, q->id);
    struct latch_session *s =
        m != NULL ? m->session : c->io->session(c, q->ttl_ms + q->transition_ms);
    if (s != NULL && s->hopeless) {
        zk_latch_client_refuse(c, q, s->code, s->why);
        return;
    }
    if (m != NULL && (m->over || !m->latch.wanted)) {
        zk_latch_node_discard(m); /* a tenure that has ended is not taken up again */
        m = NULL;
    }
    if (m == NULL && s != NULL)
        m = zk_latch_node_make(s, q);
    if (m == NULL) {
        zk_latch_client_refuse(c, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    m->shared = m->shared || m->asking.first != NULL || m->granted;
    m->stuck = false;
    m->asked_at = c->now;
    pending_add(&m->asking, q);
    zk_latch_node_drive(m);
}

static void renew(struct latch_client *c, struct simba_request *q)
{
    struct latch_member *m = find(c, q->mutex, q->id);
    if (m == NULL || m->over || !m->granted || (uint64_t)m->latch.czxid != q->token) {
        pending_refuse(c->host, q, SIMBA_ELOST, NULL);
    } else if (zk_latch_session_is_fresh(m->session)) {
        m->asked_at = c->now;
        m->lease_ms = q->ttl_ms + q->transition_ms;
        c->host->answer(c->host, q,
                        &(struct simba_answer){.id = m->id,
                                               .token = (uint64_t)m->latch.czxid,
                                               .left_ms = zk_latch_session_left(m->session),
                                               .age_ms = -1});
    } else if (m->session->connected) {
        zk_latch_session_stall(m->session, q);
    } else {
        zk_latch_client_refuse(c, q, SIMBA_ESTORE, m->session->why);
    }
}

/* That it leads we know; whether it still does, the server says. */
static void publish(struct latch_client *c, struct simba_request *q)
{
    const struct latch_member *m = find(c, q->mutex, q->id);
    if (m == NULL || m->over || !m->granted || (uint64_t)m->latch.czxid != q->token)
        pending_refuse(c->host, q, SIMBA_ELOST, NULL);
    else if (m->session->connected)
        c->io->publish(m->session, q, m->latch.name);
    else
        zk_latch_client_refuse(c, q, SIMBA_ESTORE, m->session->why);
}

/* What the member's contender asked for, whether it waits for the queue or for a write. If the
 * member only waits for its deletion, the contender may have another one, and goes on. */
static void refuse_contender(struct latch_member *m)
{
    static const char why[] = "its contender has left";
    struct latch_session *s = m->session;
    struct simba_request *list = pending_take(&s->stalled);
    zk_latch_client_fail(s->client, &m->asking, SIMBA_ESTORE, why);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        if (m->is_member && list->op == SIMBA_CONTEND && strcmp(list->mutex, m->mutex) == 0 &&
            strcmp(list->id, m->id) == 0)
            zk_latch_client_refuse(s->client, list, SIMBA_ESTORE, why);
        else
            pending_add(&s->stalled, list);
    }
}

/* A contender of the same id is told that the node is gone; else nobody would tell it. */
static void end(struct latch_member *m, struct simba_request *q)
{
    struct latch_session *s = m->session;
    bool waits = s->connected;
    if (m->shared && m->is_member)
        zk_latch_queue_hint(m);
    refuse_contender(m);
    if (waits)
        pending_add(&m->ending, q);
    m->stuck = false;
    zk_latch_node_discard(m);
    if (!waits)
        zk_latch_client_refuse(s->client, q, SIMBA_ESTORE, s->why);
}

static void release(struct latch_client *c, struct simba_request *q)
{
    struct latch_member *m = find_token(c, q);
    if (m == NULL || m->latch.state == LATCH_GONE)
        pending_refuse(c->host, q, SIMBA_ELOST, NULL);
    else
        end(m, q);
}

static void leave(struct latch_client *c, struct simba_request *q)
{
    struct latch_member *m = find(c, q->mutex, q->id);
    struct latch_session *s = c->sessions;
    while (s != NULL && !s->connected && s->next != NULL)
        s = s->next;
    if (m != NULL && !m->granted)
        end(m, q);
    else if (s != NULL && s->connected)
        c->io->read(s, q);
    else
        zk_latch_client_refuse(c, q,
                               s == NULL     ? SIMBA_ESTORE
                               : s->hopeless ? s->code
                                             : SIMBA_ETIMEOUT,
                               s != NULL ? s->why : "no session with the servers");
}

void zk_latch_client_submit(struct latch_client *c, struct simba_request *q, int64_t now)
{
    c->now = now;
    switch (q->op) {
    case SIMBA_CONTEND:
        contend(c, q);
        break;
    case SIMBA_RENEW:
        renew(c, q);
        break;
    case SIMBA_RELEASE:
        release(c, q);
        break;
    case SIMBA_PUBLISH:
        publish(c, q);
        break;
    default:
        leave(c, q);
        break;
    }
}

/* ---- what comes back ----------------------------------------------------------------------- */

void zk_latch_client_replied(struct latch_flight *f, const struct latch_result *r, int64_t now)
{
    struct latch_member *m = f->member;
    m->session->client->now = now;
    m->flights--;
    if (f->ask < LATCH_ASK_LIST)
        zk_latch_node_replied(m, f->ask, r);
    else
        zk_latch_queue_replied(m, f->ask, r);
}
