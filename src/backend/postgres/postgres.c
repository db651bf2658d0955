/* postgres.c: the URL, and the way into the frame of backend/sql. The URL's parts go to libpq as they are, so
 * that service files, .pgpass and its environment variables work; only our own options stay here. */
#include "backend/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_config(void *config)
{
    struct postgres_config *c = config;
    for (size_t i = 0; i < c->count; i++) {
        explicit_bzero(c->value[i], strlen(c->value[i]));
        free(c->keyword[i]);
        free(c->value[i]);
    }
    free(c);
}

static int get_fd(void *link)
{
    return PQsocket(((struct postgres_link *)link)->conn);
}

static size_t group_of(void *link, int op)
{
    (void)link;
    (void)op;
    return SQL_JOB_MAX;
}

static bool tells(void *link)
{
    return ((struct postgres_link *)link)->tells;
}

static const char *remark(void *link)
{
    const struct postgres_link *l = link;
    return l->pooled && !l->tells
               ? "there is a pooler before the server, where LISTEN does nothing: mutexes that are "
                 "waited "
                 "for are looked at every now and then (?poll=). If it pools sessions only, add "
                 "listen=on to the URL"
               : NULL;
}

static void diagnose(void *link, simba_finding_fn *say, void *data)
{
    sql_health_say(&((struct postgres_link *)link)->health, say, data);
}

static const char *read_only(void *link)
{
    return sql_health_read_only(&((struct postgres_link *)link)->health);
}

const struct sql_driver postgres_driver = {
    .name = "postgresql",
    .rereads = true,
    .connect = postgres_dial,
    .disconnect = postgres_hang_up,
    .free_config = free_config,
    .fd = get_fd,
    .group = group_of,
    .tells = tells,
    .remark = remark,
    .read_only = read_only,
    .begin = postgres_perform_begin,
    .go_on = postgres_perform_go_on,
    .idle = postgres_perform_idle,
    .diagnose = diagnose,
};

/* ---- the URL ------------------------------------------------------------------------------- */

/* libpq's own names for what a URL's query may hold. */
static const char *const options[] = {"poll",
                                      "listen",
                                      "create",
                                      "password_file",
                                      "host",
                                      "hostaddr",
                                      "port",
                                      "dbname",
                                      "user",
                                      "passfile",
                                      "service",
                                      "options",
                                      "application_name",
                                      "fallback_application_name",
                                      "keepalives",
                                      "keepalives_idle",
                                      "keepalives_interval",
                                      "keepalives_count",
                                      "tcp_user_timeout",
                                      "sslmode",
                                      "sslcert",
                                      "sslkey",
                                      "sslpassword",
                                      "sslrootcert",
                                      "sslcrl",
                                      "ssl_min_protocol_version",
                                      "ssl_max_protocol_version",
                                      "gssencmode",
                                      "krbsrvname",
                                      "channel_binding",
                                      "requirepeer",
                                      "target_session_attrs",
                                      NULL};
#define OURS 4 /* of these, the first */

static int add(struct postgres_config *c, const char *keyword, const char *value)
{
    if (c->count == POSTGRES_PARAMETERS)
        return SIMBA_ELIMIT;
    c->keyword[c->count] = strdup(keyword);
    c->value[c->count] = strdup(value);
    if (c->keyword[c->count] == NULL || c->value[c->count] == NULL) {
        if (c->value[c->count] != NULL)
            explicit_bzero(c->value[c->count], strlen(value));
        free(c->keyword[c->count]);
        free(c->value[c->count]);
        c->keyword[c->count] = c->value[c->count] = NULL;
        return SIMBA_ELIMIT;
    }
    c->count++;
    return 0;
}

static int add_hosts(struct postgres_config *c, const struct simba_url *url)
{
    struct statement hosts = {.bytes = NULL}, ports = {.bytes = NULL};
    const char *host;
    int port, rc = 0;
    sql_statement_reset(&hosts);
    sql_statement_reset(&ports);
    for (size_t i = 0; simba_url_host(url, i, &host, &port); i++) {
        sql_statement_put(&hosts, i > 0 ? "," : "");
        sql_statement_put(&hosts, host);
        sql_statement_put(&ports, i > 0 ? "," : "");
        if (port > 0)
            sql_statement_number(&ports, (uint64_t)port);
    }
    if (hosts.failed || ports.failed)
        rc = SIMBA_ELIMIT;
    else if (hosts.length > 0)
        rc = add(c, "host", hosts.bytes);
    if (rc == 0 && hosts.length > 0 && strspn(ports.bytes, ",") < ports.length)
        rc = add(c, "port", ports.bytes);
    sql_statement_free(&hosts);
    sql_statement_free(&ports);
    return rc;
}

static int add_parts(struct postgres_config *c, const struct simba_url *url,
                     const struct simba_host *host)
{
    char seconds[24];
    const char *path = simba_url_path(url), *user = simba_url_user(url);
    snprintf(seconds, sizeof seconds, "%lld", (long long)(host->connect_timeout_ms + 999) / 1000);
    int rc = add_hosts(c, url);
    if (rc == 0 && user != NULL)
        rc = add(c, "user", user);
    if (rc == 0 && path[0] == '/' && path[1] != '\0')
        rc = add(c, "dbname", path + 1);
    if (rc == 0)
        rc = add(c, "connect_timeout", seconds);
    if (rc == 0)
        rc = add(c, "client_encoding", "UTF8");
    if (rc == 0 && simba_url_option(url, "application_name") == NULL)
        rc = add(c, "fallback_application_name", "simba");
    for (size_t i = OURS; rc == 0 && options[i] != NULL; i++) {
        const char *value = simba_url_option(url, options[i]);
        if (value != NULL)
            rc = add(c, options[i], value);
    }
    return rc;
}

static int read_ours(struct postgres_config *c, const struct simba_url *url, char *why,
                     size_t why_size)
{
    const char *listen = simba_url_option(url, "listen");
    char *secret = NULL;
    int rc = sql_read_secret(url, &secret, why, why_size);
    if (rc == 0 && secret != NULL)
        rc = add(c, "password", secret);
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
    if (rc == 0)
        rc = sql_read_create(url, &c->create, why, why_size);
    if (rc != 0)
        return rc;
    if (listen == NULL || strcmp(listen, "auto") == 0)
        c->listen = LISTEN_AUTO;
    else if (strcmp(listen, "on") == 0)
        c->listen = LISTEN_ON;
    else if (strcmp(listen, "off") == 0)
        c->listen = LISTEN_OFF;
    else {
        snprintf(why, why_size, "option listen is on, off or auto");
        return SIMBA_EINVAL;
    }
    return 0;
}

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    int64_t poll;
    struct postgres_config *c = calloc(1, sizeof *c);
    snprintf(why, why_size, "out of memory");
    if (c == NULL)
        return SIMBA_ELIMIT;
    c->command_timeout_ms = host->command_timeout_ms;
    int rc = add_parts(c, url, host);
    if (rc == 0)
        rc = read_ours(c, url, why, why_size);
    if (rc == 0)
        rc = sql_read_poll(url, &poll, why, why_size);
    if (rc != 0) {
        free_config(c);
        return rc;
    }
    return sql_open(host, &postgres_driver, c, poll, store, why, why_size);
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

const struct simba_backend postgres_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = options,
    .open = open_store,
    .submit = sql_submit,
    .watch = sql_watch,
    .close = sql_close,
    .diagnose = sql_diagnose,
    .work = sql_work,
};
