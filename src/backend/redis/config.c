/* config.c: see config.h. What is wrong is said before anything connects; no secret is quoted. */
#include "backend/redis/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kit/password_file.h"
#include "base/secrets.h"
#include "core/duration.h"

const char *const config_options[] = {"password_file",
                                      "tls_ca",
                                      "tls_cert",
                                      "tls_key",
                                      "tls_verify",
                                      "tls_name",
                                      "restart_guard",
                                      "master",
                                      "sentinel_password",
                                      "db",
                                      "sentinel_password_file",
                                      "sentinel_tls",
                                      NULL};

static bool asks_sentinels(const struct options *o)
{
    const char *plus = strchr(simba_url_scheme(o->url), '+');
    return plus != NULL && strcmp(plus, "+sentinel") == 0;
}

static int read_restart_grace(const struct options *o, struct config *c)
{
    const char *text = simba_url_option(o->url, "restart_guard"), *rule;
    c->restart_grace = text == NULL || strcmp(text, "off") != 0;
    if (!c->restart_grace || text == NULL || strcmp(text, "on") == 0)
        return 0;
    if (duration_parse(text, &c->restart_grace_ms, &rule) != 0 || c->restart_grace_ms < 1 ||
        c->restart_grace_ms > SIMBA_LEASE_MAX_MS)
        return options_refuse(o, SIMBA_EINVAL,
                              "option restart_guard is on, off, or the longest lease in use, as in "
                              "30s");
    return 0;
}

/* The number of a database: "" and "/" are 0. */
static int read_db(const struct options *o, struct config *c, const char *text)
{
    char *end;
    text += *text == '/';
    if (*text == '\0')
        return 0;
    errno = 0;
    long db = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || *text < '0' || *text > '9' || db > 100000)
        return options_refuse(o, SIMBA_EINVAL,
                              "the database '%.40s' is not a number: write redis://HOST/0", text);
    c->db = (int)db;
    return 0;
}

static int read_sentinels(const struct options *o, struct config *c)
{
    const char *host, *master = simba_url_option(o->url, "master");
    int port;
    if (master == NULL || master[0] == '\0' || strlen(master) >= sizeof c->master)
        return options_refuse(o, SIMBA_EINVAL,
                              "which master? write redis+sentinel://host,host/0?master=NAME");
    snprintf(c->master, sizeof c->master, "%s", master);
    while (c->sentinels < SENTINELS_MAX && simba_url_host(o->url, c->sentinels, &host, &port)) {
        struct redis_address *a = &c->sentinel[c->sentinels];
        int rc = options_host(o, c->sentinels++, SENTINEL_PORT, a->host, &a->port);
        if (rc != 0)
            return rc;
    }
    return c->sentinels > 0 ? 0 : options_refuse(o, SIMBA_EINVAL, "no host of a sentinel is given");
}

static int read_address(const struct options *o, struct config *c)
{
    const char *scheme = simba_url_scheme(o->url), *path = simba_url_path(o->url), *host;
    const char *db = simba_url_option(o->url, "db");
    int port;
    if (strcmp(scheme, "redis+unix") == 0) {
        struct redis_address *a = &c->server;
        if (path[0] != '/' || simba_url_host(o->url, 0, &host, &port))
            return options_refuse(o, SIMBA_EINVAL,
                                  "write the path of the socket as redis+unix:///path");
        if (strlen(path) >= sizeof a->path)
            return options_refuse(o, SIMBA_EINVAL,
                                  "the path of a unix socket has at most 107 bytes");
        snprintf(a->path, sizeof a->path, "%s", path);
        return read_db(o, c, db != NULL ? db : "");
    }
    if (db != NULL)
        return options_refuse(o, SIMBA_EINVAL,
                              "option db is for redis+unix: only; write redis://host/N");
    int rc = read_db(o, c, path);
    if (rc == 0 && asks_sentinels(o))
        return read_sentinels(o, c);
    if (rc == 0 && simba_url_host(o->url, 1, &host, &port))
        return options_refuse(o, SIMBA_EINVAL,
                              "only redis+sentinel: and rediss+sentinel: take several hosts");
    return rc != 0 ? rc : options_host(o, 0, REDIS_PORT, c->server.host, &c->server.port);
}

static int read_secrets(const struct options *o, struct config *c)
{
    int rc = options_copy(o, simba_url_user(o->url), &c->user);
    if (rc == 0)
        rc = password_file_read(o, simba_url_password(o->url), "password_file", &c->password);
    if (rc == 0)
        rc = password_file_read(o, simba_url_option(o->url, "sentinel_password"),
                                "sentinel_password_file", &c->sentinel_password);
    if (rc == 0 && c->user != NULL && c->password == NULL)
        rc = options_refuse(o, SIMBA_EINVAL,
                            "a user without a password; for a password alone write "
                            "redis://:PASSWORD@host, or use password_file");
    return rc;
}

static int read_tls(const struct options *o, struct config *c)
{
    c->tls = strncmp(simba_url_scheme(o->url), "rediss", strlen("rediss")) == 0;
    c->sentinel_tls = c->tls;
    c->tls_verify = true;
    int rc = options_switch(o, "tls_verify", &c->tls_verify);
    if (rc == 0)
        rc = options_switch(o, "sentinel_tls", &c->sentinel_tls);
    if (rc == 0)
        rc = options_text(o, "tls_name", &c->tls_name);
    if (rc == 0)
        rc = options_text(o, "tls_ca", &c->tls_ca);
    if (rc == 0)
        rc = options_text(o, "tls_cert", &c->tls_cert);
    if (rc == 0)
        rc = options_text(o, "tls_key", &c->tls_key);
    bool any = c->tls_ca != NULL || c->tls_cert != NULL || c->tls_key != NULL ||
               c->tls_name != NULL || !c->tls_verify || c->sentinel_tls;
    if (rc == 0 && any && !c->tls)
        rc = options_refuse(o, SIMBA_EINVAL,
                            "TLS options need the scheme rediss:, or rediss+sentinel:");
    if (rc == 0 && (c->tls_cert == NULL) != (c->tls_key == NULL))
        rc = options_refuse(o, SIMBA_EINVAL, "tls_cert and tls_key belong together");
    return rc == 0 ? options_check_tls_files(o) : rc;
}

int config_read(struct config *c, const struct simba_url *url, char *why, size_t why_size)
{
    const struct options o = {url, why, why_size};
    *c = (struct config){.db = 0};
    int rc = read_address(&o, c);
    if (rc == 0)
        rc = read_secrets(&o, c);
    if (rc == 0)
        rc = read_tls(&o, c);
    if (rc == 0)
        rc = read_restart_grace(&o, c);
    if (rc == 0 && c->sentinels == 0 &&
        (simba_url_option(url, "master") != NULL || c->sentinel_password != NULL ||
         simba_url_option(url, "sentinel_tls") != NULL))
        rc = options_refuse(&o, SIMBA_EINVAL,
                            "options of sentinels need the scheme redis+sentinel:");
    if (rc != 0)
        config_free(c);
    return rc;
}

void config_free(struct config *c)
{
    secrets_free(c->password);
    secrets_free(c->sentinel_password);
    free(c->user);
    free(c->tls_ca);
    free(c->tls_cert);
    free(c->tls_key);
    free(c->tls_name);
    *c = (struct config){.db = 0};
}
