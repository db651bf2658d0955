/* member.c: our nodes in the queues, one per mutex and contender: CONTEND, RENEW, RELEASE, LEAVE.
 *
 * What to send next is the latch's decision (latch.c); here it is sent, and what comes back is told to
 * the latch and answered to the contender. A tenure is a node: granted once, to one request, when a
 * list of the children shows it as the lowest. That list may be old, but our node is in it, and
 * whatever joined before ours and is still there is in it, too; so nobody can be in front of us later.
 *
 * - CONTEND joins if need be, and looks. If another leads it leaves a watch on the member right in
 *   front, whose end is hinted to this contender alone.
 * - RENEW asks the server nothing: our session stands, and nobody has told us that the node is gone.
 * - A tenure that its contender has not renewed for a whole lease is over, as in every store, even if
 *   the session lives on: the node is deleted.
 * - What is not wanted any more, but could not be deleted for want of a connection, is deleted when
 *   there is one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backend/zookeeper/zookeeper.h"

#define MAKES_MAX 5      /* of the mutex's node, which others remove when it is empty */
#define SILENCE_PARTS 3  /* a contender that waits comes again after one session timeout */
#define SILENCE_MS 10000 /* on top of that */

struct member {
    struct table_node node;        /* by mutex; while in_table */
    struct member *next, **before; /* of the session's */
    struct member *unguarded_next;
    struct session *session;
    struct latch latch;
    unsigned flights; /* completions that will come */
    bool in_table;    /* its contender's; else it only has to be deleted */
    bool making, looking, again;
    bool stuck;         /* something failed: not again before there is a reason */
    bool granted, over; /* over: the tenure has ended, but for the node */
    bool shared;        /* two contenders of one id */
    bool unguarded;     /* no watch on its node yet */
    int makes;
    int deleted; /* how the node's deletion ended */
    int64_t created_at, lease_ms;
    int64_t asked_at;                            /* the last sign of its contender */
    struct simba_request *asking, **asking_last; /* CONTEND */
    struct simba_request *ending;                /* RELEASE, LEAVE */
    char watched[LATCH_NAME_SIZE];               /* the member in front that has a watch */
    char leader[LATCH_NAME_SIZE], leader_id[SIMBA_ID_MAX + 1];
    uint64_t leader_token;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
    char path[PATH_SIZE]; /* of the mutex */
};

static void drive(struct member *m);
static void look(struct member *m);

/* ---- making and freeing ----------------------------------------------------------------------- */

static struct member *make(struct session *s, const struct simba_request *q)
{
    unsigned char random[16];
    char uuid[LATCH_UUID_SIZE];
    struct member *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        free(m);
        return NULL;
    }
    latch_uuid(uuid, random);
    latch_init(&m->latch, uuid);
    m->session = s;
    m->asking_last = &m->asking;
    snprintf(m->mutex, sizeof m->mutex, "%s", q->mutex);
    snprintf(m->id, sizeof m->id, "%s", q->id);
    store_mutex_path(s->store, m->mutex, m->path);
    m->node.name = m->mutex;
    m->in_table = true;
    table_add(&s->store->members, &m->node);
    m->next = s->members;
    m->before = &s->members;
    if (m->next != NULL)
        m->next->before = &m->next;
    s->members = m;
    s->members_count++;
    session_keep(s);
    return m;
}

static void leave_table(struct member *m)
{
    if (m->in_table)
        table_remove(&m->session->store->members, &m->node);
    m->in_table = false;
}

static void unlink_unguarded(struct member *m)
{
    struct member **at = &m->session->unguarded;
    while (m->unguarded && *at != NULL) {
        if (*at == m) {
            *at = m->unguarded_next;
            m->unguarded = false;
        } else {
            at = &(*at)->unguarded_next;
        }
    }
}

static void free_member(struct member *m)
{
    assert(m->asking == NULL && m->ending == NULL);
    leave_table(m);
    unlink_unguarded(m);
    *m->before = m->next;
    if (m->next != NULL)
        m->next->before = m->before;
    m->session->members_count--;
    free(m);
}

