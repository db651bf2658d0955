/* ensemble.h: what the servers of a URL say about themselves, and what that means for an
 * operator. Pure. */
#ifndef BACKEND_ZOOKEEPER_ENSEMBLE_H
#define BACKEND_ZOOKEEPER_ENSEMBLE_H

#include "backend/kit/findings.h"

enum server_state {
    SERVER_SILENT, /* not reached, or it did not answer: why */
    SERVER_IDLE,   /* it runs, but serves nobody */
    SERVER_HIDES,  /* it runs; srvr is switched off */
    SERVER_SERVES
};

struct ensemble_server {
    char address[280]; /* HOST:PORT as in the URL */
    enum server_state state;
    char why[96];
    char version[32];
    char mode[16];          /* leader, follower, observer, standalone, read-only */
    int64_t min_ms, max_ms; /* of sessions; 0: it does not say */
    int64_t tick_ms;        /* likewise */
};

/* What it answered to srvr and conf, "": nothing. */
void zk_ensemble_read(struct ensemble_server *s, const char *srvr, const char *conf);

/* How many servers have a vote, by the text of /zookeeper/config; 0: it does not say. */
int zk_ensemble_voters(const char *config, size_t length);

/* Each server, and whether a majority serves. voters: 0: not known. */
void zk_ensemble_say_servers(const struct findings *f, const struct ensemble_server *s,
                             size_t count, int voters);

/* Which sessions, and so which leases, the servers allow; and how long this one is. */
void zk_ensemble_say_bounds(const struct findings *f, const struct ensemble_server *s,
                            size_t count);
void zk_ensemble_say_timeout(const struct findings *f, int64_t asked_ms, int64_t granted_ms,
                             int64_t tick_ms);

/* The longest tick of the servers that tell it; 0: none does. */
int64_t zk_ensemble_tick_ms(const struct ensemble_server *s, size_t count);

/* The same in words. WARN: it is not as long as asked for. */
#define ENSEMBLE_TEXT_MAX 256
enum simba_level zk_ensemble_timeout_text(int64_t asked_ms, int64_t granted_ms,
                                          char text[ENSEMBLE_TEXT_MAX]);
#endif
