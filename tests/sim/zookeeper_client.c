/* zookeeper_client.c: the client library and the loop, as the shipped queues of
 * src/backend/zookeeper see them, in simulated time. One process has one session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zookeeper.h"

#define TICK_PARTS 6
#define GIVEN_BACK_MAX 20 /* in a quarter of a lease */
#define LOST "the connection is lost"

static struct client *client_of(struct world *w, const struct node *n)
{
    return &w->zookeeper->client[n->index];
}

static int64_t now_of(const struct client *c)
{
    return world_local(c->world, c->node) / MS;
}

static void trouble(struct client *c)
{
    if (c->world->now > c->node->trouble_until)
        c->node->trouble_until = c->world->now;
}

static struct client *client_of_session(struct latch_session *s)
{
    return (struct client *)(void *)s->client;
}

/* ---- timers -------------------------------------------------------------------------------- */

static void set_timer(struct client *c, enum packet_op kind, uint32_t *serial, int64_t in)
{
    struct message m = {.packet = {.op = (uint8_t)kind, .serial = ++*serial}};
    world_post(c->world, c->world->now + in, EVENT_BEAT, c->node, &m);
}

static void tick_in(struct client *c, int64_t in)
{
    set_timer(c, PACKET_CONNECT, &c->ticks, in);
}

static void heartbeat_in(struct latch_session *s, int64_t ms)
{
    struct client *c = client_of_session(s);
    set_timer(c, PACKET_WRITE, &c->heartbeats, ms * MS);
}

static void watch_own_in(struct latch_session *s, int64_t ms)
{
    struct client *c = client_of_session(s);
    if (c->watching_own)
        return;
    c->watching_own = true;
    set_timer(c, PACKET_WATCH, &c->own_watches, ms * MS);
}

/* ---- answers to the machine: within the process, so none gets lost ------------------------- */

struct call {
    struct simba_request q; /* first: one is the other */
    struct lease_request request;
    char mutex[4];
};

/* A grant that is worth too little is given back at once; the next one should wait for its worth. */
static void note_grant(struct client *c, uint64_t token)
{
    struct world *w = c->world;
    if (w->greatest[c->node->mutex] >= c->granted)
        c->given_back = 0;
    if (c->given_back++ == 0)
        c->given_back_at = w->now;
    c->granted = token;
    if (c->given_back > GIVEN_BACK_MAX && w->now - c->given_back_at < w->period.lease / 4)
        world_fail(w, "%c is granted mutex %u over and over, and gives it back", NAME(c->node),
                   c->node->mutex);
    if (token > w->forced[c->node->mutex]) /* else only its token protects */
        check_granted(w, &(struct event){.node = c->node->index});
    world_trace(w, "    the store grants %llu to %s", (unsigned long long)token, c->node->id);
}

static struct client *client_of_host(struct simba_host *host)
{
    return (struct client *)(void *)((char *)host - offsetof(struct client, host));
}

static void answer(struct simba_host *host, struct simba_request *q, const struct simba_answer *a)
{
    struct client *c = client_of_host(host);
    struct call *call = (struct call *)(void *)q;
    struct message m = {.request = call->request,
                        .mutex = c->node->mutex,
                        .life = c->life,
                        .code = a->code,
                        .granted = a->granted,
                        .token = a->token,
                        .left = a->left_ms * MS};
    bool owned = a->code == 0 && a->id != NULL && a->id[0] != '\0';
    if (owned)
        snprintf(m.owner, sizeof m.owner, "%s", a->id);
    free(call);
    if (c->life != c->node->life)
        return; /* nobody is there any more */
    /* After a long silence a single write is worth little (session_deadline.h): the disturbance is
     * not over yet. In quiet times there is always more left than this. */
    if (owned && m.left < c->world->period.lease / 3)
        trouble(c);
    if (a->granted)
        note_grant(c, a->token);
    world_post(c->world, c->world->now, EVENT_REPLY, c->node, &m);
}

static void refuse(struct client *c, struct simba_request *q)
{
    pending_refuse(&c->host, q, SIMBA_ESTORE, LOST);
}

static void hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    struct client *c = client_of_host(host);
    (void)mutex;
    (void)id;
    if (c->life == c->node->life)
        world_post(c->world, c->world->now, EVENT_HINT, c->node, NULL);
}

static void hint(struct simba_host *host, const char *mutex)
{
    hint_one(host, mutex, NULL);
}

