/* queue.c: a member's look at the others, and what its contender is told.
 *
 * A tenure is a node: granted once, to one request, when a list of the children shows it as the lowest.
 * That list may be old, but our node is in it, and whatever joined before ours and is still there is in
 * it, too; so nobody can be in front of us later. If another leads, a watch is left on the member right
 * in front, whose end is hinted to this contender alone. */
#include <stdio.h>
#include <string.h>

#include "backend/zookeeper/member.h"

static const struct String_vector nobody; /* the list that comes with an error */

/* ---- answers ---------------------------------------------------------------------------------- */

/* Nobody waits in this place any longer. LEAVE also wants to know who owns the mutex now. */
void zk_queue_answer_ending(struct member *m)
{
    struct session *s = m->session;
    struct simba_request *list = m->ending;
    m->ending = NULL;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        if (list->op == SIMBA_RELEASE)
            zk_store_answer(
                s->store, list,
                &(struct simba_answer){.code = m->deleted == ZOK ? 0 : SIMBA_ELOST, .age_ms = -1});
        else if (s->connected)
            zk_look_submit(s, list);
        else
            zk_store_refuse(s->store, list, SIMBA_ESTORE, s->why);
    }
}

/* A node in front of ours that bears our own id is one that its contender has given up, and that we
 * have yet to delete. It must not be taken for a tenure of ours whose grant got lost. */
static void answer_other(struct member *m)
{
    struct zookeeper *z = m->session->store;
    bool left_over = strcmp(m->leader_id, m->id) == 0;
    struct simba_answer a = {.id = left_over ? NULL : m->leader_id,
                             .token = left_over ? 0 : m->leader_token,
                             .left_ms = zk_session_timeout_ms(m->session),
                             .age_ms = -1};
    struct simba_request *list = zk_place_take_asking(m);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        zk_store_answer(z, list, &a);
    }
}

void zk_queue_guard_later(struct member *m)
{
    struct session *s = m->session;
    if (m->unguarded)
        return;
    m->unguarded = true;
    m->unguarded_next = s->unguarded;
    s->unguarded = m;
    zk_session_guard_soon(s);
}

void zk_queue_stall(struct session *s, struct simba_request *list)
{
    *s->stalled_last = list;
    while (*s->stalled_last != NULL)
        s->stalled_last = &(*s->stalled_last)->next;
    zk_session_write_now(s);
}

/* Ours is the lowest. To one request it is granted; who asks later is only told whose it is, and knows
 * by its id whether it asked before. */
static void answer_own(struct member *m)
{
    struct session *s = m->session;
    int64_t now = simba_now();
    if (!zk_session_is_fresh(s, now)) {
        zk_queue_stall(s, zk_place_take_asking(m));
        return;
    }
    struct simba_request *list = zk_place_take_asking(m);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        struct simba_answer a = {.granted = !m->granted,
                                 .id = m->id,
                                 .token = (uint64_t)m->latch.czxid,
                                 .left_ms = zk_session_left(s, now),
                                 .age_ms = -1};
        if (!m->granted) {
            m->granted = true;
            m->lease_ms = list->ttl_ms + list->transition_ms;
            zk_queue_guard_later(m);
        }
        zk_store_answer(s->store, list, &a);
    }
}

/* ---- looking at the queue --------------------------------------------------------------------- */

static void on_orphan_deleted(int rc, const void *data)
{
    (void)rc; /* if it is still there, we find it again when we look next */
    (void)data;
}

static void on_leader(int rc, const char *value, int length, const struct Stat *stat,
                      const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->looking = false;
    if (rc == ZOK) {
        zk_path_show_id(m->leader_id, value, length);
        m->leader_token = (uint64_t)stat->czxid;
        if (!m->again)
            answer_other(m);
    } else {
        m->leader[0] = '\0';
        m->watched[0] = '\0';
        if (rc != ZNONODE)
            zk_place_refuse_asking(m, rc);
    }
    zk_place_drive(m); /* if it was gone, or the one in front: look again */
}

