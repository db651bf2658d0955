/* memory.c: a client's way to a space, on the client's loop, with the faults that tests ask for.
 *
 * Without faults a batch is applied and answered within submit(). With them, requests wait in
 * `held` while the store hangs, and answers wait in `deferred` for their time. */
#include "backend/memory/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kit/findings.h"
#include "backend/memory/space.h"
#include "base/clock.h"

struct deferred {
    struct deferred *next;
    int64_t at; /* ns */
    struct simba_request *request;
    struct simba_answer answer;
    char id[SIMBA_ID_MAX + 1];
    struct simba_noted noted;
    char note[SIMBA_NOTE_MAX + 1];
};

static const struct simba_answer unknown = {
    .code = SIMBA_ETIMEOUT, .age_ms = -1, .text = "no answer from the store in time"};

static void set_timer(struct memory *m);

/* ---- answers that come later --------------------------------------------------------------- */

static void defer(struct memory *m, struct simba_request *request,
                  const struct simba_answer *answer, int64_t delay_ms)
{
    struct deferred *d = calloc(1, sizeof *d);
    if (d == NULL) {
        m->host->answer(m->host, request, &unknown);
        return;
    }
    d->at = clock_after_ms(clock_now(), delay_ms);
    d->request = request;
    d->answer = *answer;
    if (answer->id != NULL) {
        snprintf(d->id, sizeof d->id, "%s", answer->id);
        d->answer.id = d->id;
    }
    if (answer->note != NULL) {
        d->noted = *answer->note;
        snprintf(d->note, sizeof d->note, "%s", d->noted.text);
        d->noted.text = d->note;
        d->answer.note = &d->noted;
    }
    *m->deferred_last = d;
    m->deferred_last = &d->next;
}

static void answer_due(struct memory *m, int64_t now)
{
    struct deferred **at = &m->deferred;
    while (*at != NULL) {
        struct deferred *d = *at;
        if (d->at > now) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        m->host->answer(m->host, d->request, &d->answer);
        free(d);
    }
    m->deferred_last = at;
}

static void on_timer(uv_timer_t *timer)
{
    struct memory *m = timer->data;
    answer_due(m, clock_now());
    set_timer(m);
}

static void set_timer(struct memory *m)
{
    int64_t at = NEVER, now = clock_now();
    for (struct deferred *d = m->deferred; d != NULL; d = d->next)
        at = d->at < at ? d->at : at;
    if (at == NEVER) {
        uv_timer_stop(&m->timer);
        return;
    }
    handles_start_timer(&m->timer, on_timer, at <= now ? 0 : (at - now) / NS_PER_MS + 1);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void apply(struct memory *m, struct simba_request *q)
{
    struct space *s = m->space;
    const struct simba_memory_faults *f = &s->faults;
    struct simba_answer answer = unknown;
    if (f->fail) {
        answer.code = SIMBA_ESTORE;
        answer.text = "the store fails, as it was told to";
        m->host->answer(m->host, q, &answer);
        return;
    }
    if (space_chance(s, f->lose_request)) {
        defer(m, q, &unknown, m->host->command_timeout_ms);
        return;
    }
    struct simba_noted noted;
    enum space_news news = space_apply(s, q, &answer, &noted);
    if (q->op == SIMBA_LIST)
        space_list(s, m, q);
    bool twice = space_chance(s, f->duplicate);
    if (space_chance(s, f->lose_answer)) {
        defer(m, q, &unknown, m->host->command_timeout_ms);
    } else if (f->delay_ms > 0) {
        defer(m, q, &answer, f->delay_ms);
    } else {
        m->host->answer(m->host, q, &answer);
        if (twice) /* before the runtime has seen the first: it must tell them apart */
            m->host->answer(m->host, q, &answer);
    }
    space_tell(s, q->mutex, news);
    if (twice)
        space_apply(s, q, &answer, &noted);
}

static void submit(void *store, struct simba_request *batch)
{
    struct memory *m = store;
    pthread_mutex_lock(&m->space->lock);
    bool hang = m->space->faults.hang;
    while (batch != NULL) {
        struct simba_request *q = batch;
        batch = q->next;
        q->next = NULL;
        if (hang)
            pending_add(&m->held, q);
        else
            apply(m, q);
    }
    pthread_mutex_unlock(&m->space->lock);
    set_timer(m);
}

/* Nothing to prepare: space_tell() asks the host. */
static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    (void)store;
    (void)mutex;
    (void)interest;
}

/* The faults have changed. */
static void on_wake(uv_async_t *async)
{
    struct memory *m = async->data;
    struct simba_request *held = pending_take(&m->held);
    if (held != NULL)
        submit(m, held);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int open_memory(struct simba_host *host, const struct simba_url *url, void **store,
                       char *why, size_t why_size)
{
    if (strlen(simba_url_path(url)) > SIMBA_MUTEX_MAX) {
        snprintf(why, why_size, "the name after memory: is longer than %d bytes", SIMBA_MUTEX_MAX);
        return SIMBA_EINVAL;
    }
    struct memory *m = calloc(1, sizeof *m);
    if (m == NULL)
        goto err;
    m->host = host;
    pending_init(&m->held);
    m->deferred_last = &m->deferred;
    if (uv_async_init(host->loop, &m->wake, on_wake) != 0)
        goto err_after_memory;
    m->wake.data = m;
    m->space = space_enter(simba_url_path(url), m);
    if (m->space == NULL)
        goto err_after_wake;
    handles_init(&m->handles, host, free, m);
    handles_add(&m->handles);
    handles_add_timer(&m->handles, &m->timer, m);
    *store = m;
    return 0;

err_after_wake:
    uv_close((uv_handle_t *)&m->wake, NULL);
    uv_run(host->loop, UV_RUN_NOWAIT);
err_after_memory:
    free(m);
err:
    snprintf(why, why_size, "out of memory");
    return SIMBA_ELIMIT;
}

static void close_memory(void *store)
{
    struct memory *m = store;
    const struct simba_answer ended = {.code = SIMBA_ECANCELED, .age_ms = -1};
    pending_fail(&m->held, m->host, SIMBA_ECANCELED, NULL);
    for (struct deferred *d = m->deferred; d != NULL; d = d->next)
        d->answer = ended;
    answer_due(m, NEVER);
    space_leave(m);
    handles_close(&m->handles, &m->wake);
    handles_close(&m->handles, &m->timer);
}

static void examine(void *store, struct simba_request *q)
{
    const struct findings f = {((struct memory *)store)->host, q};
    findings_say(
        &f, SIMBA_LOG_ERROR,
        "memory: serves this process only; use sqlite:PATH for the processes of one machine");
    findings_end(&f);
}

static const char *const schemes[] = {"memory", NULL};
static const char *const options[] = {NULL};

const struct simba_backend memory_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = options,
    .open = open_memory,
    .submit = submit,
    .watch = watch,
    .close = close_memory,
    .examine = examine,
};