static void log_line(struct simba_host *host, enum simba_level level, const char *line)
{
    (void)level;
    world_trace(client_of_host(host)->world, "    %s", line);
}

/* ---- packets ------------------------------------------------------------------------------- */

static void post(struct client *c, struct packet r)
{
    struct world *w = c->world;
    struct node *n = c->node;
    if (world_fault(w, FAULT_FAIL, n) || world_fault(w, FAULT_LOSE_REQUEST, n)) {
        zookeeper_cut(w, n); /* the library notices outside of our calls */
        return;
    }
    struct message m = {.life = n->life, .mutex = n->mutex};
    r.connection = c->connection;
    m.packet = r;
    memcpy(m.id, n->id, sizeof m.id);
    int64_t usual = world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
    int64_t late = world_fault_for(w, FAULT_DELAY_REQUEST, n, 2 * w->period.lease);
    int64_t at = w->now + usual + late;
    if (at <= c->last_arrival)
        at = c->last_arrival + 1;
    c->last_arrival = at;
    if (at > w->now + usual && at > n->trouble_until)
        n->trouble_until = at;
    world_post(w, at, EVENT_AT_SERVER, n, &m);
}

static bool send_packet(struct client *c, struct outgoing p, const char *name, bool watch)
{
    if (c->outgoings == OUTGOING_MAX)
        return false;
    p.serial = ++c->serials;
    c->outgoing[c->outgoings++] = p;
    struct packet r = {.op = p.op, .serial = p.serial, .watch = watch, .session = c->session.id};
    snprintf(r.name, sizeof r.name, "%.63s", name);
    post(c, r);
    return true;
}

static bool send_ask(struct latch_flight *f, const char *node, bool watch)
{
    static const uint8_t ops[LATCH_ASKS] = {
        [LATCH_ASK_PATH] = PACKET_TOUCH,    [LATCH_ASK_CREATE] = PACKET_CREATE,
        [LATCH_ASK_FIND] = PACKET_LIST,     [LATCH_ASK_STAT] = PACKET_STAT,
        [LATCH_ASK_DELETE] = PACKET_DELETE, [LATCH_ASK_REMOVE] = PACKET_DELETE,
        [LATCH_ASK_LIST] = PACKET_LIST,     [LATCH_ASK_LEADER] = PACKET_GET,
        [LATCH_ASK_AHEAD] = PACKET_GET,     [LATCH_ASK_OWN] = PACKET_GET,
        [LATCH_ASK_EVICTION] = PACKET_GET};
    struct client *c = client_of_session(f->member->session);
    return send_packet(c, (struct outgoing){.op = ops[f->ask], .flight = f}, node, watch);
}

static bool write_packet(struct latch_session *s)
{
    return send_packet(client_of_session(s), (struct outgoing){.op = PACKET_WRITE}, "", false);
}

static bool touch_packet(struct latch_session *s)
{
    return send_packet(client_of_session(s), (struct outgoing){.op = PACKET_TOUCH}, "", false);
}

static void read_owner(struct latch_session *s, struct simba_request *q)
{
    struct client *c = client_of_session(s);
    if (!send_packet(c, (struct outgoing){.op = PACKET_READ, .query = q}, "", false))
        refuse(c, q);
}

static struct latch_session *session_for(struct latch_client *latch, int64_t lease_ms)
{
    (void)lease_ms;
    return &((struct client *)(void *)latch)->session;
}

static const struct latch_io io = {
    .session = session_for,
    .send = send_ask,
    .write = write_packet,
    .touch = touch_packet,
    .heartbeat_in = heartbeat_in,
    .watch_own_in = watch_own_in,
    .read = read_owner,
};

/* ---- what the server says ------------------------------------------------------------------ */

static int names_of(const struct server_list *l, char *names[MEMBERS_MAX])
{
    for (int i = 0; l != NULL && i < l->count; i++)
        names[i] = (char *)(uintptr_t)l->node[i].name;
    return l != NULL ? l->count : 0;
}

static void answer_read(struct client *c, struct simba_request *q, const struct server_list *l)
{
    char *names[MEMBERS_MAX];
    int members, i = zk_latch_lowest(names, names_of(l, names), &members);
    struct simba_answer a = {.age_ms = -1};
    if (i >= 0) {
        a.id = l->node[i].id;
        a.token = (uint64_t)l->node[i].czxid;
        a.left_ms = c->world->period.lease / MS;
    }
    answer(&c->host, q, &a);
}

