/* scheduler_work.c: works that fail in every way that can be survived, and what a work may do. */
#include <string.h>

#include "suite.h"
#include "work_probe.h"

/* ---- works that fail ----------------------------------------------------------------------- */

static atomic_int complaints;

static void count_complaints(void *data, enum simba_level level, const char *line)
{
    if (level == SIMBA_LOG_WARN && strstr(line, data) != NULL)
        atomic_fetch_add(&complaints, 1);
}

static simba_client *client_open_heard(const char *part)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    o.log = count_complaints;
    o.log_data = (void *)(uintptr_t)part;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    return s;
}

/* Every second run fails, in the way at hand; the others, in the same tenure, do not. */
static void fail_often(int (*work)(struct work_probe *, const simba_run *), const char *logged)
{
    simba_client *s = client_open_heard(logged);
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = work, .period = 2};
    work_probe_start(&d, s, fresh("fails"), &o);
    AWAIT(atomic_load(&d.runs) > 20);
    CHECK(atomic_load(&d.acquired) == 1 && atomic_load(&d.released) == 0);
    AWAIT(atomic_load(&complaints) >= 10);
    work_probe_stop(&d);
    CHECK_OK(simba_contender_start(d.c));
    AWAIT(atomic_load(&d.runs) > 30);
    client_close(s);
}

static int fail(struct work_probe *d, const simba_run *run)
{
    (void)run;
    return atomic_load(&d->runs) % 2 == 0 ? 7 : 0;
}

static int exit_thread(struct work_probe *d, const simba_run *run)
{
    (void)run;
    if (atomic_load(&d->runs) % 2 == 0) {
        work_probe_leave(d);
        pthread_exit(NULL);
    }
    return 0;
}

static int cancel_thread(struct work_probe *d, const simba_run *run)
{
    (void)run;
    if (atomic_load(&d->runs) % 2 == 0) {
        work_probe_leave(d);
        pthread_cancel(pthread_self());
        for (;;)
            pthread_testcancel();
    }
    return 0;
}

static void schedule_work_fails(void)
{
    fail_often(fail, "returned 7");
}

static void schedule_work_exits_thread(void)
{
    fail_often(exit_thread, "ended its thread");
}

static void schedule_work_is_cancelled(void)
{
    fail_often(cancel_thread, "ended its thread");
}

/* In the run that was to be the last: the thread that goes on finds nothing to do but leave. */
static int exit_at_the_end(struct work_probe *d, const simba_run *run)
{
    (void)work_probe_block(d, run);
    work_probe_leave(d);
    pthread_exit(NULL);
}

static void schedule_exits_after_stop(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = exit_at_the_end, .period = 1};
    work_probe_start(&d, s, fresh("exits"), &o);
    AWAIT(atomic_load(&d.inside) == 1);
    CHECK_OK(simba_contender_stop(d.c));
    AWAIT(atomic_load(&d.saw_stop));
    atomic_store(&d.gate, true);
    CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&d.runs) == 1);
    client_close(s);
}

/* No thread can be started with more stack than there is. */
static void allow_threads(bool allowed)
{
    static pthread_attr_t attr;
    static size_t usual;
    if (usual == 0)
        CHECK(pthread_getattr_default_np(&attr) == 0 &&
              pthread_attr_getstacksize(&attr, &usual) == 0);
    CHECK(pthread_attr_setstacksize(&attr, allowed ? usual : (size_t)1 << 46) == 0);
    CHECK(pthread_setattr_default_np(&attr) == 0);
}

static int exit_without_successor(struct work_probe *d, const simba_run *run)
{
    (void)run;
    if (atomic_load(&d->runs) > 1)
        return 0;
    allow_threads(false);
    work_probe_leave(d);
    pthread_exit(NULL);
}

/* T3: who cannot work does not lead, until it is started again. */
static void lead_without_thread(work_probe_fn *in_work, int runs)
{
    simba_client *s = client_open(), *two = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("no-thread");
    struct work_probe d = {.in_work = in_work, .period = 1};
    struct probe other = {0};
    struct simba_owner owner;
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner)); /* connected: the store needs no thread */
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &owner));
    work_probe_create(&d, s, mutex, &o);
    allow_threads(in_work != NULL);
    CHECK_OK(simba_contender_start(d.c));
    AWAIT(atomic_load(&d.released) == 1);
    CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&d.runs) == runs);
    probe_start(&other, two, mutex, &o);
    AWAIT(probe_leads(&other));
    probe_stop(&other);
    allow_threads(true);
    CHECK_OK(simba_contender_start(d.c));
    AWAIT(atomic_load(&d.runs) > runs + 3);
    client_close(s);
    client_close(two);
}

static void schedule_without_thread(void)
{
    lead_without_thread(NULL, 0);
}

static void schedule_exits_without_successor(void)
{
    lead_without_thread(exit_without_successor, 1);
}

/* ---- what a work may do -------------------------------------------------------------------- */

