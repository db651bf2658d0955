/* zookeeper_server.c: the server of zookeeper.h. One operation at a time, each connection in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zookeeper.h"

#define SERVER(w) (&(w)->zookeeper->server)

static int64_t latency(struct world *w)
{
    return world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
}

/* ---- to the client ------------------------------------------------------------------------- */

/* In order; what gets lost takes the connection with it. */
static void deliver(struct world *w, struct server_session *s, const struct packet *r)
{
    struct node *n = &w->node[s->node];
    bool is_push = r->op == PACKET_GONE || r->op == PACKET_CHANGED;
    if (n->life != s->life || !n->alive ||
        r->connection != w->zookeeper->client[s->node].connection)
        return; /* nobody is at the other end */
    if (world_fault(w, is_push ? FAULT_LOSE_HINT : FAULT_LOSE_REPLY, n)) {
        zookeeper_cut(w, n);
        return;
    }
    struct message m = {.life = n->life, .mutex = n->mutex, .packet = *r};
    enum fault late = is_push ? FAULT_LATE_HINT : FAULT_DELAY_REPLY;
    int64_t at = w->now + latency(w) + world_fault_for(w, late, n, 2 * w->period.lease);
    if (at <= s->last_delivery)
        at = s->last_delivery + 1;
    s->last_delivery = at;
    if (at > w->now + w->mix.latency_ms * MS + 20000 && at > n->trouble_until)
        n->trouble_until = at;
    world_post(w, at, EVENT_AT_CLIENT, n, &m);
}

/* ---- watches ------------------------------------------------------------------------------- */

static int find_watch(const struct watches *w, const char *name)
{
    int i = 0;
    while (i < w->count && strcmp(w->name[i], name) != 0)
        i++;
    return i < w->count ? i : -1;
}

bool watches_add(struct watches *w, const char *name)
{
    if (find_watch(w, name) >= 0 || w->count == WATCHES_MAX)
        return false;
    snprintf(w->name[w->count++], PACKET_NAME_SIZE, "%s", name);
    return true;
}

bool watches_take(struct watches *w, const char *name)
{
    int i = find_watch(w, name);
    if (i < 0)
        return false;
    memmove(w->name[i], w->name[i + 1], (size_t)(--w->count - i) * sizeof w->name[0]);
    return true;
}

/* Each fires once. A client that is away then asks when it is back. */
static void fire(struct world *w, unsigned mutex, enum packet_op op, const char *name)
{
    struct packet r = {.op = (uint8_t)op};
    snprintf(r.name, sizeof r.name, "%s", name);
    for (struct server_session *s = SERVER(w)->session; s < &SERVER(w)->session[SESSIONS_MAX];
         s++) {
        r.connection = s->connection;
        if (s->alive && w->node[s->node].mutex == mutex && watches_take(&s->watches, name))
            deliver(w, s, &r);
    }
}

/* ---- nodes and sessions -------------------------------------------------------------------- */

static void remove_node(struct world *w, unsigned mutex, int i)
{
    struct server *t = SERVER(w);
    struct server_node gone = t->node[mutex][i];
    if (w->tracing)
        world_trace(w, "    the store removes node %lld of %s", (long long)gone.czxid, gone.id);
    memmove(&t->node[mutex][i], &t->node[mutex][i + 1],
            (size_t)(t->count[mutex] - i - 1) * sizeof gone);
    t->count[mutex]--;
    fire(w, mutex, PACKET_GONE, gone.name);
}

static void end_session(struct world *w, struct server_session *s)
{
    struct server *t = SERVER(w);
    world_trace(w, "    the store ends the session of %c", NAME(&w->node[s->node]));
    s->alive = false;
    for (unsigned m = 0; m < MUTEXES; m++) {
        for (int i = t->count[m]; i-- > 0;) {
            if (t->node[m][i].session == s->id)
                remove_node(w, m, i);
        }
    }
}

void zookeeper_expire(struct world *w)
{
    for (struct server_session *s = SERVER(w)->session; s < &SERVER(w)->session[SESSIONS_MAX];
         s++) {
        if (s->alive && s->until <= w->now)
            end_session(w, s);
    }
}

static int find_node(const struct world *w, unsigned mutex, const char *name)
{
    const struct server *t = SERVER(w);
    int i = 0;
    while (i < t->count[mutex] && strcmp(t->node[mutex][i].name, name) != 0)
        i++;
    return i < t->count[mutex] ? i : -1;
}

