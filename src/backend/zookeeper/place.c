/* place.c: a member's node: making it, finding it again, deleting it. What to send next is the latch's
 * decision (latch.c); here it is sent, and the latch is told what comes back.
 *
 * What is not wanted any more, but could not be deleted for want of a connection, is deleted when there
 * is one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/zookeeper/member.h"

#define MAKES_MAX 5 /* of the mutex's node, which others remove when it is empty */

static const struct String_vector nobody; /* what comes with an error */
static const struct Stat nothing;

/* ---- making and freeing ----------------------------------------------------------------------- */

struct member *zk_place_make(struct session *s, const struct simba_request *q)
{
    char uuid[LATCH_UUID_SIZE];
    struct member *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    zk_latch_uuid(uuid, s->store->client, s->store->nodes++);
    zk_latch_init(&m->latch, uuid);
    m->session = s;
    m->asking_last = &m->asking;
    snprintf(m->mutex, sizeof m->mutex, "%s", q->mutex);
    snprintf(m->id, sizeof m->id, "%s", q->id);
    zk_store_mutex_path(s->store, m->mutex, m->path);
    m->node.name = m->mutex;
    m->in_table = true;
    table_add(&s->store->members, &m->node);
    m->next = s->members;
    m->before = &s->members;
    if (m->next != NULL)
        m->next->before = &m->next;
    s->members = m;
    s->members_count++;
    zk_session_keep(s);
    return m;
}

static void leave_table(struct member *m)
{
    assert(m->session != NULL);
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

void zk_place_free(struct member *m)
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

struct simba_request *zk_place_take_asking(struct member *m)
{
    struct simba_request *list = m->asking;
    m->asking = NULL;
    m->asking_last = &m->asking;
    return list;
}

void zk_place_refuse_list(struct zookeeper *z, struct simba_request *list, int code,
                          const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        zk_store_refuse(z, list, code, why);
    }
}

void zk_place_refuse_asking(struct member *m, int rc)
{
    const char *why;
    int code = zk_store_code(rc, &why);
    zk_place_refuse_list(m->session->store, zk_place_take_asking(m), code, why);
}

void zk_place_node_path(const struct member *m, const char *node, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%.480s/%s", m->path, node);
}

void zk_place_hint(struct member *m)
{
    struct simba_host *host = m->session->store->host;
    host->hint_one(host, m->mutex, m->id);
}

/* Its contender has nothing to do with it any more. May free it. */
void zk_place_discard(struct member *m)
{
    leave_table(m);
    zk_latch_unwanted(&m->latch);
    zk_place_drive(m);
}

/* The node is gone, by whatever hand. May free it. */
void zk_place_vanished(struct member *m)
{
    struct zookeeper *z = m->session->store;
    bool tell = m->in_table && !m->over;
    int64_t until = simba_now() + zk_session_timeout_ms(m->session);
    if (tell && m->granted && until > z->relied_until)
        z->relied_until = until;
    zk_latch_vanished(&m->latch);
    m->over = true;
    m->deleted = ZNONODE;
    leave_table(m);
    if (tell)
        zk_place_hint(m);
    zk_place_drive(m);
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
        zk_place_refuse_asking(m, rc);
    zk_place_drive(m);
}

/* The parts of the path one after the other; those that are there stay as they are. */
static void make_path(struct member *m)
{
    struct zookeeper *z = m->session->store;
    size_t chroot = strlen(z->config.chroot);
    char path[PATH_SIZE];
    if (++m->makes > MAKES_MAX) {
        m->makes = 0;
        zk_place_refuse_asking(m, ZNONODE);
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
    if (rc != ZOK) {
        m->making = false;
        m->flights--;
        zk_place_refuse_asking(m, rc);
    }
}

/* ---- joining and leaving ---------------------------------------------------------------------- */

static void on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    const char *name = rc == ZOK ? strrchr(path, '/') : NULL;
    m->flights--;
    zk_latch_created(&m->latch, zk_store_reply(rc), name != NULL ? name + 1 : "",
                     rc == ZOK ? stat->czxid : 0, rc == ZOK ? stat->ephemeralOwner : 0,
                     m->session->id);
    if (rc == ZOK && m->latch.state == LATCH_LOST)
        rc = ZDATAINCONSISTENCY; /* not what a server can say */
    if (rc == ZOK)
        m->makes = 0;
    if (rc == ZOK && m->session->connected)
        zk_session_wrote(m->session, m->created_at);
    if (rc == ZNONODE && m->session->connected && m->latch.wanted)
        make_path(m);
    else if (rc != ZOK)
        zk_place_refuse_asking(m, rc);
    zk_place_drive(m);
}

