/* executor.c: where callbacks run: on the library's threads, on the user's executor, and what
 * happens when that refuses; and the log, whose lines also come into user code. */
#include "suite.h"

#include <stddef.h>
#include <stdio.h>
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
    atomic_bool hangs;  /* takes jobs and does not run them */
    atomic_int slow_ms; /* before each */
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
        if (x->count == 0 || atomic_load(&x->hangs)) {
            pthread_cond_wait(&x->changed, &x->lock);
            continue;
        }
        struct task t = x->tasks[x->first];
        x->first = (x->first + 1) % TASKS_MAX;
        x->count--;
        pthread_mutex_unlock(&x->lock);
        nap(atomic_load(&x->slow_ms));
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

static void pool_hang(struct pool *x, bool hangs)
{
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->hangs, hangs);
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
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
static simba_client *open_on(struct pool *x)
{
    struct simba_executor e = {.data = x, .submit = pool_submit};
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.executor = &e;
    simba_client *s = NULL;
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
    simba_client *s = open_on(&pool);
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
    simba_client *s = open_on(&pool), *two = client_open();
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
/* shows: C9 */
static void executor_refuses_close(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba_client *s = open_on(&pool);
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

/* ---- slow, hanging, synchronous ------------------------------------------------------------ */

/* One thread, and 100 ms before each job: all is told, in order, late, and nothing is lost. */
static void executor_slow(void)
{
    static struct pool pool;
    static struct probe p[5];
    atomic_store(&pool.slow_ms, 100);
    pool_begin(&pool);
    simba_client *s = open_on(&pool), *two = client_open();
    struct simba_handle_options o = lease_steady();
    const char *mutex = fresh("slow");
    struct probe first = {0}, second = {0};
    probe_start(&first, s, mutex, &o);
    for (int i = 0; i < 5; i++)
        probe_start(&p[i], s, fresh("slow"), &o);
    for (int i = 0; i < 5; i++)
        AWAIT(probe_leads(&p[i]));
    AWAIT(probe_leads(&first));
    probe_start(&second, two, mutex, &o);
    for (int i = 0; i < 5; i++)
        CHECK_OK(simba_contender_stop(p[i].c));
    CHECK_OK(simba_contender_stop(first.c));
    AWAIT(probe_leads(&second));
    CHECK(atomic_load(&first.ended_at) < atomic_load(&second.began_at)); /* C4 */
    for (int i = 0; i < 5; i++) {
        CHECK_OK(simba_contender_wait(p[i].c, SIMBA_INITIAL, PATIENCE_MS));
        CHECK(atomic_load(&p[i].reason) == SIMBA_RELEASED && atomic_load(&p[i].released) == 1);
    }
    client_close(s);
    client_close(two);
    pool_end(&pool);
}

/* on_acquired is taken and not run: the lease is kept. What has ended meanwhile is not told. */
static void executor_hangs(void)
{
    static struct pool pool;
    pool_begin(&pool);
    pool_hang(&pool, true);
    simba_client *s = open_on(&pool), *two = client_open();
    struct simba_handle_options o = lease_steady();
    const char *mutex = fresh("hangs");
    struct probe p = {0}, other = {0};
    struct simba_state first, now;
    probe_start(&p, s, mutex, &o);
    AWAIT(atomic_load(&pool.taken) == 1);
    simba_contender_state(p.c, &first);
    AWAIT((simba_contender_state(p.c, &now), now.after.ttl_at > first.after.ttl_at));
    CHECK(now.after.token == first.after.token && simba_contender_is_owner(p.c));
    probe_start(&other, two, mutex, &o);
    CHECK_OK(simba_contender_stop(p.c));
    CHECK_REFUSED(simba_contender_wait(p.c, SIMBA_INITIAL, 300), SIMBA_ETIMEOUT, mutex);
    CHECK(!simba_contender_is_owner(other.c)); /* it counts as a callback that runs (C4) */
    pool_hang(&pool, false);
    CHECK_OK(simba_contender_wait(p.c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&p.acquired) == 0 && atomic_load(&p.released) == 0);
    AWAIT(probe_leads(&other));
    client_close(two);
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1);
    pool_end(&pool);
}

/* on_released hangs: close says so, as often as it is asked, and ends when it can. */
static void executor_hangs_close(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba_client *s = open_on(&pool);
    struct simba_handle_options o = lease_long();
    struct probe p = {0};
    probe_start(&p, s, fresh("hangs"), &o);
    AWAIT(atomic_load(&p.returned) == 1);
    pool_hang(&pool, true);
    for (int i = 0; i < 3; i++)
        check_close_refused(s, "a callback");
    CHECK(!simba_contender_is_owner(p.c)); /* still there to be asked */
    CHECK(atomic_load(&p.released) == 0);
    pool_hang(&pool, false);
    client_close(s);
    CHECK(atomic_load(&p.released) == 1 && atomic_load(&p.closed) == 1);
    pool_end(&pool);
}

/* Runs the job where it must not, and says what it was told to. */
struct inliner {
    int says;
    atomic_int submits;
};

static _Thread_local bool is_inside;

static int inline_submit(void *data, void (*run)(void *arg), void *arg)
{
    struct inliner *x = data;
    is_inside = true;
    run(arg);
    is_inside = false;
    atomic_fetch_add(&x->submits, 1);
    return x->says;
}

/* What would stand still for ever, or be refused, on the loop. */
static void read_and_block(struct probe *p)
{
    const struct probe *other = p->data;
    CHECK(!is_inside);
    AWAIT(probe_leads(other));
    probe_block(p);
}

static void run_inline(int says)
{
    struct inliner x = {.says = says};
    struct simba_executor e = {.data = &x, .submit = inline_submit};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.executor = &e;
    simba_client *s = NULL;
    CHECK_OK(simba_open(suite_url(), &options, &s));
    struct simba_handle_options o = lease_steady();
    struct probe other = {0};
    struct probe p = {.in_acquired = read_and_block, .in_released = probe_block, .data = &other};
    struct simba_state first, now;
    probe_create(&other, s, fresh("inline"), &o);
    probe_start(&p, s, fresh("inline"), &o);
    AWAIT(atomic_load(&p.acquired) == 1);
    CHECK_OK(simba_contender_start(other.c));
    AWAIT(probe_leads(&other));
    simba_contender_state(p.c, &first);
    AWAIT((simba_contender_state(p.c, &now), now.after.ttl_at > first.after.ttl_at));
    atomic_store(&p.gate, true);
    AWAIT(atomic_load(&p.returned) == 1);
    probe_stop(&p);
    CHECK(atomic_load(&p.acquired) == 1 && atomic_load(&p.released) == 1);
    client_close(s);
    CHECK(atomic_load(&p.closed) == 1 && atomic_load(&other.closed) == 1);
    CHECK(atomic_load(&x.submits) == 6); /* three callbacks of each, each once */
}

static void executor_synchronous(void)
{
    run_inline(0);
}

/* It has run the job and then refuses it: that is still once. */
static void executor_synchronous_refuses(void)
{
    run_inline(-1);
}

/* ---- one that hangs among many ------------------------------------------------------------- */

#define MANY 1000

/* Its callback does not end; all others are told of their tenures, renewed, stopped and told. */
static void executor_one_hangs(void)
{
    static struct probe p[MANY];
    static int64_t ttl_at[MANY];
    char name[SIMBA_MUTEX_MAX + 1];
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long(); /* a thousand, on a machine that may be busy */
    const char *tag = fresh("many");
    struct simba_state now;
    o.renew_ms = 1000;
    p[0].in_acquired = probe_block;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s.%d", tag, i);
        probe_create(&p[i], s, name, &o);
    }
    CHECK_OK(simba_contender_start(p[0].c));
    AWAIT(atomic_load(&p[0].acquired) == 1);
    for (int i = 1; i < MANY; i++)
        CHECK_OK(simba_contender_start(p[i].c));
    for (int i = 0; i < MANY; i++) {
        AWAIT(probe_leads(&p[i]));
        simba_contender_state(p[i].c, &now);
        ttl_at[i] = now.after.ttl_at;
    }
    for (int i = 0; i < MANY; i++)
        AWAIT((simba_contender_state(p[i].c, &now), now.after.ttl_at > ttl_at[i]));
    for (int i = 1; i < MANY; i++)
        CHECK_OK(simba_contender_stop(p[i].c));
    for (int i = 1; i < MANY; i++) {
        CHECK_OK(simba_contender_wait(p[i].c, SIMBA_INITIAL, PATIENCE_MS));
        CHECK(atomic_load(&p[i].acquired) == 1 && atomic_load(&p[i].released) == 1);
        CHECK(atomic_load(&p[i].reason) == SIMBA_RELEASED);
    }
    simba_contender_state(p[0].c, &now);
    ttl_at[0] = now.after.ttl_at;
    AWAIT((simba_contender_state(p[0].c, &now), now.after.ttl_at > ttl_at[0]));
    CHECK(probe_leads(&p[0]) && atomic_load(&p[0].returned) == 0);
    atomic_store(&p[0].gate, true);
    client_close(s);
    CHECK(atomic_load(&p[0].released) == 1 && atomic_load(&p[0].closed) == 1);
}

/* T4: with one thread that is busy, an acquisition whose lease has ended meanwhile is never
 * announced as if it held: whoever hears of it asks is_owner and gets the truth of the clock. */
/* shows: C3 */
static void executor_saturated(void)
{
    static struct pool pool;
    pool_begin(&pool);
    simba_client *s = open_on(&pool), *two = client_open();
    struct simba_handle_options o = lease_short(), calm = lease_long();
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
    simba_client *s;
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
    {"executor_slow", executor_slow, ANY_STORE, 0},
    {"executor_hangs", executor_hangs, ANY_STORE, 0},
    {"executor_hangs_close", executor_hangs_close, ANY_STORE, 0},
    {"executor_synchronous", executor_synchronous, ANY_STORE, 0},
    {"executor_synchronous_refuses", executor_synchronous_refuses, ANY_STORE, 0},
    {"executor_one_hangs", executor_one_hangs, ANY_STORE, 0},
    {"executor_saturated", executor_saturated, MEMORY_FAULTS, 0},
    {"log_calls_back", log_calls_back, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};
