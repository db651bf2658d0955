/* latches.c: the client of latches.h. What place.c, queue.c, member.c and session.c of
 * src/backend/zookeeper do around the latch, in simulated time; one client has one session. */
#include "latches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"

#define SILENCE_PARTS 3
#define SILENCE_MS 10000
#define BEAT_MIN_MS 5

static void drive(struct world *w, struct node *n, struct place *p);
static void member_request(struct world *w, struct node *n, const struct lease_request *request);

static struct client *client_of(struct world *w, const struct node *n)
{
    return &w->latches->client[n->index];
}

static int64_t now_ms(const struct world *w, const struct node *n)
{
    return world_local(w, n) / MS;
}

#define EACH_PLACE(p, c)                                                 \
    for (struct place *p = (c)->place; p < &(c)->place[PLACES_MAX]; p++) \
        if (p->used)

/* ---- answers to the machine: within the process, so none gets lost -------------------------- */

static void answer(struct world *w, struct node *n, const struct lease_request *request,
                   struct message m)
{
    m.request = *request;
    m.mutex = n->mutex;
    m.life = n->life;
    world_post(w, w->now, EVENT_REPLY, n, &m);
}

static void refuse(struct world *w, struct node *n, struct lease_request *list, int *count)
{
    for (int i = 0; i < *count; i++)
        answer(w, n, &list[i], (struct message){.code = SIMBA_ESTORE});
    *count = 0;
}

static void hint(struct world *w, struct node *n)
{
    world_post(w, w->now, EVENT_HINT, n, NULL);
}

static bool keep(struct lease_request *list, int *count, const struct lease_request *request)
{
    if (*count == ASKING_MAX)
        return false;
    list[(*count)++] = *request;
    return true;
}

/* ---- the wire ------------------------------------------------------------------------------- */

static void trouble(struct world *w, struct node *n)
{
    if (w->now > n->trouble_until)
        n->trouble_until = w->now;
}

static void send_wire(struct world *w, struct node *n, const struct place *p, struct wire r)
{
    struct client *c = client_of(w, n);
    if (world_fault(w, FAULT_FAIL, n) || world_fault(w, FAULT_LOSE_REQUEST, n)) {
        latches_cut(w, n); /* the library notices outside of our calls */
        return;
    }
    struct message m = {.life = n->life, .mutex = n->mutex};
    if (p != NULL) {
        r.place = (uint8_t)(p - c->place);
        r.serial = p->serial;
    }
    r.session = r.op == WIRE_CONNECT ? r.session : c->session;
    r.connection = c->connection;
    r.sent = now_ms(w, n);
    m.wire = r;
    memcpy(m.id, n->id, sizeof m.id);
    int64_t usual = world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
    int64_t late = world_fault_for(w, FAULT_DELAY_REQUEST, n, 2 * w->period.lease);
    int64_t at = w->now + usual + late;
    if (at <= c->last_arrival)
        at = c->last_arrival + 1;
    c->last_arrival = at;
    if (at > w->now + usual && at > n->trouble_until)
        n->trouble_until = at;
    world_post(w, at, EVENT_WIRE, n, &m);
}

static void send_name(struct world *w, struct node *n, struct place *p, enum wire_op op,
                      const char *name)
{
    struct wire r = {.op = (uint8_t)op};
    snprintf(r.name, sizeof r.name, "%.63s", name);
    send_wire(w, n, p, r);
}

/* One is set at a time; the last one counts. */
static void next_beat(struct world *w, struct node *n, int64_t in)
{
    struct message m = {.wire = {.serial = ++client_of(w, n)->beats}};
    world_post(w, w->now + in, EVENT_BEAT, n, &m);
}

/* Nothing comes over this connection any more; its end is noticed at the next beat. */
void latches_cut(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    int64_t unnoticed = world_between(w, 0, w->period.lease / 16);
    if (w->now + unnoticed > n->trouble_until)
        n->trouble_until = w->now + unnoticed;
    c->connection++;
    c->last_arrival = 0;
    c->heard_at = -1;
    next_beat(w, n, unnoticed);
}

