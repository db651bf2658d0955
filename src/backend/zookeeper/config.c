/* config.c: see config.h. What is wrong is said before anything connects. */
#include "backend/zookeeper/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"

const char *const zookeeper_options[] = {"session_timeout", "on_disconnect", "acl", "password_file",
                                         NULL};

struct reading {
    struct zookeeper_config *c;
    const struct simba_url *url;
    char *why;
    size_t why_size;
};

#define REFUSE(r, code, ...) (snprintf((r)->why, (r)->why_size, __VA_ARGS__), (code))

static int read_hosts(struct reading *r)
{
    struct zookeeper_config *c = r->c;
    const char *name;
    int port;
    for (size_t n = 0; simba_url_host(r->url, n, &name, &port); n++) {
        if (n == ZOOKEEPER_HOSTS_MAX)
            return REFUSE(r, SIMBA_EINVAL, "more than %d hosts", ZOOKEEPER_HOSTS_MAX);
        if (strlen(name) >= sizeof c->host[n].name)
            return REFUSE(r, SIMBA_EINVAL, "the name of a host is longer than 255 bytes");
        snprintf(c->host[n].name, sizeof c->host[n].name, "%s", name);
        c->host[n].port = port > 0 ? port : ZOOKEEPER_PORT;
        c->hosts = n + 1;
    }
    if (c->hosts == 0) {
        snprintf(c->host[0].name, sizeof c->host[0].name, "127.0.0.1");
        c->host[0].port = ZOOKEEPER_PORT;
        c->hosts = 1;
    }
    return 0;
}

/* The folder in the tree below which everything lies; it is made if it is not there. */
static int read_chroot(struct reading *r)
{
    const char *path = simba_url_path(r->url);
    if (path[0] == '\0' || strcmp(path, "/") == 0)
        return 0;
    size_t n = strlen(path);
    if (path[0] != '/' || n >= sizeof r->c->chroot - sizeof "/simba")
        return REFUSE(r, SIMBA_EINVAL,
                      "the path '%.40s' does not begin with /, or has more than %zu bytes: write "
                      "zookeeper://HOST/PATH",
                      path, sizeof r->c->chroot - sizeof "/simba" - 1);
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(++part, "/");
        bool dots = (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0);
        if (length == 0 || dots)
            return REFUSE(r, SIMBA_EINVAL, "the path has an empty part, a '.' or a '..' in it");
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f)
                return REFUSE(r, SIMBA_EINVAL, "the path has a control character in it");
        }
        part += length;
    }
    memcpy(r->c->chroot, path, n + 1);
    return 0;
}

/* The first line of a file. */
static int read_file(struct reading *r, const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return REFUSE(r, errno_is_limit(error) ? SIMBA_ELIMIT : SIMBA_EINVAL,
                      "option password_file: %s", errno_text(error));
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (out[0] == '\0')
        return REFUSE(r, SIMBA_EINVAL, "option password_file: the file is empty");
    return 0;
}

static int read_auth(struct reading *r)
{
    char secret[ZOOKEEPER_AUTH_MAX] = "";
    const char *user = simba_url_user(r->url), *password = simba_url_password(r->url);
    const char *file = simba_url_option(r->url, "password_file");
    if (user == NULL && password == NULL && file == NULL)
        return 0;
    if (user == NULL || user[0] == '\0' || (password == NULL) == (file == NULL))
        return REFUSE(r, SIMBA_EINVAL,
                      "digest authentication takes a user and a password: "
                      "zookeeper://USER:PASSWORD@host, or USER@ and password_file");
    if (strchr(user, ':') != NULL)
        return REFUSE(r, SIMBA_EINVAL, "a user's name cannot contain ':'");
    if (file != NULL) {
        int rc = read_file(r, file, secret, sizeof secret);
        if (rc != 0)
            return rc;
        password = secret;
    }
    int n = snprintf(r->c->auth, sizeof r->c->auth, "%s:%s", user, password);
    explicit_bzero(secret, sizeof secret);
    if (n < 0 || (size_t)n >= sizeof r->c->auth) {
        explicit_bzero(r->c->auth, sizeof r->c->auth);
        return REFUSE(r, SIMBA_EINVAL, "user and password are longer than %d bytes",
                      ZOOKEEPER_AUTH_MAX - 2);
    }
    return 0;
}

static int read_acl(struct reading *r)
{
    const char *text = simba_url_option(r->url, "acl");
    r->c->acl = r->c->auth[0] != '\0' ? ACL_CREATOR : ACL_OPEN;
    if (text == NULL)
        return 0;
    if (strcmp(text, "open") == 0)
        r->c->acl = ACL_OPEN;
    else if (strcmp(text, "creator") == 0)
        r->c->acl = ACL_CREATOR;
    else if (strcmp(text, "creator-read") == 0)
        r->c->acl = ACL_CREATOR_READ;
    else
        return REFUSE(r, SIMBA_EINVAL, "option acl is open, creator or creator-read");
    if (r->c->acl != ACL_OPEN && r->c->auth[0] == '\0')
        return REFUSE(r, SIMBA_EINVAL, "option acl=%s needs a user and a password", text);
    return 0;
}

static int read_manners(struct reading *r)
{
    const char *text = simba_url_option(r->url, "session_timeout");
    if (text != NULL && (simba_duration_parse(text, &r->c->session_timeout_ms) != 0 ||
                         r->c->session_timeout_ms < ZOOKEEPER_TIMEOUT_MIN_MS ||
                         r->c->session_timeout_ms > SIMBA_LEASE_MAX_MS))
        return REFUSE(r, SIMBA_EINVAL, "option session_timeout is between 100ms and a day");
    text = simba_url_option(r->url, "on_disconnect");
    if (text != NULL && strcmp(text, "keep") != 0 && strcmp(text, "release") != 0)
        return REFUSE(r, SIMBA_EINVAL,
                      "option on_disconnect is keep (until the deadline) or release (at once)");
    r->c->disconnect_releases = text != NULL && strcmp(text, "release") == 0;
    return 0;
}

int zookeeper_config_read(struct zookeeper_config *c, const struct simba_url *url, char *why,
                          size_t why_size)
{
    struct reading r = {c, url, why, why_size};
    *c = (struct zookeeper_config){.hosts = 0};
    int rc = read_hosts(&r);
    if (rc == 0)
        rc = read_chroot(&r);
    if (rc == 0)
        rc = read_auth(&r);
    if (rc == 0)
        rc = read_acl(&r);
    return rc == 0 ? read_manners(&r) : rc;
}
