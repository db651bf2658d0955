/* client.c: opening, closing, and what a client can be asked about its store. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/fork.h"
#include "base/rng.h"
#include "core/duration.h"
#include "runtime/client.h"
#include "runtime/default_store.h"
#include "runtime/error.h"
#include "runtime/host.h"
#include "runtime/options.h"
#include "runtime/process.h"
#include "runtime/prometheus.h"
#include "runtime/registry.h"

#define CONNECT_TIMEOUT_MS 5000

_Thread_local struct simba_client *thread_client;
_Thread_local struct actor *thread_actor;

static const char *const common_options[] = {"ttl", "transition", "connect_timeout",
                                             "command_timeout", NULL};

const char *simba_version(void)
{
    return "0.1.0";
}

int64_t simba_wall_ms(int64_t boot_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return boot_ms - simba_now() + (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

int simba_duration_parse(const char *text, int64_t *ms)
{
    const char *why;
    if (text == NULL || ms == NULL)
        return error_say(SIMBA_EINVAL,
                         "simba_duration_parse needs a text and a place for the result");
    int rc = duration_parse(text, ms, &why);
    if (rc < 0)
        return error_say(rc, "'%.40s' is not a duration: %s", text, why);
    return 0;
}

bool client_is_forked(const struct simba_client *s)
{
    return fork_generation_known() != s->generation;
}

int client_check(const struct simba_client *s)
{
    if (client_is_forked(s))
        return error_say(SIMBA_EFORKED, "this client belongs to the parent process");
    return 0;
}

bool client_is_here(const struct simba_client *s)
{
    return driver_is_here(s) || (thread_client == s && driver_polls_here(s));
}

bool client_would_deadlock(const struct simba_client *s, const struct actor *a)
{
    return client_is_here(s) || (thread_client == s && (a == NULL || thread_actor == a));
}

/* ---- open ---------------------------------------------------------------------------------- */

/* What the user set wins, then the URL, then the default of whoever uses it. */
static int choose(const struct simba_client *s, int64_t set, const char *name, int64_t *out)
{
    const char *text = simba_url_option(&s->url, name);
    const char *why;
    int64_t ms;
    *out = set;
    if (text == NULL)
        return 0;
    if (duration_parse(text, &ms, &why) < 0)
        return error_say(SIMBA_EINVAL, "%s: option %s: %s", s->url.shown, name, why);
    if (set == SIMBA_DEFAULT)
        *out = ms;
    return 0;
}

static int set_timing(struct simba_client *s, const struct simba_options *o)
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
        return error_say(SIMBA_EINVAL, "%s: connect_timeout must be between 1 ms and a day",
                         s->url.shown);
    if (period_init(&s->period, &s->timing, &why) < 0)
        return error_say(SIMBA_EINVAL, "%s: %s", s->url.shown, why);
    s->period.phase = (int64_t)(rng_seed() % SIMBA_LEASE_MAX_MS) * NS_PER_MS;
    s->host.connect_timeout_ms = connect < 0 ? CONNECT_TIMEOUT_MS : connect;
    s->host.command_timeout_ms =
        s->timing.command_timeout_ms < 0 ? PERIOD_COMMAND_TIMEOUT_MS : s->timing.command_timeout_ms;
    return 0;
}

static int read_url(struct simba_client *s, const char *url)
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
        return error_say(SIMBA_EINVAL, "the URL of the store: %s", why);
    int rc = registry_find(s->url.scheme, &s->backend, why, sizeof why);
    if (rc < 0)
        return error_say(rc, "%s", why);
    if (url_check_options(&s->url, common_options, s->backend->options, why, sizeof why) < 0)
        return error_say(SIMBA_EINVAL, "%s: %s", s->url.shown, why);
    return 0;
}

static int start(struct simba_client *s, const struct simba_options *o)
{
    char why[CALL_TEXT_MAX] = "";
    int rc = interest_init(s);
    if (rc == 0)
        rc = hash_table_init(&s->actors);
    if (rc < 0) {
        rc = error_say(rc, "out of memory");
        goto err_after_hash_tables;
    }
    if (s->no_thread)
        executor_init_polled(&s->executor, driver_notify, s);
    else
        rc = executor_init(&s->executor, "simba-call", 1, EXECUTOR_THREADS_MAX);
    if (rc < 0) {
        rc = error_say(rc, "%s: cannot start a thread", s->url.shown);
        goto err_after_hash_tables;
    }
    (void)executor_init(&s->workers, "simba-work", 0, SIZE_MAX); /* one for each run at work */
    rc = log_init(&s->log, s, &s->executor, o->log, o->log_data);
    if (trace_init(&s->trace, s, &s->executor, o->trace, o->trace_data, o->trace_kinds) < 0)
        rc = SIMBA_ELIMIT;
    int error = rc < 0 ? ENOMEM : loop_init(s);
    if (error != 0) {
        rc = error_say(SIMBA_ELIMIT, "%s: %s", s->url.shown, errno_text(error));
        goto err_after_executor;
    }
    driver_init(s);
    rc = s->backend->open(&s->host, &s->url, &s->store, why, sizeof why);
    if (rc < 0) {
        rc = error_say(rc, "%s: %s", s->url.shown, why);
        goto err_after_loop;
    }
    if (s->no_thread)
        driver_start_polled(s);
    else
        rc = driver_start(s);
    if (rc == 0)
        return 0;
    rc = error_say(rc, "%s: cannot start a thread", s->url.shown);

err_after_loop:
    driver_discard(s, s->store != NULL);
err_after_executor:
    executor_stop(&s->executor, NEVER);
    executor_free(&s->executor);
    executor_free(&s->workers);
    log_free(&s->log);
    trace_free(&s->trace);
err_after_hash_tables:
    interest_free(s);
    hash_table_free(&s->actors);
    return rc;
}

