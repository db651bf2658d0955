/* schemes.h: the schemes of URLs of the stores that belong to this project, in one table. */
#ifndef BASE_SCHEMES_H
#define BASE_SCHEMES_H

#include <stdint.h>

/* Name, kind of store, the port where its server listens (0: none), and how a URL begins, as is offered to
 * whoever types one. The default comes first. */
#define SCHEMES(X)                                            \
    X("sqlite", SQLITE, 0, "sqlite:")                         \
    X("memory", MEMORY, 0, "")                                \
    X("redis", REDIS, 6379, " redis://")                      \
    X("rediss", REDIS, 6379, " rediss://")                    \
    X("redis+unix", REDIS, 0, " redis+unix:///")              \
    X("redis+sentinel", REDIS, 26379, " redis+sentinel://")   \
    X("rediss+sentinel", REDIS, 26379, " rediss+sentinel://") \
    X("mysql", MYSQL, 3306, " mysql://")                      \
    X("mariadb", MYSQL, 3306, " mariadb://")                  \
    X("postgresql", POSTGRES, 5432, " postgresql://")         \
    X("postgres", POSTGRES, 5432, "")                         \
    X("zookeeper", ZOOKEEPER, 2181, " zookeeper://")

enum store_kind {
    STORE_OTHER, /* none of ours */
    STORE_SQLITE,
    STORE_MEMORY,
    STORE_REDIS,
    STORE_MYSQL,
    STORE_POSTGRES,
    STORE_ZOOKEEPER,
    STORE_KINDS
};

struct scheme {
    const char *name;
    enum store_kind kind;
    uint16_t port;
};

/* That of a URL; NULL: it is none of these. */
const struct scheme *scheme_of(const char *url);
enum store_kind scheme_kind(const char *url);
#endif
