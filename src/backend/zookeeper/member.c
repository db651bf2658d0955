/* member.c: what contenders ask for, CONTEND, RENEW, RELEASE, LEAVE, and what happens to all members of a
 * session.
 *
 * - CONTEND joins if need be (place.c), and looks (queue.c).
 * - RENEW asks the server nothing: our session stands, and nobody has told us that the node is gone.
 * - A tenure that its contender has not renewed for a whole lease is over, as in every store, even if
 *   the session lives on: the node is deleted. */
#include <stdio.h>
#include <string.h>

#include "backend/zookeeper/member.h"

#define SILENCE_PARTS 3  /* a contender that waits comes again after one session timeout */
#define SILENCE_MS 10000 /* on top of that */

/* ---- requests --------------------------------------------------------------------------------- */

static struct member *find(const struct zookeeper *z, const char *mutex, const char *id)
{
    struct table_node *n = table_find(&z->members, mutex);
    for (; n != NULL; n = table_find_next(n)) {
        struct member *m = (struct member *)(void *)n;
        if (strcmp(m->id, id) == 0)
            return m;
    }
    return NULL;
}

/* Also among those that wait for their deletion. */
static struct member *find_token(const struct zookeeper *z, const struct simba_request *q)
{
    struct member *m = find(z, q->mutex, q->id);
    if (m != NULL && (uint64_t)m->latch.czxid == q->token)
        return m;
    for (const struct session *s = z->sessions; s != NULL; s = s->next) {
        for (m = s->members; m != NULL; m = m->next) {
            if ((uint64_t)m->latch.czxid == q->token && strcmp(m->mutex, q->mutex) == 0 &&
                strcmp(m->id, q->id) == 0)
                return m;
        }
    }
    return NULL;
}

int zk_member_count(const struct zookeeper *z, const char *mutex)
{
    int count = 0;
    for (struct table_node *n = table_find(&z->members, mutex); n != NULL; n = table_find_next(n))
        count += ((struct member *)(void *)n)->latch.state == LATCH_IN;
    return count;
}

bool zk_member_knows(const struct zookeeper *z, const char *mutex, const char *node)
{
    struct table_node *n = table_find(&z->members, mutex);
    for (; n != NULL; n = table_find_next(n)) {
        if (zk_latch_is_for(&((struct member *)(void *)n)->latch, node))
            return true;
    }
    for (const struct session *s = z->sessions; s != NULL; s = s->next) {
        for (const struct member *m = s->members; m != NULL; m = m->next) {
            if (zk_latch_is_for(&m->latch, node))
                return true;
        }
    }
    return false;
}

