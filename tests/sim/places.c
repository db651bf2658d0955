/* places.c: a client's nodes, and what its machine asks of them. What place.c, queue.c and member.c of
 * src/backend/zookeeper do around the latch. */
#include <stdio.h>
#include <string.h>

#include "core/planted.h"
#include "latches.h"

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
    char uuid[LATCH_UUID_SIZE];
    zk_latch_uuid(uuid, c->name, c->serials);
    for (struct place *p = c->place; p < &c->place[PLACES_MAX]; p++) {
        if (p->used)
            continue;
        *p = (struct place){.used = true, .in_table = true, .serial = ++c->serials};
        zk_latch_init(&p->latch, uuid);
        return p;
    }
    return NULL;
}

void place_refuse_asking(struct world *w, struct node *n, struct place *p)
{
    client_refuse(w, n, p->asking, &p->askings);
}

void place_vanish(struct world *w, struct node *n, struct place *p)
{
    struct client *c = client_of(w, n);
    bool tell = p->in_table && !p->over;
    if (tell && p->granted)
        c->relied_until = client_now(w, n) + w->period.lease / MS;
    zk_latch_vanished(&p->latch);
    p->over = true;
    p->in_table = false;
    if (tell)
        client_hint(w, n);
    place_drive(w, n, p);
}

void place_discard(struct world *w, struct node *n, struct place *p)
{
    p->in_table = false;
    zk_latch_unwanted(&p->latch);
    place_drive(w, n, p);
}

static void answer_ending(struct world *w, struct node *n, struct place *p)
{
    for (int i = 0; i < p->endings; i++) {
        if (p->ending[i].op == SIMBA_RELEASE)
            client_answer(w, n, &p->ending[i],
                          (struct message){.code = p->deleted ? 0 : SIMBA_ELOST});
        else
            place_request(w, n, &p->ending[i]);
    }
    p->endings = 0;
}

static void look(struct world *w, struct node *n, struct place *p)
{
    if (p->looking)
        return;
    p->looking = true;
    wire_send_name(w, n, p, WIRE_LOOK, "");
}

static void send_act(struct world *w, struct node *n, struct place *p, enum latch_act act)
{
    char prefix[LATCH_NAME_SIZE];
    zk_latch_sent(&p->latch);
    switch (act) {
    case LATCH_CREATE:
        zk_latch_prefix(prefix, sizeof prefix, p->latch.uuid);
        p->created_at = client_now(w, n);
        wire_send_name(w, n, p, WIRE_CREATE, prefix);
        look(w, n, p);
        break;
    case LATCH_FIND:
        wire_send_name(w, n, p, WIRE_FIND, "");
        break;
    case LATCH_STAT:
        wire_send_name(w, n, p, WIRE_STAT, p->latch.name);
        break;
    default:
        wire_send_name(w, n, p, WIRE_DELETE, p->latch.name);
        break;
    }
}