/* r NULL: it has no answer, and will have none. */
static void complete(struct client *c, const struct outgoing *p, const struct packet *r)
{
    char *names[MEMBERS_MAX];
    struct latch_result result = {.reply = LATCH_UNKNOWN, .code = SIMBA_ESTORE, .why = LOST};
    const struct server_list *l = NULL;
    if (r != NULL) {
        result.reply = (enum latch_reply)r->rc;
        result.name = r->name;
        result.czxid = r->czxid;
        result.owner = r->owner;
        result.data = r->data;
        result.length = (int)strlen(r->data);
        l = p->op == PACKET_LIST || p->op == PACKET_READ ? server_list(c->world, r) : NULL;
        if (l != NULL) {
            result.count = names_of(l, names);
            result.names = names;
        }
        if (r->watch && r->rc == LATCH_DONE)
            watches_add(&c->watches, r->name);
        if (r->watch && r->name[0] == '\0')
            c->eviction_seen = r->czxid;
    }
    if (p->flight != NULL)
        zk_latch_client_replied(p->flight, &result, now_of(c));
    else if (p->op == PACKET_WRITE)
        zk_latch_session_written(&c->session, &result, now_of(c));
    else if (p->op == PACKET_TOUCH)
        zk_latch_session_touched(&c->session, r != NULL, now_of(c));
    else if (r != NULL)
        answer_read(c, p->query, l);
    else
        refuse(c, p->query);
}

static void replied(struct client *c, const struct packet *r)
{
    for (int i = 0; i < c->outgoings; i++) {
        struct outgoing p = c->outgoing[i];
        if (p.serial != r->serial)
            continue;
        if ((p.op == PACKET_LIST || p.op == PACKET_READ) && server_list(c->world, r) == NULL)
            world_fail(c->world, "the simulator keeps too few lists");
        memmove(&c->outgoing[i], &c->outgoing[i + 1], (size_t)(--c->outgoings - i) * sizeof p);
        complete(c, &p, r);
        return;
    }
}

static void heard_of(struct client *c, const struct packet *r)
{
    char mutex[4];
    snprintf(mutex, sizeof mutex, "%u", c->node->mutex);
    if (watches_take(&c->watches, r->name))
        zk_latch_queue_event(&c->session, mutex, r->name, r->op == PACKET_GONE, now_of(c));
}

/* ---- the connection ------------------------------------------------------------------------ */

static void connect(struct client *c)
{
    c->connection++;
    c->connecting = true;
    c->tried_at = c->heard_at = now_of(c);
    post(c, (struct packet){.op = PACKET_CONNECT,
                            .session = c->session.established ? c->session.id : 0});
}

/* What was under way has no answer. With one server there is no hope for now, with more there is. */
static void disconnected(struct client *c)
{
    bool was = c->session.connected;
    struct outgoing lost[OUTGOING_MAX];
    int count = c->outgoings;
    memcpy(lost, c->outgoing, sizeof lost);
    c->outgoings = 0;
    c->connecting = false;
    c->session.connected = false;
    c->session.code = SIMBA_ESTORE;
    c->session.why = LOST;
    trouble(c);
    if (was)
        zk_latch_session_disconnected(&c->session, now_of(c));
    for (int i = 0; i < count; i++)
        complete(c, &lost[i], NULL);
    if (world_chance(c->world, 5000))
        zk_latch_session_unreachable(&c->session, now_of(c));
}

static void connected(struct client *c, const struct packet *r)
{
    int64_t lease = c->world->period.lease;
    c->connecting = false;
    trouble(c);
    if (r->rc == LATCH_NO_NODE) { /* expired */
        c->watches.count = 0;
        zk_latch_session_expired(&c->session, now_of(c));
        connect(c);
        return;
    }
    if (r->rc != LATCH_DONE) {
        c->heard_at = -1;
        tick_in(c, lease / 16);
        return;
    }
    for (int i = 0; i < c->watches.count; i++) {
        struct packet again = {
            .op = PACKET_WATCH, .session = r->session, .watch = true, .czxid = c->eviction_seen};
        snprintf(again.name, sizeof again.name, "%s", c->watches.name[i]);
        post(c, again);
    }
    zk_latch_session_connected(&c->session, r->session, lease / MS, c->tried_at, now_of(c));
}

