/* latches.h: a store as ZooKeeper is one, down to its wire: sessions, connections that break and come back,
 * ephemeral sequential nodes, watches. tree.c is the server; latches.c and places.c are what
 * src/backend/zookeeper does around its pure parts, which are the shipped ones: latch.c (one place in a
 * queue) and standing.c (until when a session surely stands). Only for these three. */
#ifndef SIM_LATCHES_H
#define SIM_LATCHES_H

#include "backend/zookeeper/latch.h"
#include "backend/zookeeper/standing.h"
#include "world.h"

#define PLACES_MAX 16
#define ASKING_MAX 8
#define LISTS_MAX 1024
#define SESSIONS_MAX 128
#define BEAT_PARTS 6  /* a write every S/6 */
#define FRESH_PARTS 4 /* one within S/4 is fresh */

/* ---- the server ----------------------------------------------------------------------------- */

struct tree_member {
    char name[WIRE_NAME_SIZE], id[24];
    int64_t czxid, session; /* session 0: a stranger's child */
    bool kept;              /* its deletion was acknowledged */
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
    unsigned char name[LATCH_CLIENT_SIZE]; /* in the names of its nodes */
    int64_t relied_until;                  /* on nodes that vanished */
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

#define EACH_PLACE(p, c)                                                 \
    for (struct place *p = (c)->place; p < &(c)->place[PLACES_MAX]; p++) \
        if (p->used)

/* latches.c: the process, its connection, its session */
struct client *client_of(struct world *w, const struct node *n);
int64_t client_now(const struct world *w, const struct node *n); /* ms of its clock */
void client_answer(struct world *w, struct node *n, const struct lease_request *request,
                   struct message m);
void client_refuse(struct world *w, struct node *n, struct lease_request *list, int *count);
void client_hint(struct world *w, struct node *n);
bool client_keep(struct lease_request *list, int *count, const struct lease_request *request);
void wire_send(struct world *w, struct node *n, const struct place *p, struct wire r);
void wire_send_name(struct world *w, struct node *n, struct place *p, enum wire_op op,
                    const char *name);
bool session_is_fresh(const struct world *w, const struct client *c, int64_t now);
int64_t session_left(struct world *w, struct node *n, const struct client *c, int64_t now);
void session_stall(struct world *w, struct node *n, struct lease_request *list, int *count);

/* places.c */
void place_drive(struct world *w, struct node *n, struct place *p);
void place_discard(struct world *w, struct node *n, struct place *p); /* not wanted any more */
void place_vanish(struct world *w, struct node *n, struct place *p);  /* its node is gone */
void place_refuse_asking(struct world *w, struct node *n, struct place *p);
void place_gone(struct world *w, struct node *n, const char *name); /* news of a node */
void place_marked(struct world *w, struct node *n, const char *name);
void place_wired(struct world *w, struct node *n, const struct wire *r);
void place_read(struct world *w, struct node *n, const struct wire *r);
void place_request(struct world *w, struct node *n, const struct lease_request *request);

/* tree.c */
void tree_arrive(struct world *w, const struct event *e);
void tree_expire(struct world *w);
void tree_evict(struct world *w, unsigned mutex, bool forced);
const struct tree_list *tree_list(const struct world *w, const struct wire *r); /* NULL: old */
#endif
