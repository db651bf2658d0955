/* thread_ends.c: user code that ends its thread instead of returning, by pthread_exit or because
 * it is cancelled: the callback counts as done, and everything else goes on. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum ending { RETURNS, EXITS, IS_CANCELLED };

struct user {
    simba_client *s;
    simba_contender *c;
    enum ending ending;
    atomic_int acquired, released, closed, lines, runs;
};

static void end(enum ending ending)
{
    if (ending == EXITS)
        pthread_exit(NULL);
    if (ending == IS_CANCELLED) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
        suite_fail(__FILE__, __LINE__, "it was cancelled, and goes on");
    }
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct user *u = data;
    (void)mutex;
    CHECK(state->reason == SIMBA_ACQUIRED && state->after.token != 0);
    CHECK(atomic_fetch_add(&u->acquired, 1) == atomic_load(&u->released));
    end(u->ending);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct user *u = data;
    (void)mutex;
    (void)state;
    CHECK(atomic_fetch_add(&u->released, 1) + 1 == atomic_load(&u->acquired));
    end(u->ending);
}

static void on_closed(void *data)
{
    struct user *u = data;
    atomic_fetch_add(&u->closed, 1);
    end(u->ending);
}

static struct simba_handle_options options_of(struct user *u)
{
    struct simba_handle_options o = lease_long();
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_closed = on_closed;
    o.data = u;
    return o;
}

/* Leads some times, then is destroyed; the rest of the client does not suffer. */
static void lead_and_close(simba_client *s, enum ending ending)
{
    struct user u = {.s = s, .ending = ending};
    struct simba_handle_options o = options_of(&u);
    struct probe p = {0};
    struct simba_handle_options plain = lease_long();
    CHECK_OK(simba_contender_create(s, fresh("ends"), &o, &u.c));
    for (int i = 1; i <= 20; i++) {
        CHECK_OK(simba_contender_start(u.c));
        AWAIT(atomic_load(&u.acquired) == i);
        CHECK(simba_contender_is_owner(u.c));
        CHECK_OK(simba_contender_stop(u.c));
        CHECK_OK(simba_contender_wait(u.c, SIMBA_INITIAL, PATIENCE_MS));
        CHECK(atomic_load(&u.released) == i);
    }
    probe_start(&p, s, fresh("other"), &plain);
    AWAIT(probe_leads(&p));
    simba_contender_destroy(u.c);
    AWAIT(atomic_load(&u.closed) == 1);
    client_close(s);
}

/* shows: C3 */
static void callback_exits(void)
{
    lead_and_close(client_open(), EXITS);
}

/* shows: C3 */
static void callback_cancelled(void)
{
    lead_and_close(client_open(), IS_CANCELLED);
}

/* ---- where the thread is the user's -------------------------------------------------------- */

struct job {
    void (*run)(void *arg);
    void *arg;
};

static void *run_job(void *arg)
{
    struct job job = *(struct job *)arg;
    free(arg);
    job.run(job.arg);
    return NULL;
}

static int submit_thread(void *data, void (*run)(void *arg), void *arg)
{
    struct job *job = malloc(sizeof *job);
    (void)data;
    CHECK(job != NULL);
    *job = (struct job){run, arg};
    CHECK_OK(pthread_detach(spawn(run_job, job)));
    return 0;
}

/* shows: C3 */
static void callback_exits_executor(void)
{
    struct simba_executor e = {.submit = submit_thread};
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.executor = &e;
    for (enum ending ending = EXITS; ending <= IS_CANCELLED; ending++) {
        simba_client *s;
        CHECK_OK(simba_open(suite_url(), &o, &s));
        lead_and_close(s, ending);
    }
}

static void *poll_on(void *arg)
{
    struct user *u = arg;
    for (;;) {
        CHECK_OK(simba_poll(u->s));
        nap(1);
    }
    return NULL;
}

/* Each callback ends the thread that polls; the next one goes on. */
/* shows: C3 */
static void callback_exits_poll(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct user u = {.ending = EXITS};
    struct simba_handle_options h = options_of(&u);
    o.flags = SIMBA_NO_THREAD;
    CHECK_OK(simba_open(suite_url(), &o, &u.s));
    CHECK_OK(simba_contender_create(u.s, fresh("polled"), &h, &u.c));
    for (int i = 1; i <= 5; i++) {
        CHECK_OK(simba_contender_start(u.c));
        join(spawn(poll_on, &u));
        CHECK(atomic_load(&u.acquired) == i);
        CHECK(simba_contender_is_owner(u.c));
        CHECK_OK(simba_contender_stop(u.c));
        join(spawn(poll_on, &u));
        CHECK(atomic_load(&u.released) == i);
        CHECK_OK(simba_poll(u.s)); /* now this thread drives */
        CHECK_OK(simba_contender_wait(u.c, SIMBA_INITIAL, PATIENCE_MS));
    }
    u.ending = RETURNS;
    CHECK_OK(simba_close(u.s, PATIENCE_MS));
    CHECK(atomic_load(&u.closed) == 1);
}

