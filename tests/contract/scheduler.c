/* scheduler.c: work that runs on the leader only (T3): when it runs, and that it never runs
 * twice at once, never outside of its tenure, never past the release. */
#include <stdio.h>

#include "suite.h"
#include "work_probe.h"

/* ---- when it runs -------------------------------------------------------------------------- */

static int note_time(struct work_probe *d, const simba_run *run)
{
    (void)run;
    int n = atomic_load(&d->runs) - 1;
    if (n < WORK_PROBE_TIMES)
        atomic_store(&d->began[n], simba_now());
    nap(n == 0 ? d->first_takes : 0);
    if (n < WORK_PROBE_TIMES)
        atomic_store(&d->ended[n], simba_now());
    return 0;
}

/* Times are whole milliseconds, rounded down: one may be lost. */
static void at_or_after(int64_t time, int64_t bound)
{
    CHECK(time >= bound - 1);
}

static void schedule_fixed_rate(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = note_time, .period = 20, .initial_delay = 100};
    work_probe_start(&d, s, fresh("rate"), &o);
    AWAIT(atomic_load(&d.runs) > WORK_PROBE_TIMES);
    for (int i = 0; i < WORK_PROBE_TIMES; i++)
        at_or_after(atomic_load(&d.began[i]), atomic_load(&d.acquired_at) + 100 + i * 20);
    work_probe_stop(&d);
    client_close(s);
}

static void schedule_fixed_delay(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = note_time,
                           .pace = SIMBA_FIXED_DELAY,
                           .period = 30,
                           .initial_delay = 50,
                           .first_takes = 100};
    work_probe_start(&d, s, fresh("delay"), &o);
    AWAIT(atomic_load(&d.runs) > WORK_PROBE_TIMES);
    at_or_after(atomic_load(&d.began[0]), atomic_load(&d.acquired_at) + 50);
    for (int i = 1; i < WORK_PROBE_TIMES; i++)
        at_or_after(atomic_load(&d.began[i]), atomic_load(&d.ended[i - 1]) + 30);
    work_probe_stop(&d);
    client_close(s);
}

/* A run of 25 periods: what fell into it is skipped, so those after it come one by one. */
static void schedule_slow_work(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = note_time, .period = 20, .first_takes = 500};
    work_probe_start(&d, s, fresh("slow"), &o);
    AWAIT(atomic_load(&d.runs) > WORK_PROBE_TIMES);
    for (int i = 1; i < WORK_PROBE_TIMES; i++)
        at_or_after(atomic_load(&d.began[i]), atomic_load(&d.ended[0]) + (i - 1) * 20);
    work_probe_stop(&d);
    client_close(s);
}

/* A period of a day: the thread sleeps, and a stop does not wait for it. */
static void schedule_long_period(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.period = 86400000}, later = {.period = 10, .initial_delay = 86400000};
    work_probe_start(&d, s, fresh("day"), &o);
    work_probe_start(&later, s, fresh("day"), &o);
    AWAIT(atomic_load(&d.runs) == 1 && atomic_load(&later.acquired) == 1);
    work_probe_stop(&d);
    work_probe_stop(&later);
    CHECK(atomic_load(&d.runs) == 1 && atomic_load(&later.runs) == 0);
    client_close(s);
}

/* ---- the end of a tenure ------------------------------------------------------------------- */

/* C4: while it works, nobody is told that the mutex is free. */
static void schedule_stop_while_running(void)
{
    simba_client *s = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("stop");
    struct work_probe d = {.in_work = work_probe_block, .period = 10};
    struct probe other = {0};
    work_probe_start(&d, s, mutex, &o);
    AWAIT(atomic_load(&d.inside) == 1);
    CHECK(!atomic_load(&d.saw_stop));
    probe_start(&other, two, mutex, &o);
    CHECK_OK(simba_contender_wait(other.c, SIMBA_RUNNING, PATIENCE_MS));
    CHECK_OK(simba_contender_stop(d.c));
    AWAIT(atomic_load(&d.saw_stop));
    CHECK_CODE(simba_contender_wait(d.c, SIMBA_INITIAL, 200), SIMBA_ETIMEOUT);
    CHECK(atomic_load(&d.released) == 0);
    CHECK(!simba_contender_is_owner(other.c));
    CHECK(atomic_load(&d.runs) == 1);
    atomic_store(&d.gate, true);
    CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&d.released) == 1 && atomic_load(&d.runs) == 1);
    AWAIT(probe_leads(&other));
    CHECK_OK(simba_contender_start(d.c));
    probe_stop(&other);
    AWAIT(atomic_load(&d.runs) > 3);
    client_close(s);
    client_close(two);
    CHECK(atomic_load(&d.closed) == 1);
}