/* ---- places --------------------------------------------------------------------------------- */

static struct place *find(struct client *c)
{
    EACH_PLACE(p, c)
    {
        if (p->in_table)
            return p;
    }
    return NULL;
}

static struct place *make(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    unsigned char random[16];
    char uuid[LATCH_UUID_SIZE];
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (unsigned char)random_next(&w->random);
    latch_uuid(uuid, random);
    for (struct place *p = c->place; p < &c->place[PLACES_MAX]; p++) {
        if (p->used)
            continue;
        *p = (struct place){.used = true, .in_table = true, .serial = ++c->serials};
        latch_init(&p->latch, uuid);
        return p;
    }
    return NULL;
}

static void refuse_asking(struct world *w, struct node *n, struct place *p)
{
    refuse(w, n, p->asking, &p->askings);
}

static void vanish(struct world *w, struct node *n, struct place *p)
{
    bool tell = p->in_table && !p->over;
    latch_vanished(&p->latch);
    p->over = true;
    p->in_table = false;
    if (tell)
        hint(w, n);
    drive(w, n, p);
}

static void discard(struct world *w, struct node *n, struct place *p)
{
    p->in_table = false;
    latch_unwanted(&p->latch);
    drive(w, n, p);
}

static void answer_ending(struct world *w, struct node *n, struct place *p)
{
    for (int i = 0; i < p->endings; i++) {
        if (p->ending[i].op == SIMBA_RELEASE)
            answer(w, n, &p->ending[i], (struct message){.code = p->deleted ? 0 : SIMBA_ELOST});
        else
            member_request(w, n, &p->ending[i]);
    }
    p->endings = 0;
}

static void look(struct world *w, struct node *n, struct place *p)
{
    if (p->looking)
        return;
    p->looking = true;
    send_name(w, n, p, WIRE_LOOK, "");
}

static void send_act(struct world *w, struct node *n, struct place *p, enum latch_act act)
{
    char prefix[LATCH_NAME_SIZE];
    latch_sent(&p->latch);
    switch (act) {
    case LATCH_CREATE:
        latch_prefix(prefix, sizeof prefix, p->latch.uuid);
        p->created_at = now_ms(w, n);
        send_name(w, n, p, WIRE_CREATE, prefix);
        look(w, n, p);
        break;
    case LATCH_FIND:
        send_name(w, n, p, WIRE_FIND, "");
        break;
    case LATCH_STAT:
        send_name(w, n, p, WIRE_STAT, p->latch.name);
        break;
    default:
        send_name(w, n, p, WIRE_DELETE, p->latch.name);
        break;
    }
}

static void drive(struct world *w, struct node *n, struct place *p)
{
    enum latch_act act = latch_next(&p->latch);
    if (act == LATCH_END) {
        refuse_asking(w, n, p);
        answer_ending(w, n, p);
        p->used = p->in_table;
        return;
    }
    if (!client_of(w, n)->connected)
        return;
    if (act == LATCH_REST) {
        if (p->askings > 0 && p->latch.state == LATCH_IN)
            look(w, n, p);
    } else if (act != LATCH_CREATE || p->askings > 0) {
        send_act(w, n, p, act);
    }
}

/* ---- the session ---------------------------------------------------------------------------- */

static bool is_fresh(const struct world *w, const struct client *c, int64_t now)
{
    (void)w;
    return c->connected && now - c->standing.written <= c->standing.timeout / FRESH_PARTS;
}

/* After a long silence a single write is worth little (standing.h): the disturbance is not over yet. In
 * quiet times there is always more left than this. */
static int64_t left(struct world *w, struct node *n, const struct client *c, int64_t now)
{
    int64_t ms = standing_until(&c->standing) - now - 1;
    if (ms < w->period.lease / MS / 3)
        trouble(w, n);
    return ms > 0 ? ms * MS : 0;
}

static void write_now(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    if (!c->connected || c->beat_sent != 0)
        return;
    c->beat_sent = now_ms(w, n);
    send_name(w, n, NULL, WIRE_BEAT, "");
}

