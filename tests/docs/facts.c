/* facts.c: figures, limits, error codes, options of URLs with their defaults, and metrics, as
 * the code has them: one "NAME<tab>VALUE" a line, for tools/facts, which keeps the documents in
 * step with it.
 *
 *   facts [TTL_MS TRANSITION_MS]     the figures of this lease instead of the default one
 *
 * Defaults of options are found by reading a URL without any, as the store does when it opens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/memory/memory.h"
#include "backend/mysql/mysql.h"
#include "backend/postgres/postgres.h"
#include "backend/redis/config.h"
#include "backend/sqlite/sqlite.h"
#include "backend/zookeeper/config.h"
#include "cli/lease_policy.c"
#include "core/period.c" /* for its constants; the archive's own copy is not linked then */
#include "core/url.h"
#include "runtime/client.h"
#include "runtime/executor.h"
#include "runtime/log.h"

#define CHECKED(expression)                                       \
    do {                                                          \
        if ((expression) != 0) {                                  \
            fprintf(stderr, "facts: %s: %s\n", #expression, why); \
            exit(1);                                              \
        }                                                         \
    } while (0)

/* Their headers name the same things. */
extern const struct simba_backend redis_backend, zookeeper_backend;

static char why[512];

static void number(const char *name, int64_t value)
{
    printf("%s\t%lld\n", name, (long long)value);
}

static void ms(const char *name, int64_t ns)
{
    printf("%s\t%.3f\n", name, (double)ns / NS_PER_MS);
}

static void text(const char *name, const char *value)
{
    printf("%s\t%s\n", name, value);
}

/* ---- limits and defaults ------------------------------------------------------------------- */

static void show_limits(void)
{
    number("limit.mutex", SIMBA_MUTEX_MAX);
    number("limit.id", SIMBA_ID_MAX);
    number("limit.lease_min", SIMBA_LEASE_MIN_MS);
    number("limit.lease_max", SIMBA_LEASE_MAX_MS);
    number("limit.period_max", SIMBA_PERIOD_MAX_MS);
    number("limit.command_timeout_max", COMMAND_TIMEOUT_MAX_MS);
    number("limit.jitter_max", JITTER_MAX_MS);
    number("limit.drift_ppm_max", DRIFT_PPM_MAX);
    number("limit.url", URL_BYTES_MAX - 1);
    number("limit.threads", EXECUTOR_THREADS_MAX);
    number("limit.log_lines", LOG_LINES_MAX);
    number("default.threads_idle", EXECUTOR_IDLE_MS);
    number("default.drain", ACTOR_DRAIN_MS);
    number("default.drift_ppm", DRIFT_PPM);
    number("default.jitter_early", JITTER_EARLY_MS);
    number("default.jitter_late", JITTER_LATE_MS);
    number("backend.version", SIMBA_BACKEND_VERSION);
}

/* As a client has them that was told nothing. */
static void show_client(void)
{
    simba_client *s = NULL;
    simba_locker *lock = NULL;
    CHECKED(simba_open("memory:facts", NULL, &s));
    number("default.connect_timeout", s->host.connect_timeout_ms);
    number("default.command_timeout", s->host.command_timeout_ms);
    CHECKED(simba_locker_create(s, "facts", NULL, &lock));
    int64_t length = simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, NULL, 0);
    char *page = calloc(1, (size_t)length + 4096);
    CHECKED(page == NULL);
    simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, page, (size_t)length + 4096);
    for (char *at = page, *line; (line = strsep(&at, "\n")) != NULL;) {
        if (line[0] != '\0')
            text("metrics", line);
    }
    free(page);
    CHECKED(simba_close(s, 10000));
}

static void show_errors(void)
{
#define X(name, code, text) printf("error.SIMBA_E%s\t%d %s\n", #name, code, text);
    SIMBA_ERRORS(X)
#undef X
}

/* ---- a lease ------------------------------------------------------------------------------- */

static void show_lease(int64_t ttl_ms, int64_t transition_ms)
{
    struct period p;
    struct period_options o = {ttl_ms, transition_ms, -1, -1, -1, -1, -1};
    const char *rule = "";
    if (period_init(&p, &o, &rule) != 0) {
        fprintf(stderr, "facts: %s\n", rule);
        exit(1);
    }
    int64_t kill_after = policy_kill_after(p.ttl, p.transition);
    int64_t until = period_hold_until(&p, 0, p.lease);
    ms("figure.ttl", p.ttl);
    ms("figure.transition", p.transition);
    ms("figure.lease", p.lease);
    ms("figure.lease_end", until + p.margin);
    ms("figure.margin", p.margin);
    ms("figure.owner_until", until);
    ms("figure.renew_first", p.renew - p.renew / RENEW_SPREAD);
    ms("figure.renew", p.renew);
    ms("figure.attempt", p.attempt);
    ms("figure.patience", p.patience);
    ms("figure.try", p.patience + p.attempt);
    ms("figure.pause_min", PAUSE_MIN);
    ms("figure.pause_max", p.pause_max);
    ms("figure.backoff_min", BACKOFF_MIN);
    ms("figure.backoff_max", p.backoff_max);
    ms("figure.early", p.early);
    ms("figure.late", p.late);
    ms("figure.outage", policy_outage(&p));
    ms("figure.outage_cmd", policy_outage(&p) - kill_after);
    ms("figure.takeover", policy_takeover(&p, p.lease));
    ms("figure.kill_after", kill_after);
    ms("figure.kill_after_max", policy_kill_after_max(p.ttl, p.transition));
    ms("figure.term_at", until - kill_after);
    ms("figure.step", p.step);
    number("figure.steps", RENEW_STEPS);
    ms("figure.slack", SLACK);
    ms("figure.margin_max", MARGIN_MAX);
    ms("figure.pause_limit", PAUSE_MAX);
    ms("figure.kill_after_limit", KILL_AFTER_MAX);
    number("figure.renew_part", PERIOD_RENEW_PART);
    number("figure.attempt_part", PERIOD_ATTEMPT_PART);
    number("figure.kill_after_part", KILL_AFTER_PART);
}

