/* latches.h: a store as ZooKeeper is one, down to its wire: sessions, connections that break and come back,
 * ephemeral sequential nodes, watches. tree.c is the server; latches.c is what src/backend/zookeeper
 * does around its pure parts, which are the shipped ones: latch.c (one place in a queue) and standing.c
 * (until when a session surely stands). Only for latches.c and tree.c. */
#ifndef SIM_LATCHES_H
#define SIM_LATCHES_H

#include "backend/zookeeper/latch.h"
#include "backend/zookeeper/standing.h"
#include "world.h"

#define PLACES_MAX 16
#define ASKING_MAX 8
#define LISTS_MAX 256
#define SESSIONS_MAX 128
#define BEAT_PARTS 6  /* a write every S/6 */
#define FRESH_PARTS 4 /* one within S/4 is fresh */

/* ---- the server ----------------------------------------------------------------------------- */

struct tree_member {
    char name[WIRE_NAME_SIZE], id[24];
    int64_t czxid, session; /* session 0: a stranger's child */
};

struct tree_list { /* what a client was told; a few are kept */
    uint32_t serial;
    int count;
    struct tree_member member[MEMBERS_MAX];
};

struct tree_session {
    bool alive;
    uint8_t node;
    uint32_t life, connection;
    int64_t id, until, last_delivery;
};

struct tree {
    struct tree_member member[MUTEXES][MEMBERS_MAX];
    int count[MUTEXES];
    uint32_t sequence[MUTEXES]; /* runs over */
    struct tree_session session[SESSIONS_MAX];
    int64_t zxid, sessions;
    struct tree_list list[LISTS_MAX];
    uint32_t lists;
};

/* ---- a client ------------------------------------------------------------------------------- */

struct place {
    bool used, in_table, granted, over, looking;
    bool deleted; /* by us, for certain */
    uint32_t serial;
    struct latch latch;
    int64_t created_at, asked_at; /* ms of its clock */
    struct lease_request asking[ASKING_MAX], ending[ASKING_MAX];
    int askings, endings;
    char watched[WIRE_NAME_SIZE];
};

struct client {
    uint32_t life, connection, serials, beats;
    bool begun, connected, connecting;
    int64_t session; /* 0: none */
    int64_t tried_at, beat_sent, touch_sent, heard_at;
    int64_t last_arrival;
    struct standing standing;
    struct place place[PLACES_MAX];
    struct lease_request stalled[ASKING_MAX], reading[ASKING_MAX];
    int stalls, readings;
};

struct latches {
    struct tree tree;
    struct client client[NODES_MAX];
};

/* tree.c */
void tree_arrive(struct world *w, const struct event *e);
void tree_expire(struct world *w);
void tree_evict(struct world *w, unsigned mutex, bool forced);
const struct tree_list *tree_list(const struct world *w, const struct wire *r); /* NULL: old */
#endif
