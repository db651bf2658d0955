/* latch.h: one contender's node in a queue of nodes, as Curator's LeaderLatch keeps it. Pure:
 * what is sent and what comes back are the caller's business.
 *
 * The members of a mutex are ephemeral sequential nodes _c_UUID-latch-NNNNNNNNNN; the one with
 * the lowest sequence leads. The sequence is a counter of 32 bits that runs over into the
 * negative, so it is compared serially. The UUID in the name finds a node again whose creation
 * was never answered, and tells who made it: it is of version 8, of our own making (Curator's
 * are random, version 4). Its first ten bytes are the client's, drawn when it opens, the others
 * number its nodes.
 *
 *          create sent        created              delete sent         deleted
 *   OUT --------------> JOINING ------> IN ------------------> LEAVING ------> GONE
 *    ^                     |             ^                        |
 *    | found nothing       | no answer   | found, and it is ours  | no answer: IN again, unwanted
 *    +------------------ LOST -----------+
 *
 * - A member that is not wanted any more is deleted, whatever state it is in when that is said.
 * - After IN and unwanted there is no way back: who wants to join again does so with another UUID, and
 *   gets another token.
 * - The end of the session ends everything: GONE. */
#ifndef BACKEND_ZOOKEEPER_LATCH_H
#define BACKEND_ZOOKEEPER_LATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LATCH_UUID_SIZE 37
#define LATCH_CLIENT_SIZE 10
#define LATCH_NAME_SIZE 128 /* longer names are not members' */

enum latch_state { LATCH_OUT, LATCH_JOINING, LATCH_LOST, LATCH_IN, LATCH_LEAVING, LATCH_GONE };

/* What is to be sent next. */
enum latch_act {
    LATCH_REST,
    LATCH_CREATE,
    LATCH_FIND, /* list the children, after a sync: is there a node with our UUID? */
    LATCH_STAT, /* ask for the node that was found */
    LATCH_DELETE,
    LATCH_END /* nothing is left */
};

/* How a request ended. */
enum latch_reply {
    LATCH_DONE,
    LATCH_NO_NODE, /* there is no such node, or no parent to create it in */
    LATCH_UNKNOWN, /* the connection was lost: it may have been applied */
    LATCH_REFUSED  /* certainly not applied */
};

struct latch {
    char uuid[LATCH_UUID_SIZE];
    char name[LATCH_NAME_SIZE]; /* "": not known */
    int64_t czxid;              /* the token; 0: not known */
    uint8_t state;
    bool wanted;    /* set to false, it is left */
    bool in_flight; /* a request of ours that has not ended */
};

/* What a list of children says. Indices into it; -1: none. */
struct latch_view {
    int own, ahead, leader;
    int orphan;  /* a second node of ours, to be deleted */
    int members; /* in all */
};

void zk_latch_init(struct latch *l, const char *uuid);
enum latch_act zk_latch_next(const struct latch *l);
void zk_latch_sent(struct latch *l);

/* owner, session: the node's ephemeralOwner and who we are. An answer that no sane server gives,
 * a czxid of 0 or a name that is not ours, counts as none: the latch is not IN after it. */
void zk_latch_created(struct latch *l, enum latch_reply reply, const char *name, int64_t czxid,
                      int64_t owner, int64_t session);
void zk_latch_found(struct latch *l, enum latch_reply reply, const char *name); /* NULL: none */
void zk_latch_stat(struct latch *l, enum latch_reply reply, int64_t czxid, int64_t owner,
                   int64_t session);
void zk_latch_deleted(struct latch *l, enum latch_reply reply);
void zk_latch_vanished(struct latch *l); /* our node is not there any more, or the session */

/* A list that was asked for after the node was there. name "": only by the UUID. */
struct latch_view zk_latch_view_of(const struct latch *l, char *const *names, int count);

/* Whether the node of this name is this latch's; whether the client that this latch belongs to
 * made it. A node that our client made and none of its latches is for is nobody's: it may be
 * deleted. The contender's id in it says nothing, since a user may have given it to several
 * processes. */
bool zk_latch_is_for(const struct latch *l, const char *name);
bool zk_latch_is_sibling(const struct latch *l, const char *name);

/* ---- names --------------------------------------------------------------------------------- */

void zk_latch_uuid(char out[LATCH_UUID_SIZE], const unsigned char client[LATCH_CLIENT_SIZE],
                   uint64_t number);
void zk_latch_prefix(char *out, size_t size, const char *uuid); /* to create a node with */
bool zk_latch_parse(const char *name, int32_t *sequence);       /* false: not a member's */
bool zk_latch_before(int32_t a, int32_t b);
int zk_latch_lowest(char *const *names, int count, int *members); /* -1: there is no member */
bool zk_latch_heeds_evictions(
    const char *name); /* its owner is one of ours: an eviction without force ends it */
#endif
