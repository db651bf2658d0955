/* config.c: what the URLs of SQL stores have in common. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "backend/kit/password_file.h"
#include "backend/sql/sql.h"

#define POLL_MS 250 /* if it is not given */
#define POLL_MIN_MS 10
#define POLL_MAX_MS 3600000

int sql_config_poll(const struct options *o, int64_t *ms)
{
    *ms = POLL_MS;
    return options_duration(o, "poll", POLL_MIN_MS, POLL_MAX_MS, true, ms);
}

int sql_config_create(const struct options *o, enum sql_create *out)
{
    static const char *const choices[] = {[SQL_CREATE_NEVER] = "off",
                                          [SQL_CREATE_TABLE] = "on",
                                          [SQL_CREATE_UPGRADE] = "upgrade",
                                          NULL};
    int which = SQL_CREATE_TABLE;
    int rc = options_choice(o, "create", choices, &which);
    *out = (enum sql_create)which;
    return rc;
}

int sql_config_password(const struct options *o, char **out)
{
    return password_file_read(o, simba_url_password(o->url), "password_file", out);
}

/* Only what no resolver can make another machine of: numbers, and the one name that is reserved. */
bool sql_config_is_local(const char *host)
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
