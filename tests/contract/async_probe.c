/* async_probe.c: see async_probe.h. */
#include "async_probe.h"

#include <stdio.h>

#include "suite.h"

static void done(void *data, int code)
{
    struct async_probe *p = data;
    CHECK(atomic_fetch_add(&p->inside, 1) == 0);
    CHECK(atomic_load(&p->closed) == 0);
    if (code < 0)
        snprintf(p->text, sizeof p->text, "%s", simba_error_text());
    atomic_store(&p->code, code);
    if (p->in_done != NULL)
        p->in_done(p, code);
    CHECK(atomic_fetch_sub(&p->inside, 1) == 1);
    atomic_fetch_add(&p->dones, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct async_probe *p = data;
    (void)mutex;
    CHECK(state->before.token != 0);
    CHECK(atomic_fetch_add(&p->inside, 1) == 0);
    CHECK(atomic_load(&p->closed) == 0);
    if (p->in_released != NULL)
        p->in_released(p, 0);
    atomic_fetch_add(&p->released, 1);
    CHECK(atomic_fetch_sub(&p->inside, 1) == 1);
}

static void on_closed(void *data)
{
    struct async_probe *p = data;
    CHECK(atomic_load(&p->inside) == 0);
    CHECK(atomic_load(&p->dones) == atomic_load(&p->asked));
    CHECK(atomic_fetch_add(&p->closed, 1) == 0);
}

void async_probe_create(struct async_probe *p, simba_client *s, const char *mutex,
                        const struct simba_handle_options *like)
{
    struct simba_handle_options o = *like;
    p->s = s;
    p->mutex = mutex;
    o.on_lost = on_released;
    o.on_closed = on_closed;
    o.data = p;
    CHECK_OK(simba_locker_create(s, mutex, &o, &p->l));
}

/* Counted before: done may come, and be checked, before the call returns. */
int async_acquire(struct async_probe *p, int64_t timeout_ms)
{
    atomic_fetch_add(&p->asked, 1);
    int code = simba_locker_acquire_async(p->l, timeout_ms, done, p);
    if (code < 0)
        atomic_fetch_sub(&p->asked, 1);
    return code;
}

int async_release(struct async_probe *p)
{
    atomic_fetch_add(&p->asked, 1);
    int code = simba_locker_release_async(p->l, done, p);
    if (code < 0)
        atomic_fetch_sub(&p->asked, 1);
    return code;
}

void async_probe_block(struct async_probe *p, int code)
{
    (void)code;
    AWAIT(atomic_load(&p->gate));
}

int async_result(struct async_probe *p)
{
    AWAIT(atomic_load(&p->dones) == atomic_load(&p->asked));
    return atomic_load(&p->code);
}
