/* scheduler_threads.c: the threads of scheduled work: only a run that is at work has one; and how a
 * run sleeps. */
#include <stdio.h>

#include "suite.h"
#include "work_probe.h"

#define HOUR_MS 3600000
#define SCHEDULERS 200

static bool all_ran(struct work_probe *d)
{
    int ran = 0;
    for (int i = 0; i < SCHEDULERS; i++)
        ran += atomic_load(&d[i].runs) == 1 && atomic_load(&d[i].inside) == 0;
    return ran == SCHEDULERS;
}

/* Those that wait for their next run need no thread. */
static void schedule_idle_needs_no_thread(void)
{
    static struct work_probe d[SCHEDULERS];
    static char mutex[SCHEDULERS][SIMBA_MUTEX_MAX + 1];
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *prefix = fresh("idle");
    for (int i = 0; i < SCHEDULERS; i++) {
        snprintf(mutex[i], sizeof mutex[i], "%s-%d", prefix, i);
        d[i].period = HOUR_MS;
        work_probe_start(&d[i], s, mutex[i], &o);
    }
    AWAIT(all_ran(d));
    AWAIT(count_threads("simba-work") == 0); /* idle threads end after a while */
    AWAIT(count_threads(NULL) < 20);
    client_close(s);
}

/* ---- a run that sleeps --------------------------------------------------------------------- */

static atomic_bool said_stop;

static int sleep_long(struct work_probe *d, const simba_run *run)
{
    (void)d;
    CHECK(!simba_run_wait(run, 0) && !simba_run_wait(run, -1));
    int64_t began = simba_now();
    CHECK(!simba_run_wait(run, 20));
    CHECK(simba_now() - began >= 19); /* rounded down, both */
    atomic_store(&said_stop, false);
    CHECK(simba_run_wait(run, HOUR_MS));
    CHECK(simba_run_should_stop(run));
    atomic_store(&said_stop, true);
    return 0;
}

static void await_sleep(const struct work_probe *d, int runs)
{
    AWAIT(atomic_load(&d->runs) == runs && atomic_load(&d->inside) == 1 &&
          !atomic_load(&said_stop));
}

/* Whatever ends the tenure ends the sleep, long before the lease does. */
static void schedule_run_waits(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = sleep_long, .period = 1};
    CHECK(simba_run_wait(NULL, HOUR_MS));
    atomic_store(&said_stop, true);
    work_probe_start(&d, s, fresh("sleeps"), &o);
    await_sleep(&d, 1);
    work_probe_stop(&d);
    CHECK(atomic_load(&said_stop));
    CHECK_OK(simba_contender_start(d.c));
    await_sleep(&d, 2);
    CHECK_OK(simba_contender_resign(d.c, 0));
    await_sleep(&d, 3);
    simba_scheduler_destroy(d.x);
    AWAIT(atomic_load(&d.closed) == 1);
    CHECK(atomic_load(&said_stop));
    client_close(s);
}

static void schedule_run_waits_in_vain(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_steady();
    const char *mutex = fresh("in-vain");
    struct work_probe d = {.in_work = sleep_long, .period = 1};
    atomic_store(&said_stop, true);
    work_probe_start(&d, s, mutex, &o);
    await_sleep(&d, 1);
    CHECK_OK(simba_evict(s, mutex, NULL, true, PATIENCE_MS));
    await_sleep(&d, 2);
    client_close(s);
    CHECK(atomic_load(&said_stop));
}

static void schedule_close_wakes(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = sleep_long, .period = 1};
    atomic_store(&said_stop, true);
    work_probe_start(&d, s, fresh("closes"), &o);
    await_sleep(&d, 1);
    client_close(s);
    CHECK(atomic_load(&said_stop) && atomic_load(&d.closed) == 1);
}

/* Without a thread of ours the runs still have theirs: polling begins them, and goes on meanwhile. */
static void schedule_embedded(void)
{
    struct simba_options options = suite_options();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.period = 5};
    simba_client *s;
    options.flags = SIMBA_NO_THREAD;
    CHECK_OK(simba_open(suite_url(), &options, &s));
    work_probe_start(&d, s, fresh("embedded"), &o);
    int64_t until = simba_now() + PATIENCE_MS;
    while (atomic_load(&d.runs) < 10) {
        client_poll(s);
        CHECK(simba_now() < until);
    }
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK(atomic_load(&d.released) == 1 && atomic_load(&d.closed) == 1);
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static struct callers {
    atomic_int endangered, stopped;
} mine;

static void on_endangered(void *data, const char *mutex, int64_t left_ms)
{
    CHECK(data == &mine && mutex[0] != '\0' && left_ms > 0);
    atomic_fetch_add(&mine.endangered, 1);
}

static void on_stopped(void *data)
{
    CHECK(data == &mine);
    atomic_fetch_add(&mine.stopped, 1);
}

static int work_in_silence(void *data, const simba_run *run)
{
    CHECK(data == &mine);
    while (!simba_run_wait(run, 10) && atomic_load(&mine.endangered) == 0)
        ;
    return 0;
}

/* All that is called gets the data of the options. */
static void schedule_data_is_the_users(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_schedule schedule = SIMBA_SCHEDULE_INIT;
    simba_scheduler *x;
    o.progress_ms = 2000;
    o.on_endangered = on_endangered;
    o.on_stopped = on_stopped;
    o.data = &mine;
    schedule.period_ms = HOUR_MS;
    CHECK_OK(simba_scheduler_create(s, fresh("data"), &schedule, work_in_silence, &o, &x));
    CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
    AWAIT(atomic_load(&mine.endangered) == 1);
    CHECK_OK(simba_contender_stop(simba_scheduler_contender(x)));
    AWAIT(atomic_load(&mine.stopped) == 1);
    client_close(s);
}

const struct test scheduler_thread_tests[] = {
    {"schedule_idle_needs_no_thread", schedule_idle_needs_no_thread, ANY_STORE, 0},
    {"schedule_run_waits", schedule_run_waits, ANY_STORE, 0},
    {"schedule_run_waits_in_vain", schedule_run_waits_in_vain, ANY_STORE, 0},
    {"schedule_close_wakes", schedule_close_wakes, ANY_STORE, 0},
    {"schedule_embedded", schedule_embedded, ANY_STORE, 0},
    {"schedule_data_is_the_users", schedule_data_is_the_users, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