static void create(struct member *m)
{
    char prefix[LATCH_NAME_SIZE], path[PATH_SIZE];
    zk_latch_sent(&m->latch);
    zk_latch_prefix(prefix, sizeof prefix, m->latch.uuid);
    zk_place_node_path(m, prefix, path);
    m->created_at = simba_now();
    m->flights++;
    int rc = zoo_acreate2(m->session->handle, path, m->id, (int)strlen(m->id),
                          m->session->store->acl, ZOO_EPHEMERAL_SEQUENTIAL, on_created, m);
    if (rc != ZOK) {
        m->flights--;
        zk_latch_created(&m->latch, LATCH_REFUSED, "", 0, 0, 0);
        zk_place_refuse_asking(m, rc);
        return;
    }
    zk_queue_look(m); /* right behind it: the server keeps their order */
}

static void refuse_ending(struct member *m, int rc)
{
    const char *why;
    int code = zk_store_code(rc, &why);
    struct simba_request *list = m->ending;
    m->ending = NULL;
    zk_place_refuse_list(m->session->store, list, code, why);
}

/* What cannot be done now is not tried again and again. */
static void note_failure(struct member *m, int rc)
{
    if (rc == ZOK || rc == ZNONODE)
        return;
    m->stuck = true;
    zk_place_refuse_asking(m, rc);
    refuse_ending(m, rc);
}

static void on_deleted(int rc, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    m->deleted = rc;
    zk_latch_deleted(&m->latch, zk_store_reply(rc));
    note_failure(m, rc);
    zk_place_drive(m);
}

static void on_found(int rc, const struct String_vector *names, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    struct latch_view v = {.own = -1};
    if (rc == ZOK)
        v = zk_latch_look(&m->latch, names->data, names->count);
    m->flights--;
    zk_latch_found(&m->latch, zk_store_reply(rc), v.own >= 0 ? names->data[v.own] : NULL);
    note_failure(m, rc);
    zk_place_drive(m);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct member *m = (struct member *)(uintptr_t)data;
    m->flights--;
    zk_latch_stat(&m->latch, zk_store_reply(rc), rc == ZOK ? stat->czxid : 0,
                  rc == ZOK ? stat->ephemeralOwner : 0, m->session->id);
    if (rc == ZOK && m->latch.state == LATCH_LOST)
        rc = ZDATAINCONSISTENCY;
    note_failure(m, rc);
    zk_place_drive(m);
}

/* One that cannot even be queued fails as if the connection had been lost. */
static void send_act(struct member *m, enum latch_act act)
{
    zhandle_t *handle = m->session->handle;
    char path[PATH_SIZE];
    int rc;
    zk_latch_sent(&m->latch);
    zk_place_node_path(m, m->latch.name, path);
    m->flights++;
    if (act == LATCH_DELETE) {
        rc = zoo_adelete(handle, path, -1, on_deleted, m);
        if (rc != ZOK)
            on_deleted(rc, m);
    } else if (act == LATCH_STAT) {
        rc = zoo_aexists(handle, path, 0, on_stat, m);
        if (rc != ZOK)
            on_stat(rc, &nothing, m);
    } else {
        zoo_async(handle, m->path, on_part_made, NULL); /* another server may lag behind */
        rc = zoo_aget_children(handle, m->path, 0, on_found, m);
        if (rc != ZOK)
            on_found(rc, &nobody, m);
    }
}

/* ---- what is next ------------------------------------------------------------------------------ */

/* Sends what is to be sent; frees the member when nothing is left of it. */
void zk_place_drive(struct member *m)
{
    enum latch_act act = zk_latch_next(&m->latch);
    if (act == LATCH_END) {
        zk_place_refuse_asking(m, ZNONODE);
        zk_queue_answer_ending(m);
        if (m->flights == 0 && !m->in_table)
            zk_place_free(m);
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
            zk_queue_look(m);
        break;
    default:
        send_act(m, act);
        break;
    }
}
