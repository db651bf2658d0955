/* zookeeper.h: the store in a ZooKeeper ensemble. See docs/backends/zookeeper.md for what is in the
 * tree there.
 *
 * All on the loop's thread, with the C client that has no threads (libzookeeper_st):
 *   zookeeper.c  opening, closing, which request goes where
 *   session.c    a session with the ensemble, and the write that keeps it
 *   wire.c       its connection: names, the socket, the loop's events
 *   member.c     our nodes in the queues: CONTEND, RENEW, RELEASE, LEAVE
 *   place.c      one of them: making it, finding it again, deleting it
 *   queue.c      its look at the others, and the answers
 *   look.c       who leads: READ, LIST, EVICT, and what observers hear
 *   examine.c    what an operator should know; words.c asks the servers for it
 * and pure, so that they can be tested without a server:
 *   latch.c      one place in a queue          standing.c  until when a session surely stands
 *   path.c       names                         health.c    what to say about the ensemble
 *
 * A client has one session per length of lease that its contenders ask for, so in general one. All its
 * nodes live and die with it. */
#ifndef BACKEND_ZOOKEEPER_H
#define BACKEND_ZOOKEEPER_H

#include <simba/backend.h>
#include <sys/types.h>
#include <uv.h>
#include <zookeeper/zookeeper.h>

#include "backend/kit/resolve.h"
#include "backend/zookeeper/config.h"
#include "backend/zookeeper/latch.h"
#include "backend/zookeeper/standing.h"
#include "base/table.h"

#define SESSIONS_MAX 8
#define SESSION_TEXT_MAX 256

struct member;
struct look;
struct exam;

/* The part of a session that waits for its socket. It has a descriptor of its own: the client library
 * closes its one whenever it likes. */
struct watch_socket {
    uv_poll_t poll;
    int fd;
};

struct session {
    struct zookeeper *store;
    struct session *next;
    int64_t asked_ms; /* the timeout that was asked for */

    zhandle_t *handle; /* NULL: not begun, or to be begun again by the timer */
    struct watch_socket *socket;
    ino_t socket_inode;
    int socket_mask;
    bool connected;
    bool established; /* the handle has had its session */
    bool over;        /* the handle is of no use any more; it is closed outside of its callbacks */
    bool refused;     /* and not to be begun again at once */
    bool in_client;   /* its callbacks may be running */
    int64_t id;       /* of the session */
    int64_t tried_at; /* when the last connection was begun */
    int failures;     /* since it was connected last */
    int code;
    char why[SESSION_TEXT_MAX];

    struct resolve_question *question[ZOOKEEPER_HOSTS_MAX];
    struct asked {
        struct session *session;
        size_t n;
    } asked[ZOOKEEPER_HOSTS_MAX];
    size_t questions, addresses_length;
    char addresses[4096]; /* what the names came to */

    uv_timer_t timer, beat, guard;
    struct standing standing;
    int64_t beat_sent, touch_sent; /* 0: none is under way */
    zoo_op_t beat_op;
    zoo_op_result_t beat_result;

    struct member *members;
    size_t members_count;
    struct member *unguarded;
    struct simba_request *stalled, **stalled_last; /* until the next write is acknowledged */
};

struct zookeeper {
    struct simba_host *host;
    struct zookeeper_config config;
    char base[PATH_BASE_MAX]; /* chroot + "/simba" */
    struct offload *resolver;
    struct session *sessions;
    struct exam *exams;
    size_t sessions_count;
    unsigned handles; /* of the loop's, that must be closed before we are */
    bool closing;
    bool no_containers;                      /* an old server */
    bool refused;                            /* somebody was, for want of a connection */
    unsigned char client[LATCH_CLIENT_SIZE]; /* in the names of our nodes */
    uint64_t nodes;                          /* how many were named */
    int64_t relied_until;  /* on nodes that vanished: until then their owners may act */
    struct table members;  /* by mutex */
    struct table observed; /* by mutex */
    bool observes_all;
    struct simba_request *waiting,
        **waiting_last; /* READ, LIST, EVICT until there is a connection */
    const struct ACL_vector *acl;
    struct ACL creator_read[2];
    struct ACL_vector creator_read_vector;
};

extern const struct simba_backend zookeeper_backend;

/* ---- zookeeper.c ------------------------------------------------------------------------------ */

void zk_store_answer(struct zookeeper *z, struct simba_request *q,
                     const struct simba_answer *answer);
void zk_store_refuse(struct zookeeper *z, struct simba_request *q, int code, const char *why);
void zk_store_fail_waiting(struct zookeeper *z, int code, const char *why);
void zk_store_connected(struct session *s);
void zk_store_handle_closed(struct zookeeper *z);
void zk_store_mutex_path(const struct zookeeper *z, const char *mutex, char out[PATH_SIZE]);
bool zk_store_observes(const struct zookeeper *z, const char *mutex);

/* What an error of the client library means. */
int zk_store_code(int rc, const char **text);
enum latch_reply zk_store_reply(int rc);

/* ---- session.c -------------------------------------------------------------------------------- */

struct session *zk_session_for(struct zookeeper *z, int64_t lease_ms); /* NULL: out of memory */
struct session *zk_session_any(struct zookeeper *z); /* a connected one if there is */
bool zk_session_is_hopeful(const struct session *s); /* not connected, but it may be soon */
void zk_session_close(struct session *s);
void zk_session_wrote(struct session *s, int64_t sent); /* a write of ours is acknowledged */
void zk_session_keep(struct session *s);                /* it has members: see to its writes */
bool zk_session_is_fresh(const struct session *s, int64_t now);
void zk_session_write_now(struct session *s);
void zk_session_guard_soon(struct session *s);                 /* it has members in `unguarded` */
int64_t zk_session_left(const struct session *s, int64_t now); /* of what we may rely on */
int64_t zk_session_timeout_ms(const struct session *s);
void zk_session_connected(struct session *s);
void zk_session_on_node(zhandle_t *handle, int type, int state, const char *path, void *session);

/* ---- wire.c ----------------------------------------------------------------------------------- */

void zk_wire_begin(struct session *s); /* connects; names are resolved anew */
void zk_wire_close(struct session *s); /* outside of the library's callbacks */
void zk_wire_pump(struct session *s);  /* after something was sent */
void zk_wire_later(uv_timer_t *timer, uv_timer_cb run, int64_t ms);

/* ---- member.c --------------------------------------------------------------------------------- */

void zk_member_submit(struct zookeeper *z, struct simba_request *q);
void zk_member_connected(struct session *s);
void zk_member_disconnected(struct session *s);
void zk_member_unreachable(struct session *s); /* no hope for now: what waits is answered */
void zk_member_expired(struct session *s);     /* the session is gone, and all its nodes */
void zk_member_written(struct session *s, int rc);
void zk_member_scan(struct session *s, int64_t now);
void zk_member_guard(struct session *s);
void zk_member_event(struct session *s, int type, const char *path, const char *mutex,
                     const char *node); /* node "": the mutex itself */
void zk_member_close(struct session *s);

/* ---- look.c ----------------------------------------------------------------------------------- */

void zk_look_submit(struct session *s, struct simba_request *q); /* READ, LEAVE, LIST, EVICT */
void zk_look_event(struct session *s, int type, const char *mutex);
void zk_look_root_event(struct session *s);
bool zk_look_parse_mark(const char *data, int length, int64_t *czxid);

/* ---- examine.c -------------------------------------------------------------------------------- */

void zk_examine_store(void *store, struct simba_request *q);
void zk_examine_close(struct zookeeper *z); /* after the sessions */
#endif
