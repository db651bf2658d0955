/* observer.c: watching without contending (simba_observer), listing (simba_list), evicting by
 * token. */
#include <simba/backend.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

/* ---- an observer that writes down and checks what it is told ------------------------------- */

struct watcher {
    simba_observer *w;
    atomic_bool block, gate; /* block: the next call waits for the gate */
    atomic_int calls, closed, inside;
    _Atomic uint64_t token; /* of the owner as last told; 0: nobody */
    _Atomic uint64_t top;   /* the greatest ever told */
    atomic_int reason;
    char id[sizeof((struct simba_owner *)0)->id]; /* written before calls is raised */
};

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    struct watcher *w = data;
    CHECK(atomic_fetch_add(&w->inside, 1) == 0);
    CHECK(atomic_load(&w->closed) == 0);
    CHECK(mutex[0] != '\0');
    CHECK(state->after.token == 0 || state->after.token >= atomic_load(&w->top));
    CHECK((state->after.id[0] == '\0') == (state->after.token == 0));
    if (state->after.token != 0)
        atomic_store(&w->top, state->after.token);
    snprintf(w->id, sizeof w->id, "%s", state->after.id);
    atomic_store(&w->token, state->after.token);
    atomic_store(&w->reason, state->reason);
    atomic_fetch_add(&w->calls, 1);
    if (atomic_load(&w->block))
        AWAIT(atomic_load(&w->gate));
    CHECK(atomic_fetch_sub(&w->inside, 1) == 1);
}

static void on_closed(void *data)
{
    struct watcher *w = data;
    CHECK(atomic_load(&w->inside) == 0);
    CHECK(atomic_fetch_add(&w->closed, 1) == 0);
}

static void watch(struct watcher *w, simba_client *s, const char *mutex)
{
    struct simba_handle_options o = lease_long();
    o.on_changed = on_changed;
    o.on_closed = on_closed;
    o.data = w;
    CHECK_OK(simba_observer_create(s, mutex, &o, &w->w));
}

/* With leases of a minute: what it is told it was pushed, it did not wait for their end. */
/* shows: observers */
static void observer_follows(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("observed");
    struct simba_handle_options o = lease_long();
    struct watcher w = {.w = NULL};
    struct probe p = {0};
    watch(&w, two, mutex);
    AWAIT(atomic_load(&w.calls) == 1);
    CHECK(atomic_load(&w.token) == 0);
    probe_create(&p, one, mutex, &o);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(probe_leads(&p));
        uint64_t token = simba_contender_token(p.c);
        AWAIT(atomic_load(&w.token) == token);
        CHECK(strcmp(w.id, simba_contender_id(p.c)) == 0);
        CHECK(atomic_load(&w.reason) == SIMBA_ACQUIRED);
        probe_stop(&p);
        AWAIT(atomic_load(&w.token) == 0);
        CHECK(atomic_load(&w.reason) == SIMBA_RELEASED);
    }
    client_close(one);
    client_close(two);
    CHECK(atomic_load(&w.closed) == 1);
}

/* What is there before it comes is told, too; renewals are no change. */
/* shows: observers */
static void observer_comes_late(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("late");
    struct simba_handle_options o = lease_steady();
    struct watcher w = {.w = NULL};
    struct probe p = {0};
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    watch(&w, s, mutex);
    AWAIT(atomic_load(&w.calls) == 1);
    CHECK(atomic_load(&w.token) == simba_contender_token(p.c));
    struct simba_state state;
    simba_observer_state(w.w, &state);
    CHECK(simba_owner_is(&state.after, simba_contender_id(p.c)));
    nap(3 * o.ttl_ms / 2);
    CHECK(atomic_load(&w.calls) == 1);
    client_close(s);
}

/* While a call runs, changes become one: the next call tells the last state. */
/* shows: observers */
static void observer_slow(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("slow");
    struct simba_handle_options o = lease_long();
    struct watcher w = {.block = true};
    struct probe p = {0};
    watch(&w, two, mutex);
    AWAIT(atomic_load(&w.calls) == 1);
    probe_create(&p, one, mutex, &o);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(probe_leads(&p));
        if (i < 9)
            probe_stop(&p);
    }
    struct simba_state state;
    do { /* it goes on polling meanwhile */
        simba_observer_state(w.w, &state);
        nap(1);
    } while (state.after.token != simba_contender_token(p.c));
    atomic_store(&w.block, false);
    atomic_store(&w.gate, true);
    AWAIT(atomic_load(&w.token) == simba_contender_token(p.c));
    CHECK(atomic_load(&w.calls) == 2);
    client_close(one);
    client_close(two);
}

