/* frozen.c: a program of 1.0, and one of 0.1, run with today's library. It knows simba.h as it was,
 * from frozen.h, and never includes the header of today. `frozen [URL]`; its last line is "ok". */
#include "frozen.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the functions, as they were ----------------------------------------------------------- */

typedef struct client client;
typedef struct handle handle;

int simba_open(const char *, const struct frozen_options *, client **);
int simba_close(client *, int64_t);
int simba_read(client *, const char *, int64_t, struct frozen_owner *);
int simba_list(client *, const char *, int64_t, void (*)(void *, const struct frozen_entry *),
               void *);
int simba_evict(client *, const char *, const struct frozen_owner *, bool, int64_t);
int simba_metrics_read(client *, struct frozen_metrics *);
int simba_metrics_each(client *, void (*)(void *, const struct frozen_handle_metrics *), void *);
int simba_contender_create(client *, const char *, const struct frozen_handle_options *, handle **);
int simba_contender_start(handle *);
int simba_contender_wait(handle *, int, int64_t);
int simba_contender_stop(handle *);
void simba_contender_state(const handle *, struct frozen_state *);
uint64_t simba_contender_token(const handle *);
int simba_locker_create(client *, const char *, const struct frozen_handle_options *, handle **);
int simba_locker_acquire(handle *, int64_t);
int simba_locker_release(handle *);
int simba_observer_create(client *, const char *, const struct frozen_handle_options *, handle **);
int simba_scheduler_create(client *, const char *, const struct frozen_schedule *,
                           int (*)(void *, const void *), const struct frozen_handle_options *,
                           handle **);
handle *simba_scheduler_contender(handle *);
const char *simba_error_text(void);

#define PATIENCE INT64_C(30000)
#define GUARD UINT64_C(0x5ca1ab1e0ddba11)

#define CHECK(what)                                                                    \
    do                                                                                 \
        if (!(what)) {                                                                 \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, simba_error_text()); \
            exit(1);                                                                   \
        }                                                                              \
    while (0)

/* ---- callbacks ----------------------------------------------------------------------------- */

static atomic_int acquired, released, changed, runs, lines;

static void on_acquired(void *data, const char *mutex, const struct frozen_state *s)
{
    CHECK(strcmp(data, mutex) == 0);
    CHECK(strcmp(s->after.id, "me") == 0 && s->after.token > 0 && s->reason == 1);
    CHECK(s->after.ttl_at < s->after.transition_at && s->before.id[0] == '\0');
    atomic_fetch_add(&acquired, 1);
}

static void on_released(void *data, const char *mutex, const struct frozen_state *s)
{
    CHECK(strcmp(data, mutex) == 0 && strcmp(s->before.id, "me") == 0 && s->reason == 2);
    atomic_fetch_add(&released, 1);
}

static void on_changed(void *data, const char *mutex, const struct frozen_state *s)
{
    CHECK(strcmp(data, mutex) == 0 && (s->reason >= 0 && s->reason <= 5));
    atomic_fetch_add(&changed, 1);
}

static void on_line(void *data, int level, const char *line)
{
    CHECK(data == &lines && level >= 0 && line[0] != '\0');
    atomic_fetch_add(&lines, 1);
}

static int work(void *data, const void *run)
{
    CHECK(data != NULL && run != NULL);
    atomic_fetch_add(&runs, 1);
    return 0;
}

static void on_entry(void *data, const struct frozen_entry *e)
{
    CHECK(e->owner.token > 0 && e->waiters >= -1 && e->reserved[0] == 0);
    *(int *)data += strcmp(e->mutex, "frozen") == 0 && strcmp(e->owner.id, "me") == 0;
}

static void on_handle(void *data, const struct frozen_handle_metrics *m)
{
    CHECK(m->reserved32 == 0 && m->reserved[0] == 0);
    *(int *)data += strcmp(m->mutex, "frozen") == 0 && strcmp(m->id, "me") == 0 && m->token > 0 &&
                    m->acquisitions == 1 && m->status == 2;
}

/* ---- a program ----------------------------------------------------------------------------- */

/* Sizes as its header had them; the rest of each struct is no memory of the library's. */
struct sizes {
    size_t options, handle_options, schedule, metrics;
};

static struct frozen_handle_options handle_init(size_t size, void *data)
{
    struct frozen_handle_options o;
    memset(&o, 0x5a, sizeof o);
    o.size = size;
    o.id = "me";
    o.ttl_ms = o.transition_ms = o.initial_delay_ms = o.renew_ms = o.drain_ms = -1;
    o.jitter_early_ms = o.jitter_late_ms = -1;
    o.on_acquired = o.on_released = o.on_changed = NULL;
    o.on_closed = NULL;
    o.data = data;
    if (size <= offsetof(struct frozen_handle_options, progress_ms))
        return o;
    o.progress_ms = o.at_least_ms = -1;
    o.on_endangered = NULL;
    o.on_stopped = NULL;
    o.on_lost = NULL;
    return o;
}

