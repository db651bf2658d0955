/* config.c: what a URL of mysql: says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"
#include "base/secrets.h"

void mysql_config_free(void *config)
{
    struct mysql_config *c = config;
    secrets_free(c->password);
    free(c->host);
    free(c->user);
    free(c->database);
    free(c->socket);
    free(c->tls_ca);
    free(c->tls_cert);
    free(c->tls_key);
    free(c);
}

static int read_server(const struct options *o, struct mysql_config *c)
{
    const char *host = NULL, *another, *path = simba_url_path(o->url);
    int port = -1, ignored;
    if (simba_url_host(o->url, 1, &another, &ignored))
        return options_refuse(o, SIMBA_EINVAL, "only one host can be given");
    bool has_host = simba_url_host(o->url, 0, &host, &port);
    const char *socket = simba_url_option(o->url, "socket");
    if (has_host && socket != NULL)
        return options_refuse(
            o, SIMBA_EINVAL,
            "a host and a socket are given: write mysql://user@/database?socket=PATH");
    if (socket != NULL && socket[0] != '/')
        return options_refuse(o, SIMBA_EINVAL, "option socket is an absolute path");
    if (path[0] != '/' || path[1] == '\0' || strchr(path + 1, '/') != NULL)
        return options_refuse(o, SIMBA_EINVAL, "which database? write %s://user@host/database",
                              simba_url_scheme(o->url));
    c->port = port > 0 ? port : MYSQL_PORT_DEFAULT;
    int rc = options_copy(o, path + 1, &c->database);
    if (rc == 0)
        rc = options_copy(o, socket, &c->socket);
    if (rc == 0 && socket == NULL)
        rc = options_copy(o, has_host ? host : "127.0.0.1", &c->host);
    return rc;
}

/* To other machines, unless it is switched off; and always verified, unless that is. */
static int read_tls(const struct options *o, struct mysql_config *c)
{
    c->tls = !sql_config_is_local(c->host);
    c->tls_verify = true;
    int rc = options_text(o, "tls_ca", &c->tls_ca);
    if (rc == 0)
        rc = options_text(o, "tls_cert", &c->tls_cert);
    if (rc == 0)
        rc = options_text(o, "tls_key", &c->tls_key);
    c->tls = c->tls || c->tls_ca != NULL || c->tls_cert != NULL || c->tls_key != NULL;
    bool wanted = c->tls;
    if (rc == 0)
        rc = options_switch(o, "tls", &c->tls);
    if (rc == 0)
        rc = options_switch(o, "tls_verify", &c->tls_verify);
    if (rc == 0 && !c->tls && wanted && (c->tls_ca != NULL || c->tls_cert != NULL))
        return options_refuse(o, SIMBA_EINVAL, "tls=off, but options for TLS are given");
    if (rc == 0 && (c->tls_cert == NULL) != (c->tls_key == NULL))
        return options_refuse(o, SIMBA_EINVAL, "tls_cert and tls_key belong together");
    return rc == 0 ? options_check_tls_files(o) : rc;
}

int mysql_config_read(const struct options *o, const struct simba_host *host, void *config)
{
    struct mysql_config *c = config;
    c->connect_timeout_ms = host->connect_timeout_ms;
    c->command_timeout_ms = host->command_timeout_ms;
    c->returning = true;
    int rc = read_server(o, c);
    if (rc == 0)
        rc = options_copy(o, simba_url_user(o->url), &c->user);
    if (rc == 0)
        rc = sql_config_password(o, &c->password);
    if (rc == 0)
        rc = read_tls(o, c);
    if (rc == 0)
        rc = sql_config_create(o, &c->create);
    if (rc == 0)
        rc = options_switch(o, "returning", &c->returning);
    return rc;
}
