/* latch_client.h: a client's contenders in ZooKeeper's queues. Pure: a request, an answer of the
 * server or the news of a session comes in with the time; what is to be sent goes out through
 * struct latch_io, answers and hints through the host. The store puts the client library behind
 * it, the simulator (tests/sim) a world full of faults.
 *
 *   latch_client.c   what contenders ask for: CONTEND, RENEW, RELEASE, LEAVE, PUBLISH
 *   latch_session.c  a session: the writes that keep it, and what its fate means for its members
 *   latch_node.c     a member's node: making it, finding it again, deleting it
 *   latch_queue.c    what a member reads of the others, its watches, what its contender is told
 *   latch.c          the states of one node, and the names of nodes
 *
 * A member is a contender's node in the queue of a mutex, and what is known of it. It belongs to
 * a session: nodes die with theirs. */
#ifndef BACKEND_ZOOKEEPER_LATCH_CLIENT_H
#define BACKEND_ZOOKEEPER_LATCH_CLIENT_H

#include <simba/backend.h>

#include "backend/kit/pending.h"
#include "backend/zookeeper/latch.h"
#include "backend/zookeeper/session_deadline.h"
#include "base/hash_table.h"

struct latch_client;
struct latch_member;

/* What is asked of the server for a member. */
enum latch_ask {
    LATCH_ASK_PATH,     /* make the mutex's node, and what is above it */
    LATCH_ASK_CREATE,   /* make a node whose name begins so */
    LATCH_ASK_FIND,     /* list the children, after a sync */
    LATCH_ASK_STAT,     /* of a node */
    LATCH_ASK_DELETE,   /* a node */
    LATCH_ASK_REMOVE,   /* a node that is nobody's; how it ends does not matter */
    LATCH_ASK_LIST,     /* list the children */
    LATCH_ASK_LEADER,   /* the data of the node that leads */
    LATCH_ASK_AHEAD,    /* of the one right in front */
    LATCH_ASK_OWN,      /* of our own */
    LATCH_ASK_EVICTION, /* of the mutex's */
    LATCH_ASKS
};

/* One thing that is asked, to be handed back with what comes of it. */
struct latch_flight {
    struct latch_member *member;
    enum latch_ask ask;
};

/* How it ended. All borrowed for the call. */
struct latch_result {
    enum latch_reply reply;
    int code;             /* if not LATCH_DONE: what requests that fail by it are answered with, */
    const char *why;      /* and in words */
    const char *name;     /* CREATE */
    int64_t czxid, owner; /* of a node; its ephemeralOwner */
    char *const *names;   /* FIND, LIST */
    int count;
    const char *data; /* LEADER, EVICTION */
    int length;
};

struct latch_session {
    struct latch_client *client;
    struct latch_session *next;
    struct latch_member *members;
    size_t members_count;
    struct latch_member *unwatched;
    struct pending stalled; /* until the next write is acknowledged */

    struct session_deadline deadline;
    int64_t write_sent, touch_sent; /* 0: none is under way */
    int64_t asked_ms;               /* the timeout that was asked for */
    int64_t id;
    bool established; /* it has an id, and a timeout */
    bool connected;
    bool hopeless;   /* not connected, and not soon: what is asked is refused */
    int code;        /* why it is not connected */
    const char *why; /* and in words; never NULL */
};

/* What a client needs of the world around it. Nothing of this calls back into it. */
struct latch_io {
    /* For a lease of this length, to be connected if it is not. NULL: out of memory. */
    struct latch_session *(*session)(struct latch_client *c, int64_t lease_ms);
    /* Over the session's connection, in order; the result comes to zk_latch_client_replied().
     * False: it was not sent. node: of the mutex's children. watch: leave a watch where it is
     * asked of. */
    bool (*send)(struct latch_flight *f, const char *node, bool watch);
    bool (*write)(struct latch_session *s); /* one that changes nothing; false: not sent */
    bool (*touch)(struct latch_session *s); /* a read; false: not sent */
    void (*heartbeat_in)(struct latch_session *s,
                         int64_t ms); /* zk_latch_session_heartbeat() then */
    void (*watch_own_in)(struct latch_session *s,
                         int64_t ms); /* zk_latch_session_watch_own() then */
    void (*read)(struct latch_session *s,
                 struct simba_request *q); /* who owns it? It is connected */
    /* PUBLISH, if this node is still there, and not evicted; q: given. It is connected. */
    void (*publish)(struct latch_session *s, struct simba_request *q, const char *node);
};

struct latch_client {
    struct simba_host *host;
    const struct latch_io *io;
    struct latch_session *sessions;
    struct hash_table members;              /* by mutex */
    unsigned char maker[LATCH_CLIENT_SIZE]; /* in the names of our nodes */
    uint64_t nodes;                         /* how many were named */
    int64_t now;                            /* of the call that is under way */
    int64_t relied_until; /* on nodes that vanished: until then their owners may act */
    bool disconnect_releases;
    bool refused; /* somebody was, for want of a connection */
};

/* host, io: borrowed. 0 or SIMBA_ELIMIT. */
int zk_latch_client_init(struct latch_client *c, struct simba_host *host,
                         const struct latch_io *io);
void zk_latch_client_free(struct latch_client *c); /* its sessions are closed */

/* CONTEND, RENEW, RELEASE, LEAVE, PUBLISH; q: given. All times in ms, of one clock. */
void zk_latch_client_submit(struct latch_client *c, struct simba_request *q, int64_t now);
void zk_latch_client_replied(struct latch_flight *f, const struct latch_result *r, int64_t now);

/* Failures, after which there is a hint when there is a connection again. */
void zk_latch_client_refuse(struct latch_client *c, struct simba_request *q, int code,
                            const char *why);
void zk_latch_client_fail(struct latch_client *c, struct pending *waiting, int code,
                          const char *why);

/* ---- latch_session.c ----------------------------------------------------------------------- */

void zk_latch_session_init(struct latch_session *s, struct latch_client *c, int64_t asked_ms);

/* id, timeout_ms: as the server says. sent: from when its connection was begun. */
void zk_latch_session_connected(struct latch_session *s, int64_t id, int64_t timeout_ms,
                                int64_t sent, int64_t now);
void zk_latch_session_disconnected(struct latch_session *s, int64_t now);
void zk_latch_session_unreachable(struct latch_session *s, int64_t now); /* hopeless now */
void zk_latch_session_expired(struct latch_session *s, int64_t now);     /* and all its nodes */
void zk_latch_session_written(struct latch_session *s, const struct latch_result *r, int64_t now);
void zk_latch_session_touched(struct latch_session *s, bool answered, int64_t now);
void zk_latch_session_heartbeat(struct latch_session *s, int64_t now);
void zk_latch_session_watch_own(struct latch_session *s, int64_t now);
void zk_latch_session_close(struct latch_session *s, int64_t now); /* no result comes any more */

int64_t zk_latch_session_timeout_ms(const struct latch_session *s);

/* ---- latch_queue.c ------------------------------------------------------------------------- */

/* A watch has fired; node "": on the mutex's own. */
void zk_latch_queue_event(struct latch_session *s, const char *mutex, const char *node,
                          bool deleted, int64_t now);

/* Evicted by the data of the mutex's node: that tenure, of this czxid. */
bool zk_latch_queue_parse_eviction(const char *data, int length, int64_t *czxid);
void zk_latch_queue_format_eviction(char *out, size_t size, uint64_t token);
#endif