static void on_ahead(int rc, const char *value, int length, const struct Stat *stat,
                     const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    (void)value;
    (void)length;
    (void)stat;
    m->flights--;
    if (rc != ZOK) {
        m->watched[0] = '\0';
        m->again = true;
    }
    zk_place_drive(m);
}

bool zk_queue_get(struct member *m, const char *node, bool watch, data_completion_t completion)
{
    char path[PATH_SIZE];
    zk_place_node_path(m, node, path);
    m->flights++;
    if (zoo_awget(m->session->handle, path, watch ? zk_session_on_node : NULL, m->session,
                  completion, m) == ZOK)
        return true;
    m->flights--;
    return false;
}

/* Somebody is in front: watch the last of them, and learn who leads. */
static void wait_behind(struct member *m, const char *ahead, const char *leader)
{
    bool one = strcmp(ahead, leader) == 0;
    bool known = strcmp(m->leader, leader) == 0;
    bool watched = strcmp(m->watched, ahead) == 0;
    snprintf(m->watched, sizeof m->watched, "%s", ahead);
    snprintf(m->leader, sizeof m->leader, "%s", leader);
    m->again = false;
    if (!watched && !one && !zk_queue_get(m, ahead, true, on_ahead))
        m->watched[0] = '\0';
    if (known && watched) {
        m->looking = false;
        answer_other(m);
    } else if (!zk_queue_get(m, leader, one && !watched, on_leader)) {
        m->looking = false;
        m->leader[0] = '\0';
        m->watched[0] = '\0';
        zk_place_refuse_asking(m, ZCONNECTIONLOSS);
    }
}

/* A node that we made and that no member is for: its deletion was acknowledged and is not true, which
 * happened to an ensemble under a storm of partitions (T104), or it outlived its session. It would stay
 * for as long as its session lives. Nobody relies on it: its name is ours alone, and owners whose node
 * vanished, perhaps only for the server that we asked, have ended by relied_until. */
static void remove_forgotten(struct member *m, char *const *names, int count)
{
    struct zookeeper *z = m->session->store;
    char path[PATH_SIZE];
    int kin = 0;
    for (int i = 0; i < count; i++)
        kin += zk_latch_is_kin(&m->latch, names[i]);
    if (kin <= zk_member_count(z, m->mutex) || simba_now() < z->relied_until)
        return;
    for (int i = 0; i < count; i++) {
        if (!zk_latch_is_kin(&m->latch, names[i]) || zk_member_knows(z, m->mutex, names[i]))
            continue;
        z->host->log(z->host, SIMBA_LOG_WARN,
                     "a node of ours that was deleted is still there: deleting it again");
        zk_place_node_path(m, names[i], path);
        zoo_adelete(m->session->handle, path, -1, on_orphan_deleted, NULL);
    }
}

static void on_list(int rc, const struct String_vector *names, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->looking = false;
    if (m->latch.state != LATCH_IN || (rc != ZOK && rc != ZNONODE)) {
        if (rc != ZOK && rc != ZNONODE)
            zk_place_refuse_asking(m, rc);
        zk_place_drive(m);
        return;
    }
    struct latch_view v =
        zk_latch_look(&m->latch, rc == ZOK ? names->data : NULL, rc == ZOK ? names->count : 0);
    if (rc == ZOK)
        remove_forgotten(m, names->data, names->count);
    if (v.orphan >= 0) {
        char path[PATH_SIZE];
        zk_place_node_path(m, names->data[v.orphan], path);
        zoo_adelete(m->session->handle, path, -1, on_orphan_deleted, NULL);
        m->again = true;
    }
    if (v.own < 0) {
        zk_place_refuse_asking(m, ZNONODE);
        zk_place_vanished(m);
        return;
    }
    if (v.ahead >= 0) {
        m->looking = true;
        wait_behind(m, names->data[v.ahead], names->data[v.leader]);
    } else if (m->latch.wanted && !m->over) {
        answer_own(m);
    }
    zk_place_drive(m);
}

void zk_queue_look(struct member *m)
{
    if (m->looking)
        return;
    m->looking = true;
    m->again = false;
    m->flights++;
    int rc = zoo_aget_children(m->session->handle, m->path, 0, on_list, m);
    if (rc != ZOK)
        on_list(rc, &nobody, m);
}
