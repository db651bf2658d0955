/* requests.c: see requests.h. What comes back goes to replies.c. */
#include "backend/zookeeper/requests.h"

#include <stdio.h>
#include <string.h>

#include "backend/zookeeper/latch_member.h"
#include "backend/zookeeper/replies.h"

void zk_requests_mutex_path(const struct zookeeper *z, const char *mutex, char out[PATH_SIZE])
{
    char node[PATH_NODE_SIZE];
    zk_path_encode(node, mutex);
    snprintf(out, PATH_SIZE, "%s/%s", z->base, node);
}

void zk_requests_node_path(const char *mutex_path, const char *node, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%.*s/%s", PATH_SIZE - LATCH_NAME_SIZE - 2, mutex_path, node);
}

/* The parts of the path one after the other; those that are there stay as they are. What matters
 * is how the last one ends. */
static int make_path(struct session *s, struct latch_flight *f, char *path)
{
    const struct zookeeper *z = s->store;
    size_t chroot = strlen(z->config.chroot);
    int kind = z->no_containers ? ZOO_PERSISTENT : ZOO_CONTAINER;
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool ours = (size_t)(slash - path) > chroot;
        zoo_acreate(s->handle, path, "", 0, ours ? z->acl : &ZOO_OPEN_ACL_UNSAFE,
                    ours ? kind : ZOO_PERSISTENT, zk_replies_on_nothing, NULL);
        *slash = '/';
    }
    return zoo_acreate(s->handle, path, "", 0, z->acl, kind, zk_replies_on_path, f);
}

bool zk_requests_send(struct latch_flight *f, const char *node, bool watch)
{
    const struct latch_member *m = f->member;
    struct session *s = (struct session *)(void *)m->session;
    char mutex[PATH_SIZE], path[PATH_SIZE];
    zk_requests_mutex_path(s->store, m->mutex, mutex);
    zk_requests_node_path(mutex, node, path);
    switch (f->ask) {
    case LATCH_ASK_PATH:
        return make_path(s, f, mutex) == ZOK;
    case LATCH_ASK_CREATE:
        return zoo_acreate2(s->handle, path, m->id, (int)strlen(m->id), s->store->acl,
                            ZOO_EPHEMERAL_SEQUENTIAL, zk_replies_on_created, f) == ZOK;
    case LATCH_ASK_FIND:
        zoo_async(s->handle, mutex, zk_replies_on_nothing,
                  NULL); /* another server may lag behind */
        return zoo_aget_children(s->handle, mutex, 0, zk_replies_on_names, f) == ZOK;
    case LATCH_ASK_LIST:
        return zoo_aget_children(s->handle, mutex, 0, zk_replies_on_names, f) == ZOK;
    case LATCH_ASK_STAT:
        return zoo_aexists(s->handle, path, 0, zk_replies_on_stat, f) == ZOK;
    case LATCH_ASK_DELETE:
    case LATCH_ASK_REMOVE:
        return zoo_adelete(s->handle, path, -1, zk_replies_on_deleted, f) == ZOK;
    default:
        return zoo_awget(s->handle, f->ask == LATCH_ASK_EVICTION ? mutex : path,
                         watch ? zk_replies_on_node : NULL, s, zk_replies_on_data, f) == ZOK;
    }
}

/* A transaction that only checks that our root is there: it goes through the leader and its
 * quorum as any write does, changes nothing and wakes no watch. */
bool zk_requests_write(struct latch_session *latch)
{
    struct session *s = (struct session *)(void *)latch;
    zoo_check_op_init(&s->write_op, s->store->base, -1);
    return zoo_amulti(s->handle, 1, &s->write_op, &s->write_result, zk_replies_on_written, s) ==
           ZOK;
}

bool zk_requests_touch(struct latch_session *latch)
{
    struct session *s = (struct session *)(void *)latch;
    return zoo_aexists(s->handle, s->store->base, 0, zk_replies_on_touched, s) == ZOK;
}
