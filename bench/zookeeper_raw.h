/* zookeeper_raw.h: the lock recipe by hand, with the C client that has no threads: create an
 * ephemeral sequential node, list the children; if another is in front, watch it and wait;
 * delete. No lease is kept, nothing is verified after a failure. The server is one that is
 * running already, at SIMBA_BENCH_URL; scripts/bench starts one. */
#ifndef BENCH_ZOOKEEPER_RAW_H
#define BENCH_ZOOKEEPER_RAW_H

#include <poll.h>
#include <zookeeper/zookeeper.h>

#include "rival.h"

struct raw_zookeeper {
    zhandle_t *handle;
    bool done, woken;
    int rc;
    char folder[128], node[256], ahead[256];
};

static inline void raw_zookeeper_silent(const char *message)
{
    (void)message;
}

static inline void raw_zookeeper_watch(zhandle_t *handle, int type, int state, const char *path,
                                       void *context)
{
    struct raw_zookeeper *z = context;
    (void)handle;
    (void)state;
    (void)path;
    if (type == ZOO_DELETED_EVENT)
        z->woken = true;
}

static inline void raw_zookeeper_wait(struct raw_zookeeper *z, const bool *done)
{
    while (!*done) {
        int fd = -1, interest = 0;
        struct timeval wait;
        zookeeper_interest(z->handle, &fd, &interest, &wait);
        struct pollfd p = {.fd = fd,
                           .events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                                             (interest & ZOOKEEPER_WRITE ? POLLOUT : 0))};
        poll(&p, 1, (int)(wait.tv_sec * 1000 + wait.tv_usec / 1000));
        zookeeper_process(z->handle, (p.revents & POLLIN ? ZOOKEEPER_READ : 0) |
                                         (p.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
    }
}

static inline void raw_zookeeper_finish(struct raw_zookeeper *z, int rc)
{
    if (rc != ZOK)
        bench_die("%s", zerror(rc));
    raw_zookeeper_wait(z, &z->done);
    z->done = false;
}

static inline void raw_zookeeper_on_created(int rc, const char *name, const void *data)
{
    struct raw_zookeeper *z = (struct raw_zookeeper *)(uintptr_t)data;
    if (rc == ZOK)
        snprintf(z->node, sizeof z->node, "%s", name);
    else if (rc != ZNODEEXISTS)
        bench_die("create: %s", zerror(rc));
    z->done = true;
}

static inline void raw_zookeeper_on_children(int rc, const struct String_vector *names,
                                             const void *data)
{
    struct raw_zookeeper *z = (struct raw_zookeeper *)(uintptr_t)data;
    const char *own = strrchr(z->node, '-'), *best = NULL;
    if (rc != ZOK)
        bench_die("children: %s", zerror(rc));
    for (int i = 0; i < names->count; i++) {
        const char *sequence = strrchr(names->data[i], '-');
        if (strcmp(sequence, own) < 0 && (best == NULL || strcmp(strrchr(best, '-'), sequence) < 0))
            best = names->data[i];
    }
    z->ahead[0] = '\0';
    if (best != NULL)
        snprintf(z->ahead, sizeof z->ahead, "%s/%.100s", z->folder, best);
    z->done = true;
}

static inline void raw_zookeeper_on_exists(int rc, const struct Stat *stat, const void *data)
{
    struct raw_zookeeper *z = (struct raw_zookeeper *)(uintptr_t)data;
    (void)stat;
    z->rc = rc;
    z->done = true;
}

static inline void raw_zookeeper_on_deleted(int rc, const void *data)
{
    if (rc != ZOK)
        bench_die("delete: %s", zerror(rc));
    ((struct raw_zookeeper *)(uintptr_t)data)->done = true;
}

static inline void raw_zookeeper_create(struct raw_zookeeper *z, const char *path, int mode)
{
    raw_zookeeper_finish(z, zoo_acreate(z->handle, path, "me", 2, &ZOO_OPEN_ACL_UNSAFE, mode,
                                        raw_zookeeper_on_created, z));
}

/* zookeeper://HOST:PORT/... */
static inline void *raw_zookeeper_open(const char *location, const char *mutex,
                                       _Atomic uint32_t *futex)
{
    struct raw_zookeeper *z = calloc(1, sizeof *z);
    char host[128];
    (void)futex;
    if (z == NULL)
        bench_die("out of memory");
    snprintf(host, sizeof host, "%.100s", location + strlen("zookeeper://"));
    host[strcspn(host, "/")] = '\0';
    zoo_set_debug_level((ZooLogLevel)0);
    z->handle = zookeeper_init2(host, raw_zookeeper_watch, 16000, NULL, z, 0, raw_zookeeper_silent);
    if (z->handle == NULL)
        bench_die("cannot connect to %s", host);
    zoo_set_servers_resolution_delay(z->handle, -1);
    raw_zookeeper_create(z, "/raw", ZOO_PERSISTENT);
    snprintf(z->folder, sizeof z->folder, "/raw/%s", mutex);
    raw_zookeeper_create(z, z->folder, ZOO_PERSISTENT);
    return z;
}

static inline void raw_zookeeper_acquire(void *one)
{
    struct raw_zookeeper *z = one;
    char path[160];
    snprintf(path, sizeof path, "%s/latch-", z->folder);
    raw_zookeeper_create(z, path, ZOO_EPHEMERAL_SEQUENTIAL);
    for (;;) {
        raw_zookeeper_finish(
            z, zoo_aget_children(z->handle, z->folder, 0, raw_zookeeper_on_children, z));
        if (z->ahead[0] == '\0')
            return;
        z->woken = false;
        raw_zookeeper_finish(z, zoo_awexists(z->handle, z->ahead, raw_zookeeper_watch, z,
                                             raw_zookeeper_on_exists, z));
        if (z->rc == ZOK)
            raw_zookeeper_wait(z, &z->woken);
    }
}

static inline void raw_zookeeper_release(void *one)
{
    struct raw_zookeeper *z = one;
    raw_zookeeper_finish(z, zoo_adelete(z->handle, z->node, -1, raw_zookeeper_on_deleted, z));
}

static inline void raw_zookeeper_close(void *one)
{
    zookeeper_close(((struct raw_zookeeper *)one)->handle);
    free(one);
}

static inline void zookeeper_begin(char location[LOCATION_MAX])
{
    const char *url = getenv("SIMBA_BENCH_URL");
    if (url == NULL || strncmp(url, "zookeeper://", 12) != 0)
        bench_die("SIMBA_BENCH_URL is not the URL of a server: start it by scripts/bench");
    snprintf(location, LOCATION_MAX, "%s", url);
}

static inline void zookeeper_end(const char *location)
{
    (void)location;
}

static const struct contest zookeeper_contest = {
    .raw = {raw_zookeeper_open, raw_zookeeper_acquire, raw_zookeeper_release, raw_zookeeper_close},
    .begin = zookeeper_begin,
    .end = zookeeper_end,
};
#endif