static struct simba_request *take_asking(struct member *m)
{
    struct simba_request *list = m->asking;
    m->asking = NULL;
    m->asking_last = &m->asking;
    return list;
}

static void refuse_list(struct zookeeper *z, struct simba_request *list, int code, const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        store_refuse(z, list, code, why);
    }
}

static void refuse_asking(struct member *m, int rc)
{
    const char *why;
    int code = store_code(rc, &why);
    refuse_list(m->session->store, take_asking(m), code, why);
}

static void node_path(const struct member *m, const char *node, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%.480s/%s", m->path, node);
}

static void hint(struct member *m)
{
    struct simba_host *host = m->session->store->host;
    host->hint_one(host, m->mutex, m->id);
}

/* Its contender has nothing to do with it any more. May free it. */
static void discard(struct member *m)
{
    leave_table(m);
    latch_unwanted(&m->latch);
    drive(m);
}

/* The node is gone, by whatever hand. May free it. */
static void vanished(struct member *m)
{
    bool tell = m->in_table && !m->over;
    latch_vanished(&m->latch);
    m->over = true;
    m->deleted = ZNONODE;
    leave_table(m);
    if (tell)
        hint(m);
    drive(m);
}

/* ---- the mutex's node ------------------------------------------------------------------------- */

static void on_part_made(int rc, const char *name, const void *data)
{
    (void)rc; /* what matters is the last one */
    (void)name;
    (void)data;
}

static void on_made(int rc, const char *name, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    (void)name;
    m->flights--;
    m->making = false;
    if (rc == ZUNIMPLEMENTED)
        m->session->store->no_containers = true;
    else if (rc != ZOK && rc != ZNODEEXISTS)
        refuse_asking(m, rc);
    drive(m);
}

/* The parts of the path one after the other; those that are there stay as they are. */
static void make_path(struct member *m)
{
    struct zookeeper *z = m->session->store;
    size_t chroot = strlen(z->config.chroot);
    char path[PATH_SIZE];
    if (++m->makes > MAKES_MAX) {
        m->makes = 0;
        refuse_asking(m, ZNONODE);
        return;
    }
    snprintf(path, sizeof path, "%s", m->path);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool ours = (size_t)(slash - path) > chroot;
        zoo_acreate(m->session->handle, path, "", 0, ours ? z->acl : &ZOO_OPEN_ACL_UNSAFE,
                    ours && !z->no_containers ? ZOO_CONTAINER : ZOO_PERSISTENT, on_part_made, NULL);
        *slash = '/';
    }
    m->making = true;
    m->flights++;
    int rc = zoo_acreate(m->session->handle, path, "", 0, z->acl,
                         z->no_containers ? ZOO_PERSISTENT : ZOO_CONTAINER, on_made, m);
    if (rc != ZOK)
        on_made(rc, NULL, m);
}

/* ---- joining and leaving ---------------------------------------------------------------------- */

static void on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    const char *name = rc == ZOK ? strrchr(path, '/') : NULL;
    m->flights--;
    latch_created(&m->latch, store_reply(rc), name != NULL ? name + 1 : "",
                  rc == ZOK ? stat->czxid : 0, rc == ZOK ? stat->ephemeralOwner : 0,
                  m->session->id);
    if (rc == ZOK && m->session->connected)
        session_wrote(m->session, m->created_at);
    if (rc == ZNONODE && m->session->connected && m->latch.wanted)
        make_path(m);
    else if (rc != ZOK)
        refuse_asking(m, rc);
    drive(m);
}

