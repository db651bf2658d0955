/* redis.c: see redis.h. */
#include "backend/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- the server after a restart or a failover ---------------------------------------------- */

int64_t redis_guard_ms(const struct redis *s, int64_t lease_ms)
{
    const struct link *l = &s->link;
    if (!s->config.guard)
        return 0;
    int64_t longest = s->config.guard_ms > 0 ? s->config.guard_ms : lease_ms;
    int64_t left = longest - (l->epoch.age_ms + simba_now() - l->healthy_at);
    return left > 0 ? left : 0;
}

void redis_guard_text(int64_t left_ms, char *line, size_t size)
{
    snprintf(line, size,
             "the server has just started, become the master or been emptied, and may have "
             "forgotten owners: what is free is not granted for another %.1f s (restart_guard)",
             (double)left_ms / 1000);
}

/* Once per life of the server. */
static void comment(struct redis *s)
{
    char line[LINK_TEXT_MAX];
    bool serious;
    if (strcmp(s->warned_of, s->link.health.run_id) == 0)
        return;
    memcpy(s->warned_of, s->link.health.run_id, sizeof s->warned_of);
    for (size_t n = 0;
         health_warns(&s->link.health, s->config.guard, n, line, sizeof line, &serious); n++)
        s->host->log(s->host, serious ? SIMBA_LOG_WARN : SIMBA_LOG_INFO, line);
}

/* ---- the connection for commands ----------------------------------------------------------- */

static void on_ready(struct link *l)
{
    struct redis *s = l->data;
    struct simba_request *waiting = s->waiting;
    s->waiting = NULL;
    s->waiting_last = &s->waiting;
    s->guard_said = s->to_greet = false;
    comment(s);
    calls_send(s, waiting);
    ear_follow(&s->ear);
    examine_ready(s);
}

static void on_reply(struct link *l, const struct reply *r)
{
    calls_reply(l->data, r);
}

static void on_pause(struct link *l)
{
    struct redis *s = l->data;
    calls_end_reading(s);
    link_flush(&s->ear.link);
    calls_greet_again(s);
}

static void on_down(struct link *l)
{
    struct redis *s = l->data;
    char why[LINK_TEXT_MAX];
    memcpy(why, l->why, sizeof why);
    calls_fail(s, l->code, why);
    examine_down(s);
}

static void find_master(struct link *l)
{
    struct redis *s = l->data;
    if (s->config.sentinels > 0)
        sentinel_ask(s);
    else
        link_go(l, &s->config.server);
}

static int64_t oldest(struct link *l)
{
    const struct redis *s = l->data;
    return s->flights > 0 ? s->ring[s->first].sent_at : 0;
}

static const struct link_use use = {
    .wants_info = true,
    .keeps_trying = true,
    .find = find_master,
    .ready = on_ready,
    .reply = on_reply,
    .pause = on_pause,
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

/* While there is hope requests wait for the connection; else the last failure is the answer. */
void redis_submit(struct redis *s, struct simba_request *batch)
{
    struct link *l = &s->link;
    if (l->state == LINK_READY) {
        calls_send(s, batch);
        calls_end_reading(s);
        return;
    }
    bool hopeful = link_hopes(l);
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        batch->next = NULL;
        if (hopeful) {
            *s->waiting_last = batch;
            s->waiting_last = &batch->next;
        } else {
            calls_refuse(s, batch, l->code, l->why);
        }
    }
    calls_end_reading(s);
}

static void submit(void *store, struct simba_request *batch)
{
    redis_submit(store, batch);
}

static bool lends(void *store)
{
    const struct redis *s = store;
    return s->link.state == LINK_READY && link_is_steady(&s->link) &&
           link_is_steady(&s->ear.link) && link_is_steady(&s->sentinel);
}

static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    ear_interest(&((struct redis *)store)->ear, mutex, interest);
}

static void free_store(struct redis *s)
{
    ear_free(&s->ear);
    config_free(&s->config);
    SSL_CTX_free(s->net.tls);
    free(s->ring);
    free(s);
}

static void on_empty(struct net *net)
{
    struct redis *s = (struct redis *)(void *)((char *)net - offsetof(struct redis, net));
    struct simba_host *host = s->host;
    free_store(s);
    host->closed(host);
}

static void on_resolver_closed(void *data)
{
    struct net *net = data;
    if (--net->handles == 0)
        net->empty(net);
}

static void close_store(void *store)
{
    struct redis *s = store;
    calls_fail(s, SIMBA_ECANCELED, "the client is being closed");
    redis_examine_close(s);
    link_close(&s->link);
    link_close(&s->sentinel);
    ear_close(&s->ear);
    offload_close(s->net.resolver, on_resolver_closed, &s->net);
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
    if (s->config.tls) {
        rc = SIMBA_EINVAL;
        s->net.tls = tls_context(&s->config, why, why_size);
        if (s->net.tls == NULL)
            goto err_after_config;
    }
    s->host = host;
    s->net.host = host;
    s->net.config = &s->config;
    s->net.empty = on_empty;
    if (getrandom(&s->net.dice, sizeof s->net.dice, 0) < 0)
        s->net.dice = (uint64_t)simba_now();
    rc = SIMBA_ELIMIT;
    snprintf(why, why_size, "out of memory");
    if (ear_init(&s->ear) != 0)
        goto err_after_tls;
    s->net.resolver = offload_open(host->loop, NULL, NULL);
    if (s->net.resolver == NULL)
        goto err_after_ear;
    s->net.handles = 1; /* from here on the loop has some, and nothing can fail */
    s->waiting_last = &s->waiting;
    link_init(&s->link, &s->net, &use, s);
    s->link.oldest = oldest;
    sentinel_init(s);
    ear_begin(&s->ear, &s->net, &s->link);
    s->ear.look = calls_look;
    s->ear.denied = examine_denied;
    s->ear.tried = examine_tried;
    *store = s;
    return 0;

err_after_ear:
    ear_free(&s->ear);
err_after_tls:
    SSL_CTX_free(s->net.tls);
err_after_config:
    config_free(&s->config);
err_after_store:
    free(s);
    return rc;
}

static const char *const schemes[] = {"redis", "rediss", "redis+unix", "redis+sentinel", NULL};

const struct simba_backend redis_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = config_options,
    .queues = true,
    .open = open_store,
    .check = check,
    .submit = submit,
    .watch = watch,
    .close = close_store,
    .examine = redis_examine,
    .lends = lends,
};