/* Without any push it looks again when the lease that it knows of has ended. */
/* shows: observers */
static void observer_without_pushes(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("unpushed");
    struct simba_handle_options o = lease_short();
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    struct watcher w = {.w = NULL};
    struct probe p = {0};
    f.lose_hint = 100;
    CHECK_OK(simba_memory_set_faults(suite_url(), &f));
    probe_start(&p, one, mutex, &o);
    AWAIT(probe_leads(&p));
    watch(&w, two, mutex);
    AWAIT(atomic_load(&w.token) == simba_contender_token(p.c));
    probe_stop(&p);
    AWAIT(atomic_load(&w.token) == 0);
    client_close(one);
    client_close(two);
}

struct ends {
    atomic_int calls;
    int reason[16];
    char before[16][40], after[16][40];
    bool evicted; /* was seen */
};

static void note_end(void *data, const char *mutex, const struct simba_state *state)
{
    struct ends *e = data;
    int n = atomic_load(&e->calls);
    (void)mutex;
    CHECK(n < 16);
    e->reason[n] = (int)state->reason;
    snprintf(e->before[n], sizeof e->before[n], "%.30s", state->before.id);
    snprintf(e->after[n], sizeof e->after[n], "%.30s", state->after.id);
    e->evicted = e->evicted || (state->before.flags & SIMBA_OWNER_EVICTED) != 0;
    atomic_store(&e->calls, n + 1);
}

static bool saw(const struct ends *e, int n, enum simba_reason reason, const char *before,
                const char *after)
{
    return atomic_load(&e->calls) > n && e->reason[n] == (int)reason &&
           strcmp(e->before[n], before) == 0 && strcmp(e->after[n], after) == 0;
}

/* Each end of a tenure has its own reason, and comes before the next beginning. Of one that ended while the
 * store stood still for longer than the lease, nobody saw why, unless it was seen right before. */
/* shows: observers */
static void observer_reasons(void)
{
    simba_client *one = client_open_quick(200), *two = client_open();
    const char *mutex = fresh("reasons");
    struct simba_handle_options o = lease_long(), w = lease_long(), brief = lease(400, 200);
    struct ends e = {0};
    struct probe p = {0};
    simba_observer *watch;
    o.id = "a";
    brief.id = "b";
    w.on_changed = note_end;
    w.data = &e;
    CHECK_OK(simba_observer_create(two, mutex, &w, &watch));
    AWAIT(atomic_load(&e.calls) == 1);
    probe_start(&p, one, mutex, &o);
    AWAIT(saw(&e, 1, SIMBA_ACQUIRED, "", "a"));
    probe_stop(&p);
    AWAIT(saw(&e, 2, SIMBA_RELEASED, "a", ""));
    struct probe q = {0};
    probe_start(&q, one, mutex, &brief);
    AWAIT(saw(&e, 3, SIMBA_ACQUIRED, "", "b"));
    store_set(HANG); /* nobody renews, nobody can ask */
    AWAIT(atomic_load(&q.released) == 1);
    nap(800);
    store_set(HEALTHY);
    AWAIT(atomic_load(&e.calls) > 5);
    CHECK(saw(&e, 4, SIMBA_UNSEEN, "b", "") || saw(&e, 4, SIMBA_EXPIRED, "b", ""));
    AWAIT(saw(&e, 5, SIMBA_ACQUIRED, "", "b"));
    client_close(one);
    client_close(two);
}