static void contend(struct zookeeper *z, struct simba_request *q)
{
    int64_t lease_ms = q->ttl_ms + q->transition_ms;
    struct member *m = find(z, q->mutex, q->id);
    struct session *s = m != NULL ? m->session : zk_session_for(z, lease_ms);
    if (s != NULL && !s->connected && !zk_session_is_hopeful(s)) {
        zk_store_refuse(z, q, s->code, s->why);
        return;
    }
    if (m != NULL && (m->over || !m->latch.wanted)) {
        zk_place_discard(m); /* a tenure that has ended is not taken up again */
        m = NULL;
    }
    if (m == NULL && s != NULL)
        m = zk_place_make(s, q);
    if (m == NULL) {
        zk_store_refuse(z, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    m->shared = m->shared || m->asking != NULL || m->granted;
    m->stuck = false;
    m->asked_at = simba_now();
    *m->asking_last = q;
    m->asking_last = &q->next;
    zk_place_drive(m);
}

static void answer_renewal(struct member *m, struct simba_request *q, int64_t now)
{
    m->asked_at = now;
    m->lease_ms = q->ttl_ms + q->transition_ms;
    zk_store_answer(m->session->store, q,
                    &(struct simba_answer){.id = m->id,
                                           .token = (uint64_t)m->latch.czxid,
                                           .left_ms = zk_session_left(m->session, now),
                                           .age_ms = -1});
}

static void renew(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find(z, q->mutex, q->id);
    int64_t now = simba_now();
    if (m == NULL || m->over || !m->granted || (uint64_t)m->latch.czxid != q->token)
        zk_store_answer(z, q, &(struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1});
    else if (zk_session_is_fresh(m->session, now))
        answer_renewal(m, q, now);
    else if (m->session->connected)
        zk_queue_stall(m->session, q);
    else
        zk_store_refuse(z, q, SIMBA_ESTORE, m->session->why);
}

/* A contender of the same id is told that the place is gone; else nobody would tell it. */
static void end(struct member *m, struct simba_request *q)
{
    struct session *s = m->session;
    struct zookeeper *z = s->store;
    bool waits = s->connected;
    if (m->shared && m->in_table)
        zk_place_hint(m);
    zk_place_refuse_list(z, zk_place_take_asking(m), SIMBA_ESTORE, "its contender has left");
    if (waits) {
        q->next = m->ending;
        m->ending = q;
    }
    m->stuck = false;
    zk_place_discard(m);
    if (!waits)
        zk_store_refuse(z, q, SIMBA_ESTORE, s->why);
}

static void release(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find_token(z, q);
    if (m == NULL || m->latch.state == LATCH_GONE)
        zk_store_answer(z, q, &(struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1});
    else
        end(m, q);
}

static void leave(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find(z, q->mutex, q->id);
    struct session *s = zk_session_any(z);
    if (m != NULL && !m->granted)
        end(m, q);
    else if (s != NULL && s->connected)
        zk_look_submit(s, q);
    else
        zk_store_refuse(z, q, SIMBA_ESTORE, s != NULL ? s->why : "out of memory");
}

void zk_member_submit(struct zookeeper *z, struct simba_request *q)
{
    switch (q->op) {
    case SIMBA_CONTEND:
        contend(z, q);
        break;
    case SIMBA_RENEW:
        renew(z, q);
        break;
    case SIMBA_RELEASE:
        release(z, q);
        break;
    default:
        leave(z, q);
        break;
    }
}

/* ---- the session's fate ----------------------------------------------------------------------- */

/* For each member; what is done to one may free it, but no other. */
#define EACH(m, s)                                                                         \
    for (struct member *m = (s)->members, *m##_next; m != NULL && (m##_next = m->next, 1); \
         m = m##_next)

void zk_member_connected(struct session *s)
{
    EACH(m, s)
    {
        m->stuck = false;
        zk_place_drive(m);
    }
    if (s->unguarded != NULL)
        zk_session_guard_soon(s);
}

void zk_member_disconnected(struct session *s)
{
    if (!s->store->config.disconnect_releases)
        return;
    EACH(m, s)
    {
        if (m->granted && !m->over) {
            m->over = true;
            zk_place_hint(m);
        }
    }
}

static void refuse_stalled(struct session *s, int code, const char *why)
{
    struct simba_request *list = s->stalled;
    s->stalled = NULL;
    s->stalled_last = &s->stalled;
    zk_place_refuse_list(s->store, list, code, why);
}

void zk_member_unreachable(struct session *s)
{
    refuse_stalled(s, s->code, s->why);
    EACH(m, s)
    {
        zk_place_refuse_list(s->store, m->ending, s->code, s->why);
        m->ending = NULL;
        zk_place_refuse_list(s->store, zk_place_take_asking(m), s->code, s->why);
    }
}

void zk_member_expired(struct session *s)
{
    refuse_stalled(s, s->code, s->why);
    EACH(m, s)
    {
        zk_place_refuse_list(s->store, zk_place_take_asking(m), s->code, s->why);
        zk_place_vanished(m);
    }
}

/* The next round of those who waited for a write. */
void zk_member_written(struct session *s, int rc)
{
    struct simba_request *list = s->stalled;
    const char *why;
    int code = rc != ZOK ? zk_store_code(rc, &why) : 0;
    s->stalled = NULL;
    s->stalled_last = &s->stalled;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        if (code != 0)
            zk_store_refuse(s->store, list, code, why);
        else
            zk_member_submit(s->store, list);
    }
}

/* Contenders that have not been heard of: their tenures are over, their places are given up. */
void zk_member_scan(struct session *s, int64_t now)
{
    int64_t silence = SILENCE_PARTS * zk_session_timeout_ms(s) + SILENCE_MS;
    EACH(m, s)
    {
        m->stuck = false;
        if (!m->in_table) {
            zk_place_drive(m);
            continue;
        }
        if (m->asking == NULL && now - m->asked_at > (m->granted ? m->lease_ms : silence)) {
            m->over = true;
            zk_place_discard(m);
        }
    }
}

/* ---- news of nodes ---------------------------------------------------------------------------- */

static void on_own(int rc, const char *value, int length, const struct Stat *stat, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    (void)value;
    (void)length;
    (void)stat;
    m->flights--;
    if (rc == ZNONODE && m->latch.state == LATCH_IN) {
        zk_place_vanished(m);
        return;
    }
    if (rc != ZOK && m->in_table && !m->over)
        zk_queue_guard_later(m);
    zk_place_drive(m);
}

static void on_mark(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    int64_t czxid;
    (void)stat;
    m->flights--;
    if (rc == ZOK && zk_look_parse_mark(value, length, &czxid) && czxid == m->latch.czxid &&
        m->in_table && !m->over) {
        m->over = true;
        zk_place_hint(m);
    } else if (rc != ZOK && m->in_table && !m->over) {
        zk_queue_guard_later(m);
    }
    zk_place_drive(m);
}

static void watch_mark(struct member *m)
{
    m->flights++;
    if (zoo_awget(m->session->handle, m->path, zk_session_on_node, m->session, on_mark, m) != ZOK)
        m->flights--;
}

/* An owner hears of the end of its node, and of a mark on the mutex's. */
void zk_member_guard(struct session *s)
{
    struct member *list = s->unguarded;
    s->unguarded = NULL;
    for (struct member *next; list != NULL; list = next) {
        next = list->unguarded_next;
        list->unguarded = false;
        if (!list->in_table || list->over || list->latch.state != LATCH_IN)
            continue;
        zk_queue_get(list, list->latch.name, true, on_own);
        watch_mark(list);
    }
}

void zk_member_event(struct session *s, int type, const char *path, const char *mutex,
                     const char *node)
{
    (void)path;
    struct table_node *next;
    for (struct table_node *n = table_find(&s->store->members, mutex); n != NULL; n = next) {
        struct member *m = (struct member *)(void *)n;
        next = table_find_next(n);
        if (m->session != s)
            continue;
        if (node[0] == '\0') {
            if (m->granted && !m->over && type == ZOO_CHANGED_EVENT && s->connected)
                watch_mark(m);
        } else if (strcmp(node, m->latch.name) == 0) {
            if (type == ZOO_DELETED_EVENT && m->latch.state == LATCH_IN)
                zk_place_vanished(m);
            else if (type == ZOO_CHANGED_EVENT && s->connected)
                zk_queue_get(m, node, true, on_own);
        } else if (strcmp(node, m->watched) == 0) {
            m->watched[0] = '\0';
            m->again = true;
            zk_place_hint(m);
        }
    }
}

/* ---- the end ---------------------------------------------------------------------------------- */

/* The handle is closed: no completion comes any more. */
void zk_member_close(struct session *s)
{
    const char *why = "the client is being closed";
    refuse_stalled(s, SIMBA_ECANCELED, why);
    EACH(m, s)
    {
        zk_place_refuse_list(s->store, zk_place_take_asking(m), SIMBA_ECANCELED, why);
        zk_place_refuse_list(s->store, m->ending, SIMBA_ECANCELED, why);
        m->ending = NULL;
        zk_place_free(m);
    }
}
