/* network.c: what becomes of requests, answers and pushes on their way. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static const char *const op_text[] = {"CONTEND", "RENEW", "RELEASE", "READ", "LEAVE"};

static int64_t slowest(const struct world *w)
{
    return w->mix.latency_ms * MS + 20000;
}

static int64_t latency(struct world *w)
{
    return world_between(w, 10000, slowest(w));
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
    if (request->op == SIMBA_CONTEND && n->joined == 0)
        n->joined = ++n->joins;
    m.joined = n->joined;
    if (request->op == SIMBA_RELEASE || request->op == SIMBA_LEAVE)
        n->joined = 0;
    world_trace(w, "%u > %s %llu", n->index, op_text[request->op],
                (unsigned long long)request->token);

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
    int64_t at = w->now + latency(w);
    if (world_fault(w, FAULT_DELAY, n))
        at += world_between(w, 0, 2 * w->period.lease);
    if (w->store.sessions) { /* one connection: in order, once */
        if (at <= n->last_arrival)
            at = n->last_arrival + 1;
        n->last_arrival = at;
    } else if (world_fault(w, FAULT_DUPLICATE, n)) {
        world_post(w, at + world_between(w, 0, 2 * w->period.lease), EVENT_ARRIVE, n, &m);
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
    int64_t at = w->now + latency(w);
    if (world_fault(w, FAULT_DELAY, n))
        at += world_between(w, 0, 2 * w->period.lease);
    if (at > w->now + slowest(w))
        trouble(n, at);
    world_post(w, at, EVENT_REPLY, n, &m);
    if (world_fault(w, FAULT_REPEAT_REPLY, n))
        world_post(w, at + world_between(w, 0, 2 * w->period.lease), EVENT_REPLY, n, &m);
}

void network_hint(struct world *w, unsigned mutex)
{
    for (unsigned i = 0; i < w->nodes; i++) {
        struct node *n = &w->node[i];
        if (n->mutex != mutex || !n->alive || world_fault(w, FAULT_LOSE_HINT, n))
            continue;
        int64_t at = w->now + latency(w);
        if (world_fault(w, FAULT_LATE_HINT, n))
            at += world_between(w, 0, 2 * w->period.lease);
        world_post(w, at, EVENT_HINT, n, NULL);
    }
}