static void stall(struct world *w, struct node *n, struct lease_request *list, int *count)
{
    struct client *c = client_of(w, n);
    for (int i = 0; i < *count; i++) {
        if (!keep(c->stalled, &c->stalls, &list[i]))
            answer(w, n, &list[i], (struct message){.code = SIMBA_ESTORE});
    }
    *count = 0;
    write_now(w, n);
}

static void connect(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    c->connection++;
    c->connecting = true;
    c->tried_at = now_ms(w, n);
    c->heard_at = c->tried_at;
    send_wire(w, n, NULL, (struct wire){.op = WIRE_CONNECT, .session = c->session});
}

/* What was under way has no answer, and will have none. */
static void disconnected(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    c->connected = c->connecting = false;
    c->beat_sent = c->touch_sent = 0;
    trouble(w, n);
    refuse(w, n, c->stalled, &c->stalls);
    refuse(w, n, c->reading, &c->readings);
    EACH_PLACE(p, c)
    {
        p->looking = false;
        refuse_asking(w, n, p);
        if (!p->latch.in_flight)
            continue;
        if (p->latch.state == LATCH_JOINING)
            latch_created(&p->latch, LATCH_UNKNOWN, "", 0, 0, 0);
        else if (p->latch.state == LATCH_LEAVING)
            latch_deleted(&p->latch, LATCH_UNKNOWN);
        else if (p->latch.name[0] == '\0')
            latch_found(&p->latch, LATCH_UNKNOWN, NULL);
        else
            latch_stat(&p->latch, LATCH_UNKNOWN, 0, 0, 0);
        refuse(w, n, p->ending, &p->endings);
    }
}

static void on_connected(struct world *w, struct node *n, const struct wire *r)
{
    struct client *c = client_of(w, n);
    int64_t timeout = w->period.lease / MS;
    c->connecting = false;
    trouble(w, n);
    if (r->rc == LATCH_NO_NODE) { /* expired */
        c->session = 0;
        EACH_PLACE(p, c)
        {
            refuse_asking(w, n, p);
            vanish(w, n, p);
        }
        connect(w, n);
        return;
    }
    if (r->rc != LATCH_DONE) {
        next_beat(w, n, w->period.lease / 16);
        return;
    }
    c->connected = true;
    if (c->session == 0)
        standing_begin(&c->standing, timeout, c->tried_at);
    else
        standing_moved(&c->standing, timeout, c->tried_at);
    c->session = r->session;
    next_beat(w, n, w->period.lease / BEAT_PARTS);
    EACH_PLACE(p, c)
    {
        drive(w, n, p);
        if (p->used && p->watched[0] != '\0')
            send_name(w, n, p, WIRE_WATCH, p->watched);
        if (p->used && p->latch.state == LATCH_IN)
            send_name(w, n, p, WIRE_WATCH, p->latch.name);
    }
}

/* Contenders that have not been heard of: their tenures are over, their places are given up. */
static void scan(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    int64_t now = now_ms(w, n), lease = w->period.lease / MS;
    EACH_PLACE(p, c)
    {
        if (!p->in_table)
            drive(w, n, p);
        else if (p->askings == 0 &&
                 now - p->asked_at > (p->granted ? lease : SILENCE_PARTS * lease + SILENCE_MS)) {
            p->over = true;
            discard(w, n, p);
        }
    }
}

static void wait_for_beat(struct world *w, struct node *n)
{
    int64_t ms = standing_write_at(&client_of(w, n)->standing) - now_ms(w, n);
    next_beat(w, n, (ms > BEAT_MIN_MS ? ms : BEAT_MIN_MS) * MS);
}

static bool has_members(struct client *c)
{
    EACH_PLACE(p, c)
    return true;
    return false;
}

static void beat(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    int64_t now = now_ms(w, n), lease = w->period.lease / MS;
    bool waits = c->connecting || c->beat_sent != 0 || c->touch_sent != 0;
    bool lost = c->heard_at < 0 || (waits && now - c->heard_at > lease * 2 / 3);
    next_beat(w, n, w->period.lease / BEAT_PARTS); /* if nothing sets another below */
    if (lost) {
        disconnected(w, n);
        connect(w, n);
    } else if (c->connected && has_members(c)) {
        scan(w, n);
        if (now + BEAT_MIN_MS > standing_write_at(&c->standing))
            write_now(w, n);
        else
            wait_for_beat(w, n);
    } else if (c->connected && c->touch_sent == 0) {
        c->touch_sent = now;
        send_name(w, n, NULL, WIRE_TOUCH, "");
    }
}

