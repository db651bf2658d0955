/* info.h: what a server says about itself (INFO), and what is to be said about that. Pure: used
 * when a connection begins, and for whoever wants to show it. */
#ifndef BACKEND_REDIS_INFO_H
#define BACKEND_REDIS_INFO_H

#include <simba/backend.h>

#define INFO_VERSION_MIN 5 /* ZPOPMIN, and scripts that may ask for the time */

struct info {
    char version[24];
    int major;
    char run_id[48], replid[48]; /* of its process; of its term as the master */
    int64_t uptime_ms;           /* at least */
    bool cluster, replica, loading, append_only;
    bool
        promoted; /* has a second replication id: it was a replica, or has loaded what a master saved */
    uint64_t memory_limit; /* 0: none */
    char eviction[32];     /* its policy */
    int64_t replicas;
    char master[280]; /* of a replica: HOST:PORT */
};

/* False: this is no INFO of a Redis. */
bool info_parse(struct info *info, const char *reply);
/* Only what it says of its process, as a sentinel does, too. */
bool info_parse_process(struct info *info, const char *reply);

/* Why this server cannot be used now, in a sentence, and the code for it; 0: it can be. */
int info_refuses(const struct info *info, char *why, size_t size);

/* Why nothing can be written to it. */
bool info_is_read_only(const struct info *info, char *why, size_t size);

bool info_evicts(const struct info *info); /* what is held may be thrown away */

/* The n-th thing that an operator should know, its text in line; false: no more. ERROR: locks
 * can get lost while nothing fails. */
bool info_warns(const struct info *info, bool has_restart_grace, size_t n,
                struct simba_finding *out, char *line, size_t size);

/* The ACL rules that are enough for a user of Simba. A pattern is allowed only literally. */
#define INFO_ACL_KEYS "~simba:*"
#define INFO_ACL_CHANNELS "&simba:* &simba:{*}"
const char *info_acl(void);
#endif
