/* redis.c: see redis.h. */
#include "backend/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/requests.h"
#include "backend/redis/votes.h"

/* ---- the connection for commands ----------------------------------------------------------- */

/* Once per life of the server. */
static void comment(struct redis *s)
{
    const struct info *info = &s->server.info;
    struct simba_finding warning;
    char line[CONNECTION_TEXT_MAX];
    if (strcmp(s->warned_of, info->run_id) == 0)
        return;
    memcpy(s->warned_of, info->run_id, sizeof s->warned_of);
    for (size_t n = 0; info_warns(info, s->config.restart_grace, n, &warning, line, sizeof line);
         n++)
        s->host->log(s->host, warning.level == SIMBA_LOG_ERROR ? SIMBA_LOG_WARN : SIMBA_LOG_INFO,
                     line);
    for (size_t n = 0; votes_warn(&s->sentinels, n, line, sizeof line); n++)
        s->host->log(s->host, SIMBA_LOG_WARN, line);
}

static void on_ready(void *store)
{
    struct redis *s = store;
    s->restart_grace_said = s->to_greet = false;
    comment(s);
    requests_resume(s);
    subscriber_follow(&s->subscriber);
    inspect_ready(s);
}

static void on_down(void *store)
{
    struct redis *s = store;
    replies_refuse(s, pending_take(&s->waiting), s->commands.code, s->commands.why);
    inspect_down(s);
}

static void find_master(void *store)
{
    struct redis *s = store;
    if (s->config.sentinels > 0)
        sentinels_find(&s->sentinels);
    else
        connection_go(&s->commands, &s->config.server);
}

static bool waits(void *store, const struct redis_command *sent)
{
    return !sentinels_confirm(&((struct redis *)store)->sentinels, sent);
}

static const struct connection_use use = {
    .find = find_master,
    .ready = on_ready,
    .waits = waits,
    .taken = replies_end,
    .resume = requests_resume,
    .down = on_down,
};

/* ---- the store ----------------------------------------------------------------------------- */

static int check(void *store, const char *mutex, const char *id, char *why, size_t why_size)
{
    (void)store;
    size_t n = id != NULL ? strlen(id) : 0;
    if (mutex != NULL && mutex[0] == '}') {
        snprintf(why, why_size, "a mutex in Redis must not begin with '}'");
        return SIMBA_EINVAL;
    }
    if (id != NULL && (strstr(id, "@@") != NULL || (n > 0 && id[n - 1] == '@'))) {
        snprintf(why, why_size, "an id in Redis must neither contain '@@' nor end in '@'");
        return SIMBA_EINVAL;
    }
    return 0;
}

static enum simba_lend work(void *store, bool here)
{
    const struct redis *s = store;
    (void)here; /* submit has sent it */
    bool is_steady = s->commands.state == CONNECTION_READY && connection_is_steady(&s->commands) &&
                     connection_is_steady(&s->subscriber.connection) &&
                     sentinels_are_steady(&s->sentinels);
    return is_steady ? SIMBA_LEND_LOOP : SIMBA_LEND_NOTHING;
}

static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    subscriber_interest(&((struct redis *)store)->subscriber, mutex, interest);
}

static void free_store(void *store)
{
    struct redis *s = store;
    topics_free(&s->subscriber.topics);
    config_free(&s->config);
    tls_context_free(s->net.tls);
    free(s);
}

static void close_store(void *store)
{
    struct redis *s = store;
    inspect_close(s);
    connection_close(&s->commands);
    replies_refuse(s, pending_take(&s->waiting), s->commands.code, s->commands.why);
    replies_end(s);
    sentinels_close(&s->sentinels);
    subscriber_close(&s->subscriber);
    offload_close(s->net.calls, handles_drop, &s->net.handles);
}

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    struct redis *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return SIMBA_ELIMIT;
    }
    int rc = config_read(&s->config, url, why, why_size);
    if (rc != 0)
        goto err_after_store;
    s->net.tls = s->config.tls ? tls_context(&s->config, why, why_size) : NULL;
    rc = SIMBA_EINVAL;
    if (s->config.tls && s->net.tls == NULL)
        goto err_after_config;
    rc = SIMBA_ELIMIT;
    snprintf(why, why_size, "out of memory");
    if (topics_init(&s->subscriber.topics, &s->subscriber.connection) != 0)
        goto err_after_tls;
    s->net.calls = offload_open(host->loop, NULL, NULL);
    if (s->net.calls == NULL)
        goto err_after_topics;
    s->host = s->net.host = host; /* from here on the loop has something, and nothing can fail */
    s->net.config = &s->config;
    handles_init(&s->net.handles, host, free_store, s);
    handles_add(&s->net.handles);
    pending_init(&s->waiting);
    connection_init(&s->commands, &s->net, &use, s);
    s->commands.server = &s->server;
    sentinels_init(&s->sentinels, &s->net, &s->commands);
    subscriber_init(&s->subscriber, &s->net, &s->commands);
    *store = s;
    return 0;

err_after_topics:
    topics_free(&s->subscriber.topics);
err_after_tls:
    tls_context_free(s->net.tls);
err_after_config:
    config_free(&s->config);
err_after_store:
    free(s);
    return rc;
}

const struct simba_backend redis_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = tls_schemes,
    .options = config_options,
    .queues = true,
    .hands_over = true,
    .open = open_store,
    .check = check,
    .submit = requests_submit,
    .watch = watch,
    .close = close_store,
    .examine = inspect_examine,
    .work = work,
};
