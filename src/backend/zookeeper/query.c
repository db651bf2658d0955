/* query.c: who leads a mutex, for those who ask without being in its queue: READ, LEAVE, LIST,
 * EVICT.
 *
 * The members are the children of the mutex's node; then the lowest one is asked for its data,
 * the id. If it is gone by then, we read again. Where somebody observes, a watch is left behind
 * on what would have to change first: the leader's node, or the list of children if there is
 * none, or the mutex's node if there is not even that.
 *
 * An eviction without force is data on the mutex's node, which its owner watches
 * (latch_queue.c). An owner of Curator's would not heed it, nor a Simba before 0.2 show by its
 * node's name that it does. */
#include "backend/zookeeper/query.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/zookeeper/note.h"
#include "backend/zookeeper/replies.h"
#include "backend/zookeeper/requests.h"

#define NO_MEMORY "out of memory"
#define TRIES_MAX 16
#define LIST_WINDOW 32 /* mutexes that are looked at together */

/* A list under way. */
struct zookeeper_listing {
    struct session *session;
    struct simba_request *request;
    char **mutex;
    size_t count, next, open;
    bool filling;
    int code;
    const char *why;
};

struct query {
    struct session *session;
    struct simba_request *request;
    struct zookeeper_listing *listing; /* NULL: it is for the request alone */
    int tries, members;
    bool watches;  /* the list of children has a watch already */
    bool has_data; /* the mutex's node has data */
    bool evicted;  /* the data evict the leader */
    bool has_read_note;
    struct zk_note note;
    uint64_t token; /* of the leader */
    char id[SIMBA_ID_MAX + 1];
    char mutex[SIMBA_MUTEX_MAX + 1];
    char leader[LATCH_NAME_SIZE];
    char path[PATH_SIZE];
};

/* "": whether all are. */
static bool is_observed(const struct zookeeper *z, const char *mutex)
{
    return !z->closing && z->host->interest(z->host, mutex) == SIMBA_OBSERVES;
}

static bool evicts(const struct query *l)
{
    return l->request->op == SIMBA_EVICT;
}

static void start(struct query *l);
static void go_on(struct zookeeper_listing *list);

/* ---- the end of a query -------------------------------------------------------------------- */

static void end_listing(struct zookeeper_listing *list)
{
    pending_refuse(list->session->store->host, list->request, list->code, list->why);
    for (size_t i = 0; i < list->count; i++)
        free(list->mutex[i]);
    free(list->mutex);
    free(list);
}

/* What it found was told. */
static void finish(struct query *l)
{
    struct zookeeper_listing *list = l->listing;
    free(l->note.text);
    free(l);
    if (list == NULL)
        return;
    list->open--;
    go_on(list);
}

static void refuse(struct query *l, int code, const char *why)
{
    if (l->listing == NULL) {
        zk_latch_client_refuse(&l->session->store->latch, l->request, code, why);
    } else {
        l->listing->code = code;
        l->listing->why = why;
    }
    finish(l);
}

static void fail(struct query *l, int rc)
{
    struct latch_result r = zk_replies_read(rc);
    refuse(l, l->session->store->closing ? SIMBA_ECANCELED : r.code, r.why);
}

static void tell(struct query *l);

static void on_note(void *data, int rc, const struct zk_note *note)
{
    struct query *l = data;
    l->note = *note;
    if (rc != ZOK && l->request->needs_note)
        fail(l, rc);
    else
        tell(l);
}

/* False: it is not wanted, or known already. */
static bool read_note(struct query *l)
{
    bool wanted = l->request->with_note && (l->listing == NULL || l->members > 0);
    if (!wanted || l->has_read_note)
        return false;
    l->has_read_note = true;
    int rc = zk_note_read(l->session, l->mutex, l->request->needs_note, on_note, l);
    if (rc != ZOK)
        on_note(l, rc, &(struct zk_note){.text = NULL});
    return true;
}

static void tell(struct query *l)
{
    if (read_note(l))
        return;
    struct simba_host *host = l->session->store->host;
    struct simba_noted noted = {l->note.text, l->note.token, l->note.age_ms};
    const struct simba_noted *note = l->note.text != NULL ? &noted : NULL;
    int64_t left = l->id[0] != '\0' ? zk_latch_session_timeout_ms(&l->session->latch) : 0;
    struct simba_found f = {.mutex = l->mutex,
                            .id = l->id,
                            .token = l->token,
                            .left_ms = left,
                            .age_ms = -1,
                            .waiters = l->members - 1,
                            .evicted = l->evicted,
                            .note = note};
    struct simba_answer a = {.id = l->id,
                             .token = l->token,
                             .left_ms = left,
                             .age_ms = -1,
                             .evicted = l->evicted,
                             .note = note,
                             .wall_ms = l->note.wall_ms};
    if (l->listing == NULL)
        host->answer(host, l->request, &a);
    else if (l->members > 0)
        host->found(host, l->request, &f);
    finish(l);
}