/* Lost under a run: that is told to it, and the next tenure waits for its end. */
static void lose_while_running(const char *mutex, bool by_eviction)
{
    simba_client *s = client_open_quick(100);
    struct simba_handle_options o = by_eviction ? lease_long() : lease_tiny();
    struct work_probe d = {.in_work = work_probe_block, .period = 10};
    work_probe_start(&d, s, mutex, &o);
    AWAIT(atomic_load(&d.inside) == 1);
    uint64_t first = atomic_load(&d.token);
    if (by_eviction)
        store_evict(mutex, false);
    else
        store_set(HANG);
    AWAIT(atomic_load(&d.saw_stop));
    store_set(HEALTHY);
    nap(300); /* for a second tenure that must not come */
    CHECK(atomic_load(&d.acquired) == 1 && atomic_load(&d.released) == 0);
    CHECK(atomic_load(&d.runs) == 1);
    atomic_store(&d.gate, true);
    AWAIT(atomic_load(&d.runs) > 3 && atomic_load(&d.token) > first);
    CHECK(atomic_load(&d.released) > 0);
    client_close(s);
}

static void schedule_evicted_while_running(void)
{
    lose_while_running(fresh("evicted"), true);
}

static void schedule_expired_while_running(void)
{
    lose_while_running(fresh("expired"), false);
}

/* Tenures come and go by themselves: no run begins without its tenure. */
static int begin_as_owner(struct work_probe *d, const simba_run *run)
{
    uint64_t token = simba_contender_token(d->c);
    CHECK(token == 0 || token == simba_run_token(run));
    if (simba_run_should_stop(run))
        atomic_store(&d->saw_stop, true);
    return 0;
}

static void schedule_lost_often(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("often");
    struct work_probe d = {.in_work = begin_as_owner, .period = 1};
    work_probe_start(&d, s, mutex, &o);
    for (int i = 0; i < 30; i++) {
        int runs = atomic_load(&d.runs);
        AWAIT(atomic_load(&d.runs) > runs + i % 3);
        store_evict(mutex, false);
        AWAIT(atomic_load(&d.released) > i);
    }
    client_close(s);
    CHECK(atomic_load(&d.acquired) >= 30);
}

/* An executor whose submit stands still, and the loop, which calls it, as well. */
static atomic_bool is_stuck;

static int stick(void *data, void (*run)(void *arg), void *arg)
{
    (void)data;
    (void)run;
    (void)arg;
    AWAIT(!atomic_load(&is_stuck));
    return -1;
}

/* C5: nobody is left who could say that the tenure has ended. The clock does. */
static void schedule_loop_is_stuck(void)
{
    struct simba_executor e = {.submit = stick};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.executor = &e;
    simba_client *s = NULL;
    CHECK_OK(simba_open(suite_url(), &options, &s));
    struct simba_handle_options o = lease_tiny(), calm = lease_long();
    struct work_probe d = {.in_work = begin_as_owner, .period = 5};
    struct probe other = {0};
    work_probe_start(&d, s, fresh("stuck"), &o);
    AWAIT(atomic_load(&d.runs) > 3);
    atomic_store(&is_stuck, true);
    probe_start(&other, s, fresh("stuck"), &calm);
    AWAIT(!simba_contender_is_owner(d.c));
    int runs = atomic_load(&d.runs);
    nap(300);                                /* for runs that must not come */
    CHECK(atomic_load(&d.runs) <= runs + 1); /* one may just have been about to begin */
    atomic_store(&is_stuck, false);
    AWAIT(atomic_load(&d.runs) > runs + 3);
    client_close(s);
}

