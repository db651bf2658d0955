/* member.h: a contender's node and what is known of it; for place.c, queue.c and member.c only. */
#ifndef BACKEND_ZOOKEEPER_MEMBER_H
#define BACKEND_ZOOKEEPER_MEMBER_H

#include "backend/zookeeper/zookeeper.h"

struct member {
    struct table_node node;        /* by mutex; while in_table */
    struct member *next, **before; /* of the session's */
    struct member *unguarded_next;
    struct session *session;
    struct latch latch;
    unsigned flights; /* completions that will come */
    bool in_table;    /* its contender's; else it only has to be deleted */
    bool making, looking, again;
    bool stuck;         /* something failed: not again before there is a reason */
    bool granted, over; /* over: the tenure has ended, but for the node */
    bool shared;        /* two contenders of one id */
    bool unguarded;     /* no watch on its node yet */
    int makes;
    int deleted; /* how the node's deletion ended */
    int64_t created_at, lease_ms;
    int64_t asked_at;                            /* the last sign of its contender */
    struct simba_request *asking, **asking_last; /* CONTEND */
    struct simba_request *ending;                /* RELEASE, LEAVE */
    char watched[LATCH_NAME_SIZE];               /* the member in front that has a watch */
    char leader[LATCH_NAME_SIZE], leader_id[SIMBA_ID_MAX + 1];
    uint64_t leader_token;
    char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
    char path[PATH_SIZE]; /* of the mutex */
};

/* ---- place.c: may free the member where it says so --------------------------------------------- */

struct member *zk_place_make(struct session *s,
                             const struct simba_request *q); /* NULL: out of memory */
void zk_place_free(struct member *m);
void zk_place_drive(struct member *m);    /* sends what is to be sent; may free it */
void zk_place_discard(struct member *m);  /* not wanted any more; may free it */
void zk_place_vanished(struct member *m); /* the node is gone, by whatever hand; may free it */
void zk_place_hint(struct member *m);     /* its contender should ask */
void zk_place_node_path(const struct member *m, const char *node, char out[PATH_SIZE]);
struct simba_request *zk_place_take_asking(struct member *m);
void zk_place_refuse_list(struct zookeeper *z, struct simba_request *list, int code,
                          const char *why);
void zk_place_refuse_asking(struct member *m, int rc);

/* ---- member.c ---------------------------------------------------------------------------------- */

int zk_member_count(const struct zookeeper *z, const char *mutex); /* that have a node */
bool zk_member_knows(const struct zookeeper *z, const char *mutex, const char *node);

/* ---- queue.c ----------------------------------------------------------------------------------- */

void zk_queue_look(struct member *m);
bool zk_queue_get(struct member *m, const char *node, bool watch, data_completion_t completion);
void zk_queue_guard_later(struct member *m);
void zk_queue_stall(struct session *s, struct simba_request *list); /* until the next write */
void zk_queue_answer_ending(struct member *m);
#endif
