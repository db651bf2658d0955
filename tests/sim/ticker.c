/* ticker.c: see ticker.h. The note is read and written by requests of its own, which are lost, late
 * and doubled as others are. Checked are, on the store that keeps leases:
 *   claims only rise, and where all ticks are to be run, none is left out;
 *   where a tick may run once, it does not run twice;
 *   where it must run, it is not done before it has, and no other begins before it is done;
 *   no tick is claimed that is long to come by the store's clock, whatever a leader's own shows. */
#include "ticker.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

#define EPOCH_MS INT64_C(1700000000000)
#define AHEAD_MAX_MS 30000
#define AHEAD_PERIODS 100 /* so that fewer are missed than can be made up */
#define WRONG_MS INT64_C(3600000)
#define WRONG_PER_10000 800 /* how often a wall clock is wrong by that, ahead or behind */
#define STEP_PER_10000 300  /* how often a wall clock steps: when a leader wakes */

static int64_t wall_of_store(const struct world *w)
{
    return EPOCH_MS + w->now / MS;
}

static int64_t wall(const struct world *w, const struct node *n)
{
    return ticks_clock(wall_of_store(w) + n->ticker.ahead, wall_of_store(w));
}

static int64_t draw_ahead(struct world *w)
{
    int64_t most = AHEAD_PERIODS * w->ticks.period;
    most = most < AHEAD_MAX_MS ? most : AHEAD_MAX_MS;
    if (world_chance(w, WRONG_PER_10000))
        return world_chance(w, 5000) ? WRONG_MS : -WRONG_MS;
    return world_between(w, -most, most + 1);
}

void ticker_draw(struct world *w)
{
    struct tick_world *t = &w->ticks;
    t->has_ticks = !w->store.sessions && w->seed % 4 == 0;
    if (!t->has_ticks)
        return;
    t->missed = (enum simba_missed)world_between(w, 0, 3);
    t->at_least_once = world_chance(w, 4000);
    t->period = world_between(w, w->period.lease / MS / 8 + 1, w->period.lease / MS / 2 + 2);
    for (unsigned i = 0; i < w->nodes; i++)
        w->node[i].ticker.ahead = draw_ahead(w);
}

void ticker_reset(struct node *n)
{
    n->ticker.phase = TICKER_OFF;
}

static bool owns(const struct world *w, const struct node *n)
{
    return node_owns(w, n) && n->view.token == n->ticker.token;
}