static void schedule_restart(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.period = 1};
    work_probe_create(&d, s, fresh("restart"), &o);
    for (int i = 0; i < 30; i++) {
        int runs = atomic_load(&d.runs);
        CHECK_OK(simba_contender_start(d.c));
        AWAIT(atomic_load(&d.runs) > runs || i % 3 == 0); /* also before there was any */
        work_probe_stop(&d);
        runs = atomic_load(&d.runs);
        nap(i % 10 == 0 ? 20 : 0);
        CHECK(atomic_load(&d.runs) == runs);
    }
    client_close(s);
    CHECK(atomic_load(&d.closed) == 1);
}

/* ---- at least ------------------------------------------------------------------------------ */

#define AT_LEAST 700

static atomic_bool is_stopped;
static _Atomic int64_t started_at; /* before the acquisition, from which it counts */

static void see_how_long(struct probe *p)
{
    const struct work_probe *d = p->data;
    at_or_after(simba_now(), atomic_load(&started_at) + AT_LEAST);
    CHECK(atomic_load(&d->released) == 1);
    CHECK(atomic_load(&is_stopped));
}

/* Whichever way its end is asked for. */
static void end_early(void (*end)(struct work_probe *d, simba_client *s))
{
    simba_client *s = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("at-least");
    struct work_probe d = {.period = 5, .at_least = AT_LEAST};
    struct probe other = {.in_acquired = see_how_long, .data = &d};
    atomic_store(&started_at, simba_now());
    work_probe_start(&d, s, mutex, &o);
    AWAIT(atomic_load(&d.runs) > 2);
    probe_start(&other, two, mutex, &o);
    CHECK_OK(simba_contender_wait(other.c, SIMBA_RUNNING, PATIENCE_MS));
    atomic_store(&is_stopped, true);
    end(&d, s);
    AWAIT(probe_leads(&other));
    client_close(two);
    if (atomic_load(&d.closed) == 0)
        client_close(s);
}

static void by_stop(struct work_probe *d, simba_client *s)
{
    CHECK_OK(simba_contender_stop(d->c));
    CHECK_OK(simba_contender_wait(d->c, SIMBA_INITIAL, PATIENCE_MS));
    (void)s;
}

static void by_destroy(struct work_probe *d, simba_client *s)
{
    simba_scheduler_destroy(d->x);
    AWAIT(atomic_load(&d->closed) == 1);
    client_close(s);
}

static void by_close(struct work_probe *d, simba_client *s)
{
    int code = simba_close(s, 1);
    CHECK(code == 0 || code == SIMBA_ETIMEOUT);
    if (code != 0)
        client_close(s);
    CHECK(atomic_load(&d->closed) == 1);
}

static void schedule_at_least_stop(void)
{
    end_early(by_stop);
}

static void schedule_at_least_destroy(void)
{
    end_early(by_destroy);
}

static void schedule_at_least_close(void)
{
    end_early(by_close);
}

/* What is lost cannot be kept: nobody waits for the rest of the time. */
static void schedule_at_least_lost(void)
{
    simba_client *s = client_open_quick(100);
    struct simba_handle_options o = lease_tiny();
    struct work_probe d = {.period = 1, .at_least = PATIENCE_MS};
    work_probe_start(&d, s, fresh("kept"), &o);
    for (int i = 0; i < 3; i++) {
        AWAIT(atomic_load(&d.acquired) > atomic_load(&d.released));
        store_set(HANG);
        AWAIT(atomic_load(&d.released) == atomic_load(&d.acquired));
        CHECK(simba_now() < atomic_load(&d.acquired_at) + PATIENCE_MS);
        if (i == 2)
            CHECK_OK(simba_contender_stop(d.c)); /* does not lead: has nothing to keep */
        store_set(HEALTHY);
    }
    client_close(s);
}

/* ---- several ------------------------------------------------------------------------------- */