/* ---- what the server says ------------------------------------------------------------------- */

static void answer_own(struct world *w, struct node *n, struct place *p)
{
    struct client *c = client_of(w, n);
    int64_t now = now_ms(w, n);
    if (!is_fresh(w, c, now)) {
        stall(w, n, p->asking, &p->askings);
        return;
    }
    for (int i = 0; i < p->askings; i++) {
        struct message m = {
            .granted = !p->granted, .token = (uint64_t)p->latch.czxid, .left = left(w, n, c, now)};
        memcpy(m.owner, n->id, sizeof m.owner);
        if (!p->granted) {
            p->granted = true;
            if (m.token > w->forced[n->mutex]) /* else only its token protects */
                check_granted(w, &(struct event){.node = n->index});
            world_trace(w, "    the store grants %llu to %s", (unsigned long long)m.token, n->id);
        }
        answer(w, n, &p->asking[i], m);
    }
    p->askings = 0;
}

static void answer_other(struct world *w, struct node *n, struct lease_request *list, int *count,
                         bool leads, const struct tree_member *leader)
{
    struct message m = {.left = leads ? w->period.lease : 0};
    if (leader != NULL) {
        memcpy(m.owner, leader->id, sizeof m.owner);
        m.token = (uint64_t)leader->czxid;
    }
    for (int i = 0; i < *count; i++)
        answer(w, n, &list[i], m);
    *count = 0;
}

static int names_of(const struct tree_list *l, char *names[MEMBERS_MAX])
{
    for (int i = 0; i < l->count; i++)
        names[i] = (char *)(uintptr_t)l->member[i].name;
    return l->count;
}

static void looked(struct world *w, struct node *n, struct place *p, const struct tree_list *l)
{
    char *names[MEMBERS_MAX];
    p->looking = false;
    if (p->latch.state != LATCH_IN) {
        drive(w, n, p);
        return;
    }
    struct latch_view v = latch_look(&p->latch, names, names_of(l, names));
    if (v.orphan >= 0)
        send_name(w, n, NULL, WIRE_DELETE, names[v.orphan]);
    if (v.own < 0) {
        refuse_asking(w, n, p);
        vanish(w, n, p);
        return;
    }
    if (v.ahead >= 0) {
        if (strcmp(p->watched, names[v.ahead]) != 0) {
            snprintf(p->watched, sizeof p->watched, "%s", names[v.ahead]);
            send_name(w, n, p, WIRE_WATCH, p->watched);
        }
        bool left_over = strcmp(l->member[v.leader].id, n->id) == 0 && !PLANTED(LATCH_TAKES_ORPHAN);
        answer_other(w, n, p->asking, &p->askings, true, left_over ? NULL : &l->member[v.leader]);
    } else if (p->latch.wanted && !p->over) {
        answer_own(w, n, p);
    }
    drive(w, n, p);
}

static void found(struct world *w, struct node *n, struct place *p, const struct tree_list *l)
{
    char *names[MEMBERS_MAX];
    struct latch_view v = latch_look(&p->latch, names, names_of(l, names));
    latch_found(&p->latch, LATCH_DONE, v.own >= 0 ? names[v.own] : NULL);
    drive(w, n, p);
}

static void gone(struct world *w, struct node *n, const char *name)
{
    struct client *c = client_of(w, n);
    EACH_PLACE(p, c)
    {
        if (strcmp(p->watched, name) == 0) {
            p->watched[0] = '\0';
            hint(w, n);
        }
        if (p->latch.state == LATCH_IN && strcmp(p->latch.name, name) == 0)
            vanish(w, n, p);
    }
}

