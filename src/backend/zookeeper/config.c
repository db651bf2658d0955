/* config.c: see config.h. What is wrong is said before anything connects. */
#include "backend/zookeeper/config.h"

#include <stdio.h>
#include <string.h>

#include "backend/kit/password_file.h"
#include "base/secrets.h"

const char *const zk_config_options[] = {"session_timeout", "on_disconnect", "acl", "password_file",
                                         NULL};

static int read_hosts(struct zookeeper_config *c, const struct options *o)
{
    const char *name;
    int port;
    do {
        size_t n = c->hosts++;
        if (n == ZOOKEEPER_HOSTS_MAX)
            return options_refuse(o, SIMBA_EINVAL, "more than %d hosts", ZOOKEEPER_HOSTS_MAX);
        int rc = options_host(o, n, ZOOKEEPER_PORT, c->host[n].name, &c->host[n].port);
        if (rc != 0)
            return rc;
    } while (simba_url_host(o->url, c->hosts, &name, &port));
    return 0;
}

/* The folder in the tree below which everything lies; it is made if it is not there. */
static int read_chroot(struct zookeeper_config *c, const struct options *o)
{
    const char *path = simba_url_path(o->url);
    if (path[0] == '\0' || strcmp(path, "/") == 0)
        return 0;
    size_t n = strlen(path);
    if (path[0] != '/' || n >= sizeof c->chroot - sizeof "/simba")
        return options_refuse(
            o, SIMBA_EINVAL,
            "the path '%.40s' does not begin with /, or has more than %zu bytes: write "
            "zookeeper://HOST/PATH",
            path, sizeof c->chroot - sizeof "/simba" - 1);
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(++part, "/");
        bool dots = (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0);
        if (length == 0 || dots)
            return options_refuse(o, SIMBA_EINVAL,
                                  "the path has an empty part, a '.' or a '..' in it");
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f)
                return options_refuse(o, SIMBA_EINVAL, "the path has a control character in it");
        }
        part += length;
    }
    memcpy(c->chroot, path, n + 1);
    return 0;
}

static int read_auth(struct zookeeper_config *c, const struct options *o)
{
    char *password = NULL;
    const char *user = simba_url_user(o->url), *given = simba_url_password(o->url);
    const char *file = simba_url_option(o->url, "password_file");
    if (user == NULL && given == NULL && file == NULL)
        return 0;
    if (user == NULL || user[0] == '\0' || (given == NULL && file == NULL))
        return options_refuse(o, SIMBA_EINVAL,
                              "digest authentication takes a user and a password: "
                              "zookeeper://USER:PASSWORD@host, or USER@ and password_file");
    if (strchr(user, ':') != NULL)
        return options_refuse(o, SIMBA_EINVAL, "a user's name cannot contain ':'");
    int rc = password_file_read(o, given, "password_file", &password);
    if (rc != 0)
        return rc;
    int n = snprintf(c->auth, sizeof c->auth, "%s:%s", user, password);
    secrets_free(password);
    if (n < 0 || (size_t)n >= sizeof c->auth) {
        explicit_bzero(c->auth, sizeof c->auth);
        return options_refuse(o, SIMBA_EINVAL, "user and password are longer than %d bytes",
                              ZOOKEEPER_AUTH_MAX - 2);
    }
    return 0;
}

static int read_acl(struct zookeeper_config *c, const struct options *o)
{
    static const char *const choices[] = {
        [ACL_OPEN] = "open", [ACL_CREATOR] = "creator", [ACL_CREATOR_READ] = "creator-read", NULL};
    int acl = c->auth[0] != '\0' ? ACL_CREATOR : ACL_OPEN;
    int rc = options_choice(o, "acl", choices, &acl);
    if (rc == 0 && acl != ACL_OPEN && c->auth[0] == '\0')
        rc = options_refuse(o, SIMBA_EINVAL, "option acl=%s needs a user and a password",
                            choices[acl]);
    c->acl = (enum zookeeper_acl)acl;
    return rc;
}

/* Without a connection: keep what is owned until its deadline, or release it at once. */
static int read_disconnect(struct zookeeper_config *c, const struct options *o)
{
    static const char *const choices[] = {"keep", "release", NULL};
    int which = 0;
    int rc = options_choice(o, "on_disconnect", choices, &which);
    c->disconnect_releases = which == 1;
    return rc;
}

int zk_config_read(struct zookeeper_config *c, const struct simba_url *url, char *why,
                   size_t why_size)
{
    struct options o = {url, why, why_size};
    *c = (struct zookeeper_config){.hosts = 0};
    int rc = read_hosts(c, &o);
    if (rc == 0)
        rc = read_chroot(c, &o);
    if (rc == 0)
        rc = read_auth(c, &o);
    if (rc == 0)
        rc = read_acl(c, &o);
    if (rc == 0)
        rc = options_duration(&o, "session_timeout", ZOOKEEPER_TIMEOUT_MIN_MS, SIMBA_LEASE_MAX_MS,
                              false, &c->session_timeout_ms);
    return rc == 0 ? read_disconnect(c, &o) : rc;
}
