/* config.c: what a URL of postgresql: says. Its parts go to libpq as they are, so that service
 * files, .pgpass and its environment variables work; only our own options stay here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/postgres/postgres.h"
#include "base/secrets.h"

void postgres_config_free(void *config)
{
    struct postgres_config *c = config;
    for (size_t i = 0; i < c->count; i++) {
        free(c->keyword[i]);
        secrets_free(c->value[i]);
    }
    free(c);
}

/* libpq's own names for what a URL's query may hold. */
const char *const postgres_config_options[] = {"poll",
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
    if (c->keyword[c->count] != NULL && c->value[c->count] != NULL) {
        c->count++;
        return 0;
    }
    free(c->keyword[c->count]);
    secrets_free(c->value[c->count]);
    c->keyword[c->count] = c->value[c->count] = NULL;
    return SIMBA_ELIMIT;
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
    for (size_t i = OURS; rc == 0 && postgres_config_options[i] != NULL; i++) {
        const char *value = simba_url_option(url, postgres_config_options[i]);
        if (value != NULL)
            rc = add(c, postgres_config_options[i], value);
    }
    return rc;
}

static int read_ours(const struct options *o, struct postgres_config *c)
{
    static const char *const choices[] = {
        [LISTEN_AUTO] = "auto", [LISTEN_ON] = "on", [LISTEN_OFF] = "off", NULL};
    int listen = LISTEN_AUTO;
    char *password = NULL;
    int rc = sql_config_password(o, &password);
    if (rc == 0 && password != NULL)
        rc = add(c, "password", password);
    secrets_free(password);
    if (rc == 0)
        rc = sql_config_create(o, &c->create);
    if (rc == 0)
        rc = options_choice(o, "listen", choices, &listen);
    c->listen = (enum postgres_listen)listen;
    return rc;
}

/* Else libpq says it of each attempt to connect, as if the server were at fault. Words such as
 * "system", and names of other places than files, are its own matter. */
static int check_files(const struct options *o)
{
    static const char *const names[] = {"sslrootcert", "sslcert", "sslkey", "sslcrl"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++) {
        const char *path = simba_url_option(o->url, names[i]);
        if (path != NULL && path[0] == '/')
            rc = options_check_file(o, names[i]);
    }
    return rc;
}

int postgres_config_read(const struct options *o, const struct simba_host *host, void *config)
{
    struct postgres_config *c = config;
    c->command_timeout_ms = host->command_timeout_ms;
    int rc = check_files(o);
    if (rc == 0)
        rc = add_parts(c, o->url, host);
    return rc == 0 ? read_ours(o, c) : rc;
}
