/* health.h: what is to be said about an ensemble. Pure. */
#ifndef BACKEND_ZOOKEEPER_HEALTH_H
#define BACKEND_ZOOKEEPER_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the server says to `srvr`. */
struct zookeeper_health {
    char version[32];
    char mode[16]; /* leader, follower, observer, standalone, read-only; "": it does not serve */
    int64_t outstanding;
};

bool zookeeper_health_parse(struct zookeeper_health *h, const char *srvr);

/* What we know of a session and its nodes. */
struct zookeeper_facts {
    int64_t asked_ms, granted_ms; /* the session's timeout */
    bool world_writable;          /* anybody may delete our nodes */
    bool containers;
    const struct zookeeper_health *server; /* NULL: not known */
};

/* The n-th remark; false: no more. */
bool zookeeper_health_says(const struct zookeeper_facts *f, size_t n, char *line, size_t size,
                           bool *serious);
#endif