static void create(struct member *m)
{
    char prefix[LATCH_NAME_SIZE], path[PATH_SIZE];
    latch_sent(&m->latch);
    latch_prefix(prefix, sizeof prefix, m->latch.uuid);
    node_path(m, prefix, path);
    m->created_at = simba_now();
    m->flights++;
    int rc = zoo_acreate2(m->session->handle, path, m->id, (int)strlen(m->id),
                          m->session->store->acl, ZOO_EPHEMERAL_SEQUENTIAL, on_created, m);
    if (rc != ZOK) {
        m->flights--;
        latch_created(&m->latch, LATCH_REFUSED, "", 0, 0, 0);
        refuse_asking(m, rc);
        return;
    }
    look(m); /* right behind it: the server keeps their order */
}

static void refuse_ending(struct member *m, int rc)
{
    const char *why;
    int code = store_code(rc, &why);
    struct simba_request *list = m->ending;
    m->ending = NULL;
    refuse_list(m->session->store, list, code, why);
}

/* What cannot be done now is not tried again and again. */
static void note_failure(struct member *m, int rc)
{
    if (rc == ZOK || rc == ZNONODE)
        return;
    m->stuck = true;
    refuse_asking(m, rc);
    refuse_ending(m, rc);
}

static void on_deleted(int rc, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->deleted = rc;
    latch_deleted(&m->latch, store_reply(rc));
    note_failure(m, rc);
    drive(m);
}

static void on_found(int rc, const struct String_vector *names, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    struct latch_view v =
        latch_look(&m->latch, rc == ZOK ? names->data : NULL, rc == ZOK ? names->count : 0);
    m->flights--;
    latch_found(&m->latch, store_reply(rc), v.own >= 0 ? names->data[v.own] : NULL);
    note_failure(m, rc);
    drive(m);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    latch_stat(&m->latch, store_reply(rc), rc == ZOK ? stat->czxid : 0,
               rc == ZOK ? stat->ephemeralOwner : 0, m->session->id);
    note_failure(m, rc);
    drive(m);
}

/* One that cannot even be queued fails as if the connection had been lost. */
static void send_act(struct member *m, enum latch_act act)
{
    zhandle_t *handle = m->session->handle;
    char path[PATH_SIZE];
    int rc;
    latch_sent(&m->latch);
    node_path(m, m->latch.name, path);
    m->flights++;
    if (act == LATCH_DELETE) {
        rc = zoo_adelete(handle, path, -1, on_deleted, m);
        if (rc != ZOK)
            on_deleted(rc, m);
    } else if (act == LATCH_STAT) {
        rc = zoo_aexists(handle, path, 0, on_stat, m);
        if (rc != ZOK)
            on_stat(rc, NULL, m);
    } else {
        zoo_async(handle, m->path, on_part_made, NULL); /* another server may lag behind */
        rc = zoo_aget_children(handle, m->path, 0, on_found, m);
        if (rc != ZOK)
            on_found(rc, NULL, m);
    }
}

/* ---- answers ---------------------------------------------------------------------------------- */

/* Nobody waits in this place any longer. LEAVE also wants to know who owns the mutex now. */
static void answer_ending(struct member *m)
{
    struct session *s = m->session;
    struct simba_request *list = m->ending;
    m->ending = NULL;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        if (list->op == SIMBA_RELEASE)
            store_answer(
                s->store, list,
                &(struct simba_answer){.code = m->deleted == ZOK ? 0 : SIMBA_ELOST, .age_ms = -1});
        else if (s->connected)
            look_submit(s, list);
        else
            store_refuse(s->store, list, SIMBA_ESTORE, s->why);
    }
}

static void answer_other(struct member *m)
{
    struct zookeeper *z = m->session->store;
    struct simba_answer a = {.id = m->leader_id,
                             .token = m->leader_token,
                             .left_ms = session_timeout_ms(m->session),
                             .age_ms = -1};
    struct simba_request *list = take_asking(m);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        store_answer(z, list, &a);
    }
}

static void guard_later(struct member *m)
{
    struct session *s = m->session;
    if (m->unguarded)
        return;
    m->unguarded = true;
    m->unguarded_next = s->unguarded;
    s->unguarded = m;
    session_guard_soon(s);
}

