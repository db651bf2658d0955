/* sentinel.h: asks the sentinels, one after the other, who is the master. Whether that one agrees
 * is seen in its handshake; if not, all is asked anew after a pause: a failover is under way. */
#ifndef BACKEND_REDIS_SENTINEL_H
#define BACKEND_REDIS_SENTINEL_H

#include "backend/redis/connection.h"

struct sentinel {
    struct connection connection;
    struct connection *commands; /* for which the master is found */
    size_t at, asked;
    bool has_answer;               /* one of them has said that it does not know the master */
    char why[CONNECTION_TEXT_MAX]; /* what that one said */
};

void sentinel_init(struct sentinel *s, struct network *net, struct connection *commands);
/* Leads to connection_go() or connection_fail() of commands. */
void sentinel_ask(struct sentinel *s);
#endif