/* ---- URLs ---------------------------------------------------------------------------------- */

static void show_store(const char *name, const struct simba_backend *b)
{
    char key[64];
    snprintf(key, sizeof key, "scheme.%s", name);
    for (size_t i = 0; b->schemes[i] != NULL; i++)
        text(key, b->schemes[i]);
    snprintf(key, sizeof key, "option.%s", name);
    for (size_t i = 0; b->options[i] != NULL; i++)
        text(key, b->options[i]);
}

static struct simba_url *url_of(const char *as_text)
{
    static struct simba_url url;
    CHECKED(url_parse(&url, as_text, why, sizeof why));
    return &url;
}

static const char *on(bool is_on)
{
    return is_on ? "on" : "off";
}

/* Does the second URL say no more than the first one? */
static bool is_same(const char *without, const char *with)
{
    struct config a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    CHECKED(config_read(&a, url_of(without), why, sizeof why));
    CHECKED(config_read(&b, url_of(with), why, sizeof why));
    bool same = memcmp(&a, &b, sizeof a) == 0;
    config_free(&a);
    config_free(&b);
    return same;
}

static void show_redis(void)
{
    struct config c;
    CHECKED(config_read(&c, url_of("rediss://host"), why, sizeof why));
    number("url.redis.port", c.server.port);
    number("url.redis.db", c.db);
    text("url.redis.tls_verify", on(c.tls_verify));
    text("url.redis.restart_guard",
         is_same("rediss://host", "rediss://host?restart_guard=on") ? "on" : "?");
    config_free(&c);
    number("url.redis.sentinel_port", SENTINEL_PORT);
}

static const char *create_text(enum sql_create create)
{
    return create == SQL_CREATE_TABLE ? "on" : create == SQL_CREATE_NEVER ? "off" : "upgrade";
}

static void show_sql(void)
{
    const struct simba_host host = {.connect_timeout_ms = 1, .command_timeout_ms = 1};
    struct options o = {url_of("mysql://user@host/database"), why, sizeof why};
    struct mysql_config *c = calloc(1, sizeof *c);
    int64_t poll_ms;
    CHECKED(mysql_config_read(&o, &host, c));
    CHECKED(sql_config_poll(&o, &poll_ms));
    number("url.mysql.port", c->port);
    number("url.mysql.poll", poll_ms);
    text("url.mysql.tls", on(c->tls));
    text("url.mysql.tls_verify", on(c->tls_verify));
    text("url.mysql.create", create_text(c->create));
    text("url.mysql.returning", on(c->returning));
    mysql_config_free(c);

    struct postgres_config *p = calloc(1, sizeof *p);
    o.url = url_of("postgresql://user@host/database");
    CHECKED(postgres_config_read(&o, &host, p));
    number("url.postgres.poll", poll_ms);
    text("url.postgres.create", create_text(p->create));
    text("url.postgres.listen", p->listen == LISTEN_AUTO ? "auto" : on(p->listen == LISTEN_ON));
    postgres_config_free(p);
}

static void show_zookeeper(void)
{
    struct zookeeper_config *c = calloc(1, sizeof *c);
    CHECKED(zk_config_read(c, url_of("zookeeper://host"), why, sizeof why));
    number("url.zookeeper.port", c->host[0].port);
    text("url.zookeeper.on_disconnect", c->disconnect_releases ? "release" : "keep");
    text("url.zookeeper.acl", c->acl == ACL_OPEN ? "open" : "?");
    text("url.zookeeper.session_timeout", c->session_timeout_ms == 0 ? "lease" : "?");
    free(c);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        show_lease(strtoll(argv[1], NULL, 10), strtoll(argv[2], NULL, 10));
        return 0;
    }
    show_limits();
    show_client();
    show_errors();
    show_lease(SIMBA_DEFAULT, SIMBA_DEFAULT);
    show_store("memory", &memory_backend);
    show_store("sqlite", &sqlite_backend);
    show_store("redis", &redis_backend);
    show_store("mysql", &mysql_backend);
    show_store("postgres", &postgres_backend);
    show_store("zookeeper", &zookeeper_backend);
    show_redis();
    show_sql();
    show_zookeeper();
    return 0;
}
