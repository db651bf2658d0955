/* url.h: the URL of a store, checked and taken apart before anything connects.
 *
 *   SCHEME://[USER[:PASSWORD]@][HOST[:PORT][,HOST[:PORT]]...][/PATH][?NAME=VALUE[&NAME=VALUE]...]
 *   SCHEME:PATH[?...]
 *
 * A scheme is [a-z][a-z0-9+]*, an IPv6 address stands in brackets, any byte but NUL may be written
 * as %XX. The last @ before the path ends the password. Any other @ has to be written as %40, since
 * it may well be the end of a password with a / or ? in it; only a path without a host that begins
 * with / may hold one, as long as no : comes before it. */
#ifndef CORE_URL_H
#define CORE_URL_H

#include <simba/backend.h>

#define URL_BYTES_MAX 4096 /* with the NUL: a longer URL is an error, not a buffer */
#define URL_HOSTS_MAX 16
#define URL_OPTIONS_MAX 32
#define URL_NAME_MAX 64 /* letters in the name of an option, each of a-z, 0-9 and _ */
#define URL_PORT_NONE (-1)

struct url_host {
    const char *name; /* without the brackets of an IPv6 address */
    int port;         /* URL_PORT_NONE: not given */
};

struct url_option {
    const char *name, *value;
};

/* Modules have copies of simba_url_path() and its like: if the layout changes, so does
 * SIMBA_BACKEND_VERSION.
 * All strings point into `bytes`, decoded, each with its NUL. Not movable: copy by parsing again.
 * Names of hosts are valid UTF-8 without control characters; users, passwords, paths and values may
 * hold any byte but NUL. */
struct simba_url {
    const char *scheme;
    const char *user;     /* NULL if not given, or empty as in redis://:password@host */
    const char *password; /* NULL if not given; "" in user:@host */
    const char *path;     /* with its leading slash: redis://h/0 has "/0", redis://h/ has "/",
                             sqlite:///a/b and sqlite:/a/b have "/a/b", sqlite:b has "b"; "" if
                             there is none */
    struct url_host host[URL_HOSTS_MAX];
    size_t hosts; /* 0 in redis+unix:///sock and mysql://user@/db */
    struct url_option option[URL_OPTIONS_MAX];
    size_t options;
    char shown[URL_BYTES_MAX]; /* the URL as it may be shown, not decoded: the password and the
                                  values of options that sound like one are replaced by *** */
    char bytes[2 * URL_BYTES_MAX];
};

/* Takes text apart. On failure SIMBA_EINVAL, and why (borrowed) says in a sentence without a final
 * stop what is wrong. It quotes nothing of the URL but names of options, and u is all zero. */
int url_parse(struct simba_url *u, const char *text, char *why, size_t why_size);

/* Leaves nothing of it in memory: passwords above all. */
void url_wipe(struct simba_url *u);

/* Every option must be in one of the two lists (NULL-terminated; the second may be NULL), else
 * SIMBA_EINVAL and a sentence that names the nearest known one. */
int url_check_options(const struct simba_url *u, const char *const *common, const char *const *own,
                      char *why, size_t why_size);
#endif
