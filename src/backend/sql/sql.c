/* sql.c: see sql.h. The store as the runtime sees it. */
#include "backend/sql/parts.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/rng.h"

#define POLL_MS 250 /* the default of ?poll= */

void sql_fail(struct sql *s, int code, const char *format, ...)
{
    va_list args;
    s->code = code;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
}

int64_t sql_jittered(struct sql *s, int64_t ms)
{
    return ms - ms / 8 + (int64_t)(rng_next(&s->dice) % (uint64_t)(ms / 4 + 1));
}

void sql_start_timer(uv_timer_t *t, uv_timer_cb call, int64_t ms)
{
    uv_update_time(t->loop);
    uv_timer_start(t, call, (uint64_t)ms, 0);
}

/* While there is hope requests wait for a connection; else the last failure is the answer. */
void sql_submit(void *store, struct simba_request *batch)
{
    struct sql *s = store;
    if (s->resting) {
        for (struct simba_request *q = batch; q != NULL; q = q->next)
            q->store = NULL;
        sql_refuse_list(s, batch, s->code, s->why);
        return;
    }
    *s->waiting_last = batch;
    for (; *s->waiting_last != NULL; s->waiting_last = &(*s->waiting_last)->next)
        (*s->waiting_last)->store = NULL; /* others that go with it */
    sql_dial_now(s);
    sql_pump(s);
}

/* Why there is no connection: a server whose table is missing was reached. */
static void say_absence(const struct sql *s, simba_finding_fn *say, void *data)
{
    char line[SQL_WHY_MAX + 64];
    snprintf(line, sizeof line, "%s%s%s",
             s->code == SIMBA_ESCHEMA ? "the server was reached, but not its table"
                                      : "there is no connection to the server",
             s->why[0] != '\0' ? ": " : " at present", s->why);
    say(data, SIMBA_LOG_WARN, line);
}

void sql_diagnose(void *store, simba_finding_fn *say, void *data)
{
    struct sql *s = store;
    if (s->link == NULL)
        say_absence(s, say, data);
    else
        s->driver->diagnose(s->link->link, say, data);
    if (s->link != NULL && s->driver->tells == NULL)
        say(data, SIMBA_LOG_INFO,
            "this kind of server cannot push: mutexes that are waited for are looked at, at first "
            "often (?poll=)");
}

static void on_closed(uv_handle_t *handle)
{
    sql_drop_handle(handle->data);
}

static void on_dial_closed(void *data)
{
    sql_drop_handle(data);
}

void sql_close(void *store)
{
    struct sql *s = store;
    static const char why[] = "the client is being closed";
    s->closing = true;
    if (s->job != NULL) {
        sql_fail(s, SIMBA_ECANCELED, "%s", why);
        sql_ended(s, SQL_BROKEN);
    }
    if (s->link != NULL)
        sql_hang_up(s);
    sql_refuse_all(s, SIMBA_ECANCELED, why);
    uv_close((uv_handle_t *)&s->timeout, on_closed);
    uv_close((uv_handle_t *)&s->look, on_closed);
    sql_dial_close(s->dial, on_dial_closed);
}

/* The client libraries use OpenSSL, which is set up at its first use, in many steps and under locks. A program
 * that forks right after simba_open() must not have them half done in its child, which would hang. */
static void prepare_openssl(void)
{
    unsigned char out[EVP_MAX_MD_SIZE];
    OPENSSL_init_ssl(0, NULL);
    EVP_Digest("", 0, out, NULL, EVP_sha1(), NULL);
    EVP_Digest("", 0, out, NULL, EVP_sha256(), NULL);
    RAND_bytes(out, 1);
}

int sql_open(struct simba_host *host, const struct sql_driver *driver, void *config,
             int64_t poll_ms, void **store, char *why, size_t why_size)
{
    struct sql *s = calloc(1, sizeof *s);
    if (s == NULL || sql_interest_init(&s->interests) < 0)
        goto err;
    prepare_openssl();
    s->host = host;
    s->driver = driver;
    s->poll_ms = poll_ms < 0 ? POLL_MS : poll_ms;
    s->jobs_last = &s->jobs;
    s->waiting_last = &s->waiting;
    if (getrandom(&s->dice, sizeof s->dice, 0) < 0)
        s->dice = (uint64_t)simba_now();
    s->dial = sql_dial_open(host->loop, driver, config, sql_on_dialed, s);
    if (s->dial == NULL)
        goto err_after_interests;
    uv_timer_init(host->loop, &s->timeout); /* these cannot fail */
    uv_timer_init(host->loop, &s->look);
    s->timeout.data = s->look.data = s;
    s->handles = 3;
    *store = s;
    return 0;

err_after_interests:
    sql_interest_free(&s->interests);
err:
    free(s);
    driver->free_config(config);
    snprintf(why, why_size, "out of memory");
    return SIMBA_ELIMIT;
}
