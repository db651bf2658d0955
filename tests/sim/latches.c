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

struct client *client_of(struct world *w, const struct node *n)
{
    return &w->latches->client[n->index];
}

int64_t client_now(const struct world *w, const struct node *n)
{
    return world_local(w, n) / MS;
}

/* ---- answers to the machine: within the process, so none gets lost -------------------------- */

void client_answer(struct world *w, struct node *n, const struct lease_request *request,
                   struct message m)
{
    m.request = *request;
    m.mutex = n->mutex;
    m.life = n->life;
    world_post(w, w->now, EVENT_REPLY, n, &m);
}

void client_refuse(struct world *w, struct node *n, struct lease_request *list, int *count)
{
    for (int i = 0; i < *count; i++)
        client_answer(w, n, &list[i], (struct message){.code = SIMBA_ESTORE});
    *count = 0;
}

void client_hint(struct world *w, struct node *n)
{
    world_post(w, w->now, EVENT_HINT, n, NULL);
}

bool client_keep(struct lease_request *list, int *count, const struct lease_request *request)
{
    if (*count == ASKING_MAX)
        return false;
    list[(*count)++] = *request;
    return true;
}

/* ---- the wire ------------------------------------------------------------------------------- */

static void wire_trouble(struct world *w, struct node *n)
{
    if (w->now > n->trouble_until)
        n->trouble_until = w->now;
}

void wire_send(struct world *w, struct node *n, const struct place *p, struct wire r)
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
    r.sent = client_now(w, n);
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

