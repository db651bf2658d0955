/* client.c: opening, reading, closing. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "core/name.h"
#include "runtime/client.h"
#include "runtime/clock.h"
#include "runtime/default_store.h"
#include "runtime/fault.h"
#include "runtime/futex.h"
#include "runtime/process.h"

#define CONNECT_TIMEOUT_MS 5000

_Thread_local struct simba *thread_client;
_Thread_local struct actor *thread_actor;

static const char *const common_options[] = {"ttl", "transition", "connect_timeout",
                                             "command_timeout", NULL};

const char *simba_version(void)
{
    return "0.1.0";
}

int simba_duration_parse(const char *text, int64_t *ms)
{
    const char *why;
    if (text == NULL || ms == NULL)
        return fault(SIMBA_EINVAL, "simba_duration_parse needs a text and a place for the result");
    int rc = duration_parse(text, ms, &why);
    if (rc < 0)
        return fault(rc, "'%.40s' is not a duration: %s", text, why);
    return 0;
}

bool client_is_forked(const struct simba *s)
{
    return atomic_load_explicit(&process_wiped->generation, memory_order_relaxed) != s->generation;
}

bool client_would_deadlock(const struct simba *s, const struct actor *a)
{
    if (loop_is_here(s))
        return true;
    return thread_client == s && (a == NULL || thread_actor == a);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* What the user set wins, then the URL, then the default of whoever uses it. */
static int choose(const struct simba *s, int64_t set, const char *name, int64_t *out)
{
    const char *text = simba_url_option(&s->url, name);
    const char *why;
    int64_t ms;
    *out = set;
    if (text == NULL)
        return 0;
    if (duration_parse(text, &ms, &why) < 0)
        return fault(SIMBA_EINVAL, "%s: option %s: %s", s->url.shown, name, why);
    if (set == SIMBA_DEFAULT)
        *out = ms;
    return 0;
}

static int set_timing(struct simba *s, const struct simba_options *o)
{
    const char *why;
    int64_t connect;
    s->timing = (struct period_options){-1, -1, -1, -1, o->drift_ppm, -1, -1};
    if (choose(s, o->ttl_ms, "ttl", &s->timing.ttl_ms) < 0 ||
        choose(s, o->transition_ms, "transition", &s->timing.transition_ms) < 0 ||
        choose(s, o->command_timeout_ms, "command_timeout", &s->timing.command_timeout_ms) < 0 ||
        choose(s, o->connect_timeout_ms, "connect_timeout", &connect) < 0)
        return SIMBA_EINVAL;
    if (connect == 0 || connect < SIMBA_DEFAULT || connect > SIMBA_LEASE_MAX_MS)
        return fault(SIMBA_EINVAL, "%s: connect_timeout must be between 1 ms and a day",
                     s->url.shown);
    if (period_init(&s->period, &s->timing, &why) < 0)
        return fault(SIMBA_EINVAL, "%s: %s", s->url.shown, why);
    s->host.connect_timeout_ms = connect < 0 ? CONNECT_TIMEOUT_MS : connect;
    s->host.command_timeout_ms =
        s->timing.command_timeout_ms < 0 ? PERIOD_COMMAND_TIMEOUT_MS : s->timing.command_timeout_ms;
    return 0;
}

static int read_url(struct simba *s, const char *url)
{
    char why[CALL_TEXT_MAX], by_default[URL_BYTES_MAX];
    if (url == NULL)
        url = secure_getenv("SIMBA_URL");
    if (url == NULL) {
        int rc = default_store_make(by_default, sizeof by_default);
        if (rc < 0)
            return rc;
        url = by_default;
    }
    if (url_parse(&s->url, url, why, sizeof why) < 0)
        return fault(SIMBA_EINVAL, "the URL of the store: %s", why);
    s->backend = registry_find(s->url.scheme);
    if (s->backend == NULL)
        return fault(
            SIMBA_EMODULE,
            "no store for URLs with '%s:'; this build knows sqlite: and memory:", s->url.scheme);
    if (url_check_options(&s->url, common_options, s->backend->options, why, sizeof why) < 0)
        return fault(SIMBA_EINVAL, "%s: %s", s->url.shown, why);
    return 0;
}