static client *open_client(const char *url, size_t size)
{
    struct frozen_options o;
    client *c = NULL;
    memset(&o, 0x5a, sizeof o);
    o.size = size;
    o.ttl_ms = o.transition_ms = o.connect_timeout_ms = o.command_timeout_ms = o.drift_ppm = -1;
    o.executor = NULL;
    o.log = on_line;
    o.log_data = &lines;
    o.flags = 0; /* and what follows in this word was padding once */
    if (size > offsetof(struct frozen_options, trace)) {
        o.trace = NULL;
        o.trace_data = NULL;
        o.labels = NULL;
    }
    CHECK(simba_open(url, &o, &c) == 0);
    return c;
}

/* Results are written up to their end, and not further. */
static void inspect(client *c, const handle *leader, const struct sizes *size)
{
    struct {
        struct frozen_owner owner;
        uint64_t guard1;
        struct frozen_state state;
        uint64_t guard2;
        struct frozen_metrics metrics;
    } seen = {.guard1 = GUARD, .guard2 = GUARD};
    int entries = 0, handles = 0;
    memset(&seen.metrics, 0x5a, sizeof seen.metrics);
    seen.metrics.size = size->metrics;
    CHECK(simba_read(c, "frozen", PATIENCE, &seen.owner) == 0);
    simba_contender_state(leader, &seen.state);
    CHECK(simba_metrics_read(c, &seen.metrics) == 0);
    CHECK(seen.guard1 == GUARD && seen.guard2 == GUARD && seen.metrics.size == size->metrics);
    CHECK(strcmp(seen.owner.id, "me") == 0 && seen.owner.token == simba_contender_token(leader));
    CHECK(seen.state.after.token == seen.owner.token && seen.state.reason == 1);
    printf("transition %lld ms\n", (long long)(seen.owner.transition_at - seen.owner.ttl_at));
    CHECK(seen.metrics.handles >= 1 && seen.metrics.owned == 1 && seen.metrics.acquisitions == 1);
    for (size_t i = size->metrics; i < sizeof seen.metrics; i++)
        CHECK(((const unsigned char *)&seen.metrics)[i] == 0x5a);
    CHECK(simba_list(c, "fro", PATIENCE, on_entry, &entries) == 0 && entries == 1);
    CHECK(simba_metrics_each(c, on_handle, &handles) == 0 && handles == 1);
    CHECK(simba_evict(c, "nobody", NULL, false, PATIENCE) == -5);
}

static void await(atomic_int *what, handle *h)
{
    for (int i = 0; i < 300 && atomic_load(what) == 0; i++)
        simba_contender_wait(h, 3, 100); /* it does not stop: this is a pause */
    CHECK(atomic_load(what) > 0);
}

static void run(const char *url, const struct sizes *size)
{
    static char frozen[] = "frozen", locked[] = "locked", scheduled[] = "scheduled";
    struct frozen_handle_options o = handle_init(size->handle_options, frozen);
    struct {
        struct frozen_schedule s;
        int64_t at_least_ms; /* in 0.1 */
    } schedule = {{size->schedule, 0, 1, -1}, -1};
    client *c = open_client(url, size->options);
    handle *leader, *watcher, *lock, *scheduler;
    atomic_store(&acquired, 0);
    atomic_store(&released, 0);
    atomic_store(&changed, 0);
    atomic_store(&runs, 0);
    o.on_changed = on_changed;
    CHECK(simba_observer_create(c, "frozen", &o, &watcher) == 0);
    o.on_changed = NULL;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    CHECK(simba_contender_create(c, "frozen", &o, &leader) == 0);
    CHECK(simba_contender_start(leader) == 0 && simba_contender_wait(leader, 2, PATIENCE) == 0);
    await(&acquired, leader);
    await(&changed, leader);
    inspect(c, leader, size);
    CHECK(simba_contender_stop(leader) == 0 && simba_contender_wait(leader, 0, PATIENCE) == 0);
    CHECK(atomic_load(&released) == 1);
    o.data = locked;
    o.on_acquired = o.on_released = NULL;
    CHECK(simba_locker_create(c, "locked", &o, &lock) == 0);
    CHECK(simba_locker_acquire(lock, PATIENCE) == 0 && simba_locker_release(lock) == 0);
    o.data = scheduled;
    CHECK(simba_scheduler_create(c, "scheduled", &schedule.s, work, &o, &scheduler) == 0);
    handle *contender = simba_scheduler_contender(scheduler);
    CHECK(simba_contender_start(contender) == 0);
    await(&runs, contender);
    CHECK(simba_close(c, PATIENCE) == 0);
    CHECK(atomic_load(&lines) > 0);
}

int main(int argc, char **argv)
{
    static const struct sizes now = {sizeof(struct frozen_options),
                                     sizeof(struct frozen_handle_options),
                                     sizeof(struct frozen_schedule), sizeof(struct frozen_metrics)};
    static const struct sizes first = {
        offsetof(struct frozen_options, trace), offsetof(struct frozen_handle_options, progress_ms),
        sizeof(struct frozen_schedule) + sizeof(int64_t), offsetof(struct frozen_metrics, stalled)};
    const char *url = argc > 1 ? argv[1] : "memory:frozen";
    setlocale(LC_ALL, "");
    printf("%c is the decimal point\n", localeconv()->decimal_point[0]);
    run(url, &now);
    run(url, &first);
    puts("ok");
    return 0;
}