/* ---- eviction ------------------------------------------------------------------------------ */

static void evicted(struct query *l, int rc)
{
    if (rc != ZOK && rc != ZNONODE) {
        fail(l, rc);
        return;
    }
    pending_refuse(l->session->store->host, l->request, rc == ZOK ? 0 : SIMBA_ELOST, NULL);
    finish(l);
}

static void on_deleted(int rc, const void *data)
{
    evicted((struct query *)(uintptr_t)data, rc);
}

static void on_eviction_set(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    evicted((struct query *)(uintptr_t)data, rc);
}

static bool is_meant(const struct query *l)
{
    const struct simba_request *q = l->request;
    return l->token != 0 && (q->token == 0 || q->token == l->token) &&
           (q->id[0] == '\0' || strcmp(q->id, l->id) == 0);
}

/* Node and eviction name one tenure, whose id never changes: what was compared is what is ended. */
static void evict(struct query *l)
{
    char eviction[64], node[PATH_SIZE];
    zhandle_t *handle = l->session->handle;
    if (!is_meant(l)) {
        evicted(l, ZNONODE);
        return;
    }
    if (!l->request->forced && !zk_latch_heeds_evictions(l->leader)) {
        refuse(l, SIMBA_EUNSUPPORTED,
               "its owner is a client of Curator's or of an older Simba, which cannot be asked to "
               "leave: end it there, or evict it with --force (forced), and then only the fencing "
               "token protects");
        return;
    }
    zk_latch_queue_format_eviction(eviction, sizeof eviction, l->token);
    zk_requests_node_path(l->path, l->leader, node);
    int rc = l->request->forced ? zoo_adelete(handle, node, -1, on_deleted, l)
                                : zoo_aset(handle, l->path, eviction, (int)strlen(eviction), -1,
                                           on_eviction_set, l);
    if (rc != ZOK)
        fail(l, rc);
}

/* ---- asking -------------------------------------------------------------------------------- */

static void on_eviction_data(int rc, const char *value, int length, const struct Stat *stat,
                             const void *data)
{
    struct query *l = (struct query *)(uintptr_t)data;
    int64_t czxid;
    (void)stat;
    l->evicted = rc == ZOK && zk_latch_queue_parse_eviction(value, length, &czxid) &&
                 czxid == (int64_t)l->token;
    if (rc == ZOK || rc == ZNONODE)
        tell(l);
    else
        fail(l, rc);
}

static void on_leader(int rc, const char *value, int length, const struct Stat *stat,
                      const void *data)
{
    struct query *l = (struct query *)(uintptr_t)data;
    struct session *s = l->session;
    if (rc == ZNONODE && ++l->tries < TRIES_MAX) {
        start(l);
        return;
    }
    if (rc == ZNONODE && !evicts(l)) { /* it goes from hand to hand faster than we read */
        tell(l);
        return;
    }
    if (rc != ZOK) {
        fail(l, rc);
        return;
    }
    bool observed = is_observed(s->store, l->mutex);
    zk_path_show_id(l->id, value, length);
    l->token = (uint64_t)stat->czxid;
    if (evicts(l)) {
        evict(l);
    } else if (!l->has_data && !observed) {
        tell(l);
    } else {
        rc = zoo_awget(s->handle, l->path, observed ? zk_replies_on_node : NULL, s,
                       on_eviction_data, l);
        if (rc != ZOK)
            fail(l, rc);
    }
}

static void nobody(struct query *l)
{
    if (evicts(l))
        evict(l);
    else
        tell(l);
}

/* Whether the mutex's node has come into being since. */
static void on_exists(int rc, const struct Stat *stat, const void *data)
{
    struct query *l = (struct query *)(uintptr_t)data;
    (void)stat;
    if (rc == ZOK && ++l->tries < TRIES_MAX)
        start(l);
    else if (rc == ZNONODE || rc == ZOK)
        nobody(l);
    else
        fail(l, rc);
}

static void on_children(int rc, const struct String_vector *names, const struct Stat *stat,
                        const void *data)
{
    struct query *l = (struct query *)(uintptr_t)data;
    struct session *s = l->session;
    l->has_data = rc == ZOK && stat->dataLength > 0;
    bool observed = is_observed(s->store, l->mutex);
    int count = rc == ZOK ? names->count : 0;
    int lowest = zk_latch_lowest(rc == ZOK ? names->data : NULL, count, &l->members);
    if (rc != ZOK && rc != ZNONODE) {
        fail(l, rc);
        return;
    }
    if (lowest >= 0) {
        char node[PATH_SIZE];
        snprintf(l->leader, sizeof l->leader, "%s", names->data[lowest]);
        zk_requests_node_path(l->path, l->leader, node);
        rc = zoo_awget(s->handle, node, observed ? zk_replies_on_node : NULL, s, on_leader, l);
    } else if (!observed || l->watches) {
        nobody(l);
        return;
    } else if (rc == ZNONODE) {
        rc = zoo_awexists(s->handle, l->path, zk_replies_on_node, s, on_exists, l);
    } else { /* the same once more, and this time it leaves a watch */
        l->watches = true;
        rc = zoo_awget_children2(s->handle, l->path, zk_replies_on_node, s, on_children, l);
    }
    if (rc != ZOK)
        fail(l, rc);
}

