/* store.c: two stores. One keeps a lease per mutex, as Redis and the SQL databases do; the other
 * has sessions and a queue of ephemeral nodes, as ZooKeeper does. Their clock is true time. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

/* ---- leases -------------------------------------------------------------------------------- */

static void grant(struct world *w, struct event *e, uint64_t token)
{
    e->message.granted = true;
    check_granted(w, e);
    w->last_write[e->message.mutex] = w->now;
    world_trace(w, "    the store grants %llu to %s", (unsigned long long)token, e->message.id);
}

/* The last tenure that the store has begun of the mutex has this token. */
static void publish(struct world *w, const struct event *e, uint64_t last)
{
    const struct message *m = &e->message;
    check_noted(w, e, last);
    w->store.note[m->mutex] = m->request.token;
    w->node[e->node].noted = m->request.token;
    world_trace(w, "    the store keeps a note of %llu", (unsigned long long)m->request.token);
}

static void apply_lease(struct world *w, struct event *e)
{
    struct message *m = &e->message;
    struct lease_record *r = &w->store.lease[m->mutex];
    bool held = r->owner[0] != '\0' && r->until > w->now;
    bool ours = r->token == m->request.token && strcmp(r->owner, m->id) == 0;
    switch (m->request.op) {
    case SIMBA_CONTEND:
        if (held || w->store.grace_until > w->now)
            break;
        snprintf(r->owner, sizeof r->owner, "%s", m->id);
        r->token = ++r->fence;
        r->until = w->now + m->lease;
        r->evicted = false;
        held = true;
        grant(w, e, r->token);
        break;
    case SIMBA_RENEW:
        if (!held || !ours || r->evicted) {
            m->code = SIMBA_ELOST;
        } else {
            r->until = w->now + m->lease;
            w->last_write[m->mutex] = w->now;
        }
        break;
    case SIMBA_PUBLISH:
        if (!held || !ours || r->evicted)
            m->code = SIMBA_ELOST;
        else
            publish(w, e, r->token);
        break;
    case SIMBA_RELEASE:
        if (ours) {
            world_trace(w, "    the store frees %llu", (unsigned long long)r->token);
            r->owner[0] = '\0';
            held = false;
            network_hint(w, m->mutex);
        } else {
            m->code = SIMBA_ELOST;
        }
        break;
    default:
        break;
    }
    if (held) {
        memcpy(m->owner, r->owner, sizeof m->owner);
        m->token = r->token;
        m->left = r->until - w->now;
    } else if (w->store.grace_until > w->now) {
        m->left = w->store.grace_until - w->now;
    }
}

/* ---- sessions ------------------------------------------------------------------------------ */

static void remove_member(struct world *w, unsigned mutex, size_t i)
{
    struct member *all = w->store.member[mutex];
    if (w->tracing)
        world_trace(w, "    the store removes node %llu of %s", (unsigned long long)all[i].token,
                    all[i].id);
    memmove(&all[i], &all[i + 1], (w->store.members[mutex] - i - 1) * sizeof *all);
    w->store.members[mutex]--;
    network_hint(w, mutex);
}

static void end_session(struct world *w, unsigned node)
{
    world_trace(w, "    the store ends the session of %c", NAME(&w->node[node]));
    w->store.session[node].alive = false;
    for (unsigned m = 0; m < MUTEXES; m++) {
        for (size_t i = w->store.members[m]; i-- > 0;) {
            if (w->store.member[m][i].node == node)
                remove_member(w, m, i);
        }
    }
}

void store_expire(struct world *w)
{
    if (w->zookeeper != NULL) {
        zookeeper_expire(w);
        return;
    }
    for (unsigned i = 0; i < w->nodes; i++) {
        if (w->store.session[i].alive && w->store.session[i].until <= w->now)
            end_session(w, i);
    }
}

/* Every write of a client keeps its session; only joining makes a new one. */
static bool touch(struct world *w, const struct event *e, bool make)
{
    struct session *s = &w->store.session[e->node];
    if (s->alive && s->life != e->life) {
        if (s->life > e->life)
            return false; /* from a process that is gone */
        end_session(w, e->node);
    }
    if (!s->alive && !make)
        return false;
    *s = (struct session){.alive = true, .life = e->life, .until = w->now + e->message.lease};
    world_post(w, s->until, EVENT_EXPIRE, NULL, NULL);
    return true;
}

static size_t find_member(const struct world *w, const struct event *e)
{
    const struct message *m = &e->message;
    size_t i = 0;
    while (i < w->store.members[m->mutex] &&
           (w->store.member[m->mutex][i].node != e->node ||
            w->store.member[m->mutex][i].life != e->life ||
            w->store.member[m->mutex][i].node_number != m->node_number))
        i++;
    return i;
}

