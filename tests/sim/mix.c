/* mix.c: which faults a run has, and when they strike. A swarm: each run draws its own mix, with
 * some faults absent and some frequent, because a world with all of them at once is mostly dead. */
#include "world.h"

static void draw_extra(struct world *w, struct node *n)
{
    int64_t lease = w->period.lease;
    n->has_extra = world_chance(w, 6000);
    n->tells_danger = n->has_extra && world_chance(w, 7000);
    if (n->has_extra && world_chance(w, 4000))
        n->at_least = world_between(w, 0, lease);
    n->has_note = n->has_extra && world_chance(w, 5000) && !w->mix.zookeeper;
    if (!n->has_extra || n->kind != HANDLE_CONTENDER)
        return;
    n->tells_stopped = world_chance(w, 5000);
    if (world_chance(w, 5000))
        n->progress = world_between(w, lease / 8, world_chance(w, 5000) ? lease : 3 * lease);
}

void mix_draw(struct world *w)
{
    struct mix *m = &w->mix;
    static const int64_t ttls[] = {10000, 10000, 2000, 1000, 300, 50, 400000};
    static const int64_t transitions[] = {6000, 6000, 1000, 0, 200, 30, 100000};
    static const char *const ids[] = {"primary", "primary", "backup"};
    size_t timing = (size_t)world_between(w, 0, 7);
    m->ttl_ms = ttls[timing];
    m->transition_ms = transitions[timing];
    m->renew_ms = world_chance(w, 2000) ? m->ttl_ms / 4 : -1;
    m->latency_ms = world_chance(w, 7000) || m->ttl_ms > 10000 ? 1 : m->ttl_ms / 40 + 1;
    m->quickest = 10000;
    m->sessions = world_chance(w, 3000);
    m->chosen_ids = world_chance(w, 5000) ? (unsigned)world_between(w, 0, 10001) : 0;
    for (int i = 0; i < FAULT_COUNT; i++) {
        if (world_chance(w, 4000))
            m->rate[i] = 0;
        else if (world_chance(w, 8000))
            m->rate[i] = (unsigned)world_between(w, 1, 500);
        else
            m->rate[i] = (unsigned)world_between(w, 500, 4000);
    }
    w->store.sessions = m->sessions;
    m->zookeeper = m->sessions && w->seed % 2 == 0;
    if (m->zookeeper)
        zookeeper_make(w);
    struct period_options o = {m->ttl_ms, m->transition_ms, m->renew_ms, -1, -1, -1, -1};
    const char *why;
    if (period_init(&w->period, &o, &why) != 0)
        world_fail(w, "the mix is wrong: %s", why);
    for (unsigned i = 0; i < w->nodes; i++) {
        struct node *n = &w->node[i];
        /* Often at the very bound of what the contract allows: the store 1 % faster than we. */
        n->rate_ppm = world_chance(w, 5000) ? -10000 : world_between(w, -10000, 20000);
        n->skew = world_between(w, 0, 1000000 * MS);
        n->drain = world_chance(w, 5000) ? w->period.lease / 2 : 30000 * MS;
        n->kind = world_chance(w, 3000) ? HANDLE_LOCKER : HANDLE_CONTENDER;
        n->mutex = world_chance(w, 8000) ? 0 : 1;
        draw_extra(w, n);
        n->chosen = world_chance(w, m->chosen_ids) ? ids[i % 3] : NULL;
    }
}

static int64_t some_time(struct world *w)
{
    int64_t lease = w->period.lease;
    return world_chance(w, 5000) ? world_between(w, 0, lease / 4) : world_between(w, 0, 3 * lease);
}

void inject_fault(struct world *w)
{
    struct node *n = &w->node[world_between(w, 0, w->nodes)];
    if (w->calm)
        return;
    world_post(w, w->now + world_between(w, 0, w->period.lease / 4), EVENT_FAULT, NULL, NULL);
    if (n->alive && world_fault(w, FAULT_PAUSE, n))
        node_stop_process(w, n, some_time(w), false);
    else if (n->alive && world_fault(w, FAULT_SUSPEND, n))
        node_stop_process(w, n, some_time(w), true);
    else if (n->alive && world_fault(w, FAULT_LAG, n))
        node_lag(w, n, some_time(w) / 4);
    else if (n->alive && world_fault(w, FAULT_CRASH, n))
        node_crash(w, n);
    else if (world_fault(w, FAULT_FORGE_HINT, n))
        world_post(w, w->now, EVENT_HINT, n, NULL);
    else if (world_fault(w, FAULT_EVICT, n))
        store_evict(w, n->mutex, false);
    else if (world_fault(w, FAULT_FORCE, n))
        store_evict(w, n->mutex, true);
    else if (world_fault(w, FAULT_RESTART, n))
        store_restart(w, false);
    else if (!w->store.sessions && world_fault(w, FAULT_FORGET, n))
        store_restart(w, true);
}
