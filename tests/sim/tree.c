/* tree.c: the server of latches.h. One operation at a time, each connection in order. */
#include <stdio.h>
#include <string.h>

#include "latches.h"

#define T(w) (&(w)->latches->tree)

static int64_t latency(struct world *w)
{
    return world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
}

/* ---- to the client -------------------------------------------------------------------------- */

/* In order; what gets lost takes the connection with it. */
static void deliver(struct world *w, struct tree_session *s, const struct wire *r)
{
    struct node *n = &w->node[s->node];
    if (n->life != s->life || !n->alive || r->connection != w->latches->client[s->node].connection)
        return; /* nobody is at the other end */
    if (world_fault(w, r->op == WIRE_GONE ? FAULT_LOSE_HINT : FAULT_LOSE_REPLY, n)) {
        latches_cut(w, n);
        return;
    }
    struct message m = {.life = n->life, .mutex = n->mutex, .wire = *r};
    enum fault late = r->op == WIRE_GONE ? FAULT_LATE_HINT : FAULT_DELAY_REPLY;
    int64_t at = w->now + latency(w) + world_fault_for(w, late, n, 2 * w->period.lease);
    if (at <= s->last_delivery)
        at = s->last_delivery + 1;
    s->last_delivery = at;
    if (at > w->now + w->mix.latency_ms * MS + 20000 && at > n->trouble_until)
        n->trouble_until = at;
    world_post(w, at, EVENT_WIRED, n, &m);
}

static bool watches(const struct client *c, const char *name)
{
    for (const struct place *p = c->place; p < &c->place[PLACES_MAX]; p++) {
        if (p->used && (strcmp(p->watched, name) == 0 || strcmp(p->latch.name, name) == 0))
            return true;
    }
    return false;
}

/* A client that is away when it rings asks when it is back. */
static void ring(struct world *w, unsigned mutex, const char *name)
{
    struct wire r = {.op = WIRE_GONE};
    snprintf(r.name, sizeof r.name, "%s", name);
    for (struct tree_session *s = T(w)->session; s < &T(w)->session[SESSIONS_MAX]; s++) {
        r.connection = s->connection;
        if (s->alive && w->node[s->node].mutex == mutex &&
            watches(&w->latches->client[s->node], name))
            deliver(w, s, &r);
    }
}

/* ---- nodes and sessions --------------------------------------------------------------------- */

static void remove_node(struct world *w, unsigned mutex, int i)
{
    struct tree *t = T(w);
    struct tree_member gone = t->member[mutex][i];
    if (w->tracing)
        world_trace(w, "    the store removes node %lld of %s", (long long)gone.czxid, gone.id);
    memmove(&t->member[mutex][i], &t->member[mutex][i + 1],
            (size_t)(t->count[mutex] - i - 1) * sizeof gone);
    t->count[mutex]--;
    ring(w, mutex, gone.name);
}

static void end_session(struct world *w, struct tree_session *s)
{
    struct tree *t = T(w);
    world_trace(w, "    the store ends the session of %c", NAME(&w->node[s->node]));
    s->alive = false;
    for (unsigned m = 0; m < MUTEXES; m++) {
        for (int i = t->count[m]; i-- > 0;) {
            if (t->member[m][i].session == s->id)
                remove_node(w, m, i);
        }
    }
}

void tree_expire(struct world *w)
{
    for (struct tree_session *s = T(w)->session; s < &T(w)->session[SESSIONS_MAX]; s++) {
        if (s->alive && s->until <= w->now)
            end_session(w, s);
    }
}

static int find_node(const struct world *w, unsigned mutex, const char *name)
{
    const struct tree *t = T(w);
    int i = 0;
    while (i < t->count[mutex] && strcmp(t->member[mutex][i].name, name) != 0)
        i++;
    return i < t->count[mutex] ? i : -1;
}

static void touch(struct world *w, struct tree_session *s)
{
    const struct tree *t = T(w);
    s->until = w->now + w->period.lease;
    world_post(w, s->until, EVENT_EXPIRE, NULL, NULL);
    for (unsigned m = 0; m < MUTEXES; m++) {
        for (int i = 0; i < t->count[m]; i++) {
            if (t->member[m][i].session == 0)
                continue;
            if (t->member[m][i].session == s->id)
                w->last_write[m] = w->now; /* it leads */
            break;
        }
    }
}

static struct tree_session *find_session(struct world *w, int64_t id)
{
    for (struct tree_session *s = T(w)->session; s < &T(w)->session[SESSIONS_MAX]; s++) {
        if (s->alive && s->id == id)
            return s;
    }
    return NULL;
}

static struct tree_session *make_session(struct world *w)
{
    for (struct tree_session *s = T(w)->session; s < &T(w)->session[SESSIONS_MAX]; s++) {
        if (s->alive)
            continue;
        *s = (struct tree_session){.alive = true, .id = ++T(w)->sessions};
        return s;
    }
    return NULL;
}

