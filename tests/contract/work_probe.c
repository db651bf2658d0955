/* work_probe.c: see work_probe.h. */
#include "work_probe.h"

#include <string.h>

#include "suite.h"

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct work_probe *d = data;
    CHECK(strcmp(mutex, d->mutex) == 0);
    CHECK(atomic_load(&d->inside) == 0 && atomic_load(&d->closed) == 0);
    CHECK(state->after.token > atomic_load(&d->token));
    atomic_store(&d->token, state->after.token);
    CHECK(atomic_fetch_add(&d->acquired, 1) == atomic_load(&d->released));
    atomic_store(&d->acquired_at, simba_now());
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct work_probe *d = data;
    CHECK(strcmp(mutex, d->mutex) == 0);
    CHECK(atomic_load(&d->inside) == 0 && atomic_load(&d->closed) == 0);
    CHECK(state->before.token == atomic_load(&d->token));
    CHECK(!simba_contender_is_owner(d->c));
    CHECK(atomic_fetch_add(&d->released, 1) + 1 == atomic_load(&d->acquired));
}

static void on_closed(void *data)
{
    struct work_probe *d = data;
    CHECK(atomic_load(&d->inside) == 0);
    CHECK(atomic_load(&d->acquired) == atomic_load(&d->released));
    CHECK(atomic_fetch_add(&d->closed, 1) == 0);
}

void work_probe_leave(struct work_probe *d)
{
    CHECK(atomic_fetch_sub(&d->inside, 1) == 1);
    if (d->busy != NULL)
        CHECK(atomic_fetch_sub(d->busy, 1) == 1);
}

static int work(void *data, const simba_run *run)
{
    struct work_probe *d = data;
    char name[16] = "";
    CHECK(atomic_fetch_add(&d->inside, 1) == 0);
    if (d->busy != NULL)
        CHECK(atomic_fetch_add(d->busy, 1) == 0);
    CHECK(atomic_load(&d->closed) == 0);
    CHECK(atomic_load(&d->acquired) == atomic_load(&d->released) + 1);
    CHECK(simba_run_token(run) == atomic_load(&d->token));
    CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    CHECK(strcmp(name, "simba-work") == 0);
    atomic_fetch_add(&d->runs, 1);
    int code = d->in_work != NULL ? d->in_work(d, run) : 0;
    work_probe_leave(d);
    return code;
}

void work_probe_create(struct work_probe *d, simba_client *s, const char *mutex,
                       const struct simba_handle_options *like)
{
    struct simba_handle_options o = *like;
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.on_closed = on_closed;
    o.data = d;
    o.at_least_ms = d->at_least;
    when.pace = d->pace;
    when.period_ms = d->period;
    when.initial_delay_ms = d->initial_delay;
    d->s = s;
    d->mutex = mutex;
    CHECK_OK(simba_scheduler_create(s, mutex, &when, work, &o, &d->x));
    d->c = simba_scheduler_contender(d->x);
    CHECK(simba_contender_status(d->c) == SIMBA_INITIAL);
}

void work_probe_start(struct work_probe *d, simba_client *s, const char *mutex,
                      const struct simba_handle_options *like)
{
    work_probe_create(d, s, mutex, like);
    CHECK_OK(simba_contender_start(d->c));
}

void work_probe_stop(struct work_probe *d)
{
    CHECK_OK(simba_contender_stop(d->c));
    CHECK_OK(simba_contender_wait(d->c, SIMBA_INITIAL, PATIENCE_MS));
    CHECK(atomic_load(&d->inside) == 0);
    CHECK(atomic_load(&d->acquired) == atomic_load(&d->released));
}

/* Hundreds of these at once must leave the processors to others. */
#define BLOCK_NAP_MS 20

int work_probe_block(struct work_probe *d, const simba_run *run)
{
    int64_t until = simba_now() + PATIENCE_MS;
    for (; !atomic_load(&d->gate); nap(BLOCK_NAP_MS)) {
        CHECK(simba_now() < until);
        if (simba_run_should_stop(run))
            atomic_store(&d->saw_stop, true);
    }
    return 0;
}
