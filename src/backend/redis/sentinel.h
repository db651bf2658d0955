/* sentinel.h: what the sentinels say: which server is the master, and whether it still is.
 *
 * A majority of them must name it. Sentinel lets an old master that runs be a master for seconds
 * after a failover, so what it grants or renews counts only if a majority, asked no earlier than
 * the request was sent, still names it, in the same term. A sentinel never goes back to an earlier
 * term. So when a majority names the next master, no request that was sent later can count at the
 * old one; and the next one grants nothing for one lease from then on (handshake.h). */
#ifndef BACKEND_REDIS_SENTINEL_H
#define BACKEND_REDIS_SENTINEL_H

#include "backend/redis/connection.h"

struct sentinel {
    struct sentinels *all;
    struct connection connection;
    const struct address *address;
    uint64_t answered; /* the last round in which it has answered */
    struct address named;
    int64_t term;                  /* Sentinel's config-epoch: each failover has a greater one */
    int64_t others;                /* how many more it knows */
    char why[CONNECTION_TEXT_MAX]; /* it names none */
};

struct sentinels {
    struct connection *commands; /* to the master */
    struct sentinel each[SENTINELS_MAX];
    size_t count;   /* 0: the URL names the server itself */
    uint64_t round; /* of questions: in each, all are asked */
    uint64_t since; /* the round in which the master is being looked for */
    bool is_asking;
};

void sentinels_init(struct sentinels *a, struct network *net, struct connection *commands);
void sentinels_close(struct sentinels *a);
bool sentinels_are_steady(const struct sentinels *a);

/* Leads to connection_go() or connection_fail() of commands. */
void sentinels_find(struct sentinels *a);

/* Begins a round, and returns its number, for commands that are written now; 0 without sentinels.
 * What is written is sent with connection_flush(). */
uint64_t sentinels_ask(struct sentinels *a);
bool sentinels_confirm(const struct sentinels *a, uint64_t round);
/* Fails commands, if a reply waits there that cannot be confirmed any more. */
void sentinels_doubt(struct sentinels *a);

/* The URL names too few of them: their majority can name another master. */
bool sentinels_warn(const struct sentinels *a, char *line, size_t size);
#endif