void wire_send_name(struct world *w, struct node *n, struct place *p, enum wire_op op,
                    const char *name)
{
    struct wire r = {.op = (uint8_t)op};
    snprintf(r.name, sizeof r.name, "%.63s", name);
    wire_send(w, n, p, r);
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

/* ---- the session ---------------------------------------------------------------------------- */

bool session_is_fresh(const struct world *w, const struct client *c, int64_t now)
{
    (void)w;
    return c->connected && now - c->standing.written <= c->standing.timeout / FRESH_PARTS;
}

/* After a long silence a single write is worth little (standing.h): the disturbance is not over yet. In
 * quiet times there is always more left than this. */
int64_t session_left(struct world *w, struct node *n, const struct client *c, int64_t now)
{
    int64_t ms = zk_standing_until(&c->standing) - now - 1;
    if (ms < w->period.lease / MS / 3)
        wire_trouble(w, n);
    return ms > 0 ? ms * MS : 0;
}

static void write_now(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    if (!c->connected || c->beat_sent != 0)
        return;
    c->beat_sent = client_now(w, n);
    wire_send_name(w, n, NULL, WIRE_BEAT, "");
}

void session_stall(struct world *w, struct node *n, struct lease_request *list, int *count)
{
    struct client *c = client_of(w, n);
    for (int i = 0; i < *count; i++) {
        if (!client_keep(c->stalled, &c->stalls, &list[i]))
            client_answer(w, n, &list[i], (struct message){.code = SIMBA_ESTORE});
    }
    *count = 0;
    write_now(w, n);
}

static void connect(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    c->connection++;
    c->connecting = true;
    c->tried_at = client_now(w, n);
    c->heard_at = c->tried_at;
    wire_send(w, n, NULL, (struct wire){.op = WIRE_CONNECT, .session = c->session});
}

/* What was under way has no answer, and will have none. */
static void disconnected(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    c->connected = c->connecting = false;
    c->beat_sent = c->touch_sent = 0;
    wire_trouble(w, n);
    client_refuse(w, n, c->stalled, &c->stalls);
    client_refuse(w, n, c->reading, &c->readings);
    EACH_PLACE(p, c)
    {
        p->looking = false;
        place_refuse_asking(w, n, p);
        if (!p->latch.in_flight)
            continue;
        if (p->latch.state == LATCH_JOINING)
            zk_latch_created(&p->latch, LATCH_UNKNOWN, "", 0, 0, 0);
        else if (p->latch.state == LATCH_LEAVING)
            zk_latch_deleted(&p->latch, LATCH_UNKNOWN);
        else if (p->latch.name[0] == '\0')
            zk_latch_found(&p->latch, LATCH_UNKNOWN, NULL);
        else
            zk_latch_stat(&p->latch, LATCH_UNKNOWN, 0, 0, 0);
        client_refuse(w, n, p->ending, &p->endings);
    }
}

static void on_connected(struct world *w, struct node *n, const struct wire *r)
{
    struct client *c = client_of(w, n);
    int64_t timeout = w->period.lease / MS;
    c->connecting = false;
    wire_trouble(w, n);
    if (r->rc == LATCH_NO_NODE) { /* expired */
        c->session = 0;
        EACH_PLACE(p, c)
        {
            place_refuse_asking(w, n, p);
            place_vanish(w, n, p);
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
        zk_standing_begin(&c->standing, timeout, c->tried_at);
    else
        zk_standing_moved(&c->standing, timeout, c->tried_at);
    c->session = r->session;
    next_beat(w, n, w->period.lease / BEAT_PARTS);
    EACH_PLACE(p, c)
    {
        place_drive(w, n, p);
        if (p->used && p->watched[0] != '\0')
            wire_send_name(w, n, p, WIRE_WATCH, p->watched);
        if (p->used && p->latch.state == LATCH_IN)
            wire_send_name(w, n, p, WIRE_WATCH, p->latch.name);
    }
}

/* Contenders that have not been heard of: their tenures are over, their places are given up. */
static void scan(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    int64_t now = client_now(w, n), lease = w->period.lease / MS;
    EACH_PLACE(p, c)
    {
        if (!p->in_table)
            place_drive(w, n, p);
        else if (p->askings == 0 &&
                 now - p->asked_at > (p->granted ? lease : SILENCE_PARTS * lease + SILENCE_MS)) {
            p->over = true;
            place_discard(w, n, p);
        }
    }
}

static void wait_for_beat(struct world *w, struct node *n)
{
    int64_t ms = zk_standing_write_at(&client_of(w, n)->standing) - client_now(w, n);
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
    int64_t now = client_now(w, n), lease = w->period.lease / MS;
    bool waits = c->connecting || c->beat_sent != 0 || c->touch_sent != 0;
    bool lost = c->heard_at < 0 || (waits && now - c->heard_at > lease * 2 / 3);
    next_beat(w, n, w->period.lease / BEAT_PARTS); /* if nothing sets another below */
    if (lost) {
        disconnected(w, n);
        connect(w, n);
    } else if (c->connected && has_members(c)) {
        scan(w, n);
        if (now + BEAT_MIN_MS > zk_standing_write_at(&c->standing))
            write_now(w, n);
        else
            wait_for_beat(w, n);
    } else if (c->connected && c->touch_sent == 0) {
        c->touch_sent = now;
        wire_send_name(w, n, NULL, WIRE_TOUCH, "");
    }
}

/* ---- what the server says ------------------------------------------------------------------- */

static void written(struct world *w, struct node *n)
{
    struct client *c = client_of(w, n);
    struct lease_request list[ASKING_MAX];
    int count = c->stalls;
    zk_standing_wrote(&c->standing, c->beat_sent, client_now(w, n));
    c->beat_sent = 0;
    c->stalls = 0;
    wait_for_beat(w, n);
    memcpy(list, c->stalled, sizeof list);
    for (int i = 0; i < count; i++)
        place_request(w, n, &list[i]);
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
    c->heard_at = client_now(w, n);
    switch ((enum wire_op)r->op) {
    case WIRE_CONNECT:
        on_connected(w, n, r);
        break;
    case WIRE_BEAT:
        written(w, n);
        break;
    case WIRE_TOUCH:
        zk_standing_heard(&c->standing, c->touch_sent, client_now(w, n));
        c->touch_sent = 0;
        break;
    case WIRE_READ:
        place_read(w, n, r);
        break;
    case WIRE_GONE:
        place_gone(w, n, r->name);
        break;
    case WIRE_MARK:
        place_marked(w, n, r->name);
        break;
    default:
        if (r->serial != 0)
            place_wired(w, n, r);
        break;
    }
}

/* ---- for the machine ------------------------------------------------------------------------ */

void latches_request(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    if (!c->begun || c->life != n->life) { /* a new process */
        uint32_t connection = c->connection, beats = c->beats;
        *c = (struct client){.begun = true, .life = n->life};
        for (size_t i = 0; i < sizeof c->name; i++)
            c->name[i] = (unsigned char)rng_next(&w->random);
        c->connection = connection;
        c->beats = beats;
        next_beat(w, n, w->period.lease / BEAT_PARTS);
        connect(w, n);
    }
    place_request(w, n, request);
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
