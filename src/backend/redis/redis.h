/* redis.h: the store in a Redis server. See docs/guides/redis.md for what is in the server, and
 * lua/ for what happens there.
 *
 * A request goes one way: redis.c --> requests --> connection --> replies --> the host. Each file
 * is touched once, and all of it is on the loop's thread.
 *
 *   redis       opening, closing, what is done when the connection comes and goes
 *   config      what the URL says
 *   requests    requests to commands
 *   connection  a connection, kept up; the commands that are not answered yet
 *   stream      its socket, with tls, or tls_none in a module that serves no rediss:
 *   handshake   its first commands: password, database, who the server is
 *   sentinel    which server is the master, and whether it still is; votes: how they are counted
 *   replies     replies to answers
 *   list        LIST, which takes several exchanges
 *   subscriber  the connection that is told of changes; topics: of what, and for whom
 *   messages    what it hears, and who asks because of it
 *   inspect     what an operator should know; what the user may do
 *   resp, scripts, errors, info   bytes; what runs in the server; its errors; what INFO says */
#ifndef BACKEND_REDIS_H
#define BACKEND_REDIS_H

#include "backend/kit/pending.h"
#include "backend/redis/inspect.h"
#include "backend/redis/replies.h"
#include "backend/redis/scripts.h"
#include "backend/redis/sentinel.h"
#include "backend/redis/subscriber.h"

struct redis {
    struct simba_host *host;
    struct config config;
    struct redis_network net;
    struct redis_server server;
    struct redis_connection commands;
    struct subscriber subscriber;
    struct sentinels sentinels;
    uint64_t round; /* of questions to them, for what is being written; 0: not asked yet */

    struct pending waiting;   /* for the connection, or for the end of a reading */
    bool is_unknown[SCRIPTS]; /* to the server: send its text next time */
    bool to_greet;            /* anew, as soon as all is answered: it may take writes by now */
    struct held held;
    bool restart_grace_said;
    struct redis_inspection inspection;
    char warned_of[48]; /* the run id of the server that was commented on */
};

extern const struct simba_backend redis_backend;
#endif
