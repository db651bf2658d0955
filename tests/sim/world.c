/* world.c: time, chance and the order of events. */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME_TIME_MAX 100000 /* events at one instant */

/* ---- the queue of events ------------------------------------------------------------------- */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct world *w, struct event *e)
{
    if (w->heap_count == w->heap_room) {
        w->heap_room = w->heap_room == 0 ? 256 : 2 * w->heap_room;
        w->heap = realloc(w->heap, w->heap_room * sizeof(struct event *));
        assert(w->heap != NULL);
    }
    size_t i = w->heap_count++;
    for (; i > 0 && earlier(e, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

static struct event *pop(struct world *w)
{
    if (w->heap_count == 0)
        return NULL;
    struct event *first = w->heap[0], *last = w->heap[--w->heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= w->heap_count)
            break;
        if (child + 1 < w->heap_count && earlier(w->heap[child + 1], w->heap[child]))
            child++;
        if (!earlier(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}

static void recycle(struct world *w, struct event *e)
{
    e->link = w->free;
    w->free = e;
}

void world_post(struct world *w, int64_t at, enum event_kind kind, struct node *n,
                const struct message *m)
{
    struct event *e = w->free;
    if (e != NULL)
        w->free = e->link;
    else
        e = malloc(sizeof *e);
    assert(e != NULL);
    e->at = at > w->now ? at : w->now;
    e->order = w->order++;
    e->kind = (uint8_t)kind;
    e->node = n != NULL ? n->index : 0;
    e->life = n != NULL ? n->life : 0;
    if (m != NULL)
        e->message = *m;
    push(w, e);
}

/* ---- chance, clocks ------------------------------------------------------------------------ */

bool world_chance(struct world *w, unsigned per_10000)
{
    return per_10000 > 0 && !w->scripted && rng_next(&w->random) % 10000 < per_10000;
}

int64_t world_between(struct world *w, int64_t low, int64_t high)
{
    return w->scripted ? low : rng_between(&w->random, low, high);
}

/* In steps of a microsecond, so that also a slow clock never goes back. */
static int64_t at_rate(int64_t t, int64_t rate_ppm)
{
    return t + t / 1000 * rate_ppm / 1000;
}

int64_t world_local(const struct world *w, const struct node *n)
{
    return n->skew + at_rate(w->now, n->rate_ppm);
}

/* The first true time at which the client's clock shows `local` or more. */
int64_t world_true(const struct world *w, const struct node *n, int64_t local)
{
    int64_t wanted = local - n->skew;
    int64_t t = (int64_t)((double)wanted / (1.0 + (double)n->rate_ppm / 1e6));
    while (at_rate(t, n->rate_ppm) < wanted)
        t += 1000;
    return t > w->now ? t : w->now;
}

enum column world_column(const struct node *n)
{
    const struct lease *l = &n->machine.lease;
    if (!n->alive)
        return COLUMN_IDLE;
    switch ((enum lease_state)l->state) {
    case LEASE_IDLE:
        return COLUMN_IDLE;
    case LEASE_CONTENDING:
        return COLUMN_CONTENDING;
    case LEASE_HOLDING:
        return l->wanted ? COLUMN_HOLDING : COLUMN_DRAINING;
    case LEASE_ENDED:
        return COLUMN_ENDED;
    default:
        return COLUMN_RETURNING;
    }
}

void world_count_fault(struct world *w, enum fault fault, const struct node *n)
{
    w->tally->fault[fault][world_column(n)]++;
    w->tally->faults++;
}

static bool is_armed(struct world *w, enum fault fault, const struct node *n)
{
    struct armed *a = &w->armed[fault][n->index];
    return a->times > 0 && a->times-- > 0;
}

bool world_fault(struct world *w, enum fault fault, const struct node *n)
{
    if (w->calm || !(w->scripted ? is_armed(w, fault, n) : world_chance(w, w->mix.rate[fault])))
        return false;
    world_count_fault(w, fault, n);
    if (w->tracing)
        world_trace(w, "%c ! %s", NAME(n), fault_text[fault]);
    return true;
}

int64_t world_fault_for(struct world *w, enum fault fault, const struct node *n, int64_t most)
{
    if (!world_fault(w, fault, n))
        return 0;
    return w->scripted ? w->armed[fault][n->index].length : world_between(w, 0, most);
}

/* ---- what is told of a run ----------------------------------------------------------------- */

void world_note(struct world *w, uint64_t a, uint64_t b)
{
    w->hash = (w->hash ^ a) * 0x9e3779b97f4a7c15u;
    w->hash = ((w->hash >> 29) ^ w->hash ^ b) * 0xbf58476d1ce4e5b9u;
}

void world_trace(struct world *w, const char *format, ...)
{
    if (!w->tracing)
        return;
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (w->trace != NULL)
        w->trace(w->trace_data, w->now, text);
}

void world_fail(struct world *w, const char *format, ...)
{
    if (w->failed)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->failure, sizeof w->failure, format, args);
    va_end(args);
    w->failed = true;
    world_trace(w, "BROKEN: %s", w->failure);
}

/* ---- a run --------------------------------------------------------------------------------- */

struct world *world_make(uint64_t seed, unsigned nodes, uint64_t events, struct tally *tally)
{
    assert(nodes >= 1 && nodes <= NODES_MAX);
    struct world *w = calloc(1, sizeof *w);
    assert(w != NULL);
    w->seed = seed;
    w->random = seed;
    w->hash = seed;
    w->nodes = nodes;
    w->events_max = events;
    w->tally = tally;
    w->now = 1000000000;
    w->store.zxid = 1;
    for (unsigned i = 0; i < nodes; i++)
        w->node[i].index = (uint8_t)i;
    return w;
}

void world_free(struct world *w)
{
    zookeeper_free(w);
    for (struct event *e; (e = pop(w)) != NULL;)
        free(e);
    for (struct event *e = w->free, *next; e != NULL; e = next) {
        next = e->link;
        free(e);
    }
    free(w->heap);
    free(w);
}

static void handle_event(struct world *w, struct event *e)
{
    struct node *n = &w->node[e->node];
    switch ((enum event_kind)e->kind) {
    case EVENT_ARRIVE:
        store_apply(w, e);
        break;
    case EVENT_EXPIRE:
        store_expire(w);
        break;
    case EVENT_AT_SERVER:
        zookeeper_arrive(w, e);
        break;
    case EVENT_NOTE_AT_STORE:
        ticker_at_store(w, e);
        break;
    case EVENT_FAULT:
        inject_fault(w);
        break;
    default:
        node_event(w, n, e);
        break;
    }
}

/* Runs until the time has come or so many events have been; false: broken. */
bool world_run_until(struct world *w, int64_t until, uint64_t events)
{
    while (!w->failed && w->events < events) {
        if (w->heap_count == 0 || w->heap[0]->at > until) {
            if (until != NEVER)
                w->now = until;
            break;
        }
        struct event *e = pop(w);
        w->same_time = e->at == w->now ? w->same_time + 1 : 0;
        if (w->same_time > SAME_TIME_MAX)
            world_fail(w, "time stands still: %c does one thing over and over",
                       NAME(&w->node[e->node]));
        w->now = e->at;
        w->events++;
        world_note(w, (uint64_t)e->at, (uint64_t)e->kind << 8 | e->node);
        handle_event(w, e);
        recycle(w, e);
    }
    return !w->failed;
}

/* The faults end: whoever sleeps wakes, whoever is dead starts again, users become patient. */
static void calm_down(struct world *w)
{
    w->calm = true;
    w->calm_at = w->now;
    world_trace(w, "the faults end");
    for (unsigned i = 0; i < w->nodes; i++)
        node_calm(w, &w->node[i]);
}

/* Kills an owner in calm times; another must own within ttl + transition + 1.5 s + drift of the
 * last renewal that the store applied (C7). */
static bool kill_an_owner(struct world *w)
{
    for (unsigned i = 0; i < w->nodes && !w->failed; i++) {
        struct node *n = &w->node[i];
        if (n->published == 0 || n->kind != HANDLE_CONTENDER || !check_has_waiter(w, n))
            continue;
        unsigned mutex = n->mutex;
        int64_t killed_at = w->now;
        node_crash(w, n);
        if (!world_run_until(w, w->now + 2 * w->mix.latency_ms * MS, UINT64_MAX))
            return false; /* its last renewal may still be on its way */
        int64_t lease = w->period.lease;
        int64_t bound = w->last_write[mutex] + lease + lease / 1000000 * w->period.drift_ppm +
                        1500 * MS + 8 * w->mix.latency_ms * MS;
        if (!world_run_until(w, bound, UINT64_MAX))
            return false;
        check_live(w, mutex, killed_at);
        w->tally->takeovers++;
        return !w->failed;
    }
    return !w->failed;
}

/* The worker of an owner hangs in calm times; another must own within its limit for silence and a
 * takeover. */
static bool stall_an_owner(struct world *w)
{
    for (unsigned i = 0; i < w->nodes && !w->failed; i++) {
        struct node *n = &w->node[i];
        if (n->published == 0 || n->extra.watchdog.limit == 0 || !check_has_waiter(w, n))
            continue;
        unsigned mutex = n->mutex;
        int64_t stalled_at = w->now, lease = w->period.lease;
        int64_t limit = n->extra.watchdog.limit;
        n->silent_until = NEVER;
        int64_t bound = w->now + limit + limit / 1000000 * w->period.drift_ppm + lease +
                        lease / 1000000 * w->period.drift_ppm + 1500 * MS +
                        8 * w->mix.latency_ms * MS;
        if (!world_run_until(w, bound, UINT64_MAX))
            return false;
        check_live(w, mutex, stalled_at);
        w->tally->stall_takeovers++;
        n->silent_until = 0;
        return !w->failed;
    }
    return !w->failed;
}

bool world_run(struct world *w)
{
    mix_draw(w);
    ticker_draw(w);
    for (unsigned i = 0; i < w->nodes; i++)
        node_boot(w, &w->node[i]);
    world_post(w, w->now + 10 * MS, EVENT_FAULT, NULL, NULL);
    if (world_run_until(w, NEVER, w->events_max)) {
        calm_down(w);
        int64_t bound = 3 * w->period.lease + 2 * w->period.ttl + 5000 * MS;
        if (world_run_until(w, w->now + bound, UINT64_MAX)) {
            for (unsigned m = 0; m < MUTEXES; m++)
                check_live(w, m, w->calm_at);
            if (!w->failed && stall_an_owner(w))
                kill_an_owner(w);
        }
    }
    w->tally->events += w->events;
    w->tally->simulated += w->now;
    return !w->failed;
}
