/* zookeeper.c: see zookeeper.h. */
#include "backend/zookeeper/zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backend/zookeeper/connection.h"
#include "backend/zookeeper/query.h"
#include "backend/zookeeper/requests.h"

#define ROOT "/simba"

/* ---- answers ---------------------------------------------------------------------------------- */

void zk_store_answer(struct zookeeper *z, struct simba_request *q,
                     const struct simba_answer *answer)
{
    q->next = NULL;
    z->host->answer(z->host, q, answer);
}

void zk_store_refuse(struct zookeeper *z, struct simba_request *q, int code, const char *why)
{
    z->latch.refused = true;
    zk_store_answer(z, q, &(struct simba_answer){.code = code, .age_ms = -1, .text = why});
}

void zk_store_fail_waiting(struct zookeeper *z, int code, const char *why)
{
    struct simba_request *list = z->waiting;
    z->waiting = NULL;
    z->waiting_last = &z->waiting;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        zk_store_refuse(z, list, code, why);
    }
}

bool zk_store_observes(const struct zookeeper *z, const char *mutex)
{
    return z->observes_all || table_find(&z->observed, mutex) != NULL;
}

/* ---- what the queues need of us ---------------------------------------------------------------- */

static struct latch_session *session_for(struct latch_client *c, int64_t lease_ms)
{
    struct session *s = zk_session_for((struct zookeeper *)(void *)c, lease_ms);
    return s != NULL ? &s->latch : NULL;
}

static void read_owner(struct latch_session *s, struct simba_request *q)
{
    zk_query_submit((struct session *)(void *)s, q);
}

static void answer(struct latch_client *c, struct simba_request *q, const struct simba_answer *a)
{
    zk_store_answer((struct zookeeper *)(void *)c, q, a);
}

static void hint(struct latch_client *c, const char *mutex, const char *id)
{
    struct simba_host *host = ((struct zookeeper *)(void *)c)->host;
    if (mutex == NULL)
        host->hint(host, NULL);
    else
        host->hint_one(host, mutex, id);
}

static void warn(struct latch_client *c, const char *line)
{
    struct simba_host *host = ((struct zookeeper *)(void *)c)->host;
    host->log(host, SIMBA_LOG_WARN, line);
}

static const struct latch_io io = {
    .session = session_for,
    .send = zk_requests_send,
    .write = zk_requests_write,
    .touch = zk_requests_touch,
    .beat_in = zk_session_beat_in,
    .guard_in = zk_session_guard_in,
    .read = read_owner,
    .answer = answer,
    .hint = hint,
    .warn = warn,
};

/* ---- requests --------------------------------------------------------------------------------- */

static struct session *first(const struct zookeeper *z)
{
    return (struct session *)(void *)z->latch.sessions;
}

static void submit_look(struct zookeeper *z, struct simba_request *q)
{
    struct session *s = zk_session_any(z);
    if (s == NULL) {
        zk_store_refuse(z, q, SIMBA_ELIMIT, "out of memory");
    } else if (s->latch.connected) {
        zk_query_submit(s, q);
    } else if (s->latch.hopeless || z->closing) {
        zk_store_refuse(z, q, s->latch.code, s->why);
    } else {
        q->next = NULL;
        *z->waiting_last = q;
        z->waiting_last = &q->next;
    }
}

static void submit(void *store, struct simba_request *batch)
{
    struct zookeeper *z = store;
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        batch->next = NULL;
        if (batch->op == SIMBA_READ || batch->op == SIMBA_LIST || batch->op == SIMBA_EVICT)
            submit_look(z, batch);
        else
            zk_latch_client_submit(&z->latch, batch, simba_now());
    }
    for (struct session *s = first(z); s != NULL; s = zk_session_next(s))
        zk_connection_pump(s);
}

void zk_store_connected(struct session *s)
{
    struct zookeeper *z = s->store;
    struct simba_request *list = z->waiting;
    z->waiting = NULL;
    z->waiting_last = &z->waiting;
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        zk_query_submit(s, list);
    }
}

/* ---- who wants to hear what ------------------------------------------------------------------- */

struct observed {
    struct table_node node;
    char mutex[SIMBA_MUTEX_MAX + 1];
};

/* Who waits hears of its turn by its node; only observers need more. The watch itself is set when
 * they read. */
static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    struct zookeeper *z = store;
    bool observes = interest == SIMBA_OBSERVES;
    if (mutex == NULL) {
        z->observes_all = observes;
        return;
    }
    struct table_node *n = table_find(&z->observed, mutex);
    if (observes && n == NULL) {
        struct observed *o = calloc(1, sizeof *o);
        if (o == NULL)
            return; /* it looks once per ttl then */
        snprintf(o->mutex, sizeof o->mutex, "%s", mutex);
        o->node.name = o->mutex;
        table_add(&z->observed, &o->node);
    } else if (!observes && n != NULL) {
        table_remove(&z->observed, n);
        free(n);
    }
}

static void free_observed(struct table_node *node)
{
    free(node);
}

/* ---- opening and closing ---------------------------------------------------------------------- */

static void free_store(struct zookeeper *z)
{
    table_empty(&z->observed, free_observed);
    table_free(&z->observed);
    zk_latch_client_free(&z->latch);
    for (struct session *s = first(z), *next; s != NULL; s = next) {
        next = zk_session_next(s);
        free(s);
    }
    explicit_bzero(&z->config, sizeof z->config);
    free(z);
}

void zk_store_handle_closed(struct zookeeper *z)
{
    if (--z->handles > 0 || !z->closing)
        return;
    struct simba_host *host = z->host;
    free_store(z);
    host->closed(host);
}

static void on_resolver_closed(void *data)
{
    zk_store_handle_closed(data);
}

static void close_store(void *store)
{
    struct zookeeper *z = store;
    z->closing = true;
    zk_store_fail_waiting(z, SIMBA_ECANCELED, "the client is being closed");
    for (struct session *s = first(z); s != NULL; s = zk_session_next(s))
        zk_session_close(s);
    zk_examine_close(z);
    offload_close(z->resolver, on_resolver_closed, z);
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
    if (z == NULL) {
        snprintf(why, why_size, "out of memory");
        return rc;
    }
    if (getrandom(z->latch.maker, LATCH_CLIENT_SIZE, 0) != LATCH_CLIENT_SIZE) {
        snprintf(why, why_size, "the kernel has no random numbers yet");
        free(z);
        return rc;
    }
    z->host = host;
    z->waiting_last = &z->waiting;
    rc = zookeeper_config_read(&z->config, url, why, why_size);
    if (rc != 0)
        goto err_after_store;
    rc = SIMBA_ELIMIT;
    snprintf(z->base, sizeof z->base, "%.240s" ROOT, z->config.chroot);
    snprintf(why, why_size, "out of memory");
    z->latch.disconnect_releases = z->config.disconnect_releases;
    choose_acl(z);
    if (zk_latch_client_init(&z->latch, &io) != 0)
        goto err_after_store;
    if (table_init(&z->observed) != 0)
        goto err_after_latch;
    z->resolver = offload_open(host->loop, NULL, NULL);
    if (z->resolver == NULL)
        goto err_after_observed;
    z->handles = 1;
    *store = z;
    return 0;

err_after_observed:
    table_free(&z->observed);
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
    .options = zookeeper_options,
    .queues = true,
    .open = open_store,
    .submit = submit,
    .watch = watch,
    .close = close_store,
    .examine = zk_examine_store,
};