static void touch(struct world *w, struct server_session *s)
{
    const struct server *t = SERVER(w);
    s->until = w->now + w->period.lease;
    world_post(w, s->until, EVENT_EXPIRE, NULL, NULL);
    for (unsigned m = 0; m < MUTEXES; m++) {
        for (int i = 0; i < t->count[m]; i++) {
            if (t->node[m][i].session == 0)
                continue;
            if (t->node[m][i].session == s->id)
                w->last_write[m] = w->now; /* it leads */
            break;
        }
    }
}

static struct server_session *find_session(struct world *w, int64_t id)
{
    for (struct server_session *s = SERVER(w)->session; s < &SERVER(w)->session[SESSIONS_MAX];
         s++) {
        if (s->alive && s->id == id)
            return s;
    }
    return NULL;
}

static struct server_session *make_session(struct world *w)
{
    for (struct server_session *s = SERVER(w)->session; s < &SERVER(w)->session[SESSIONS_MAX];
         s++) {
        if (s->alive)
            continue;
        *s = (struct server_session){.alive = true, .id = ++SERVER(w)->sessions};
        return s;
    }
    return NULL;
}

static void connect(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->node];
    struct packet r = e->message.packet;
    if (r.connection != w->zookeeper->client[e->node].connection)
        return; /* closed meanwhile */
    struct server_session *s = r.session != 0 ? find_session(w, r.session) : make_session(w);
    struct server_session nobody = {.node = e->node, .life = e->life};
    r.rc = s != NULL ? LATCH_DONE : r.session != 0 ? LATCH_NO_NODE : LATCH_UNKNOWN;
    if (s == NULL) {
        s = &nobody;
    } else {
        s->node = n->index;
        s->life = e->life;
        s->connection = r.connection;
        s->last_delivery = 0;
        s->watches.count = 0;
        r.session = s->id;
        touch(w, s);
    }
    deliver(w, s, &r);
}

/* ---- operations ---------------------------------------------------------------------------- */

static void create(struct world *w, const struct event *e, struct packet *r)
{
    struct server *t = SERVER(w);
    unsigned mutex = e->message.mutex;
    if (t->count[mutex] == MEMBERS_MAX) {
        r->rc = LATCH_REFUSED;
        return;
    }
    struct server_node *m = &t->node[mutex][t->count[mutex]++];
    *m = (struct server_node){.czxid = t->zxid++, .session = r->session};
    snprintf(m->name, sizeof m->name, "%.46s%010d", r->name, (int32_t)t->sequence[mutex]++);
    memcpy(m->id, e->message.id, sizeof m->id);
    snprintf(r->name, sizeof r->name, "%s", m->name);
    r->czxid = m->czxid;
    r->owner = m->session;
    world_trace(w, "    the store adds node %lld of %s", (long long)m->czxid, m->id);
}

/* A kept node whose client does not contend any more is noticed by nobody but an operator. */
static void help(struct world *w, unsigned mutex)
{
    for (int i = SERVER(w)->count[mutex]; i-- > 0;) {
        const struct server_node *m = &SERVER(w)->node[mutex][i];
        struct server_session *s = find_session(w, m->session);
        bool contends = false;
        if (s == NULL || !m->kept)
            continue;
        EACH_MEMBER(own, &w->zookeeper->client[s->node].session)
        contends = contends || own->is_member || zk_latch_is_for(&own->latch, m->name);
        if (!contends)
            remove_node(w, mutex, i);
    }
}

static void list(struct world *w, unsigned mutex, struct packet *r)
{
    struct server *t = SERVER(w);
    if (w->calm)
        help(w, mutex);
    struct server_list *l = &t->list[t->lists % LISTS_MAX];
    l->serial = r->list = t->lists++;
    l->count = t->count[mutex];
    memcpy(l->node, t->node[mutex], (size_t)l->count * sizeof *l->node);
}

const struct server_list *server_list(const struct world *w, const struct packet *r)
{
    const struct server_list *l = &SERVER(w)->list[r->list % LISTS_MAX];
    return l->serial == r->list ? l : NULL;
}

