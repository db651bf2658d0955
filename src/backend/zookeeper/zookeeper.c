/* zookeeper.c: see zookeeper.h. */
#include "backend/zookeeper/zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backend/zookeeper/connection.h"
#include "backend/zookeeper/inspect.h"
#include "backend/zookeeper/note.h"
#include "backend/zookeeper/query.h"
#include "backend/zookeeper/requests.h"

#define ROOT "/simba"

static struct session *first(const struct zookeeper *z)
{
    return (struct session *)(void *)z->latch.sessions;
}

/* ---- what the queues need of us ------------------------------------------------------------ */

static struct latch_session *session_for(struct latch_client *c, int64_t lease_ms)
{
    struct session *s = zk_session_for((struct zookeeper *)(void *)c, lease_ms);
    return s != NULL ? &s->latch : NULL;
}

static void read_owner(struct latch_session *s, struct simba_request *q)
{
    zk_query_submit((struct session *)(void *)s, q);
}

static const struct latch_io io = {
    .session = session_for,
    .send = zk_requests_send,
    .write = zk_requests_write,
    .touch = zk_requests_touch,
    .heartbeat_in = zk_session_heartbeat_in,
    .watch_own_in = zk_session_watch_own_in,
    .read = read_owner,
    .publish = zk_note_publish,
};

/* ---- requests ------------------------------------------------------------------------------ */

/* READ, LIST and EVICT wait for a connection as long as there may be one soon. */
static void submit_query(struct zookeeper *z, struct simba_request *q)
{
    struct session *s = zk_session_any(z);
    if (s == NULL)
        zk_latch_client_refuse(&z->latch, q, SIMBA_ELIMIT, "out of memory");
    else if (s->latch.connected)
        zk_query_submit(s, q);
    else if (s->latch.hopeless)
        zk_latch_client_refuse(&z->latch, q, s->latch.code, s->why);
    else
        pending_add(&z->waiting, q);
}

static void submit(void *store, struct simba_request *batch)
{
    struct zookeeper *z = store;
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        batch->next = NULL;
        if (batch->op == SIMBA_READ || batch->op == SIMBA_LIST || batch->op == SIMBA_EVICT)
            submit_query(z, batch);
        else
            zk_latch_client_submit(&z->latch, batch, simba_now());
    }
    for (struct session *s = first(z); s != NULL; s = zk_session_next(s))
        zk_connection_pump(s);
}

/* A waiter hears of its turn by its node, and an observer by the watch that it leaves when it
 * reads. */
static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    (void)store;
    (void)mutex;
    (void)interest;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void free_store(void *store)
{
    struct zookeeper *z = store;
    for (struct session *s = first(z), *next; s != NULL; s = next) {
        next = zk_session_next(s);
        free(s);
    }
    zk_latch_client_free(&z->latch);
    explicit_bzero(&z->config, sizeof z->config);
    free(z);
}

static void close_store(void *store)
{
    struct zookeeper *z = store;
    z->closing = true;
    zk_latch_client_fail(&z->latch, &z->waiting, SIMBA_ECANCELED, "the client is being closed");
    for (struct session *s = first(z); s != NULL; s = zk_session_next(s))
        zk_session_close(s);
    zk_inspect_close(z);
    offload_close(z->resolver, handles_drop, &z->handles);
}

static void choose_acl(struct zookeeper *z)
{
    z->creator_read[0] = ZOO_CREATOR_ALL_ACL.data[0];
    z->creator_read[1] = ZOO_READ_ACL_UNSAFE.data[0];
    z->creator_read_vector = (struct ACL_vector){2, z->creator_read};
    z->acl = z->config.acl == ACL_OPEN      ? &ZOO_OPEN_ACL_UNSAFE
             : z->config.acl == ACL_CREATOR ? &ZOO_CREATOR_ALL_ACL
                                            : &z->creator_read_vector;
}

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    struct zookeeper *z = calloc(1, sizeof *z);
    int rc = SIMBA_ELIMIT;
    snprintf(why, why_size, "out of memory");
    if (z == NULL)
        return rc;
    rc = zk_config_read(&z->config, url, why, why_size);
    if (rc != 0)
        goto err_after_store;
    rc = SIMBA_ELIMIT;
    if (getrandom(z->latch.maker, LATCH_CLIENT_SIZE, 0) != LATCH_CLIENT_SIZE) {
        snprintf(why, why_size, "the kernel has no random numbers yet");
        goto err_after_store;
    }
    if (zk_latch_client_init(&z->latch, host, &io) != 0)
        goto err_after_store;
    z->resolver = offload_open(host->loop, NULL, NULL);
    if (z->resolver == NULL)
        goto err_after_latch;
    z->host = host;
    z->latch.disconnect_releases = z->config.disconnect_releases;
    snprintf(z->base, sizeof z->base, "%.240s" ROOT, z->config.chroot);
    choose_acl(z);
    pending_init(&z->waiting);
    handles_init(&z->handles, host, free_store, z);
    handles_add(&z->handles);
    *store = z;
    return 0;

err_after_latch:
    zk_latch_client_free(&z->latch);
err_after_store:
    explicit_bzero(&z->config, sizeof z->config);
    free(z);
    return rc;
}

static const char *const schemes[] = {"zookeeper", NULL};

const struct simba_backend zookeeper_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = zk_config_options,
    .queues = true,
    .open = open_store,
    .submit = submit,
    .watch = watch,
    .close = close_store,
    .examine = zk_inspect_store,
};