static void marked(struct world *w, struct node *n, const char *name)
{
    EACH_PLACE(p, client_of(w, n))
    {
        if (strcmp(p->latch.name, name) == 0 && p->in_table && p->granted && !p->over) {
            p->over = true;
            hint(w, n);
        }
    }
}

static void written(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    struct lease_request list[ASKING_MAX];
    int count = c->stalls;
    standing_wrote(&c->standing, c->beat_sent, now_ms(w, n));
    c->beat_sent = 0;
    c->stalls = 0;
    wait_for_beat(w, n);
    memcpy(list, c->stalled, sizeof list);
    for (int i = 0; i < count; i++)
        member_request(w, n, &list[i]);
}

static void place_wired(struct world *w, struct node *n, const struct wire *r)
{
    struct client *c = client_of(w, n);
    struct place *p = &c->place[r->place];
    const struct tree_list *l = tree_list(w, r);
    if (!p->used || p->serial != r->serial)
        return;
    if (l == NULL && (r->op == WIRE_FIND || r->op == WIRE_LOOK)) {
        world_fail(w, "the simulator keeps too few lists");
        return;
    }
    enum latch_reply reply = (enum latch_reply)r->rc;
    switch ((enum wire_op)r->op) {
    case WIRE_CREATE:
        latch_created(&p->latch, reply, r->name, r->czxid, r->owner, c->session);
        if (reply == LATCH_DONE)
            standing_wrote(&c->standing, p->created_at, now_ms(w, n));
        else
            refuse_asking(w, n, p);
        drive(w, n, p);
        break;
    case WIRE_STAT:
        latch_stat(&p->latch, reply, r->czxid, r->owner, c->session);
        drive(w, n, p);
        break;
    case WIRE_DELETE:
        latch_deleted(&p->latch, reply);
        p->deleted = reply == LATCH_DONE;
        drive(w, n, p);
        break;
    case WIRE_FIND:
        found(w, n, p, l);
        break;
    case WIRE_LOOK:
        looked(w, n, p, l);
        break;
    default: /* WATCH */
        if (reply == LATCH_NO_NODE)
            gone(w, n, r->name);
        break;
    }
}

static void read_list(struct world *w, struct node *n, const struct wire *r)
{
    struct client *c = client_of(w, n);
    const struct tree_list *l = tree_list(w, r);
    char *names[MEMBERS_MAX];
    int members;
    int i = l != NULL ? latch_lowest(names, names_of(l, names), &members) : -1;
    answer_other(w, n, c->reading, &c->readings, i >= 0, i >= 0 ? &l->member[i] : NULL);
}

void latches_event(struct world *w, struct node *n, const struct event *e)
{
    struct client *c = client_of(w, n);
    const struct wire *r = &e->message.wire;
    if (e->kind == EVENT_BEAT) {
        if (c->life == n->life && c->begun && r->serial == c->beats)
            beat(w, n);
        return;
    }
    if (c->life != n->life || !c->begun || r->connection != c->connection)
        return;
    c->heard_at = now_ms(w, n);
    switch ((enum wire_op)r->op) {
    case WIRE_CONNECT:
        on_connected(w, n, r);
        break;
    case WIRE_BEAT:
        written(w, n);
        break;
    case WIRE_TOUCH:
        standing_heard(&c->standing, c->touch_sent, now_ms(w, n));
        c->touch_sent = 0;
        break;
    case WIRE_READ:
        read_list(w, n, r);
        break;
    case WIRE_GONE:
        gone(w, n, r->name);
        break;
    case WIRE_MARK:
        marked(w, n, r->name);
        break;
    default:
        if (r->serial != 0)
            place_wired(w, n, r);
        break;
    }
}

/* ---- what the machine asks ------------------------------------------------------------------ */

static void contend(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    struct place *p = find(c);
    if (p != NULL && (p->over || !p->latch.wanted)) {
        discard(w, n, p); /* a tenure that has ended is not taken up again */
        p = NULL;
    }
    if (p == NULL)
        p = make(w, n);
    if (p == NULL || !keep(p->asking, &p->askings, request)) {
        answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
        return;
    }
    p->asked_at = now_ms(w, n);
    drive(w, n, p);
}