void place_drive(struct world *w, struct node *n, struct place *p)
{
    enum latch_act act = zk_latch_next(&p->latch);
    if (act == LATCH_END) {
        place_refuse_asking(w, n, p);
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

/* ---- what the server says ------------------------------------------------------------------- */

static void answer_own(struct world *w, struct node *n, struct place *p)
{
    struct client *c = client_of(w, n);
    int64_t now = client_now(w, n);
    if (!session_is_fresh(w, c, now)) {
        session_stall(w, n, p->asking, &p->askings);
        return;
    }
    for (int i = 0; i < p->askings; i++) {
        struct message m = {.granted = !p->granted,
                            .token = (uint64_t)p->latch.czxid,
                            .left = session_left(w, n, c, now)};
        memcpy(m.owner, n->id, sizeof m.owner);
        if (!p->granted) {
            p->granted = true;
            if (m.token > w->forced[n->mutex]) /* else only its token protects */
                check_granted(w, &(struct event){.node = n->index});
            world_trace(w, "    the store grants %llu to %s", (unsigned long long)m.token, n->id);
        }
        client_answer(w, n, &p->asking[i], m);
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
        client_answer(w, n, &list[i], m);
    *count = 0;
}

static int names_of(const struct tree_list *l, char *names[MEMBERS_MAX])
{
    for (int i = 0; i < l->count; i++)
        names[i] = (char *)(uintptr_t)l->member[i].name;
    return l->count;
}

static bool knows(struct client *c, const char *name)
{
    EACH_PLACE(p, c)
    {
        if (zk_latch_is_for(&p->latch, name))
            return true;
    }
    return false;
}

/* Nodes that this client made and has forgotten are nobody's. */
static void remove_forgotten(struct world *w, struct node *n, struct place *p,
                             const struct tree_list *l)
{
    struct client *c = client_of(w, n);
    for (int i = 0; i < l->count && client_now(w, n) >= c->relied_until; i++) {
        const char *name = l->member[i].name;
        if (zk_latch_is_kin(&p->latch, name) && !knows(c, name))
            wire_send_name(w, n, NULL, WIRE_DELETE, name);
    }
}

static void looked(struct world *w, struct node *n, struct place *p, const struct tree_list *l)
{
    char *names[MEMBERS_MAX];
    p->looking = false;
    if (p->latch.state != LATCH_IN) {
        place_drive(w, n, p);
        return;
    }
    struct latch_view v = zk_latch_look(&p->latch, names, names_of(l, names));
    remove_forgotten(w, n, p, l);
    if (v.orphan >= 0)
        wire_send_name(w, n, NULL, WIRE_DELETE, names[v.orphan]);
    if (v.own < 0) {
        place_refuse_asking(w, n, p);
        place_vanish(w, n, p);
        return;
    }
    if (v.ahead >= 0) {
        if (strcmp(p->watched, names[v.ahead]) != 0) {
            snprintf(p->watched, sizeof p->watched, "%s", names[v.ahead]);
            wire_send_name(w, n, p, WIRE_WATCH, p->watched);
        }
        bool left_over = strcmp(l->member[v.leader].id, n->id) == 0 && !PLANTED(LATCH_TAKES_ORPHAN);
        answer_other(w, n, p->asking, &p->askings, true, left_over ? NULL : &l->member[v.leader]);
    } else if (p->latch.wanted && !p->over) {
        answer_own(w, n, p);
    }
    place_drive(w, n, p);
}

static void found(struct world *w, struct node *n, struct place *p, const struct tree_list *l)
{
    char *names[MEMBERS_MAX];
    struct latch_view v = zk_latch_look(&p->latch, names, names_of(l, names));
    zk_latch_found(&p->latch, LATCH_DONE, v.own >= 0 ? names[v.own] : NULL);
    place_drive(w, n, p);
}

void place_gone(struct world *w, struct node *n, const char *name)
{
    struct client *c = client_of(w, n);
    EACH_PLACE(p, c)
    {
        if (strcmp(p->watched, name) == 0) {
            p->watched[0] = '\0';
            client_hint(w, n);
        }
        if (p->latch.state == LATCH_IN && strcmp(p->latch.name, name) == 0)
            place_vanish(w, n, p);
    }
}

void place_marked(struct world *w, struct node *n, const char *name)
{
    EACH_PLACE(p, client_of(w, n))
    {
        if (strcmp(p->latch.name, name) == 0 && p->in_table && p->granted && !p->over) {
            p->over = true;
            client_hint(w, n);
        }
    }
}

void place_wired(struct world *w, struct node *n, const struct wire *r)
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
        zk_latch_created(&p->latch, reply, r->name, r->czxid, r->owner, c->session);
        if (reply == LATCH_DONE)
            zk_standing_wrote(&c->standing, p->created_at, client_now(w, n));
        else
            place_refuse_asking(w, n, p);
        place_drive(w, n, p);
        break;
    case WIRE_STAT:
        zk_latch_stat(&p->latch, reply, r->czxid, r->owner, c->session);
        place_drive(w, n, p);
        break;
    case WIRE_DELETE:
        zk_latch_deleted(&p->latch, reply);
        p->deleted = reply == LATCH_DONE;
        place_drive(w, n, p);
        break;
    case WIRE_FIND:
        found(w, n, p, l);
        break;
    case WIRE_LOOK:
        looked(w, n, p, l);
        break;
    default: /* WATCH */
        if (reply == LATCH_NO_NODE)
            place_gone(w, n, r->name);
        break;
    }
}

void place_read(struct world *w, struct node *n, const struct wire *r)
{
    struct client *c = client_of(w, n);
    const struct tree_list *l = tree_list(w, r);
    char *names[MEMBERS_MAX];
    int members;
    int i = l != NULL ? zk_latch_lowest(names, names_of(l, names), &members) : -1;
    answer_other(w, n, c->reading, &c->readings, i >= 0, i >= 0 ? &l->member[i] : NULL);
}

/* ---- what the machine asks ------------------------------------------------------------------ */

static void contend(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    struct place *p = find(c);
    if (p != NULL && (p->over || !p->latch.wanted)) {
        place_discard(w, n, p); /* a tenure that has ended is not taken up again */
        p = NULL;
    }
    if (p == NULL)
        p = make(w, n);
    if (p == NULL || !client_keep(p->asking, &p->askings, request)) {
        client_answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
        return;
    }
    p->asked_at = client_now(w, n);
    place_drive(w, n, p);
}

static void renew(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    struct place *p = find(c);
    int64_t now = client_now(w, n);
    struct lease_request one = *request;
    int count = 1;
    if (p == NULL || p->over || !p->granted || (uint64_t)p->latch.czxid != request->token) {
        client_answer(w, n, request, (struct message){.code = SIMBA_ELOST});
    } else if (session_is_fresh(w, c, now)) {
        struct message m = {.token = request->token, .left = session_left(w, n, c, now)};
        memcpy(m.owner, n->id, sizeof m.owner);
        p->asked_at = now;
        client_answer(w, n, request, m);
    } else if (c->connected) {
        session_stall(w, n, &one, &count);
    } else {
        client_answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
    }
}

static void end(struct world *w, struct node *n, struct place *p,
                const struct lease_request *request)
{
    place_refuse_asking(w, n, p);
    bool waits = client_of(w, n)->connected && client_keep(p->ending, &p->endings, request);
    place_discard(w, n, p);
    if (!waits)
        client_answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
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
    client_answer(w, n, request, (struct message){.code = SIMBA_ELOST});
}

static void read_owner(struct world *w, struct node *n, const struct lease_request *request)
{
    struct client *c = client_of(w, n);
    if (!c->connected || !client_keep(c->reading, &c->readings, request))
        client_answer(w, n, request, (struct message){.code = SIMBA_ESTORE});
    else
        wire_send(w, n, NULL, (struct wire){.op = WIRE_READ});
}

void place_request(struct world *w, struct node *n, const struct lease_request *request)
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
