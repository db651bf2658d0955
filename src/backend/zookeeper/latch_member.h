/* latch_member.h: a contender's node and what is known of it; for latch_*.c, and for
 * whoever sends what it asks for. */
#ifndef BACKEND_ZOOKEEPER_LATCH_MEMBER_H
#define BACKEND_ZOOKEEPER_LATCH_MEMBER_H

#include "backend/zookeeper/latch_client.h"

struct latch_member {
    struct hash_node node;               /* by mutex; while is_member */
    struct latch_member *next, **before; /* of the session's */
    struct latch_member *unwatched_next;
    struct latch_session *session;
    struct latch latch;
    struct latch_flight flight[LATCH_ASKS]; /* constant */
    unsigned flights;                       /* results that will come */
    bool is_member;                         /* its contender's; else it only has to be deleted */
    bool making;                            /* the mutex's node */
    bool reading, again;                    /* at the queue; what it saw is old already */
    bool stuck;         /* something failed: not again before there is a reason */
    bool granted, over; /* over: the tenure has ended, but for the node */
    bool deleted;       /* by us, for certain */
    bool shared;        /* two contenders of one id */
    bool unwatched;     /* no watch on its node yet */
    int makes;
    int64_t created_at, lease_ms;
    int64_t asked_at;              /* the last sign of its contender */
    struct pending asking;         /* CONTEND */
    struct pending ending;         /* RELEASE, LEAVE */
    char watched[LATCH_NAME_SIZE]; /* the member in front that has a watch */
    char leader[LATCH_NAME_SIZE], leader_id[SIMBA_ID_MAX + 1];
    uint64_t leader_token;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
};

/* For each member of a session; what is done to one may free it, but no other. */
#define EACH_MEMBER(m, s)                                                                        \
    for (struct latch_member *m = (s)->members, *m##_next; m != NULL && (m##_next = m->next, 1); \
         m = m##_next)

/* ---- latch_client.c ------------------------------------------------------------------------ */

int zk_latch_client_count(const struct latch_client *c, const char *mutex); /* that have a node */
bool zk_latch_client_knows(const struct latch_client *c, const char *node);

/* ---- latch_session.c ----------------------------------------------------------------------- */

bool zk_latch_session_is_fresh(const struct latch_session *s);
bool zk_latch_session_can_begin(const struct latch_session *s); /* a tenure, now */
int64_t zk_latch_session_left(const struct latch_session *s);   /* of what we may rely on */
void zk_latch_session_keep(struct latch_session *s); /* it has members: see to its writes */
void zk_latch_session_stall(struct latch_session *s, struct simba_request *list);
void zk_latch_session_watch_own_soon(struct latch_session *s);

/* ---- latch_node.c: may free the member where it says so ------------------------------------ */

extern const struct latch_result zk_latch_node_unsent; /* what could not even be sent */

struct latch_member *zk_latch_node_make(struct latch_session *s,
                                        const struct simba_request *q); /* NULL: out of memory */
void zk_latch_node_free(struct latch_member *m);
bool zk_latch_node_send(struct latch_member *m, enum latch_ask ask, const char *node, bool watch);
void zk_latch_node_replied(struct latch_member *m, enum latch_ask ask,
                           const struct latch_result *r); /* may free it */
void zk_latch_node_drive(struct latch_member *m);         /* sends what is next; may free it */
void zk_latch_node_discard(struct latch_member *m);       /* not wanted any more; may free it */
void zk_latch_node_vanished(struct latch_member *m);      /* by whatever hand; may free it */
void zk_latch_node_refuse_asking(struct latch_member *m, const struct latch_result *r);

/* ---- latch_queue.c ------------------------------------------------------------------------- */

void zk_latch_queue_read(struct latch_member *m);
void zk_latch_queue_replied(struct latch_member *m, enum latch_ask ask,
                            const struct latch_result *r); /* may free it */
void zk_latch_queue_watch_own(struct latch_member *m);
void zk_latch_queue_hint(struct latch_member *m); /* its contender should ask */
void zk_latch_queue_answer_ending(struct latch_member *m);
#endif