static void stall(struct session *s, struct simba_request *list)
{
    *s->stalled_last = list;
    while (*s->stalled_last != NULL)
        s->stalled_last = &(*s->stalled_last)->next;
    session_write_now(s);
}

/* Ours is the lowest. To one request it is granted; who asks later is only told whose it is, and knows
 * by its id whether it asked before. */
static void answer_own(struct member *m)
{
    struct session *s = m->session;
    int64_t now = simba_now();
    if (!session_is_fresh(s, now)) {
        stall(s, take_asking(m));
        return;
    }
    struct simba_request *list = take_asking(m);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        struct simba_answer a = {.granted = !m->granted,
                                 .id = m->id,
                                 .token = (uint64_t)m->latch.czxid,
                                 .left_ms = session_left(s, now),
                                 .age_ms = -1};
        if (!m->granted) {
            m->granted = true;
            m->lease_ms = list->ttl_ms + list->transition_ms;
            guard_later(m);
        }
        store_answer(s->store, list, &a);
    }
}

/* ---- looking at the queue --------------------------------------------------------------------- */

static void on_orphan_deleted(int rc, const void *data)
{
    (void)rc; /* if it is still there, the next look finds it */
    (void)data;
}

static void on_leader(int rc, const char *value, int length, const struct Stat *stat,
                      const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->looking = false;
    if (rc == ZOK) {
        snprintf(m->leader_id, sizeof m->leader_id, "%.*s", length > 0 ? length : 0,
                 value != NULL ? value : "");
        if (m->leader_id[0] == '\0')
            snprintf(m->leader_id, sizeof m->leader_id, "?");
        m->leader_token = (uint64_t)stat->czxid;
        if (!m->again)
            answer_other(m);
    } else {
        m->leader[0] = '\0';
        m->watched[0] = '\0';
        if (rc != ZNONODE)
            refuse_asking(m, rc);
    }
    drive(m); /* if it was gone, or the one in front: look again */
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
    drive(m);
}

static bool get(struct member *m, const char *node, bool watch, data_completion_t completion)
{
    char path[PATH_SIZE];
    node_path(m, node, path);
    m->flights++;
    if (zoo_awget(m->session->handle, path, watch ? session_on_node : NULL, m->session, completion,
                  m) == ZOK)
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
    if (!watched && !one && !get(m, ahead, true, on_ahead))
        m->watched[0] = '\0';
    if (known && watched) {
        m->looking = false;
        answer_other(m);
    } else if (!get(m, leader, one && !watched, on_leader)) {
        m->looking = false;
        m->leader[0] = '\0';
        m->watched[0] = '\0';
        refuse_asking(m, ZCONNECTIONLOSS);
    }
}

static void on_list(int rc, const struct String_vector *names, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->looking = false;
    if (m->latch.state != LATCH_IN || (rc != ZOK && rc != ZNONODE)) {
        if (rc != ZOK && rc != ZNONODE)
            refuse_asking(m, rc);
        drive(m);
        return;
    }
    struct latch_view v =
        latch_look(&m->latch, rc == ZOK ? names->data : NULL, rc == ZOK ? names->count : 0);
    if (v.orphan >= 0) {
        char path[PATH_SIZE];
        node_path(m, names->data[v.orphan], path);
        zoo_adelete(m->session->handle, path, -1, on_orphan_deleted, NULL);
        m->again = true;
    }
    if (v.own < 0) {
        refuse_asking(m, ZNONODE);
        vanished(m);
        return;
    }
    if (v.ahead >= 0) {
        m->looking = true;
        wait_behind(m, names->data[v.ahead], names->data[v.leader]);
    } else if (m->latch.wanted && !m->over) {
        answer_own(m);
    }
    drive(m);
}

static void look(struct member *m)
{
    if (m->looking)
        return;
    m->looking = true;
    m->again = false;
    m->flights++;
    int rc = zoo_aget_children(m->session->handle, m->path, 0, on_list, m);
    if (rc != ZOK)
        on_list(rc, NULL, m);
}

