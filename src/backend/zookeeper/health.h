/* health.h: what is to be said about an ensemble. Pure. */
#ifndef BACKEND_ZOOKEEPER_HEALTH_H
#define BACKEND_ZOOKEEPER_HEALTH_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEALTH_LINE_MAX 512

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

/* ---- all servers of the URL ------------------------------------------------------------------- */

enum server_state {
    SERVER_SILENT, /* not reached, or it did not answer: why */
    SERVER_IDLE,   /* it runs, but serves nobody */
    SERVER_HIDES,  /* it runs; srvr is switched off */
    SERVER_SERVES
};

struct zookeeper_server {
    const char *address; /* borrowed; HOST:PORT as in the URL */
    enum server_state state;
    char why[96];
    struct zookeeper_health health;
    int64_t min_ms, max_ms; /* of sessions, as it says to `conf`; 0: it does not say */
};

/* What it answered to srvr and conf, "": nothing. */
void zookeeper_server_read(struct zookeeper_server *s, const char *srvr, const char *conf);

/* How many servers have a vote, by the text of /zookeeper/config; 0: it does not say. */
int zookeeper_voters(const char *config, size_t length);

/* voters: 0: not known. */
void zookeeper_ensemble_says(const struct zookeeper_server *s, size_t count, int voters,
                             simba_finding_fn *say, void *data);

/* Which sessions, and so which leases, the servers allow. */
void zookeeper_bounds_say(const struct zookeeper_server *s, size_t count, int64_t asked_ms,
                          int64_t granted_ms, simba_finding_fn *say, void *data);
#endif