/* Nothing comes over this connection any more; its end is noticed at the next tick. */
void zookeeper_cut(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    int64_t unnoticed = world_between(w, 0, w->period.lease / 16);
    if (w->now + unnoticed > n->trouble_until)
        n->trouble_until = w->now + unnoticed;
    c->connection++;
    c->last_arrival = 0;
    c->heard_at = -1;
    tick_in(c, unnoticed);
}

static void tick(struct client *c)
{
    int64_t now = now_of(c), lease = c->world->period.lease;
    bool waits = c->connecting || c->outgoings > 0;
    tick_in(c, lease / TICK_PARTS);
    if (c->heard_at < 0 || (waits && now - c->heard_at > lease / MS * 2 / 3)) {
        disconnected(c);
        connect(c);
    }
}

static void timer_rings(struct client *c, const struct packet *r)
{
    if (r->op == PACKET_CONNECT && r->serial == c->ticks) {
        tick(c);
    } else if (r->op == PACKET_WRITE && r->serial == c->heartbeats) {
        zk_latch_session_heartbeat(&c->session, now_of(c));
    } else if (r->op == PACKET_WATCH && r->serial == c->own_watches) {
        c->watching_own = false;
        zk_latch_session_watch_own(&c->session, now_of(c));
    }
}

void zookeeper_event(struct world *w, struct node *n, const struct event *e)
{
    struct client *c = client_of(w, n);
    const struct packet *r = &e->message.packet;
    if (c->life != n->life || !c->begun)
        return;
    if (e->kind == EVENT_BEAT) {
        timer_rings(c, r);
        return;
    }
    if (r->connection != c->connection)
        return;
    c->heard_at = now_of(c);
    if (r->op == PACKET_CONNECT)
        connected(c, r);
    else if (r->op == PACKET_GONE || r->op == PACKET_CHANGED)
        heard_of(c, r);
    else
        replied(c, r);
}

/* ---- for the machine ----------------------------------------------------------------------- */

static void end(struct client *c)
{
    if (!c->begun)
        return;
    for (int i = 0; i < c->outgoings; i++) {
        if (c->outgoing[i].query != NULL)
            refuse(c, c->outgoing[i].query);
    }
    zk_latch_session_close(&c->session, 0);
    zk_latch_client_free(&c->latch);
    c->begun = false;
}

static void begin(struct world *w, struct node *n, struct client *c)
{
    end(c); /* the process before it */
    *c = (struct client){
        .world = w,
        .node = n,
        .begun = true,
        .life = n->life,
        .host = {.answer = answer, .hint = hint, .hint_one = hint_one, .log = log_line},
        .connection = c->connection,
        .ticks = c->ticks,
        .heartbeats = c->heartbeats,
        .own_watches = c->own_watches};
    if (zk_latch_client_init(&c->latch, &c->host, &io) != 0)
        abort();
    for (size_t i = 0; i < sizeof c->latch.maker; i++)
        c->latch.maker[i] = (unsigned char)rng_next(&w->random);
    zk_latch_session_init(&c->session, &c->latch, w->period.lease / MS);
    tick_in(c, w->period.lease / TICK_PARTS);
    connect(c);
}

void zookeeper_request(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    if (!c->begun || c->life != n->life)
        begin(w, n, c);
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL)
        abort();
    snprintf(call->mutex, sizeof call->mutex, "%u", n->mutex);
    call->request = *request;
    call->q = (struct simba_request){.op = request->op,
                                     .mutex = call->mutex,
                                     .id = n->id,
                                     .token = request->token,
                                     .ttl_ms = w->period.ttl / MS,
                                     .transition_ms = w->period.transition / MS};
    zk_latch_client_submit(&c->latch, &call->q, now_of(c));
}

/* ---- the rest ------------------------------------------------------------------------------ */

void zookeeper_calm(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    if (!c->begun)
        return;
    tick_in(c, 0);
    heartbeat_in(&c->session, 0);
    if (c->watching_own)
        set_timer(c, PACKET_WATCH, &c->own_watches, 0);
}

void zookeeper_restart(struct world *w)
{
    for (unsigned i = 0; i < w->nodes; i++) {
        if (w->node[i].alive && client_of(w, &w->node[i])->begun)
            zookeeper_cut(w, &w->node[i]);
    }
}

void zookeeper_free(struct world *w)
{
    for (unsigned i = 0; w->zookeeper != NULL && i < w->nodes; i++)
        end(&w->zookeeper->client[i]);
    free(w->zookeeper);
}