/* Two on one mutex, handed to and fro: their works share a counter that notices overlap. */
static void schedule_two_alternate(void)
{
    simba_client *s[2] = {client_open(), client_open()};
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("two");
    atomic_int busy = 0;
    struct work_probe d[2] = {{.period = 1, .busy = &busy},
                              {.period = 1, .busy = &busy, .pace = SIMBA_FIXED_DELAY}};
    for (int i = 0; i < 2; i++)
        work_probe_start(&d[i], s[i], mutex, &o);
    AWAIT(atomic_load(&d[0].runs) > 0 || atomic_load(&d[1].runs) > 0);
    for (int i = 0; i < 20; i++) {
        struct work_probe *leader = simba_contender_is_owner(d[0].c) ? &d[0] : &d[1];
        struct work_probe *other = leader == &d[0] ? &d[1] : &d[0];
        int runs = atomic_load(&other->runs);
        work_probe_stop(leader);
        AWAIT(atomic_load(&other->runs) > runs + 2);
        CHECK_OK(simba_contender_start(leader->c));
    }
    for (int i = 0; i < 2; i++)
        client_close(s[i]);
    CHECK(atomic_load(&d[0].acquired) >= 10 && atomic_load(&d[1].acquired) >= 10);
}

/* More works that do not end than there are threads for callbacks: they take none. */
#define MANY 300

static void schedule_many_hang(void)
{
    static struct work_probe d[MANY];
    static char name[MANY][SIMBA_MUTEX_MAX + 1];
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *tag = fresh("many");
    for (int i = 0; i < MANY; i++) {
        d[i] = (struct work_probe){.in_work = work_probe_block, .period = 10};
        snprintf(name[i], sizeof name[i], "%s.%d", tag, i);
        work_probe_start(&d[i], s, name[i], &o);
    }
    for (int i = 0; i < MANY; i++)
        AWAIT(atomic_load(&d[i].inside) == 1);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(simba_contender_stop(d[i].c));
    for (int i = 0; i < MANY; i++)
        AWAIT(atomic_load(&d[i].saw_stop));
    struct probe free = {0};
    probe_start(&free, s, fresh("free"), &o);
    AWAIT(probe_leads(&free));
    probe_stop(&free);
    for (int i = 0; i < MANY; i++)
        CHECK(atomic_load(&d[i].released) == 0);
    for (int i = 0; i < MANY; i++)
        atomic_store(&d[i].gate, true);
    client_close(s);
    for (int i = 0; i < MANY; i++)
        CHECK(atomic_load(&d[i].closed) == 1 && atomic_load(&d[i].released) == 1);
}

const struct test scheduler_tests[] = {
    {"schedule_fixed_rate", schedule_fixed_rate, ANY_STORE, 0},
    {"schedule_fixed_delay", schedule_fixed_delay, ANY_STORE, 0},
    {"schedule_slow_work", schedule_slow_work, ANY_STORE, 0},
    {"schedule_long_period", schedule_long_period, ANY_STORE, 0},
    {"schedule_stop_while_running", schedule_stop_while_running, PUSHES, 0},
    {"schedule_evicted_while_running", schedule_evicted_while_running, MEMORY_FAULTS, 0},
    {"schedule_expired_while_running", schedule_expired_while_running, MEMORY_FAULTS, 0},
    {"schedule_lost_often", schedule_lost_often, MEMORY_FAULTS, 0},
    {"schedule_loop_is_stuck", schedule_loop_is_stuck, ANY_STORE, 0},
    {"schedule_restart", schedule_restart, ANY_STORE, 0},
    {"schedule_at_least_stop", schedule_at_least_stop, PUSHES, 0},
    {"schedule_at_least_destroy", schedule_at_least_destroy, PUSHES, 0},
    {"schedule_at_least_close", schedule_at_least_close, PUSHES, 0},
    {"schedule_at_least_lost", schedule_at_least_lost, MEMORY_FAULTS, 0},
    {"schedule_two_alternate", schedule_two_alternate, PUSHES, 0},
    {"schedule_many_hang", schedule_many_hang, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