/* Evicted without force by an operator, while its owner stands still and cannot release. */
/* shows: observers */
static void observer_sees_eviction(void)
{
    struct simba_options manual = SIMBA_OPTIONS_INIT;
    simba_client *one, *two = client_open();
    const char *mutex = fresh("evicted");
    struct simba_handle_options o = lease(8000, 0), w = lease_long();
    struct ends e = {0};
    simba_observer *watch;
    simba_locker *l;
    struct simba_state state;
    o.id = "a";
    w.on_changed = note_end;
    w.data = &e;
    manual.flags = SIMBA_NO_THREAD; /* renews only when it is polled */
    CHECK_OK(simba_open(suite_url(), &manual, &one));
    CHECK_OK(simba_observer_create(two, mutex, &w, &watch));
    CHECK_OK(simba_locker_create(one, mutex, &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT(atomic_load(&e.calls) > 0 && saw(&e, atomic_load(&e.calls) - 1, SIMBA_ACQUIRED, "", "a"));
    int n = atomic_load(&e.calls);
    CHECK_OK(simba_evict(two, mutex, NULL, false, PATIENCE_MS));
    do
        simba_observer_state(watch, &state);
    while (strcmp(state.after.id, "a") == 0 && (state.after.flags & SIMBA_OWNER_EVICTED) == 0);
    CHECK(strcmp(state.after.id, "a") == 0); /* it runs out */
    AWAIT(saw(&e, n, SIMBA_EVICTED, "a", ""));
    CHECK(e.evicted);
    CHECK_OK(simba_close(one, PATIENCE_MS));
    client_close(two);
}

#define ENDS 8          /* at once: which instant of a lease it is, is left to chance */
#define ENDS_LEASE 2000 /* much shorter than the observer's */

static struct simba_handle_options lease_of_ends(void)
{
    return lease(ENDS_LEASE - 500, 500);
}

/* Of a tenure that is on: one that comes later is seen late on a store without hints. */
static void watch_ends(simba_client *s, const char *mutex, struct ends *e)
{
    struct simba_handle_options w = lease_long();
    simba_observer *watch;
    w.on_changed = note_end;
    w.data = e;
    CHECK_OK(simba_observer_create(s, mutex, &w, &watch));
}

static bool saw_end(struct ends *e, int *reason)
{
    int n = atomic_load(&e->calls);
    *reason = n > 0 ? e->reason[n - 1] : SIMBA_UNCHANGED;
    return n > 0 && e->before[n - 1][0] != '\0' && e->after[n - 1][0] == '\0';
}

/* Owners that release after they have renewed do not look as if theirs had run out: what the observer
 * knows of them may be old.
 * shows: observers */
static void observer_sees_releases(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_of_ends();
    struct probe p[ENDS] = {{.c = NULL}};
    struct ends e[ENDS] = {{.evicted = false}};
    int reason;
    char mutexes[ENDS][SIMBA_MUTEX_MAX + 1];
    for (int i = 0; i < ENDS; i++) {
        snprintf(mutexes[i], sizeof mutexes[i], "%s", fresh("released"));
        probe_start(&p[i], one, mutexes[i], &o);
    }
    for (int i = 0; i < ENDS; i++) {
        AWAIT(probe_leads(&p[i]));
        watch_ends(two, mutexes[i], &e[i]);
    }
    nap(ENDS_LEASE * 5 / 4);
    for (int i = 0; i < ENDS; i++)
        probe_stop(&p[i]);
    for (int i = 0; i < ENDS; i++) {
        AWAIT(saw_end(&e[i], &reason));
        if (atomic_load(&p[i].reason) == SIMBA_RELEASED && atomic_load(&p[i].acquired) == 1)
            CHECK(reason == SIMBA_RELEASED || reason == SIMBA_UNSEEN);
    }
    client_close(one);
    client_close(two);
}

/* Owners that stand still: their leases run out while the observer looks.
 * shows: observers */
static void observer_sees_expiries(void)
{
    if (strncmp(suite_url(), "zookeeper", strlen("zookeeper")) == 0)
        suite_skip("ZooKeeper itself ends what a session has that says nothing");
    struct simba_options manual = SIMBA_OPTIONS_INIT;
    simba_client *one, *two = client_open();
    struct simba_handle_options o = lease_of_ends();
    struct ends e[ENDS] = {{.evicted = false}};
    int expired = 0, reason;
    manual.flags = SIMBA_NO_THREAD; /* renews only when it is polled */
    CHECK_OK(simba_open(suite_url(), &manual, &one));
    for (int i = 0; i < ENDS; i++) {
        const char *mutex = fresh("expired");
        simba_locker *l;
        CHECK_OK(simba_locker_create(one, mutex, &o, &l));
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        watch_ends(two, mutex, &e[i]);
    }
    for (int i = 0; i < ENDS; i++) {
        AWAIT(saw_end(&e[i], &reason));
        CHECK(reason == SIMBA_EXPIRED || reason == SIMBA_UNSEEN);
        expired += reason == SIMBA_EXPIRED;
    }
    CHECK(expired > 0);
    CHECK_OK(simba_close(one, PATIENCE_MS));
    client_close(two);
}

static void observer_destroyed(void)
{
    simba_client *s = client_open();
    struct watcher w[2] = {{.w = NULL}};
    watch(&w[0], s, fresh("destroyed"));
    simba_observer_destroy(w[0].w);
    AWAIT(atomic_load(&w[0].closed) == 1);
    w[1].block = true;
    watch(&w[1], s, fresh("destroyed"));
    AWAIT(atomic_load(&w[1].calls) == 1);
    simba_observer_destroy(w[1].w);
    CHECK(atomic_load(&w[1].closed) == 0);
    atomic_store(&w[1].gate, true);
    AWAIT(atomic_load(&w[1].closed) == 1);
    simba_observer_destroy(NULL);
    client_close(s);
}

static void observer_refused(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_observer *w;
    CHECK_REFUSED(simba_observer_create(s, "x", NULL, &w), SIMBA_EINVAL, "on_changed");
    CHECK_REFUSED(simba_observer_create(s, "x", &o, &w), SIMBA_EINVAL, "on_changed");
    CHECK(w == NULL);
    o.on_changed = on_changed;
    CHECK_CODE(simba_observer_create(s, "", &o, &w), SIMBA_EINVAL);
    CHECK_CODE(simba_observer_create(NULL, "x", &o, &w), SIMBA_EINVAL);
    client_close(s);
}

/* ---- of all -------------------------------------------------------------------------------- */

#define MANY 8
struct watcher_of_all {
    const char *mutex[MANY];
    _Atomic uint64_t token[MANY];
    atomic_int closed;
};

static void on_any_changed(void *data, const char *mutex, const struct simba_state *state)
{
    struct watcher_of_all *w = data;
    for (int i = 0; i < MANY; i++) {
        if (strcmp(mutex, w->mutex[i]) == 0)
            atomic_store(&w->token[i], state->after.token);
    }
}

static void on_any_closed(void *data)
{
    atomic_fetch_add(&((struct watcher_of_all *)data)->closed, 1);
}

/* Half of the mutexes are owned when it comes, half later; then all are given back. A store that
 * pushes only into the slot of a name may find a new one by its next list. */
/* shows: observers */
static void observer_of_all(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long(), quick = lease_short();
    struct watcher_of_all w = {.closed = 0};
    struct probe p[MANY] = {{0}};
    simba_observer *all;
    quick.on_changed = on_any_changed;
    quick.on_closed = on_any_closed;
    quick.data = &w;
    for (int i = 0; i < MANY; i++) {
        w.mutex[i] = fresh("any");
        probe_create(&p[i], one, w.mutex[i], &o);
    }
    for (int i = 0; i < MANY / 2; i++) {
        CHECK_OK(simba_contender_start(p[i].c));
        AWAIT(probe_leads(&p[i]));
    }
    CHECK_OK(simba_observer_create(two, NULL, &quick, &all));
    for (int i = 0; i < MANY / 2; i++)
        AWAIT(atomic_load(&w.token[i]) == simba_contender_token(p[i].c));
    for (int i = MANY / 2; i < MANY; i++) {
        CHECK_OK(simba_contender_start(p[i].c));
        AWAIT(probe_leads(&p[i]));
        AWAIT(atomic_load(&w.token[i]) == simba_contender_token(p[i].c));
    }
    for (int i = 0; i < MANY; i++) {
        probe_stop(&p[i]);
        AWAIT(atomic_load(&w.token[i]) == 0);
    }
    simba_observer_destroy(all);
    AWAIT(atomic_load(&w.closed) == 1);
    CHECK_OK(simba_observer_create(two, NULL, &quick, &all)); /* and at once */
    simba_observer_destroy(all);
    AWAIT(atomic_load(&w.closed) == 2);
    CHECK_OK(simba_contender_start(p[0].c));
    AWAIT(probe_leads(&p[0]));
    CHECK(atomic_load(&w.token[0]) == 0);
    CHECK_OK(simba_observer_create(two, NULL, &quick, &all)); /* and closed with its client: */
    AWAIT(atomic_load(&w.token[0]) == simba_contender_token(p[0].c));
    client_close(two);
    CHECK(atomic_load(&w.closed) == 3);
    client_close(one);
}

#define OBSERVED 600 /* more than begin at once */

struct observed {
    const char *prefix;
    _Atomic int notified, closed;
};

static void on_observed_changed(void *data, const char *mutex, const struct simba_state *state)
{
    struct observed *w = data;
    if (strncmp(mutex, w->prefix, strlen(w->prefix)) == 0 && state->after.id[0] != '\0')
        atomic_fetch_add(&w->notified, 1);
}

static void on_observed_closed(void *data)
{
    atomic_fetch_add(&((struct observed *)data)->closed, 1);
}

/* More than are asked for at once: each is told of, within one list; and one that closes while it
 * begins has closed. */
/* shows: observers */
static void observer_of_many(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long(), h = lease_long();
    struct observed w = {.prefix = fresh("many")};
    static simba_contender *c[OBSERVED];
    simba_observer *all;
    for (int i = 0; i < OBSERVED; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        snprintf(mutex, sizeof mutex, "%s-%d", w.prefix, i);
        CHECK_OK(simba_contender_create(one, mutex, &o, &c[i]));
        CHECK_OK(simba_contender_start(c[i]));
    }
    for (int i = 0; i < OBSERVED; i++)
        AWAIT(simba_contender_is_owner(c[i]));
    h.on_changed = on_observed_changed;
    h.on_closed = on_observed_closed;
    h.data = &w;
    CHECK_OK(simba_observer_create(two, NULL, &h, &all));
    AWAIT(atomic_load(&w.notified) == OBSERVED);
    simba_observer_destroy(all);
    AWAIT(atomic_load(&w.closed) == 1);
    CHECK(atomic_load(&w.notified) == OBSERVED);
    CHECK_OK(simba_observer_create(two, NULL, &h, &all));
    AWAIT(atomic_load(&w.notified) > OBSERVED);
    simba_observer_destroy(all);
    AWAIT(atomic_load(&w.closed) == 2);
    client_close(two);
    client_close(one);
}

/* A lease longer than one's own has not begun in the future. */
static void state_of_longer_lease(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("longer");
    struct simba_handle_options longer = lease_long(), o = lease_short();
    struct simba_state state = {.after.token = 0};
    struct probe a = {0}, b = {0};
    probe_start(&a, one, mutex, &longer);
    AWAIT(probe_leads(&a));
    probe_start(&b, two, mutex, &o);
    AWAIT((simba_contender_state(b.c, &state), state.after.token == atomic_load(&a.token)));
    CHECK(state.after.acquired_at <= simba_now());
    client_close(two);
    client_close(one);
}

const struct test observer_tests[] = {
    {"observer_follows", observer_follows, PUSHES, 0},
    {"observer_comes_late", observer_comes_late, ANY_STORE, 0},
    {"observer_slow", observer_slow, PUSHES, 0},
    {"observer_without_pushes", observer_without_pushes, MEMORY_FAULTS, 0},
    {"observer_reasons", observer_reasons, MEMORY_FAULTS, 0},
    {"observer_sees_eviction", observer_sees_eviction, MEMORY_FAULTS, 0},
    {"observer_sees_releases", observer_sees_releases, ANY_STORE, 0},
    {"observer_sees_expiries", observer_sees_expiries, ANY_STORE, 0},
    {"observer_destroyed", observer_destroyed, ANY_STORE, 0},
    {"observer_refused", observer_refused, ANY_STORE, 0},
    {"observer_of_all", observer_of_all, PUSHES, 0},
    {"observer_of_many", observer_of_many, PUSHES, 0},
    {"state_of_longer_lease", state_of_longer_lease, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};

/* ---- list and evict ------------------------------------------------------------------------ */

struct listing {
    const char *mutex[MANY];
    struct simba_owner owner[MANY];
    int found[MANY], others;
};

static void note(void *data, const struct simba_entry *entry)
{
    struct listing *l = data;
    CHECK(entry->waiters >= -1);
    for (int i = 0; i < MANY; i++) {
        if (l->mutex[i] != NULL && strcmp(entry->mutex, l->mutex[i]) == 0) {
            l->found[i]++;
            l->owner[i] = entry->owner;
            return;
        }
    }
    l->others++;
}

static void list_owned(void)
{
    simba_client *one = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    struct listing l = {.others = 0}, none = {.others = 0};
    struct probe p[MANY] = {{0}};
    char prefix[SIMBA_MUTEX_MAX + 1];
    for (int i = 0; i < MANY; i++) {
        l.mutex[i] = fresh("listed");
        probe_start(&p[i], one, l.mutex[i], &o);
        AWAIT(probe_leads(&p[i]));
    }
    probe_stop(&p[MANY - 1]);
    CHECK_OK(simba_list(two, NULL, PATIENCE_MS, note, &l));
    for (int i = 0; i < MANY - 1; i++) {
        CHECK(l.found[i] == 1);
        CHECK(l.owner[i].token == simba_contender_token(p[i].c));
        CHECK(simba_owner_is(&l.owner[i], simba_contender_id(p[i].c)));
        CHECK(simba_owner_exists(&l.owner[i], simba_now()));
    }
    CHECK(l.found[MANY - 1] == 0 || l.owner[MANY - 1].token == 0);
    snprintf(prefix, sizeof prefix, "%s", l.mutex[0]);
    none.mutex[0] = l.mutex[0];
    CHECK_OK(simba_list(two, prefix, PATIENCE_MS, note, &none));
    CHECK(none.found[0] == 1);
    CHECK(none.others <= MANY); /* names that begin so */
    none = (struct listing){.others = 0};
    CHECK_OK(simba_list(two, fresh("%_*\\"), PATIENCE_MS, note, &none)); /* no pattern */
    CHECK(none.others == 0);
    client_close(one);
    client_close(two);
}

struct last_listing {
    simba_client *s;
    int entries;
};

static void close_and_count(void *data, const struct simba_entry *entry)
{
    struct last_listing *l = data;
    client_close(l->s);
    l->s = NULL; /* and is not closed again */
    l->entries++;
    if (entry->owner.id[0] != '\0')
        CHECK(entry->owner.transition_at - entry->owner.ttl_at == SIMBA_TRANSITION_MS);
}

/* What was listed is the caller's: the client may be closed meanwhile. */
static void list_then_close(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct last_listing l = {.s = client_open()};
    struct probe p[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        probe_start(&p[i], s, fresh("listed-last"), &o);
        AWAIT(probe_leads(&p[i]));
    }
    CHECK_OK(simba_list(l.s, NULL, PATIENCE_MS, close_and_count, &l));
    CHECK(l.entries >= 2);
    client_close(s);
}

static void list_refused(void)
{
    simba_client *s = client_open();
    char name[SIMBA_MUTEX_MAX + 2];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_CODE(simba_list(s, NULL, PATIENCE_MS, NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_list(NULL, NULL, PATIENCE_MS, note, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_list(s, NULL, -1, note, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_list(s, name, PATIENCE_MS, note, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_evict(s, name, NULL, false, PATIENCE_MS), SIMBA_EINVAL);
    CHECK_CODE(simba_evict(NULL, "x", NULL, false, PATIENCE_MS), SIMBA_EINVAL);
    client_close(s);
}

/* Only the tenure that was meant, by its token and by its owner. */
/* shows: C2 */
static void evict_by_tenure(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("tenure");
    struct simba_handle_options o = lease_long();
    struct simba_owner nobody, now, other;
    struct probe p = {0};
    CHECK_REFUSED(simba_evict(two, mutex, NULL, false, PATIENCE_MS), SIMBA_ELOST, mutex);
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &nobody));
    probe_start(&p, one, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &now));
    CHECK(now.token == token);
    CHECK_REFUSED(simba_evict(two, mutex, &nobody, true, PATIENCE_MS), SIMBA_ELOST, mutex);
    other = now;
    other.token++;
    CHECK_REFUSED(simba_evict(two, mutex, &other, false, PATIENCE_MS), SIMBA_ELOST, mutex);
    CHECK_CODE(simba_evict(two, mutex, &other, true, PATIENCE_MS), SIMBA_ELOST);
    other = now;
    other.id[strlen(other.id) - 1] = '\0';
    CHECK_REFUSED(simba_evict(two, mutex, &other, false, PATIENCE_MS), SIMBA_ELOST, mutex);
    other.token = 0; /* as of a client whose tokens the store does not know */
    CHECK_CODE(simba_evict(two, mutex, &other, true, PATIENCE_MS), SIMBA_ELOST);
    CHECK(simba_contender_owns(p.c, token));
    CHECK_OK(simba_evict(two, mutex, &now, false, PATIENCE_MS));
    AWAIT(atomic_load(&p.released) == 1);
    AWAIT(atomic_load(&p.token) > token);
    CHECK_CODE(simba_evict(two, mutex, &now, true, PATIENCE_MS), SIMBA_ELOST);
    other = now; /* the owner alone */
    other.token = 0;
    CHECK_OK(simba_evict(two, mutex, &other, false, PATIENCE_MS));
    AWAIT(atomic_load(&p.released) == 2);
    client_close(one);
    client_close(two);
}

const struct test list_tests[] = {
    {"list_owned", list_owned, ANY_STORE, 0},
    {"list_then_close", list_then_close, ANY_STORE, 0},
    {"list_refused", list_refused, ANY_STORE, 0},
    {"evict_by_tenure", evict_by_tenure, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