/* Unless something else comes first. */
static void wake_after(struct world *w, struct node *n, int64_t ns)
{
    struct message m = {.token = ++n->ticker.number};
    world_post(w, w->now + (ns > 0 ? ns : 0), EVENT_TICKER, n, &m);
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Of READ the store fills in the note, of PUBLISH it has it here. */
static void ask(struct world *w, struct node *n, enum simba_op op)
{
    struct message m = {.mutex = n->mutex, .life = n->life};
    m.request.op = op;
    m.request.token = n->ticker.token;
    m.request.seq = ++w->ticks.serial;
    m.left = n->ticker.ticks.planned;
    snprintf(m.id, sizeof m.id, "%s", n->id);
    if (op == SIMBA_PUBLISH)
        ticks_note(&n->ticker.ticks, n->ticker.has_run, m.packet.name);
    wake_after(w, n, w->period.attempt + MS);
    m.token = n->ticker.number;
    if (world_fault(w, FAULT_LOSE_REQUEST, n))
        return;
    int64_t latency = world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
    int64_t late = world_fault_for(w, FAULT_DELAY_REQUEST, n, 2 * w->period.lease);
    world_post(w, w->now + latency + late, EVENT_NOTE_AT_STORE, n, &m);
    if (world_fault(w, FAULT_DUPLICATE, n))
        world_post(w, w->now + latency + world_between(w, 0, 2 * w->period.lease),
                   EVENT_NOTE_AT_STORE, n, &m);
}

/* Before the run, and after it. False: there is nothing to write. */
static bool claim(struct world *w, struct node *n)
{
    char note[TICKS_NOTE_SIZE];
    if (!ticks_note(&n->ticker.ticks, n->ticker.has_run, note))
        return false;
    n->ticker.phase = TICKER_CLAIMS;
    ask(w, n, SIMBA_PUBLISH);
    return true;
}

/* ---- the store ----------------------------------------------------------------------------- */

/* As RENEW: only while this very tenure lasts. Of two of one tenure the later one stays. */
static bool is_taken(struct world *w, struct message *m, const struct tick_record *r)
{
    const struct lease_record *l = &w->store.lease[m->mutex];
    bool held = l->until > w->now && strcmp(l->owner, m->id) == 0 && !l->evicted;
    bool ours = held && l->token == m->request.token;
    bool overtaken = r->token == m->request.token && m->request.seq <= r->serial;
    m->code = ours ? 0 : SIMBA_ELOST;
    return ours && !overtaken;
}

static void take(struct world *w, const struct node *n, const struct message *m,
                 struct tick_record *r)
{
    int64_t tick = m->left;
    bool is_next = tick == r->claimed || tick == r->claimed + w->ticks.period;
    bool is_done = strstr(m->packet.name, " done ") != NULL;
    bool has_begun = r->claimed == tick && (r->is_begun || strstr(r->note, " done ") != NULL);
    world_trace(w, "    the store has the note '%s' of %c", m->packet.name, NAME(n));
    if (tick > wall_of_store(w) + TICKS_APART_MS)
        world_fail(w, "ticks: %c claims %lld, which is %lld ms ahead of the store's clock", NAME(n),
                   (long long)tick, (long long)(tick - wall_of_store(w)));
    if (tick < r->claimed && !r->is_void)
        world_fail(w, "ticks: %c claims %lld after %lld", NAME(n), (long long)tick,
                   (long long)r->claimed);
    if (r->claimed != 0 && w->ticks.missed == SIMBA_MISSED_ALL && !is_next && !r->is_void)
        world_fail(w, "ticks: %c claims %lld after %lld, and one is left out", NAME(n),
                   (long long)tick, (long long)r->claimed);
    if (is_done && !has_begun && !r->is_void)
        world_fail(w, "ticks: %c has done %lld, which was not begun", NAME(n), (long long)tick);
    if (r->is_begun && tick != r->claimed && !r->is_void)
        world_fail(w, "ticks: %c claims %lld, and %lld is begun and not done", NAME(n),
                   (long long)tick, (long long)r->claimed);
    if (r->first == 0)
        r->first = tick;
    r->is_begun = w->ticks.at_least_once && !is_done;
    r->claimed = tick;
    r->token = m->request.token;
    r->serial = m->request.seq;
    memcpy(r->note, m->packet.name, sizeof r->note);
    w->tally->claims++;
}

void ticker_at_store(struct world *w, struct event *e)
{
    struct message *m = &e->message;
    struct tick_record *r = &w->ticks.record[m->mutex];
    struct node *n = &w->node[e->node];
    m->code = 0;
    if (m->request.op == SIMBA_READ)
        memcpy(m->packet.name, r->note, sizeof r->note);
    else if (is_taken(w, m, r))
        take(w, n, m, r);
    if (n->life != e->life || world_fault(w, FAULT_LOSE_REPLY, n))
        return;
    int64_t latency = world_between(w, w->mix.quickest, w->mix.latency_ms * MS + 20000);
    int64_t late = world_fault_for(w, FAULT_DELAY_REPLY, n, 2 * w->period.lease);
    world_post(w, w->now + latency + late, EVENT_NOTE_REPLY, n, m);
}

void ticker_forget(struct world *w)
{
    for (unsigned i = 0; i < MUTEXES; i++)
        w->ticks.record[i].is_void = true;
}

/* ---- a leader ------------------------------------------------------------------------------ */

static void plan(struct world *w, struct node *n)
{
    ticks_plan(&n->ticker.ticks, wall(w, n));
    n->ticker.phase = TICKER_WAITS;
    n->ticker.has_run = false;
    wake_after(w, n, (n->ticker.ticks.planned - wall(w, n)) * MS);
}

static void run(struct world *w, struct node *n)
{
    struct tick_record *r = &w->ticks.record[n->mutex];
    int64_t tick = n->ticker.ticks.planned;
    int64_t i = (tick - r->first) / w->ticks.period;
    bool is_recorded = r->first != 0 && i >= 0 && i < TICK_RECORD_MAX;
    world_trace(w, "%c   runs tick %lld", NAME(n), (long long)tick);
    if (is_recorded && r->runs[i]++ > 0 && !w->ticks.at_least_once && !r->is_void)
        world_fail(w, "ticks: %c runs %lld, which has been run", NAME(n), (long long)tick);
    n->ticker.phase = TICKER_RUNS;
    if (w->ticks.at_least_once && !r->is_void && (!r->is_begun || r->claimed != tick))
        world_fail(w, "ticks: %c runs %lld, which was not begun", NAME(n), (long long)tick);
    wake_after(w, n,
               world_between(w, 0, 2 * MS) +
                   world_fault_for(w, FAULT_SLOW_CALLBACK, n, w->period.lease));
    w->tally->ticks++;
}

void ticker_begin(struct world *w, struct node *n, uint64_t token)
{
    if (!w->ticks.has_ticks)
        return;
    n->ticker.ticks = (struct ticks){
        .period = w->ticks.period,
        .grace = 2 * w->period.lease / MS,
        .missed = w->ticks.missed,
        .at_least_once = w->ticks.at_least_once,
    };
    n->ticker.token = token;
    n->ticker.phase = TICKER_READS;
    ask(w, n, SIMBA_READ);
}

static void on_answer(struct world *w, struct node *n, const struct message *m)
{
    struct ticker *t = &n->ticker;
    if (m->code != 0 || !owns(w, n)) {
        t->phase = TICKER_OFF;
    } else if (t->phase == TICKER_READS) {
        if (ticks_begin(&t->ticks, m->packet.name) != 0)
            world_fail(w, "ticks: the note '%s' is not understood", m->packet.name);
        plan(w, n);
    } else {
        ticks_claimed(&t->ticks);
        if (t->has_run)
            plan(w, n);
        else
            run(w, n);
    }
}

static void on_alarm(struct world *w, struct node *n)
{
    struct ticker *t = &n->ticker;
    if (!owns(w, n)) {
        t->phase = TICKER_OFF;
    } else if (t->phase == TICKER_READS) {
        ask(w, n, SIMBA_READ);
    } else if (t->phase == TICKER_CLAIMS) {
        ask(w, n, SIMBA_PUBLISH);
    } else if (t->phase == TICKER_RUNS) {
        t->has_run = true;
        if (!claim(w, n))
            plan(w, n);
    } else {
        if (!w->calm && world_chance(w, STEP_PER_10000))
            t->ahead = draw_ahead(w);
        if (!ticks_is_due(&t->ticks, wall(w, n)))
            wake_after(w, n, (t->ticks.planned - wall(w, n)) * MS);
        else if (!claim(w, n))
            run(w, n);
    }
}

void ticker_event(struct world *w, struct node *n, const struct event *e)
{
    const struct ticker *t = &n->ticker;
    if (t->phase == TICKER_OFF || e->message.token != t->number)
        return;
    if (e->kind == EVENT_TICKER)
        on_alarm(w, n);
    else
        on_answer(w, n, &e->message);
}