static int start(struct simba *s, const struct simba_options *o)
{
    char why[CALL_TEXT_MAX] = "";
    int rc = table_init(&s->actors);
    if (rc < 0)
        return fault(rc, "out of memory");
    rc = executor_init(&s->executor);
    if (rc < 0) {
        rc = fault(rc, "%s: cannot start a thread", s->url.shown);
        goto err_after_table;
    }
    rc = log_init(&s->log, s, &s->executor, o->log, o->log_data);
    if (rc == 0)
        rc = loop_init(s);
    if (rc < 0) {
        rc = fault(rc, "%s: out of memory or descriptors", s->url.shown);
        goto err_after_executor;
    }
    rc = s->backend->open(&s->host, &s->url, &s->store, why, sizeof why);
    if (rc < 0) {
        rc = fault(rc, "%s: %s", s->url.shown, why);
        goto err_after_loop;
    }
    rc = loop_run(s);
    if (rc == 0)
        return 0;
    rc = fault(rc, "%s: cannot start a thread", s->url.shown);

err_after_loop:
    loop_discard(s, s->store != NULL);
err_after_executor:
    executor_stop(&s->executor, NEVER);
    executor_free(&s->executor);
    log_free(&s->log);
err_after_table:
    table_free(&s->actors);
    return rc;
}

