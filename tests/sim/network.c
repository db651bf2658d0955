/* network.c: what becomes of requests, answers and pushes on their way. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static int64_t slowest(const struct world *w)
{
    return w->mix.latency_ms * MS + 20000;
}

static int64_t latency(struct world *w)
{
    return world_between(w, w->mix.quickest, slowest(w));
}

static void trouble(struct node *n, int64_t until)
{
    if (until > n->trouble_until)
        n->trouble_until = until;
}

/* The connection is given up: the client hears of it after a while, or never. */
static void fail_later(struct world *w, struct node *n, struct message *m)
{
    if (!world_chance(w, 5000))
        return;
    m->code = SIMBA_ESTORE;
    world_post(w, w->now + world_between(w, 0, 2000 * MS), EVENT_REPLY, n, m);
}

void network_send(struct world *w, struct node *n, const struct lease_request *request)
{
    struct message m = {.request = *request, .mutex = n->mutex, .life = n->life};
    m.lease = w->period.lease;
    snprintf(m.id, sizeof m.id, "%s", n->id);
    if (request->op == SIMBA_CONTEND && n->node_number == 0)
        n->node_number = ++n->joins;
    m.node_number = n->node_number;
    if (request->op == SIMBA_RELEASE || request->op == SIMBA_LEAVE)
        n->node_number = 0;
    if (w->tracing && request->token != 0)
        world_trace(w, "%c > %s %llu", NAME(n), name_of_op(request->op),
                    (unsigned long long)request->token);
    else if (w->tracing)
        world_trace(w, "%c > %s", NAME(n), name_of_op(request->op));

    if (w->zookeeper != NULL) {
        zookeeper_request(w, n, request);
        return;
    }
    if (world_fault(w, FAULT_FAIL, n)) {
        trouble(n, w->now);
        m.code = SIMBA_ESTORE;
        world_post(w, w->now + latency(w), EVENT_REPLY, n, &m);
        return;
    }
    if (world_fault(w, FAULT_LOSE_REQUEST, n)) {
        trouble(n, w->now);
        fail_later(w, n, &m);
        return;
    }
    int64_t most = 2 * w->period.lease;
    int64_t at = w->now + latency(w) + world_fault_for(w, FAULT_DELAY_REQUEST, n, most);
    if (w->store.sessions) { /* one connection: in order, once */
        if (at <= n->last_arrival)
            at = n->last_arrival + 1;
        n->last_arrival = at;
    } else {
        int64_t later = world_fault_for(w, FAULT_DUPLICATE, n, most);
        if (later > 0)
            world_post(w, at + later, EVENT_ARRIVE, n, &m);
    }
    if (at > w->now + slowest(w))
        trouble(n, at);
    world_post(w, at, EVENT_ARRIVE, n, &m);
}

void network_reply(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->node];
    struct message m = e->message;
    if (e->life != n->life)
        return; /* nobody is there any more */
    if (world_fault(w, FAULT_LOSE_REPLY, n)) {
        trouble(n, w->now);
        fail_later(w, n, &m);
        return;
    }
    int64_t most = 2 * w->period.lease;
    int64_t at = w->now + latency(w) + world_fault_for(w, FAULT_DELAY_REPLY, n, most);
    if (at > w->now + slowest(w))
        trouble(n, at);
    world_post(w, at, EVENT_REPLY, n, &m);
    int64_t later = world_fault_for(w, FAULT_REPEAT_REPLY, n, most);
    if (later > 0)
        world_post(w, at + later, EVENT_REPLY, n, &m);
}

void network_hint(struct world *w, unsigned mutex)
{
    for (unsigned i = 0; i < w->nodes; i++) {
        struct node *n = &w->node[i];
        if (n->mutex != mutex || !n->alive || world_fault(w, FAULT_LOSE_HINT, n))
            continue;
        int64_t late = world_fault_for(w, FAULT_LATE_HINT, n, 2 * w->period.lease);
        world_post(w, w->now + latency(w) + late, EVENT_HINT, n, NULL);
    }
}
