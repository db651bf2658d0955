/* options.c: what the URLs of SQL stores have in common. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/sql/sql.h"
#include "runtime/errno_text.h"

#define POLL_MIN_MS 10
#define POLL_MAX_MS 3600000
#define SECRET_MAX 4096

int sql_read_poll(const struct simba_url *url, int64_t *ms, char *why, size_t why_size)
{
    const char *text = simba_url_option(url, "poll");
    *ms = -1;
    if (text == NULL)
        return 0;
    if (simba_duration_parse(text, ms) == 0 &&
        (*ms == 0 || (*ms >= POLL_MIN_MS && *ms <= POLL_MAX_MS)))
        return 0;
    snprintf(
        why, why_size,
        "option poll is how often to look at mutexes that are waited for, from 10ms to 1h, or 0 "
        "to look only when leases end");
    return SIMBA_EINVAL;
}

int sql_read_create(const struct simba_url *url, enum sql_create *out, char *why, size_t why_size)
{
    static const char *const names[] = {
        [SQL_CREATE_NEVER] = "off", [SQL_CREATE_TABLE] = "on", [SQL_CREATE_UPGRADE] = "upgrade"};
    const char *text = simba_url_option(url, "create");
    *out = SQL_CREATE_TABLE;
    if (text == NULL)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum sql_create)i;
            return 0;
        }
    }
    snprintf(why, why_size,
             "option create is on (make the table if there is none), off, or upgrade (and change "
             "one that JVM Simba has made)");
    return SIMBA_EINVAL;
}

/* Only what no resolver can make another machine of: numbers, and the one name that is reserved. */
bool sql_is_local(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (host == NULL || host[0] == '/' || strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
}

static int keep_secret(const char *secret, char **out, char *why, size_t why_size)
{
    *out = strdup(secret);
    if (*out != NULL)
        return 0;
    snprintf(why, why_size, "out of memory");
    return SIMBA_ELIMIT;
}

int sql_read_secret(const struct simba_url *url, char **out, char *why, size_t why_size)
{
    char secret[SECRET_MAX + 1];
    const char *given = simba_url_password(url), *path = simba_url_option(url, "password_file");
    *out = NULL;
    if (given != NULL && path != NULL) {
        snprintf(why, why_size, "the password is given twice: in the URL, and by password_file");
        return SIMBA_EINVAL;
    }
    if (given != NULL)
        return keep_secret(given, out, why, why_size);
    if (path == NULL)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, secret, sizeof secret);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0 || n > SECRET_MAX) {
        explicit_bzero(secret, sizeof secret);
        snprintf(why, why_size, "option password_file: %s",
                 n < 0 ? errno_text(error) : "the file is longer than 4096 bytes");
        return n < 0 && errno_is_limit(error) ? SIMBA_ELIMIT : SIMBA_EINVAL;
    }
    secret[n] = '\0';
    secret[strcspn(secret, "\r\n")] = '\0';
    if (secret[0] == '\0') { /* perhaps only its first line */
        explicit_bzero(secret, sizeof secret);
        snprintf(why, why_size, "option password_file: the file is empty");
        return SIMBA_EINVAL;
    }
    int rc = keep_secret(secret, out, why, why_size);
    explicit_bzero(secret, sizeof secret);
    return rc;
}
