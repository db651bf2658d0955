/* executor.c: where callbacks run: on the library's threads, on the user's executor, and what
 * happens when that refuses; and the log, whose lines also come into user code. */
#include "suite.h"

#include <stddef.h>
#include <string.h>

/* ---- an executor with one thread ----------------------------------------------------------- */

#define TASKS_MAX 256

struct task {
    void (*run)(void *arg);
    void *arg;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task tasks[TASKS_MAX];
    int first, count;
    bool stop;
    atomic_bool refuses;
    atomic_int taken, refused, ran;
    pthread_t thread;
};

static _Thread_local bool is_ours;

static int pool_submit(void *data, void (*run)(void *arg), void *arg)
{
    struct pool *x = data;
    if (atomic_load(&x->refuses)) {
        atomic_fetch_add(&x->refused, 1);
        return -1;
    }
    pthread_mutex_lock(&x->lock);
    CHECK(x->count < TASKS_MAX);
    x->tasks[(x->first + x->count++) % TASKS_MAX] = (struct task){run, arg};
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    atomic_fetch_add(&x->taken, 1);
    return 0;
}

static void *pool_run(void *arg)
{
    struct pool *x = arg;
    is_ours = true;
    pthread_mutex_lock(&x->lock);
    while (!x->stop || x->count > 0) {
        if (x->count == 0) {
            pthread_cond_wait(&x->changed, &x->lock);
            continue;
        }
        struct task t = x->tasks[x->first];
        x->first = (x->first + 1) % TASKS_MAX;
        x->count--;
        pthread_mutex_unlock(&x->lock);
        t.run(t.arg);
        atomic_fetch_add(&x->ran, 1);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static void pool_begin(struct pool *x)
{
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    x->thread = spawn(pool_run, x);
}

static void pool_end(struct pool *x)
{
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    join(x->thread);
    CHECK(atomic_load(&x->ran) == atomic_load(&x->taken));
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
}

/* The executor structure is copied: this one is gone when simba_open has returned. */
static simba *open_on(struct pool *x)
{
    struct simba_executor e = {.data = x, .submit = pool_submit};
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.executor = &e;
    simba *s = NULL;
    CHECK_OK(simba_open(suite_url(), &o, &s));
    memset(&e, 0, sizeof e);
    return s;
}

static void expect_ours(struct probe *p)
{
    (void)p;
    CHECK(is_ours);
}

static void executor_of_user(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba *s = open_on(&pool);
    struct simba_handle_options o = lease_long();
    struct probe p[3] = {{0}, {0}, {0}};
    for (int i = 0; i < 3; i++) {
        p[i].in_acquired = p[i].in_released = expect_ours;
        probe_start(&p[i], s, fresh("user"), &o);
    }
    for (int i = 0; i < 3; i++) {
        AWAIT(probe_leads(&p[i]));
        probe_stop(&p[i]);
    }
    client_close(s);
    for (int i = 0; i < 3; i++)
        CHECK(atomic_load(&p[i].closed) == 1);
    CHECK(atomic_load(&pool.taken) > 0);
    pool_end(&pool);
}

/* An executor may be full for a while. The callbacks it refuses are late or run elsewhere, but they
 * run, and the handle goes on. */
static void executor_refuses(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba *s = open_on(&pool), *two = client_open();
    const char *mutex = fresh("refuses");
    struct simba_handle_options o = lease_short();
    struct probe p = {0}, other = {0};
    atomic_store(&pool.refuses, true);
    probe_start(&p, s, mutex, &o);
    AWAIT(atomic_load(&pool.refused) > 0);
    atomic_store(&pool.refuses, false);
    AWAIT(probe_leads(&p));
    probe_start(&other, two, mutex, &o);
    int so_far = atomic_load(&pool.refused);
    atomic_store(&pool.refuses, true);
    CHECK_OK(simba_contender_stop(p.c));
    AWAIT(atomic_load(&pool.refused) > so_far);
    atomic_store(&pool.refuses, false);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(probe_is_idle(&p));
    AWAIT(probe_leads(&other));
    client_close(two);
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1);
    pool_end(&pool);
}

/* Close waits for callbacks that nobody wants to run, at most its timeout, and can be repeated. */
static void executor_refuses_close(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba *s = open_on(&pool);
    struct simba_handle_options o = lease_short();
    struct probe p = {0};
    probe_start(&p, s, fresh("refuses-c"), &o);
    AWAIT(probe_leads(&p));
    atomic_store(&pool.refuses, true);
    int code = simba_close(s, 300);
    CHECK(code == 0 || code == SIMBA_ETIMEOUT);
    atomic_store(&pool.refuses, false);
    if (code != 0)
        client_close(s);
    CHECK(probe_is_idle(&p));
    CHECK(atomic_load(&p.closed) == 1);
    pool_end(&pool);
}

/* T4: with one thread that is busy, an acquisition whose lease has ended meanwhile is never
 * announced as if it held: whoever hears of it asks is_owner and gets the truth of the clock. */
static void executor_saturated(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba *s = open_on(&pool), *two = client_open();
    struct simba_handle_options o = lease_tiny(), calm = lease_long();
    const char *mutex = fresh("late");
    struct probe busy = {.in_acquired = probe_block}, late = {0}, other = {0};
    struct referee referee = {.probe = {&late, &other}, .probes = 2};
    probe_start(&busy, s, fresh("busy"), &calm);
    AWAIT(atomic_load(&busy.acquired) == 1);
    probe_start(&late, s, mutex, &o);
    struct simba_owner owner;
    AWAIT(simba_read(two, mutex, PATIENCE_MS, &owner) == 0 && owner.token != 0);
    CHECK(atomic_load(&late.acquired) == 0);
    probe_create(&other, two, mutex, &o);
    referee_begin(&referee);
    store_evict(mutex, false);
    CHECK_OK(simba_contender_start(other.c));
    AWAIT(probe_leads(&other));
    atomic_store(&busy.gate, true);
    CHECK_OK(simba_contender_stop(other.c));
    AWAIT(probe_leads(&late));
    referee_end(&referee);
    client_close(s);
    client_close(two);
    pool_end(&pool);
}

/* ---- the log ------------------------------------------------------------------------------- */

struct listener {
    simba *s;
    struct probe *p;
    const char *mutex;
    atomic_bool ready; /* the fields above are set */
    atomic_int lines, calls;
};

static _Thread_local bool is_logging;

/* The line may come on any thread, also where waiting is impossible; what is called from here has
 * to return, with an error if need be. */
static void listen_to(void *data, enum simba_level level, const char *line)
{
    struct listener *x = data;
    CHECK(level >= SIMBA_LOG_ERROR && level <= SIMBA_LOG_DEBUG);
    CHECK(line != NULL && *line != '\0');
    CHECK(strchr(line, '\n') == NULL);
    atomic_fetch_add(&x->lines, 1);
    if (!atomic_load(&x->ready) || is_logging)
        return;
    is_logging = true;
    struct simba_owner owner;
    int code = simba_read(x->s, x->mutex, 50, &owner);
    CHECK(code == 0 || code == SIMBA_EDEADLOCK || code == SIMBA_ETIMEOUT || code == SIMBA_ESTORE ||
          code == SIMBA_ECANCELED || code == SIMBA_ESTATE);
    (void)simba_contender_is_owner(x->p->c);
    (void)simba_contender_status(x->p->c);
    CHECK(simba_contender_start(x->p->c) != 0);
    CHECK(simba_error_text() != NULL);
    is_logging = false;
    atomic_fetch_add(&x->calls, 1);
}

static void log_calls_back(void)
{
    struct listener x = {0};
    struct probe p = {0};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.log = listen_to;
    options.log_data = &x;
    CHECK_OK(simba_open(suite_url(), &options, &x.s));
    struct simba_handle_options o = lease_short();
    x.p = &p;
    x.mutex = fresh("log");
    probe_start(&p, x.s, x.mutex, &o);
    AWAIT(probe_leads(&p));
    atomic_store(&x.ready, true);
    store_set(FAIL);
    AWAIT(atomic_load(&x.calls) > 0);
    AWAIT(!simba_contender_is_owner(p.c));
    store_set(HEALTHY);
    AWAIT(probe_leads(&p));
    atomic_store(&x.ready, false);
    client_close(x.s);
    CHECK(atomic_load(&x.lines) > 0);
}

const struct test executor_tests[] = {
    {"executor_of_user", executor_of_user, ANY_STORE, 0},
    {"executor_refuses", executor_refuses, ANY_STORE, 0},
    {"executor_refuses_close", executor_refuses_close, ANY_STORE, 0},
    {"executor_saturated", executor_saturated, MEMORY_FAULTS, 0},
    {"log_calls_back", log_calls_back, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};
