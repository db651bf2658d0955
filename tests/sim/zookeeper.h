/* zookeeper.h: a store as ZooKeeper is one, down to its packets: sessions, connections that
 * break and come back, ephemeral sequential nodes, watches. zookeeper_server.c is the server;
 * zookeeper_client.c is what the client library and the loop are to src/backend/zookeeper. What
 * contends between them is the shipped code: latch*.c and session_deadline.c. Only for these
 * two. */
#ifndef SIM_ZOOKEEPER_H
#define SIM_ZOOKEEPER_H

#include "backend/zookeeper/latch_client.h"
#include "backend/zookeeper/latch_member.h"
#include "world.h"

#define OUTGOING_MAX 64
#define LISTS_MAX 1024
#define WATCHES_MAX 64
#define SESSIONS_MAX 128

/* ---- the server ---------------------------------------------------------------------------- */

struct server_node {
    char name[PACKET_NAME_SIZE], id[24];
    int64_t czxid, session; /* session 0: a stranger's child */
    bool kept;              /* its deletion was acknowledged */
};

struct server_list { /* what a client was told; a few are kept */
    uint32_t serial;
    int count;
    struct server_node node[MEMBERS_MAX];
};

struct watches { /* by the names of nodes; "": the mutex's */
    char name[WATCHES_MAX][PACKET_NAME_SIZE];
    int count;
};

struct server_session {
    bool alive;
    uint8_t node;
    uint32_t life, connection;
    int64_t id, until, last_delivery;
    struct watches watches; /* of its connection */
};

struct server {
    struct server_node node[MUTEXES][MEMBERS_MAX];
    int count[MUTEXES];
    uint32_t sequence[MUTEXES];   /* runs over */
    char eviction[MUTEXES][32];   /* the data of the mutex's node */
    int64_t eviction_at[MUTEXES]; /* its zxid */
    struct server_session session[SESSIONS_MAX];
    int64_t zxid, sessions;
    struct server_list list[LISTS_MAX];
    uint32_t lists;
};

/* ---- a client ------------------------------------------------------------------------------ */

struct outgoing { /* what the client library has sent and has no answer to */
    uint32_t serial;
    uint8_t op;
    struct latch_flight *flight; /* NULL: of the session */
    struct simba_request *query; /* PACKET_READ */
};

struct client {
    struct latch_client latch; /* first: one is the other */
    struct latch_session session;
    struct simba_host host;
    struct world *world;
    struct node *node;
    uint32_t life, connection, serials;
    uint32_t ticks, heartbeats, own_watches; /* timers that were set; the last one of each counts */
    bool begun, connecting, watching_own;
    int64_t tried_at, heard_at, last_arrival;
    struct outgoing outgoing[OUTGOING_MAX];
    int outgoings;
    struct watches watches; /* that outlive a connection */
    int64_t eviction_seen;
    uint64_t granted;      /* the last token */
    unsigned given_back;   /* grants in a row that began no tenure */
    int64_t given_back_at; /* the first of them */
};

struct zookeeper {
    struct server server;
    struct client client[NODES_MAX];
};

bool watches_add(struct watches *w, const char *name);  /* false: it is there */
bool watches_take(struct watches *w, const char *name); /* false: it is not */

const struct server_list *server_list(const struct world *w,
                                      const struct packet *r); /* NULL: old */
#endif
