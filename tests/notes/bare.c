/* bare.c: see bare.h. */
#include "bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/url.h"
#include "runtime/registry.h"

void bare_fail(const char *file, int line, const char *what)
{
    printf("%s:%d: %s\n0 passed, 1 failed\n", file, line, what);
    exit(1);
}

void bare_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    struct bare *b = (struct bare *)(void *)host;
    struct bare_request *r = (struct bare_request *)(void *)q;
    r->answer = *answer;
    snprintf(r->id, sizeof r->id, "%s", answer->id != NULL ? answer->id : "");
    snprintf(r->text, sizeof r->text, "%s", answer->text != NULL ? answer->text : "");
    r->note_token = answer->note != NULL ? answer->note->token : 0;
    snprintf(r->note, sizeof r->note, "%s", answer->note != NULL ? answer->note->text : "");
    atomic_store(&r->is_answered, true);
    atomic_fetch_sub(&b->open, 1);
}

static void on_found(struct simba_host *host, struct simba_request *q,
                     const struct simba_found *found)
{
    (void)host;
    (void)q;
    (void)found;
}

static void on_hint(struct simba_host *host, const char *mutex)
{
    (void)host;
    (void)mutex;
}

static void on_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    (void)host;
    (void)mutex;
    (void)id;
}

static void on_log(struct simba_host *host, enum simba_level level, const char *line)
{
    (void)host;
    (void)level;
    (void)line;
}

static void on_reconnected(struct simba_host *host)
{
    (void)host;
}

static void on_closed(struct simba_host *host)
{
    atomic_store(&((struct bare *)(void *)host)->closed, true);
}

static enum simba_interest no_interest(struct simba_host *host, const char *mutex)
{
    (void)host;
    (void)mutex;
    return SIMBA_NO_INTEREST;
}

static void none_watched(struct simba_host *host, const char *mutex, simba_watched_fn *each,
                         void *data)
{
    (void)host;
    (void)mutex;
    (void)each;
    (void)data;
}

void bare_open(struct bare *b, const char *url)
{
    char why[512];
    *b = (struct bare){.host = {.version = SIMBA_BACKEND_VERSION,
                                .connect_timeout_ms = 10000,
                                .command_timeout_ms = 10000,
                                .answer = on_answer,
                                .found = on_found,
                                .hint = on_hint,
                                .hint_one = on_hint_one,
                                .log = on_log,
                                .reconnected = on_reconnected,
                                .closed = on_closed,
                                .interest = no_interest,
                                .watched = none_watched}};
    CHECK(uv_loop_init(&b->loop) == 0);
    b->host.loop = &b->loop;
    b->url = calloc(1, sizeof *b->url);
    CHECK(b->url != NULL);
    if (url_parse(b->url, url, why, sizeof why) != 0 ||
        registry_find(simba_url_scheme(b->url), &b->backend, why, sizeof why) != 0 ||
        b->backend->open(&b->host, b->url, &b->store, why, sizeof why) != 0)
        bare_fail(__FILE__, __LINE__, why);
}

void bare_close(struct bare *b)
{
    b->backend->close(b->store);
    while (!atomic_load(&b->closed))
        uv_run(&b->loop, UV_RUN_ONCE);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&b->loop) == 0);
    free(b->url);
}

/* A store may answer on another thread, so the loop is looked at now and then. */
int bare_ask(struct bare *b, struct bare_request *r, int64_t lease_ms)
{
    r->request.ttl_ms = lease_ms * 2 / 3;
    r->request.transition_ms = lease_ms - r->request.ttl_ms;
    r->request.next = NULL;
    atomic_store(&r->is_answered, false);
    atomic_fetch_add(&b->open, 1);
    b->backend->submit(b->store, &r->request);
    if (b->backend->work != NULL)
        b->backend->work(b->store, true);
    int64_t until = simba_now() + PATIENCE_MS;
    while (!atomic_load(&r->is_answered)) {
        CHECK(simba_now() < until);
        if (uv_run(&b->loop, UV_RUN_NOWAIT) >= 0 && !atomic_load(&r->is_answered))
            bare_nap();
    }
    return r->answer.code;
}

int bare_contend(struct bare *b, const char *mutex, const char *id, int64_t lease_ms,
                 uint64_t *token)
{
    struct bare_request r = {.request = {.op = SIMBA_CONTEND, .mutex = mutex, .id = id}};
    int code = bare_ask(b, &r, lease_ms);
    *token = r.answer.granted ? r.answer.token : 0;
    return code < 0 ? code : r.answer.granted ? 0 : SIMBA_EHELD;
}

int bare_publish(struct bare *b, const char *mutex, const char *id, uint64_t token, uint64_t serial,
                 const char *note)
{
    struct bare_request r = {.request = {.op = SIMBA_PUBLISH,
                                         .mutex = mutex,
                                         .id = id,
                                         .token = token,
                                         .serial = serial,
                                         .note = note}};
    return bare_ask(b, &r, 0);
}

void bare_read(struct bare *b, const char *mutex, struct bare_request *out)
{
    *out = (struct bare_request){
        .request = {
            .op = SIMBA_READ, .mutex = mutex, .id = "", .with_note = true, .needs_note = true}};
    CHECK(bare_ask(b, out, 0) == 0);
}