struct waiter {
    struct user *user;
    simba_locker *l;
    int what;
};

/* Drives the client while it waits, and runs a callback that ends it. */
static void *wait_and_drive(void *arg)
{
    struct waiter *w = arg;
    struct simba_owner owner;
    CHECK_OK(simba_poll(w->user->s));
    CHECK_OK(simba_contender_start(w->user->c));
    for (;;) {
        if (w->what == 0)
            simba_locker_acquire(w->l, PATIENCE_MS);
        else if (w->what == 1)
            simba_contender_wait(w->user->c, SIMBA_STOPPING, PATIENCE_MS);
        else
            simba_read(w->user->s, "x", PATIENCE_MS, &owner);
    }
    return NULL;
}

/* shows: C3 */
static void callback_exits_wait(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *other = client_open();
    struct user u = {.ending = EXITS};
    struct simba_handle_options h = options_of(&u), plain = lease_long();
    struct waiter w = {.user = &u};
    const char *mutex = fresh("awaited");
    simba_locker *rival;
    o.flags = SIMBA_NO_THREAD;
    CHECK_OK(simba_open(suite_url(), &o, &u.s));
    CHECK_OK(simba_contender_create(u.s, fresh("driven"), &h, &u.c));
    CHECK_OK(simba_locker_create(u.s, mutex, &plain, &w.l));
    CHECK_OK(simba_locker_create(other, mutex, &plain, &rival));
    CHECK_OK(simba_locker_acquire(rival, PATIENCE_MS));
    for (w.what = 0; w.what < 3; w.what++) {
        u.ending = EXITS;
        join(spawn(wait_and_drive, &w));
        CHECK(atomic_load(&u.acquired) == w.what + 1);
        u.ending = RETURNS;
        CHECK_OK(simba_contender_stop(u.c));
        CHECK_OK(simba_poll(u.s)); /* now this thread drives */
        CHECK_OK(simba_contender_wait(u.c, SIMBA_INITIAL, PATIENCE_MS));
    }
    CHECK_OK(simba_locker_release(rival));
    CHECK_OK(simba_locker_acquire(w.l, PATIENCE_MS)); /* it is not awaited any more */
    CHECK_OK(simba_close(u.s, PATIENCE_MS));
    client_close(other);
}

/* ---- the log, and the callbacks of a scheduler --------------------------------------------- */

static void log_and_exit(void *data, enum simba_level level, const char *line)
{
    struct user *u = data;
    (void)level;
    CHECK(line[0] != '\0');
    atomic_fetch_add(&u->lines, 1);
    pthread_exit(NULL);
}

static void log_exits(void)
{
    struct user u = {.ending = RETURNS};
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct probe p = {0};
    struct simba_handle_options plain = lease_long();
    o.log = log_and_exit;
    o.log_data = &u;
    CHECK_OK(simba_open(suite_url(), &o, &u.s));
    probe_create(&p, u.s, fresh("logged"), &plain);
    for (int i = 1; i <= 10; i++) { /* "acquired" and "given back" */
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(probe_leads(&p));
        probe_stop(&p);
        AWAIT(atomic_load(&u.lines) >= 2 * i);
    }
    client_close(u.s);
}

static int work(void *data, const simba_run *run)
{
    struct user *u = data;
    CHECK(!simba_run_should_stop(run));
    atomic_fetch_add(&u->runs, 1);
    return 0;
}

/* shows: C3 */
static void scheduler_callback_exits(void)
{
    struct user u = {.s = client_open(), .ending = EXITS};
    struct simba_handle_options o = options_of(&u);
    struct simba_schedule every = SIMBA_SCHEDULE_INIT;
    simba_scheduler *x;
    every.period_ms = 10;
    CHECK_OK(simba_scheduler_create(u.s, fresh("works"), &every, work, &o, &x));
    CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
    AWAIT(atomic_load(&u.runs) > 2);
    simba_scheduler_destroy(x);
    AWAIT(atomic_load(&u.closed) == 1);
    CHECK(atomic_load(&u.released) == 1);
    client_close(u.s);
}

const struct test thread_end_tests[] = {
    {"callback_exits", callback_exits, ANY_STORE, 0},
    {"callback_cancelled", callback_cancelled, ANY_STORE, 0},
    {"callback_exits_executor", callback_exits_executor, ANY_STORE, 0},
    {"callback_exits_poll", callback_exits_poll, ANY_STORE, 0},
    {"callback_exits_wait", callback_exits_wait, ANY_STORE, 0},
    {"log_exits", log_exits, ANY_STORE, 0},
    {"scheduler_callback_exits", scheduler_callback_exits, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
