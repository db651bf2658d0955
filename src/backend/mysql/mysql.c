/* mysql.c: the URL, and the way into the frame of backend/sql. */
#include "backend/mysql/mysql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_config(void *config)
{
    struct mysql_config *c = config;
    if (c->password != NULL)
        explicit_bzero(c->password, strlen(c->password));
    free(c->host);
    free(c->user);
    free(c->password);
    free(c->database);
    free(c->socket);
    free(c->tls_ca);
    free(c->tls_cert);
    free(c->tls_key);
    free(c);
}

static int get_fd(void *link)
{
    return (int)mysql_get_socket(&((struct mysql_link *)link)->mysql);
}

/* Nothing is said unasked, but for good-bye. */
static bool idle(struct sql *s, void *link)
{
    (void)s;
    (void)link;
    return false;
}

static void diagnose(void *link, simba_finding_fn *say, void *data)
{
    sql_health_say(&((struct mysql_link *)link)->health, say, data);
}

static const char *read_only(void *link)
{
    return sql_health_read_only(&((struct mysql_link *)link)->health);
}

const struct sql_driver mysql_driver = {
    .name = "mysql",
    .needs_help = "give the columns mutex and owner_id a binary collation (docs/backends/mysql.md)",
    .connect = mysql_dial,
    .disconnect = mysql_hang_up,
    .free_config = free_config,
    .fd = get_fd,
    .group = mysql_perform_group,
    .read_only = read_only,
    .begin = mysql_perform_begin,
    .go_on = mysql_perform_go_on,
    .idle = idle,
    .diagnose = diagnose,
};

/* ---- the URL ------------------------------------------------------------------------------- */

struct reading {
    struct mysql_config *c;
    const struct simba_url *url;
    char *why;
    size_t why_size;
};

#define REFUSE(r, ...) (snprintf((r)->why, (r)->why_size, __VA_ARGS__), SIMBA_EINVAL)

static int keep(struct reading *r, const char *text, char **out)
{
    if (text == NULL)
        return 0;
    *out = strdup(text);
    if (*out != NULL)
        return 0;
    snprintf(r->why, r->why_size, "out of memory");
    return SIMBA_ELIMIT;
}

static int keep_option(struct reading *r, const char *name, char **out)
{
    return keep(r, simba_url_option(r->url, name), out);
}

static int read_switch(struct reading *r, const char *name, bool *out)
{
    const char *text = simba_url_option(r->url, name);
    if (text == NULL)
        return 0;
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return REFUSE(r, "option %s is on or off", name);
    *out = strcmp(text, "on") == 0;
    return 0;
}

static int read_place(struct reading *r)
{
    struct mysql_config *c = r->c;
    const char *host = NULL, *another, *path = simba_url_path(r->url);
    int port = -1, ignored;
    if (simba_url_host(r->url, 1, &another, &ignored))
        return REFUSE(r, "only one host can be given");
    bool has_host = simba_url_host(r->url, 0, &host, &port);
    const char *socket = simba_url_option(r->url, "socket");
    if (has_host && socket != NULL)
        return REFUSE(r, "a host and a socket are given: write mysql://user@/database?socket=PATH");
    if (socket != NULL && socket[0] != '/')
        return REFUSE(r, "option socket is an absolute path");
    if (path[0] != '/' || path[1] == '\0' || strchr(path + 1, '/') != NULL)
        return REFUSE(r, "which database? write %s://user@host/database", simba_url_scheme(r->url));
    c->port = port > 0 ? port : MYSQL_PORT_DEFAULT;
    int rc = keep(r, path + 1, &c->database);
    if (rc == 0)
        rc = keep(r, socket, &c->socket);
    if (rc == 0 && socket == NULL)
        rc = keep(r, has_host ? host : "127.0.0.1", &c->host);
    return rc;
}

/* To other machines, unless it is switched off; and always verified, unless that is. */
static int read_tls(struct reading *r)
{
    struct mysql_config *c = r->c;
    c->tls = !sql_is_local(c->host);
    c->tls_verify = true;
    int rc = keep_option(r, "tls_ca", &c->tls_ca);
    if (rc == 0)
        rc = keep_option(r, "tls_cert", &c->tls_cert);
    if (rc == 0)
        rc = keep_option(r, "tls_key", &c->tls_key);
    c->tls = c->tls || c->tls_ca != NULL || c->tls_cert != NULL || c->tls_key != NULL;
    bool wanted = c->tls;
    if (rc == 0)
        rc = read_switch(r, "tls", &c->tls);
    if (rc == 0)
        rc = read_switch(r, "tls_verify", &c->tls_verify);
    if (rc == 0 && !c->tls && wanted && (c->tls_ca != NULL || c->tls_cert != NULL))
        return REFUSE(r, "tls=off, but options for TLS are given");
    if (rc == 0 && (c->tls_cert == NULL) != (c->tls_key == NULL))
        return REFUSE(r, "tls_cert and tls_key belong together");
    return rc;
}

static int read_url(struct reading *r)
{
    struct mysql_config *c = r->c;
    c->returning = true;
    int rc = read_place(r);
    if (rc == 0)
        rc = keep(r, simba_url_user(r->url), &c->user);
    if (rc == 0)
        rc = sql_read_secret(r->url, &c->password, r->why, r->why_size);
    if (rc == 0)
        rc = read_tls(r);
    if (rc == 0)
        rc = sql_read_create(r->url, &c->create, r->why, r->why_size);
    if (rc == 0)
        rc = read_switch(r, "returning", &c->returning);
    return rc;
}

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    int64_t poll;
    struct mysql_config *c = calloc(1, sizeof *c);
    struct reading r = {c, url, why, why_size};
    if (c == NULL) {
        snprintf(why, why_size, "out of memory");
        return SIMBA_ELIMIT;
    }
    c->connect_timeout_ms = host->connect_timeout_ms;
    c->command_timeout_ms = host->command_timeout_ms;
    int rc = read_url(&r);
    if (rc == 0)
        rc = sql_read_poll(url, &poll, why, why_size);
    if (rc != 0) {
        free_config(c);
        return rc;
    }
    mysql_server_init(0, NULL, NULL); /* once, and not on a thread, for those who fork */
    return sql_open(host, &mysql_driver, c, poll, store, why, why_size);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};
static const char *const options[] = {"socket",   "poll",    "password_file", "tls",    "tls_ca",
                                      "tls_cert", "tls_key", "tls_verify",    "create", "returning",
                                      NULL};

const struct simba_backend mysql_backend = {
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