static void start(struct query *l)
{
    l->watches = false;
    int rc = zoo_aget_children2(l->session->handle, l->path, 0, on_children, l);
    if (rc != ZOK)
        fail(l, rc);
}

/* list NULL: for the request alone. */
static void ask(struct session *s, struct simba_request *q, const char *mutex,
                struct zookeeper_listing *list)
{
    struct query *l = calloc(1, sizeof *l);
    if (l == NULL && list == NULL) {
        zk_latch_client_refuse(&s->store->latch, q, SIMBA_ELIMIT, NO_MEMORY);
    } else if (l == NULL) {
        list->code = SIMBA_ELIMIT;
        list->why = NO_MEMORY;
    } else {
        *l = (struct query){.session = s, .request = q, .listing = list};
        snprintf(l->mutex, sizeof l->mutex, "%s", mutex);
        zk_requests_mutex_path(s->store, mutex, l->path);
        if (list != NULL)
            list->open++;
        start(l);
    }
}

/* ---- all mutexes --------------------------------------------------------------------------- */

static void go_on(struct zookeeper_listing *list)
{
    assert(list->count == 0 || list->mutex != NULL);
    if (list->filling)
        return;
    list->filling = true;
    while (list->open < LIST_WINDOW && list->next < list->count && list->code == 0)
        ask(list->session, list->request, list->mutex[list->next++], list);
    list->filling = false;
    if (list->open == 0)
        end_listing(list);
}

static void on_root(int rc, const struct Stat *stat, const void *data)
{
    (void)rc;
    (void)stat;
    (void)data; /* the watch is all that was wanted */
}

static void on_mutexes(int rc, const struct String_vector *names, const void *data)
{
    struct zookeeper_listing *list = (struct zookeeper_listing *)(uintptr_t)data;
    struct session *s = list->session;
    struct latch_result r = zk_replies_read(rc);
    if (rc == ZOK) {
        list->mutex = calloc((size_t)names->count + 1, sizeof *list->mutex);
        list->code = list->mutex == NULL ? SIMBA_ELIMIT : 0;
        list->why = list->mutex == NULL ? NO_MEMORY : NULL;
    } else if (rc != ZNONODE) {
        list->code = s->store->closing ? SIMBA_ECANCELED : r.code;
        list->why = r.why;
    } else if (is_observed(s->store, "") && s->latch.connected) {
        zoo_awexists(s->handle, s->store->base, zk_replies_on_node, s, on_root, NULL);
    }
    for (int i = 0; list->mutex != NULL && i < names->count; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        size_t n = strlen(list->request->mutex);
        if (!zk_path_decode(mutex, names->data[i]) || strncmp(mutex, list->request->mutex, n) != 0)
            continue;
        list->mutex[list->count] = strdup(mutex);
        list->count += list->mutex[list->count] != NULL;
    }
    go_on(list);
}

static void list_all(struct session *s, struct simba_request *q)
{
    struct zookeeper_listing *list = calloc(1, sizeof *list);
    int rc = ZSYSTEMERROR;
    if (list != NULL) {
        *list = (struct zookeeper_listing){.session = s, .request = q};
        rc = zoo_awget_children(s->handle, s->store->base,
                                is_observed(s->store, "") ? zk_replies_on_node : NULL, s,
                                on_mutexes, list);
    }
    if (rc != ZOK) {
        free(list);
        zk_latch_client_refuse(&s->store->latch, q, SIMBA_ESTORE, zerror(rc));
    }
}

/* ---- from outside -------------------------------------------------------------------------- */

void zk_query_submit(struct session *s, struct simba_request *q)
{
    if (q->op == SIMBA_LIST)
        list_all(s, q);
    else
        ask(s, q, q->mutex, NULL);
}

static void keep_observed(void *by_name, struct simba_watched *w)
{
    *(bool *)by_name = w->interest == SIMBA_OBSERVES;
}

void zk_query_event(struct session *s, const char *mutex)
{
    struct zookeeper *z = s->store;
    bool by_name = false;
    z->host->watched(z->host, mutex, keep_observed, &by_name);
    if (by_name)
        z->host->hint_one(z->host, mutex, ""); /* observers have no id */
    else if (is_observed(z, ""))
        z->host->hint(z->host, mutex);
}

void zk_query_root_event(struct session *s)
{
    if (is_observed(s->store, ""))
        s->store->host->hint(s->store->host, "");
}