static void renew(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    struct place *p = find(c);
    int64_t now = now_ms(w, n);
    struct lease_request one = *request;
    int count = 1;
    if (p == NULL || p->over || !p->granted || (uint64_t)p->latch.czxid != request->token) {
        answer(w, n, request, (struct message){.code = SIMBA_ELOST});
    } else if (is_fresh(w, c, now)) {
        struct message m = {.token = request->token, .left = left(w, n, c, now)};
        memcpy(m.owner, n->id, sizeof m.owner);
        p->asked_at = now;
        answer(w, n, request, m);
    } else if (c->connected) {
        stall(w, n, &one, &count);
    } else {
        answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
    }
}

static void end(struct world *w, struct node *n, struct place *p,
                const struct lease_request *request)
{
    refuse_asking(w, n, p);
    bool waits = client_of(w, n)->connected && keep(p->ending, &p->endings, request);
    discard(w, n, p);
    if (!waits)
        answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
}

static void give_back(struct world *w, struct node *n, const struct lease_request *request)
{
    EACH_PLACE(p, client_of(w, n))
    {
        if ((uint64_t)p->latch.czxid == request->token && p->latch.state != LATCH_GONE) {
            end(w, n, p, request);
            return;
        }
    }
    answer(w, n, request, (struct message){.code = SIMBA_ELOST});
}

static void read_owner(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    if (!c->connected || !keep(c->reading, &c->readings, request))
        answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
    else
        send_wire(w, n, NULL, (struct wire){.op = WIRE_READ});
}

static void member_request(struct world *w, struct node *n, const struct lease_request *request)
{
    struct place *p = find(client_of(w, n));
    switch (request->op) {
    case SIMBA_CONTEND:
        contend(w, n, request);
        break;
    case SIMBA_RENEW:
        renew(w, n, request);
        break;
    case SIMBA_RELEASE:
        give_back(w, n, request);
        break;
    default:
        if (p != NULL && !p->granted)
            end(w, n, p, request);
        else
            read_owner(w, n, request);
        break;
    }
}

void latches_request(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    if (!c->begun || c->life != n->life) { /* a new process */
        uint32_t connection = c->connection, beats = c->beats;
        *c = (struct client){.begun = true, .life = n->life};
        c->connection = connection;
        c->beats = beats;
        next_beat(w, n, w->period.lease / BEAT_PARTS);
        connect(w, n);
    }
    member_request(w, n, request);
}

/* ---- the rest ------------------------------------------------------------------------------- */

void latches_make(struct world *w)
{
    w->latches = calloc(1, sizeof *w->latches);
    if (w->latches == NULL)
        abort();
    struct tree *t = &w->latches->tree;
    t->zxid = 1;
    for (unsigned m = 0; m < MUTEXES; m++) {
        /* Often right before the counter runs over (T52); often with children of others (T50). */
        t->sequence[m] =
            world_chance(w, 5000) ? (uint32_t)INT32_MAX - (uint32_t)world_between(w, 0, 20) : 0;
        if (!world_chance(w, 3000))
            continue;
        static const char *const strangers[] = {"0", "lock-0000000000"};
        for (int i = 0; i < 2; i++) {
            struct tree_member *s = &t->member[m][t->count[m]++];
            snprintf(s->name, sizeof s->name, "%s", strangers[i]);
            snprintf(s->id, sizeof s->id, "stranger");
        }
    }
}

void latches_arrive(struct world *w, const struct event *e)
{
    tree_arrive(w, e);
}

void latches_expire(struct world *w)
{
    tree_expire(w);
}

void latches_evict(struct world *w, unsigned mutex, bool forced)
{
    tree_evict(w, mutex, forced);
}

void latches_calm(struct world *w, struct node *n)
{
    if (client_of(w, n)->begun)
        next_beat(w, n, 0);
}

void latches_restart(struct world *w)
{
    for (unsigned i = 0; i < w->nodes; i++) {
        if (w->node[i].alive && client_of(w, &w->node[i])->begun)
            latches_cut(w, &w->node[i]);
    }
}