int simba_open(const char *url, const struct simba_options *options, simba **out)
{
    static const struct simba_options defaults = SIMBA_OPTIONS_INIT;
    const struct simba_options *o = options != NULL ? options : &defaults;
    if (out == NULL)
        return fault(SIMBA_EINVAL, "simba_open needs a place for the client");
    *out = NULL;
    if (o->size != sizeof *o)
        return fault(SIMBA_EINVAL, "client options must start as SIMBA_OPTIONS_INIT");
    if (o->executor != NULL && o->executor->submit == NULL)
        return fault(SIMBA_EINVAL, "an executor must have a submit function");
    struct simba *s = calloc(1, sizeof *s);
    if (s == NULL || process_wiped == NULL) {
        free(s);
        return fault(SIMBA_ELIMIT, "out of memory");
    }
    pthread_mutex_init(&s->lock, NULL);
    s->generation = process_generation();
    if (o->executor != NULL) {
        s->executor_user = *o->executor;
        s->has_executor_user = true;
    }
    int rc = read_url(s, url);
    if (rc == 0)
        rc = set_timing(s, o);
    if (rc == 0)
        rc = start(s, o);
    if (rc < 0) {
        pthread_mutex_destroy(&s->lock);
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

/* ---- read ------------------------------------------------------------------------------------ */

static void reading_end(struct simba *s, struct reading *reading, int code, const char *text)
{
    uint32_t waits = READING_WAITS;
    reading->code = code;
    snprintf(reading->text, sizeof reading->text, "%.200s: %s", s->url.shown, text);
    if (atomic_compare_exchange_strong(&reading->done, &waits, READING_ANSWERED))
        futex_wake(&reading->done);
    else
        free(reading);
}

void reading_send(struct simba *s, struct reading *reading)
{
    struct request *r = loop_request(s);
    if (r == NULL) {
        reading_end(s, reading, SIMBA_ELIMIT, "too many requests are under way");
        return;
    }
    r->reading = reading;
    r->sent.sent_at = clock_now();
    r->wire.op = SIMBA_READ;
    r->wire.mutex = reading->mutex;
    r->wire.id = "";
    loop_send(s, r);
}

void reading_answered(struct request *r)
{
    if (r->code == 0 && r->owner != NULL) {
        struct simba_owner *o = &r->reading->owner; /* the caller looks at it after the end */
        int64_t now = r->sent.sent_at / NS_PER_MS;
        snprintf(o->id, sizeof o->id, "%s", r->owner);
        o->token = r->token;
        o->transition_at = now + r->left_ms;
        o->ttl_at = o->transition_at - r->client->period.transition / NS_PER_MS;
        o->acquired_at = r->age_ms < 0 ? 0 : now - r->age_ms;
    }
    reading_end(r->client, r->reading, r->code,
                r->text != NULL ? r->text : simba_strerror(r->code));
}

int simba_read(simba *s, const char *mutex, int64_t timeout_ms, struct simba_owner *out)
{
    const char *rule;
    if (s == NULL || out == NULL)
        return fault(SIMBA_EINVAL, "simba_read needs a client and a place for the result");
    if (client_is_forked(s))
        return fault(SIMBA_EFORKED, "this client belongs to the parent process");
    if (name_check_mutex(mutex, &rule) < 0)
        return fault(SIMBA_EINVAL, "%s", rule);
    if (timeout_ms < 0)
        return fault(SIMBA_EINVAL, "mutex '%s': a timeout must not be negative", mutex);
    if (loop_is_here(s))
        return fault(SIMBA_EDEADLOCK, "mutex '%s': reading on the loop would never end", mutex);
    struct reading *r = calloc(1, sizeof *r + strlen(mutex) + 1);
    if (r == NULL)
        return fault(SIMBA_ELIMIT, "mutex '%s': out of memory", mutex);
    memcpy(r->mutex, mutex, strlen(mutex) + 1);

    /* Once it is posted the client may be closed by another thread: nothing of it is used then. */
    char store[CALL_TEXT_MAX];
    snprintf(store, sizeof store, "%.200s", s->url.shown);
    int64_t until = clock_after_ms(clock_now(), timeout_ms);
    pthread_mutex_lock(&s->lock);
    bool closing = s->closing;
    if (!closing) {
        r->next = s->readings;
        s->readings = r;
        loop_wake_locked(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (closing) {
        free(r);
        return fault(SIMBA_ESTATE, "mutex '%s': the client is being closed", mutex);
    }
    uint32_t waits = READING_WAITS;
    if (!futex_wait(&r->done, READING_WAITS, until) &&
        atomic_compare_exchange_strong(&r->done, &waits, READING_ABANDONED))
        return fault(SIMBA_ETIMEOUT, "mutex '%s' on %.200s: the store did not answer in %lld ms",
                     mutex, store, (long long)timeout_ms);
    int code = r->code;
    if (code == 0)
        *out = r->owner;
    else
        fault(code, "mutex '%s' on %s", mutex, r->text);
    free(r);
    return code;
}

/* ---- close ----------------------------------------------------------------------------------- */

static void free_client(struct simba *s)
{
    pthread_join(s->thread, NULL);
    executor_free(&s->executor);
    log_free(&s->log);
    table_empty(&s->actors, actor_free);
    table_free(&s->actors);
    while (s->spare != NULL) {
        struct request *r = s->spare;
        s->spare = (struct request *)(void *)r->wire.next;
        free(r);
    }
    while (s->hints != NULL) {
        struct hint *h = s->hints;
        s->hints = h->next;
        free(h);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int simba_close(simba *s, int64_t timeout_ms)
{
    if (s == NULL)
        return 0;
    if (client_is_forked(s))
        return fault(SIMBA_EFORKED, "this client belongs to the parent process");
    if (timeout_ms < 0)
        return fault(SIMBA_EINVAL, "a timeout must not be negative");
    if (client_would_deadlock(s, NULL))
        return fault(SIMBA_EDEADLOCK, "closing a client inside one of its callbacks would never "
                                      "end");
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    s->close_asked = true;
    s->closer = pthread_self();
    loop_wake_locked(s);
    pthread_mutex_unlock(&s->lock);
    int64_t until = clock_after_ms(clock_now(), timeout_ms);
    if (!futex_wait(&s->ended, 0, until) || !executor_stop(&s->executor, until))
        return fault(
            SIMBA_ETIMEOUT,
            "%s: not closed in %lld ms: a callback or the log still runs, a lock is held, or the "
            "store does not answer; nothing is freed, close again",
            s->url.shown, (long long)timeout_ms);
    free_client(s);
    return 0;
}
