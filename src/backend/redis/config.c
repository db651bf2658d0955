/* config.c: see config.h. What is wrong is said before anything connects; no secret is quoted. */
#include "backend/redis/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"

#define BYTES_MAX (4 * SECRET_MAX) /* all strings together: a URL is not longer */

const char *const config_options[] = {"password_file",
                                      "tls_ca",
                                      "tls_cert",
                                      "tls_key",
                                      "tls_verify",
                                      "restart_guard",
                                      "master",
                                      "sentinel_password",
                                      "db",
                                      "sentinel_password_file",
                                      NULL};

struct reading {
    struct config *c;
    const struct simba_url *url;
    char *why;
    size_t why_size, used, size; /* of c->bytes */
};

#define REFUSE(r, code, ...) (snprintf((r)->why, (r)->why_size, __VA_ARGS__), (code))

static int keep(struct reading *r, const char *text, const char **out)
{
    size_t n = strlen(text) + 1;
    if (n > r->size - r->used)
        return REFUSE(r, SIMBA_ELIMIT, "the options of the URL are too long");
    memcpy(r->c->bytes + r->used, text, n);
    *out = r->c->bytes + r->used;
    r->used += n;
    return 0;
}

static int keep_option(struct reading *r, const char *name, const char **out)
{
    const char *text = simba_url_option(r->url, name);
    return text == NULL ? 0 : keep(r, text, out);
}

/* The first line of a file. */
static int keep_secret(struct reading *r, const char *name, const char **out)
{
    char secret[SECRET_MAX + 1];
    const char *path = simba_url_option(r->url, name);
    if (path == NULL)
        return 0;
    if (*out != NULL)
        return REFUSE(r, SIMBA_EINVAL, "the password is given twice: option %s, and in the URL",
                      name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, secret, sizeof secret);
    int error = errno;
    if (fd >= 0)
        close(fd);
    secret[n < 0 || (size_t)n > SECRET_MAX ? 0 : n] = '\0';
    secret[strcspn(secret, "\r\n")] = '\0';
    int rc = n < 0 ? REFUSE(r, errno_is_limit(error) ? SIMBA_ELIMIT : SIMBA_EINVAL, "option %s: %s",
                            name, errno_text(error))
             : (size_t)n > SECRET_MAX
                 ? REFUSE(r, SIMBA_EINVAL, "option %s: the file is longer than %zu bytes", name,
                          SECRET_MAX)
             : secret[0] == '\0' ? REFUSE(r, SIMBA_EINVAL, "option %s: the file is empty", name)
                                 : keep(r, secret, out);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

static int read_switch(struct reading *r, const char *name, bool *out)
{
    const char *text = simba_url_option(r->url, name);
    if (text == NULL)
        return 0;
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return REFUSE(r, SIMBA_EINVAL, "option %s is on or off", name);
    *out = strcmp(text, "on") == 0;
    return 0;
}

static int read_guard(struct reading *r)
{
    const char *text = simba_url_option(r->url, "restart_guard");
    r->c->guard = true;
    if (text == NULL || strcmp(text, "on") == 0)
        return 0;
    if (strcmp(text, "off") == 0) {
        r->c->guard = false;
        return 0;
    }
    if (simba_duration_parse(text, &r->c->guard_ms) != 0 || r->c->guard_ms < 1 ||
        r->c->guard_ms > SIMBA_LEASE_MAX_MS)
        return REFUSE(r, SIMBA_EINVAL,
                      "option restart_guard is on, off, or the longest lease in use, as in 30s");
    return 0;
}

/* The number of a database: "" and "/" are 0. */
static int read_db(struct reading *r, const char *text)
{
    char *end;
    text += *text == '/';
    if (*text == '\0')
        return 0;
    errno = 0;
    long db = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || *text < '0' || *text > '9' || db > 100000)
        return REFUSE(r, SIMBA_EINVAL, "the database '%.40s' is not a number: write redis://HOST/0",
                      text);
    r->c->db = (int)db;
    return 0;
}

static int read_host(struct reading *r, size_t n, int port, struct address *a)
{
    const char *host;
    int given;
    if (!simba_url_host(r->url, n, &host, &given)) {
        host = "127.0.0.1";
        given = -1;
    }
    if (strlen(host) >= sizeof a->host)
        return REFUSE(r, SIMBA_EINVAL, "the name of a host is longer than 255 bytes");
    snprintf(a->host, sizeof a->host, "%s", host);
    a->port = given > 0 ? given : port;
    return 0;
}

