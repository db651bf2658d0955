/* replies.c: see replies.h. Completions and watches run inside the client library, on the loop's
 * thread. */
#include "backend/zookeeper/replies.h"

#include <string.h>

#include "backend/zookeeper/latch_member.h"
#include "backend/zookeeper/query.h"

static enum latch_reply reply_of(int rc)
{
    switch (rc) {
    case ZOK:
        return LATCH_DONE;
    case ZNONODE:
        return LATCH_NO_NODE;
    case ZNOAUTH:
    case ZBADARGUMENTS:
    case ZINVALIDACL:
    case ZUNIMPLEMENTED:
    case ZNOCHILDRENFOREPHEMERALS:
        return LATCH_REFUSED;
    default:
        return LATCH_UNKNOWN;
    }
}

struct latch_result zk_replies_read(int rc)
{
    struct latch_result r = {.reply = reply_of(rc), .code = SIMBA_ESTORE, .why = zerror(rc)};
    if (rc == ZNOAUTH || rc == ZAUTHFAILED)
        r.code = SIMBA_EDENIED;
    if (rc == ZNOAUTH)
        r.why = "the nodes' access list does not let us in: give the user and the password that "
                "they were made with";
    else if (rc == ZCLOSING)
        r.why = "the connection is being closed";
    if (rc == ZOPERATIONTIMEOUT)
        r.code = SIMBA_ETIMEOUT;
    if (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT)
        r.why = "the connection to the server is lost";
    return r;
}

/* ---- for members --------------------------------------------------------------------------- */

static void reply(const void *data, const struct latch_result *r)
{
    zk_latch_client_replied((struct latch_flight *)(uintptr_t)data, r, simba_now());
}

/* Before 3.5 there are no containers; then it is tried again without. */
void zk_replies_on_path(int rc, const char *name, const void *data)
{
    const struct latch_flight *f = data;
    struct latch_result r = zk_replies_read(rc);
    (void)name;
    if (rc == ZUNIMPLEMENTED)
        ((struct session *)(void *)f->member->session)->store->no_containers = true;
    if (rc == ZUNIMPLEMENTED || rc == ZNODEEXISTS)
        r.reply = LATCH_DONE;
    reply(data, &r);
}

void zk_replies_on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
    struct latch_result r = zk_replies_read(rc);
    r.name = "";
    if (rc == ZOK) {
        const char *slash = strrchr(path, '/');
        r.name = slash != NULL ? slash + 1 : "";
        r.czxid = stat->czxid;
        r.owner = stat->ephemeralOwner;
    }
    reply(data, &r);
}

void zk_replies_on_names(int rc, const struct String_vector *names, const void *data)
{
    struct latch_result r = zk_replies_read(rc);
    r.names = rc == ZOK ? names->data : NULL;
    r.count = rc == ZOK ? names->count : 0;
    reply(data, &r);
}

void zk_replies_on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct latch_result r = zk_replies_read(rc);
    r.czxid = rc == ZOK ? stat->czxid : 0;
    r.owner = rc == ZOK ? stat->ephemeralOwner : 0;
    reply(data, &r);
}

void zk_replies_on_data(int rc, const char *value, int length, const struct Stat *stat,
                        const void *data)
{
    struct latch_result r = zk_replies_read(rc);
    r.data = rc == ZOK ? value : NULL;
    r.length = rc == ZOK ? length : 0;
    r.czxid = rc == ZOK ? stat->czxid : 0;
    reply(data, &r);
}

void zk_replies_on_deleted(int rc, const void *data)
{
    struct latch_result r = zk_replies_read(rc);
    reply(data, &r);
}

void zk_replies_on_nothing(int rc, const char *value, const void *data)
{
    (void)rc;
    (void)value;
    (void)data;
}

/* ---- for the session ----------------------------------------------------------------------- */

void zk_replies_on_written(int rc, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    struct latch_result r = zk_replies_read(rc);
    if (!s->store->closing)
        zk_latch_session_written(&s->latch, &r, simba_now());
}

void zk_replies_on_touched(int rc, const struct Stat *stat, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    (void)stat;
    zk_latch_session_touched(&s->latch, rc == ZOK || rc == ZNONODE, simba_now());
}

/* ---- watches ------------------------------------------------------------------------------- */

void zk_replies_on_node(zhandle_t *handle, int type, int state, const char *path, void *session)
{
    struct session *s = session;
    size_t base = strlen(s->store->base);
    char node[PATH_NODE_SIZE], mutex[SIMBA_MUTEX_MAX + 1];
    (void)handle;
    (void)state;
    if (type == ZOO_SESSION_EVENT || s->store->closing || s->over ||
        strncmp(path, s->store->base, base) != 0)
        return;
    if (path[base] == '\0') {
        zk_query_root_event(s);
        return;
    }
    const char *name = path + base + 1, *slash = strchr(name, '/');
    size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);
    if (path[base] != '/' || n >= sizeof node)
        return;
    memcpy(node, name, n);
    node[n] = '\0';
    if (!zk_path_decode(mutex, node))
        return;
    if (type == ZOO_DELETED_EVENT || type == ZOO_CHANGED_EVENT)
        zk_latch_queue_event(&s->latch, mutex, slash != NULL ? slash + 1 : "",
                             type == ZOO_DELETED_EVENT, simba_now());
    zk_query_event(s, mutex);
}