static int call_back(struct work_probe *d, const simba_run *run)
{
    struct simba_owner owner;
    CHECK(simba_run_token(run) == atomic_load(&d->token));
    CHECK(!simba_run_should_stop(run));
    CHECK_OK(simba_read(d->s, d->mutex, PATIENCE_MS, &owner));
    CHECK(owner.token == simba_run_token(run));
    CHECK_REFUSED(simba_contender_wait(d->c, SIMBA_INITIAL, 100), SIMBA_EDEADLOCK, d->mutex);
    CHECK_REFUSED(simba_close(d->s, 100), SIMBA_EDEADLOCK, NULL);
    CHECK_CODE(simba_contender_start(d->c), SIMBA_ESTATE);
    CHECK_OK(simba_contender_stop(d->c));
    CHECK(simba_run_should_stop(run));
    return 0;
}

static int destroy_itself(struct work_probe *d, const simba_run *run)
{
    simba_scheduler_destroy(d->x);
    AWAIT(simba_run_should_stop(run));
    return 0;
}

static void schedule_work_calls_back(void)
{
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct work_probe d = {.in_work = call_back, .period = 1};
    struct work_probe gone = {.in_work = destroy_itself, .period = 1};
    work_probe_start(&d, s, fresh("calls"), &o);
    CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    for (int i = 2; i < 5; i++) {
        CHECK_OK(simba_contender_start(d.c));
        AWAIT(atomic_load(&d.runs) == i);
        CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    }
    work_probe_start(&gone, s, fresh("calls"), &o);
    AWAIT(atomic_load(&gone.closed) == 1);
    CHECK(atomic_load(&gone.runs) == 1);
    client_close(s);
}

/* A work that does not heed the end keeps the mutex up to the drain limit; then the lease is
 * left to expire, and the next tenure still waits for the work. */
static void schedule_work_heeds_nothing(void)
{
    simba_client *s = client_open(), *two = client_open();
    struct simba_handle_options o = lease_tiny(), calm = lease_long();
    const char *mutex = fresh("heeds");
    struct work_probe d = {.in_work = work_probe_block, .period = 1};
    struct probe other = {0};
    o.drain_ms = 300;
    work_probe_start(&d, s, mutex, &o);
    AWAIT(atomic_load(&d.inside) == 1);
    probe_start(&other, two, mutex, &calm);
    CHECK_OK(simba_contender_stop(d.c));
    AWAIT(probe_leads(&other));
    CHECK(atomic_load(&d.inside) == 1 && atomic_load(&d.released) == 0);
    CHECK(simba_contender_status(d.c) == SIMBA_STOPPING);
    CHECK_CODE(simba_contender_start(d.c), SIMBA_ESTATE);
    atomic_store(&d.gate, true);
    CHECK_OK(simba_contender_wait(d.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&d.runs) == 1 && atomic_load(&d.released) == 1);
    CHECK(probe_leads(&other));
    client_close(s);
    client_close(two);
}

static int nothing(void *data, const simba_run *run)
{
    (void)data;
    (void)run;
    return 0;
}

static void schedule_refuses(void)
{
    simba_client *s = client_open();
    simba_scheduler *x = NULL;
    struct simba_handle_options o = lease_long();
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    const char *mutex = fresh("refuses");
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, nothing, &o, &x), SIMBA_EINVAL, "period");
    when.period_ms = 10;
    CHECK_REFUSED(simba_scheduler_create(s, mutex, NULL, nothing, &o, &x), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, NULL, &o, &x), SIMBA_EINVAL, "work");
    CHECK_REFUSED(simba_scheduler_create(NULL, mutex, &when, nothing, &o, &x), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, nothing, &o, NULL), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_scheduler_create(s, NULL, &when, nothing, &o, &x), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_scheduler_create(s, "", &when, nothing, &o, &x), SIMBA_EINVAL, NULL);
    o.at_least_ms = -2;
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, nothing, &o, &x), SIMBA_EINVAL,
                  "at_least");
    o.at_least_ms = SIMBA_DEFAULT;
    CHECK_OK(simba_scheduler_create(s, mutex, &when, nothing, &o, &x));
    simba_scheduler_destroy(x);
    simba_scheduler_destroy(NULL);
    o.size--;
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, nothing, &o, &x), SIMBA_EINVAL,
                  "SIMBA_HANDLE_OPTIONS_INIT");
    when.size--;
    CHECK_REFUSED(simba_scheduler_create(s, mutex, &when, nothing, NULL, &x), SIMBA_EINVAL,
                  "SIMBA_SCHEDULE_INIT");
    CHECK(x == NULL);
    when.size++;
    CHECK_OK(simba_scheduler_create(s, mutex, &when, nothing, NULL, &x)); /* no callbacks at all */
    CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
    AWAIT(simba_contender_is_owner(simba_scheduler_contender(x)));
    client_close(s);
}

const struct test scheduler_work_tests[] = {
    {"schedule_work_fails", schedule_work_fails, ANY_STORE, 0},
    {"schedule_work_exits_thread", schedule_work_exits_thread, ANY_STORE, 0},
    {"schedule_work_is_cancelled", schedule_work_is_cancelled, ANY_STORE, 0},
    {"schedule_exits_after_stop", schedule_exits_after_stop, ANY_STORE, 0},
    {"schedule_without_thread", schedule_without_thread, ANY_STORE, 0},
    {"schedule_exits_without_successor", schedule_exits_without_successor, ANY_STORE, 0},
    {"schedule_work_calls_back", schedule_work_calls_back, ANY_STORE, 0},
    {"schedule_work_heeds_nothing", schedule_work_heeds_nothing, ANY_STORE, 0},
    {"schedule_refuses", schedule_refuses, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