static void get(struct world *w, const struct event *e, struct packet *r, int i)
{
    const struct server *t = SERVER(w);
    unsigned mutex = e->message.mutex;
    if (r->name[0] == '\0') {
        snprintf(r->data, sizeof r->data, "%s", t->eviction[mutex]);
        r->czxid = t->eviction_at[mutex];
    } else if (i >= 0) {
        snprintf(r->data, sizeof r->data, "%s", t->node[mutex][i].id);
        r->czxid = t->node[mutex][i].czxid;
    } else {
        r->rc = LATCH_NO_NODE;
    }
    struct server_session *s = find_session(w, r->session);
    if (r->watch && r->rc == LATCH_DONE)
        watches_add(&s->watches, r->name);
}

/* A watch that a client had before: what it would have fired at has happened, or it is set again. */
static void watch_again(struct world *w, const struct event *e, struct server_session *s)
{
    const struct packet *r = &e->message.packet;
    unsigned mutex = e->message.mutex;
    bool own = r->name[0] == '\0';
    struct packet fires = {.op = own ? PACKET_CHANGED : PACKET_GONE, .connection = s->connection};
    snprintf(fires.name, sizeof fires.name, "%s", r->name);
    if (own ? SERVER(w)->eviction_at[mutex] != r->czxid : find_node(w, mutex, r->name) < 0)
        deliver(w, s, &fires);
    else
        watches_add(&s->watches, r->name);
}

static void apply(struct world *w, const struct event *e, struct packet *r)
{
    unsigned mutex = e->message.mutex;
    int i = find_node(w, mutex, r->name);
    r->rc = LATCH_DONE;
    switch ((enum packet_op)r->op) {
    case PACKET_CREATE:
        create(w, e, r);
        break;
    case PACKET_STAT:
        if (i >= 0) {
            r->czxid = SERVER(w)->node[mutex][i].czxid;
            r->owner = SERVER(w)->node[mutex][i].session;
        } else {
            r->rc = LATCH_NO_NODE;
        }
        break;
    case PACKET_GET:
        get(w, e, r, i);
        break;
    case PACKET_DELETE:
        if (i >= 0 && world_fault(w, FAULT_KEEP_NODE, &w->node[e->node]))
            SERVER(w)->node[mutex][i].kept = true; /* acknowledged, and not true (T104) */
        else if (i >= 0)
            remove_node(w, mutex, i);
        else
            r->rc = LATCH_NO_NODE;
        break;
    case PACKET_LIST:
    case PACKET_READ:
        list(w, mutex, r);
        break;
    default:
        break;
    }
}

/* What comes over a connection that its client has given up is refused: the session has moved. */
void zookeeper_arrive(struct world *w, const struct event *e)
{
    struct packet r = e->message.packet;
    if (r.op == PACKET_CONNECT) {
        connect(w, e);
        return;
    }
    struct server_session *s = find_session(w, r.session);
    if (s == NULL || s->connection != r.connection)
        return;
    if (r.op == PACKET_WATCH) {
        watch_again(w, e, s);
        return;
    }
    apply(w, e, &r);
    touch(w, s);
    deliver(w, s, &r);
}

void zookeeper_evict(struct world *w, unsigned mutex, bool forced)
{
    struct server *t = SERVER(w);
    int i = 0;
    while (i < t->count[mutex] && t->node[mutex][i].session == 0)
        i++;
    if (i == t->count[mutex])
        return;
    if (forced) {
        store_note_forced(w, mutex, (uint64_t)t->node[mutex][i].czxid);
        remove_node(w, mutex, i);
    } else {
        zk_latch_queue_format_eviction(t->eviction[mutex], sizeof t->eviction[mutex],
                                       (uint64_t)t->node[mutex][i].czxid);
        t->eviction_at[mutex] = t->zxid++;
        fire(w, mutex, PACKET_CHANGED, "");
    }
}

void zookeeper_make(struct world *w)
{
    w->zookeeper = calloc(1, sizeof *w->zookeeper);
    if (w->zookeeper == NULL)
        abort();
    struct server *t = SERVER(w);
    t->zxid = 1;
    for (unsigned m = 0; m < MUTEXES; m++) {
        /* Often right before the counter runs over (T52); often with children of others (T50). */
        t->sequence[m] =
            world_chance(w, 5000) ? (uint32_t)INT32_MAX - (uint32_t)world_between(w, 0, 20) : 0;
        if (!world_chance(w, 3000))
            continue;
        static const char *const strangers[] = {"0", "lock-0000000000"};
        for (int i = 0; i < 2; i++) {
            struct server_node *s = &t->node[m][t->count[m]++];
            snprintf(s->name, sizeof s->name, "%s", strangers[i]);
            snprintf(s->id, sizeof s->id, "stranger");
        }
    }
}