/* Sends what is to be sent; frees the member when nothing is left of it. */
static void drive(struct member *m)
{
    enum latch_act act = latch_next(&m->latch);
    if (act == LATCH_END) {
        refuse_asking(m, ZNONODE);
        answer_ending(m);
        if (m->flights == 0 && !m->in_table)
            free_member(m);
        return;
    }
    if (!m->session->connected || m->making || m->stuck)
        return;
    switch (act) {
    case LATCH_CREATE:
        if (m->asking != NULL)
            create(m);
        break;
    case LATCH_REST:
        if (m->asking != NULL && m->latch.state == LATCH_IN && !m->looking)
            look(m);
        break;
    default:
        send_act(m, act);
        break;
    }
}

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

static void contend(struct zookeeper *z, struct simba_request *q)
{
    int64_t lease_ms = q->ttl_ms + q->transition_ms;
    struct member *m = find(z, q->mutex, q->id);
    struct session *s = m != NULL ? m->session : session_for(z, lease_ms);
    if (s != NULL && !s->connected && !session_is_hopeful(s)) {
        store_refuse(z, q, s->code, s->why);
        return;
    }
    if (m != NULL && (m->over || !m->latch.wanted)) {
        discard(m); /* a tenure that has ended is not taken up again */
        m = NULL;
    }
    if (m == NULL && s != NULL)
        m = make(s, q);
    if (m == NULL) {
        store_refuse(z, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    m->shared = m->shared || m->asking != NULL || m->granted;
    m->stuck = false;
    m->asked_at = simba_now();
    *m->asking_last = q;
    m->asking_last = &q->next;
    drive(m);
}

static void answer_renewal(struct member *m, struct simba_request *q, int64_t now)
{
    m->asked_at = now;
    m->lease_ms = q->ttl_ms + q->transition_ms;
    store_answer(m->session->store, q,
                 &(struct simba_answer){.id = m->id,
                                        .token = (uint64_t)m->latch.czxid,
                                        .left_ms = session_left(m->session, now),
                                        .age_ms = -1});
}

static void renew(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find(z, q->mutex, q->id);
    int64_t now = simba_now();
    if (m == NULL || m->over || !m->granted || (uint64_t)m->latch.czxid != q->token)
        store_answer(z, q, &(struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1});
    else if (session_is_fresh(m->session, now))
        answer_renewal(m, q, now);
    else if (m->session->connected)
        stall(m->session, q);
    else
        store_refuse(z, q, SIMBA_ESTORE, m->session->why);
}

/* A contender of the same id is told that the place is gone; else nobody would tell it. */
static void end(struct member *m, struct simba_request *q)
{
    struct session *s = m->session;
    struct zookeeper *z = s->store;
    bool waits = s->connected;
    if (m->shared && m->in_table)
        hint(m);
    refuse_list(z, take_asking(m), SIMBA_ESTORE, "its contender has left");
    if (waits) {
        q->next = m->ending;
        m->ending = q;
    }
    m->stuck = false;
    discard(m);
    if (!waits)
        store_refuse(z, q, SIMBA_ESTORE, s->why);
}

static void release(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find_token(z, q);
    if (m == NULL || m->latch.state == LATCH_GONE)
        store_answer(z, q, &(struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1});
    else
        end(m, q);
}

static void leave(struct zookeeper *z, struct simba_request *q)
{
    struct member *m = find(z, q->mutex, q->id);
    struct session *s = session_any(z);
    if (m != NULL && !m->granted)
        end(m, q);
    else if (s != NULL && s->connected)
        look_submit(s, q);
    else
        store_refuse(z, q, SIMBA_ESTORE, s != NULL ? s->why : "out of memory");
}

void member_submit(struct zookeeper *z, struct simba_request *q)
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

void member_connected(struct session *s)
{
    EACH(m, s)
    {
        m->stuck = false;
        drive(m);
    }
    if (s->unguarded != NULL)
        session_guard_soon(s);
}

void member_disconnected(struct session *s)
{
    if (!s->store->config.disconnect_releases)
        return;
    EACH(m, s)
    {
        if (m->granted && !m->over) {
            m->over = true;
            hint(m);
        }
    }
}

static void refuse_stalled(struct session *s, int code, const char *why)
{
    struct simba_request *list = s->stalled;
    s->stalled = NULL;
    s->stalled_last = &s->stalled;
    refuse_list(s->store, list, code, why);
}

void member_unreachable(struct session *s)
{
    refuse_stalled(s, s->code, s->why);
    EACH(m, s)
    {
        refuse_list(s->store, m->ending, s->code, s->why);
        m->ending = NULL;
        refuse_list(s->store, take_asking(m), s->code, s->why);
    }
}

void member_expired(struct session *s)
{
    refuse_stalled(s, s->code, s->why);
    EACH(m, s)
    {
        refuse_list(s->store, take_asking(m), s->code, s->why);
        vanished(m);
    }
}

/* The next round of those who waited for a write. */
void member_written(struct session *s, int rc)
{
    struct simba_request *list = s->stalled;
    const char *why;
    int code = rc != ZOK ? store_code(rc, &why) : 0;
    s->stalled = NULL;
    s->stalled_last = &s->stalled;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        if (code != 0)
            store_refuse(s->store, list, code, why);
        else
            member_submit(s->store, list);
    }
}

/* Contenders that have not been heard of: their tenures are over, their places are given up. */
void member_scan(struct session *s, int64_t now)
{
    int64_t silence = SILENCE_PARTS * session_timeout_ms(s) + SILENCE_MS;
    EACH(m, s)
    {
        m->stuck = false;
        if (!m->in_table) {
            drive(m);
            continue;
        }
        if (m->asking == NULL && now - m->asked_at > (m->granted ? m->lease_ms : silence)) {
            m->over = true;
            discard(m);
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
        vanished(m);
        return;
    }
    if (rc != ZOK && m->in_table && !m->over)
        guard_later(m);
    drive(m);
}

static void on_mark(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    int64_t czxid;
    (void)stat;
    m->flights--;
    if (rc == ZOK && look_parse_mark(value, length, &czxid) && czxid == m->latch.czxid &&
        m->in_table && !m->over) {
        m->over = true;
        hint(m);
    } else if (rc != ZOK && m->in_table && !m->over) {
        guard_later(m);
    }
    drive(m);
}

static void watch_mark(struct member *m)
{
    m->flights++;
    if (zoo_awget(m->session->handle, m->path, session_on_node, m->session, on_mark, m) != ZOK)
        m->flights--;
}

/* An owner hears of the end of its node, and of a mark on the mutex's. */
void member_guard(struct session *s)
{
    struct member *list = s->unguarded;
    s->unguarded = NULL;
    for (struct member *next; list != NULL; list = next) {
        next = list->unguarded_next;
        list->unguarded = false;
        if (!list->in_table || list->over || list->latch.state != LATCH_IN)
            continue;
        get(list, list->latch.name, true, on_own);
        watch_mark(list);
    }
}

void member_event(struct session *s, int type, const char *path, const char *mutex,
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
                vanished(m);
            else if (type == ZOO_CHANGED_EVENT && s->connected)
                get(m, node, true, on_own);
        } else if (strcmp(node, m->watched) == 0) {
            m->watched[0] = '\0';
            m->again = true;
            hint(m);
        }
    }
}

/* ---- the end ---------------------------------------------------------------------------------- */

/* The handle is closed: no completion comes any more. */
void member_close(struct session *s)
{
    const char *why = "the client is being closed";
    refuse_stalled(s, SIMBA_ECANCELED, why);
    EACH(m, s)
    {
        refuse_list(s->store, take_asking(m), SIMBA_ECANCELED, why);
        refuse_list(s->store, m->ending, SIMBA_ECANCELED, why);
        m->ending = NULL;
        free_member(m);
    }
}