static void join(struct world *w, struct event *e)
{
    struct message *m = &e->message;
    size_t count = w->store.members[m->mutex];
    size_t i = find_member(w, e);
    if (i == count) {
        if (count == MEMBERS_MAX) {
            m->code = SIMBA_ESTORE;
            return;
        }
        struct member *member = &w->store.member[m->mutex][count];
        *member = (struct member){.token = w->store.zxid++, .node = e->node, .life = e->life};
        member->node_number = m->node_number;
        memcpy(member->id, m->id, sizeof member->id);
        w->store.members[m->mutex]++;
        world_trace(w, "    the store adds node %llu of %s", (unsigned long long)member->token,
                    member->id);
    }
    const struct member *first = &w->store.member[m->mutex][0];
    if (first->node == e->node && first->life == e->life) /* also one that we thought lost */
        grant(w, e, first->token);
}

static size_t find_tenure(const struct world *w, const struct event *e)
{
    const struct message *m = &e->message;
    size_t i = 0;
    while (i < w->store.members[m->mutex] &&
           (w->store.member[m->mutex][i].node != e->node ||
            w->store.member[m->mutex][i].token != m->request.token))
        i++;
    return i;
}

static void apply_session(struct world *w, struct event *e)
{
    struct message *m = &e->message;
    bool alive = touch(w, e, m->request.op == SIMBA_CONTEND);
    size_t i = m->request.op == SIMBA_LEAVE ? find_member(w, e) : find_tenure(w, e);
    bool ours = i < w->store.members[m->mutex];
    switch (m->request.op) {
    case SIMBA_CONTEND:
        if (alive)
            join(w, e);
        else
            m->code = SIMBA_ESTORE;
        break;
    case SIMBA_RENEW:
        if (!alive || !ours || i != 0)
            m->code = SIMBA_ELOST;
        else
            w->last_write[m->mutex] = w->now;
        break;
    case SIMBA_PUBLISH:
        if (!alive || !ours || i != 0)
            m->code = SIMBA_ELOST;
        else
            publish(w, e, w->store.member[m->mutex][0].token);
        break;
    case SIMBA_RELEASE:
        if (alive && ours)
            remove_member(w, m->mutex, i);
        else
            m->code = SIMBA_ELOST;
        break;
    case SIMBA_LEAVE:
        if (alive && ours)
            remove_member(w, m->mutex, i);
        break;
    default:
        break;
    }
    if (w->store.members[m->mutex] > 0) {
        const struct member *first = &w->store.member[m->mutex][0];
        const struct session *s = &w->store.session[first->node];
        memcpy(m->owner, first->id, sizeof m->owner);
        m->token = first->token;
        m->left = s->until > w->now ? s->until - w->now : 0;
    }
}

/* ---- both ---------------------------------------------------------------------------------- */

void store_apply(struct world *w, struct event *e)
{
    e->message.code = 0;
    e->message.granted = false;
    e->message.owner[0] = '\0';
    e->message.token = 0;
    e->message.left = 0;
    if (w->store.sessions)
        apply_session(w, e);
    else
        apply_lease(w, e);
    network_reply(w, e);
}

/* By force the mutex is free at once; the tenure that loses it is protected by its token only. */
void store_note_forced(struct world *w, unsigned mutex, uint64_t token)
{
    w->forced[mutex] = token;
    for (unsigned i = 0; i < w->nodes; i++) {
        struct node *n = &w->node[i];
        if (n->mutex == mutex && n->machine.lease.token == token)
            n->forced = true;
    }
}

void store_evict(struct world *w, unsigned mutex, bool forced)
{
    struct lease_record *r = &w->store.lease[mutex];
    struct member *first = &w->store.member[mutex][0];
    if (w->zookeeper != NULL) {
        zookeeper_evict(w, mutex, forced);
    } else if (w->store.sessions && w->store.members[mutex] > 0) {
        if (forced) {
            store_note_forced(w, mutex, first->token);
            remove_member(w, mutex, 0);
        }
    } else if (!w->store.sessions && r->owner[0] != '\0') {
        r->evicted = true;
        if (forced) {
            store_note_forced(w, mutex, r->token);
            r->owner[0] = '\0';
        }
        network_hint(w, mutex);
    }
}

/* What it promised it keeps, unless it forgets: then it grants nothing until a tenure from before
 * must have ended, and begins its tokens at its clock, above all that it can have given. Were they
 * to begin at 1 again, a late RELEASE of then could name a tenure of now. */
void store_restart(struct world *w, bool forget)
{
    world_trace(w, "    the store restarts%s", forget ? " and has forgotten everything" : "");
    if (w->zookeeper != NULL)
        zookeeper_restart(w);
    if (!forget)
        return;
    ticker_forget(w);
    memset(w->store.lease, 0, sizeof w->store.lease);
    for (unsigned m = 0; m < MUTEXES; m++)
        w->store.lease[m].fence = (uint64_t)w->now;
    w->store.grace_until = w->now + w->period.lease;
}