int simba_open(const char *url, const struct simba_options *options, simba_client **out)
{
    struct simba_options taken;
    const struct simba_options *o = &taken;
    if (out == NULL)
        return error_say(SIMBA_EINVAL, "simba_open needs a place for the client");
    *out = NULL;
    int rc = options_take(&options_of_client, options, &taken);
    if (rc < 0)
        return rc;
    if ((o->flags & ~SIMBA_NO_THREAD) != 0)
        return error_say(SIMBA_EINVAL, "client options have an unknown flag");
    if (o->executor != NULL && o->executor->submit == NULL)
        return error_say(SIMBA_EINVAL, "an executor must have a submit function");
    process_hold_stdio();
    struct simba_client *s = calloc(1, sizeof *s);
    uint32_t generation = fork_generation();
    if (s == NULL || generation == 0) {
        free(s);
        return error_say(SIMBA_ELIMIT, "out of memory");
    }
    pthread_mutex_init(&s->lock, NULL);
    host_init(s);
    turn_init(&s->inbox);
    s->serial = SERIAL_OF_OPTION;
    requests_init(&s->requests);
    s->no_thread = (o->flags & SIMBA_NO_THREAD) != 0;
    s->generation = generation;
    if (o->executor != NULL) {
        s->executor_user = *o->executor;
        s->has_executor_user = true;
    }
    rc = read_url(s, url);
    if (rc == 0)
        rc = prometheus_take_labels(s, o->labels);
    if (rc == 0)
        rc = set_timing(s, o);
    if (rc == 0)
        rc = start(s, o);
    if (rc < 0) {
        pthread_mutex_destroy(&s->lock);
        url_wipe(&s->url);
        free(s->labels);
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

/* ---- close --------------------------------------------------------------------------------- */

static void free_client(struct simba_client *s)
{
    driver_join(s);
    executor_free(&s->executor);
    executor_free(&s->workers);
    log_free(&s->log);
    trace_free(&s->trace);
    hash_table_empty(&s->actors, actor_free);
    hash_table_free(&s->actors);
    interest_free(s);
    requests_free(&s->requests);
    turn_free(&s->inbox);
    pthread_mutex_destroy(&s->lock);
    url_wipe(&s->url);
    free(s->labels);
    free(s);
}

/* A callback that this thread ran while it waited has ended the thread: another may close again. */
static void close_again(void *arg)
{
    (void)arg;
}

/* What it waits for; loop_ended: not for the loop. */
static void say_what_runs(struct simba_client *s, bool loop_ended, char out[CALL_TEXT_MAX])
{
    char held[SIMBA_MUTEX_MAX + 1];
    driver_lock(s);
    snprintf(held, sizeof held, "%s", s->close_held);
    bool is_unread = s->inbox.close_asked;
    driver_unlock(s);
    if (held[0] != '\0')
        snprintf(out, CALL_TEXT_MAX,
                 "mutex '%s' is held by another thread: release it, then close again", held);
    else if (atomic_load(&s->callbacks) == 0 && delivery_is_busy(&s->log.delivery))
        snprintf(out, CALL_TEXT_MAX,
                 "the log function still runs: close again when it has returned");
    else if (atomic_load(&s->callbacks) == 0 && delivery_is_busy(&s->trace.delivery))
        snprintf(out, CALL_TEXT_MAX,
                 "the trace function still runs: close again when it has returned");
    else if (atomic_load(&s->callbacks) > 0 || loop_ended)
        snprintf(out, CALL_TEXT_MAX, "a callback still runs: close again when it has returned");
    else if (atomic_load(&s->kept) > 0)
        snprintf(out, CALL_TEXT_MAX,
                 "a mutex is kept until its at_least_ms is over: close again, with more time");
    else if (is_unread)
        snprintf(out, CALL_TEXT_MAX, "its thread has not run since: close again, with more time");
    else
        snprintf(out, CALL_TEXT_MAX, "the store does not answer: close again");
}

int simba_close(simba_client *s, int64_t timeout_ms)
{
    char why[CALL_TEXT_MAX];
    if (s == NULL)
        return 0;
    int rc = client_check(s);
    if (rc < 0)
        return rc;
    if (timeout_ms < 0)
        return error_say(SIMBA_EINVAL, "a timeout must not be negative");
    if (s->no_thread ? thread_client == s : client_would_deadlock(s, NULL))
        return error_say(SIMBA_EDEADLOCK,
                         "closing a client inside one of its callbacks would never "
                         "end");
    driver_lock(s);
    s->closing = true;
    s->inbox.close_asked = true;
    s->closer = thread_ref_self();
    driver_want_locked(s);
    driver_unlock(s);
    int64_t until = clock_after_ms(clock_now(), timeout_ms);
    if (s->no_thread)
        driver_take_over(s);
    bool ended = driver_wait(s, &s->ended, 0, until, close_again, NULL);
    if (ended && s->no_thread)
        executor_run(&s->executor); /* the last log lines and events */
    if (!ended || !executor_stop(&s->workers, until) || !executor_stop(&s->executor, until)) {
        say_what_runs(s, ended, why);
        return error_say(SIMBA_ETIMEOUT, "%s: not closed in %lld ms, and nothing is freed: %s",
                         s->url.shown, (long long)timeout_ms, why);
    }
    free_client(s);
    return 0;
}

/* ---- the store ----------------------------------------------------------------------------- */

const char *simba_store_text(const simba_client *s)
{
    return s != NULL ? s->url.shown : "";
}

int simba_liveness_fd(simba_client *s)
{
    if (s == NULL || client_is_forked(s) || s->backend->liveness == NULL)
        return -1;
    return s->backend->liveness(s->store);
}