static void connect(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->node];
    struct wire r = e->message.wire;
    if (r.connection != w->latches->client[e->node].connection)
        return; /* closed meanwhile */
    struct tree_session *s = r.session != 0 ? find_session(w, r.session) : make_session(w);
    struct tree_session nobody = {.node = e->node, .life = e->life};
    r.rc = s != NULL ? LATCH_DONE : r.session != 0 ? LATCH_NO_NODE : LATCH_UNKNOWN;
    if (s == NULL) {
        s = &nobody;
    } else {
        s->node = n->index;
        s->life = e->life;
        s->connection = r.connection;
        s->last_delivery = 0;
        r.session = s->id;
        touch(w, s);
    }
    deliver(w, s, &r);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void create(struct world *w, const struct event *e, struct wire *r)
{
    struct tree *t = T(w);
    unsigned mutex = e->message.mutex;
    if (t->count[mutex] == MEMBERS_MAX) {
        r->rc = LATCH_REFUSED;
        return;
    }
    struct tree_member *m = &t->member[mutex][t->count[mutex]++];
    *m = (struct tree_member){.czxid = t->zxid++, .session = r->session};
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
    for (int i = T(w)->count[mutex]; i-- > 0;) {
        const struct tree_member *m = &T(w)->member[mutex][i];
        struct tree_session *s = find_session(w, m->session);
        bool contends = false;
        if (s == NULL || !m->kept)
            continue;
        EACH_PLACE(p, &w->latches->client[s->node])
        contends = contends || p->in_table || zk_latch_is_for(&p->latch, m->name);
        if (!contends)
            remove_node(w, mutex, i);
    }
}

static void list(struct world *w, unsigned mutex, struct wire *r)
{
    struct tree *t = T(w);
    if (w->calm)
        help(w, mutex);
    struct tree_list *l = &t->list[t->lists % LISTS_MAX];
    l->serial = r->list = t->lists++;
    l->count = t->count[mutex];
    memcpy(l->member, t->member[mutex], (size_t)l->count * sizeof *l->member);
}

const struct tree_list *tree_list(const struct world *w, const struct wire *r)
{
    const struct tree_list *l = &T(w)->list[r->list % LISTS_MAX];
    return l->serial == r->list ? l : NULL;
}

static void apply(struct world *w, const struct event *e, struct wire *r)
{
    unsigned mutex = e->message.mutex;
    int i = find_node(w, mutex, r->name);
    r->rc = LATCH_DONE;
    switch ((enum wire_op)r->op) {
    case WIRE_CREATE:
        create(w, e, r);
        break;
    case WIRE_STAT:
        if (i >= 0) {
            r->czxid = T(w)->member[mutex][i].czxid;
            r->owner = T(w)->member[mutex][i].session;
        } else {
            r->rc = LATCH_NO_NODE;
        }
        break;
    case WIRE_WATCH:
        r->rc = i >= 0 ? LATCH_DONE : LATCH_NO_NODE;
        break;
    case WIRE_DELETE:
        if (i >= 0 && world_fault(w, FAULT_KEEP_NODE, &w->node[e->node]))
            T(w)->member[mutex][i].kept = true; /* acknowledged, and not true (T104) */
        else if (i >= 0)
            remove_node(w, mutex, i);
        else
            r->rc = LATCH_NO_NODE;
        break;
    case WIRE_FIND:
    case WIRE_LOOK:
    case WIRE_READ:
        list(w, mutex, r);
        break;
    default:
        break;
    }
}

/* What comes over a connection that its client has given up is refused: the session has moved. */
void tree_arrive(struct world *w, const struct event *e)
{
    struct wire r = e->message.wire;
    if (r.op == WIRE_CONNECT) {
        connect(w, e);
        return;
    }
    struct tree_session *s = find_session(w, r.session);
    if (s == NULL || s->connection != r.connection)
        return;
    apply(w, e, &r);
    touch(w, s);
    deliver(w, s, &r);
}

void tree_evict(struct world *w, unsigned mutex, bool forced)
{
    struct tree *t = T(w);
    int i = 0;
    while (i < t->count[mutex] && t->member[mutex][i].session == 0)
        i++;
    if (i == t->count[mutex])
        return;
    struct tree_session *s = find_session(w, t->member[mutex][i].session);
    if (forced) {
        store_mark_forced(w, mutex, (uint64_t)t->member[mutex][i].czxid);
        remove_node(w, mutex, i);
    } else if (s != NULL) {
        struct wire r = {.op = WIRE_MARK, .connection = s->connection};
        snprintf(r.name, sizeof r.name, "%s", t->member[mutex][i].name);
        deliver(w, s, &r);
    }
}
