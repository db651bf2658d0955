/* sentinel.h: what the sentinels say: which server is the master, and whether it still is.
 *
 * A majority of them must name it. Sentinel lets an old master that runs be a master for seconds
 * after a failover, so what it grants or renews counts only if a majority, asked no earlier than
 * the request was sent, still names it, in the same term. A sentinel that keeps its file never goes
 * back to an earlier term. So when a majority names the next master, no request that was sent later
 * can count at the old one; and the next one grants nothing for one lease from then on
 * (handshake.h). For that:
 *
 *   - Each sentinel has one vote. Addresses are not sentinels: a host may have several names, and a
 *     name may lead to several hosts. So each says who it is (SENTINEL MYID; before Redis 6.2 its
 *     run id), and a second connection to the same one is given up.
 *   - A later term is never outvoted: it exists only because a majority has elected its leader. One
 *     that any sentinel names overrules all others, and is remembered as long as the client lives.
 *   - A sentinel that restarts without its file names the master of long ago, and when it hears of
 *     the others, goes back to the later one. So what is free is granted only if each of a majority
 *     has named this master without a break for one lease: it says since when. During that time
 *     nothing was confirmed at another master, whichever that was, since two majorities have a
 *     sentinel in common; so all tenures there have ended. And no token is below the server's
 *     clock. A renewal needs no such time: at no other master was anything granted since the last
 *     one. */
#ifndef BACKEND_REDIS_SENTINEL_H
#define BACKEND_REDIS_SENTINEL_H

#include "backend/redis/connection.h"

#define SENTINEL_ID_MAX 64

struct sentinel {
    struct sentinels *all;
    struct redis_connection connection;
    const struct redis_address *address;
    char id[SENTINEL_ID_MAX];       /* of the sentinel that was there last; "": none yet */
    char said_id[SENTINEL_ID_MAX];  /* of the one that is greeted; "": it does not say it */
    bool is_identified;             /* it is there, and has no other connection */
    const struct sentinel *same_as; /* the last one there has a connection already, this one */
    struct redis_address listed;    /* the master that named_since is about */
    int64_t named_since;            /* it has named that master since then, at the latest */
    uint64_t answered; /* the last round in which it has answered; 0: not on this connection */
    struct redis_address named;
    int64_t term;                  /* Sentinel's config-epoch: each failover has a greater one */
    int64_t others;                /* how many more it knows */
    char why[CONNECTION_TEXT_MAX]; /* it names none */
};

struct sentinels {
    struct redis_connection *commands; /* to the master */
    struct sentinel each[SENTINELS_MAX];
    size_t count;   /* 0: the URL names the server itself */
    uint64_t round; /* of questions: in each, all are asked */
    uint64_t since; /* the round in which the master is being looked for */
    int64_t latest; /* the latest term that any of them has ever named */
    bool is_asking;
};

void sentinels_init(struct sentinels *a, struct redis_network *net,
                    struct redis_connection *commands);
void sentinels_close(struct sentinels *a);
bool sentinels_are_steady(const struct sentinels *a);

/* Leads to connection_go() or connection_fail() of commands. */
void sentinels_find(struct sentinels *a);

/* Begins a round, and returns its number, for commands that are written now; 0 without sentinels.
 * What is written is sent with connection_flush(). */
uint64_t sentinels_ask(struct sentinels *a);
bool sentinels_confirm(const struct sentinels *a, const struct redis_command *sent);
/* Fails commands, if a reply waits there that cannot be confirmed any more. */
void sentinels_doubt(struct sentinels *a);

#endif