static int read_sentinels(struct reading *r)
{
    const char *host, *master = simba_url_option(r->url, "master");
    int port;
    if (master == NULL || master[0] == '\0' || strlen(master) >= sizeof r->c->master)
        return REFUSE(r, SIMBA_EINVAL,
                      "which master? write redis+sentinel://host,host/0?master=NAME");
    snprintf(r->c->master, sizeof r->c->master, "%s", master);
    while (r->c->sentinels < SENTINELS_MAX &&
           simba_url_host(r->url, r->c->sentinels, &host, &port)) {
        int rc = read_host(r, r->c->sentinels, SENTINEL_PORT, &r->c->sentinel[r->c->sentinels]);
        if (rc != 0)
            return rc;
        r->c->sentinels++;
    }
    return r->c->sentinels > 0 ? 0 : REFUSE(r, SIMBA_EINVAL, "no host of a sentinel is given");
}

static int read_place(struct reading *r)
{
    const char *scheme = simba_url_scheme(r->url), *path = simba_url_path(r->url), *host;
    const char *db = simba_url_option(r->url, "db");
    int port;
    if (strcmp(scheme, "redis+unix") == 0) {
        struct address *a = &r->c->server;
        if (path[0] != '/' || simba_url_host(r->url, 0, &host, &port))
            return REFUSE(r, SIMBA_EINVAL, "write the path of the socket as redis+unix:///path");
        if (strlen(path) >= sizeof a->path)
            return REFUSE(r, SIMBA_EINVAL, "the path of a unix socket has at most 107 bytes");
        snprintf(a->path, sizeof a->path, "%s", path);
        return read_db(r, db != NULL ? db : "");
    }
    if (db != NULL)
        return REFUSE(r, SIMBA_EINVAL, "option db is for redis+unix: only; write redis://host/N");
    int rc = read_db(r, path);
    if (rc == 0 && strcmp(scheme, "redis+sentinel") == 0)
        return read_sentinels(r);
    if (rc == 0 && simba_url_host(r->url, 1, &host, &port))
        return REFUSE(r, SIMBA_EINVAL, "only redis+sentinel: takes several hosts");
    return rc != 0 ? rc : read_host(r, 0, REDIS_PORT, &r->c->server);
}

static int read_secrets(struct reading *r)
{
    struct config *c = r->c;
    const char *user = simba_url_user(r->url), *password = simba_url_password(r->url);
    int rc = 0;
    if (user != NULL)
        rc = keep(r, user, &c->user);
    if (rc == 0 && password != NULL)
        rc = keep(r, password, &c->password);
    if (rc == 0)
        rc = keep_secret(r, "password_file", &c->password);
    if (rc == 0)
        rc = keep_option(r, "sentinel_password", &c->sentinel_password);
    if (rc == 0)
        rc = keep_secret(r, "sentinel_password_file", &c->sentinel_password);
    if (rc == 0 && c->user != NULL && c->password == NULL)
        rc = REFUSE(r, SIMBA_EINVAL,
                    "a user without a password; for a password alone write "
                    "redis://:PASSWORD@host, or use password_file");
    return rc;
}

static int read_tls(struct reading *r)
{
    struct config *c = r->c;
    c->tls = strcmp(simba_url_scheme(r->url), "rediss") == 0;
    c->tls_verify = true;
    int rc = read_switch(r, "tls_verify", &c->tls_verify);
    if (rc == 0)
        rc = keep_option(r, "tls_ca", &c->tls_ca);
    if (rc == 0)
        rc = keep_option(r, "tls_cert", &c->tls_cert);
    if (rc == 0)
        rc = keep_option(r, "tls_key", &c->tls_key);
    bool any = c->tls_ca != NULL || c->tls_cert != NULL || c->tls_key != NULL || !c->tls_verify;
    if (rc == 0 && any && !c->tls)
        rc = REFUSE(r, SIMBA_EINVAL, "TLS options need the scheme rediss:");
    if (rc == 0 && (c->tls_cert == NULL) != (c->tls_key == NULL))
        rc = REFUSE(r, SIMBA_EINVAL, "tls_cert and tls_key belong together");
    return rc;
}

int config_read(struct config *c, const struct simba_url *url, char *why, size_t why_size)
{
    struct reading r = {.c = c, .url = url, .why = why, .why_size = why_size};
    *c = (struct config){.db = 0};
    r.size = BYTES_MAX;
    c->bytes = calloc(1, r.size);
    if (c->bytes == NULL)
        return REFUSE(&r, SIMBA_ELIMIT, "out of memory");
    int rc = read_place(&r);
    if (rc == 0)
        rc = read_secrets(&r);
    if (rc == 0)
        rc = read_tls(&r);
    if (rc == 0)
        rc = read_guard(&r);
    if (rc == 0 && c->sentinels == 0 &&
        (simba_url_option(url, "master") != NULL || c->sentinel_password != NULL))
        rc = REFUSE(&r, SIMBA_EINVAL, "options of sentinels need the scheme redis+sentinel:");
    if (rc != 0)
        config_free(c);
    return rc;
}

void config_free(struct config *c)
{
    if (c->bytes != NULL)
        explicit_bzero(c->bytes, BYTES_MAX);
    free(c->bytes);
    c->bytes = NULL;
}
