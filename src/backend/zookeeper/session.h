/* session.h: a session with the ensemble, as this store keeps it on the loop. What it means for
 * those who contend is latch_session.c's. */
#ifndef BACKEND_ZOOKEEPER_SESSION_H
#define BACKEND_ZOOKEEPER_SESSION_H

#include <sys/types.h>
#include <uv.h>

#include "backend/kit/reconnect.h"
#include "backend/zookeeper/zookeeper.h"

#define SESSION_TEXT_MAX 256

/* The part of a session that waits for its socket. It has a descriptor of its own: the client
 * library closes its one whenever it likes. */
struct watch_socket {
    uv_poll_t poll;
    int fd;
};

struct session {
    struct latch_session latch; /* first: one is the other */
    struct zookeeper *store;

    zhandle_t *handle; /* NULL: not begun, or to be begun again by the timer */
    struct watch_socket *socket;
    ino_t socket_inode;
    int socket_mask;
    bool over;        /* the handle is of no use any more; it is closed outside of its callbacks */
    bool in_client;   /* its callbacks may be running */
    int64_t tried_at; /* when the last connection was begun */
    bool is_silent;   /* what was connected to last has not greeted in time */
    int failures;     /* of the library's attempts, since it was connected last */
    struct reconnect reconnect; /* when to begin with another handle */
    char why[SESSION_TEXT_MAX];

    int64_t try_at; /* simba_now(): when to connect next, if all servers have failed */

    /* Its time is over by our own clock, and it is still not taken up again. */
    struct {
        struct four_letter *question; /* whether a server serves; NULL: none */
        size_t host;                  /* that is asked next */
        int64_t ask_at;               /* simba_now(): not before that */
        bool has_served, is_hidden;   /* a server said so, or did not say that it does not, */
        int failures;                 /* when there had been so many failures */
    } outlived;

    struct asked_name {
        struct session *session;
        struct resolve_question *question; /* NULL: it has an answer */
    } asked[ZOOKEEPER_HOSTS_MAX];
    size_t questions, addresses_length;
    char addresses[4096]; /* what the names came to */

    uv_timer_t timer, heartbeat, watch_own;
    zoo_op_t write_op;
    zoo_op_result_t write_result;
};

struct session *zk_session_for(struct zookeeper *z, int64_t lease_ms); /* NULL: out of memory */
struct session *zk_session_any(struct zookeeper *z); /* a connected one if there is */
struct session *zk_session_next(const struct session *s);
void zk_session_close(struct session *s);

/* Servers that know fewer transactions than we have seen never take up the session again: their
 * data were deleted, or an older backup was put back. So one whose time is over is given up, if its
 * servers serve others, or hide whether they do. Check: after each attempt, outside of the library's
 * callbacks. */
void zk_session_check_outlived(struct session *s);

/* Servers that close each connection at once, as those without a majority do, are not asked as fast
 * as the client library would. Rest: how long to wait before the next attempt. */
int64_t zk_session_rest_ms(const struct session *s, int64_t now);
void zk_session_failed_once(struct session *s); /* an attempt to connect */

/* What its connection has come to. */
void zk_session_connected(struct session *s);
void zk_session_lost(struct session *s, int state); /* as the client library calls it */

/* For latch_io. */
void zk_session_heartbeat_in(struct latch_session *s, int64_t ms);
void zk_session_watch_own_in(struct latch_session *s, int64_t ms);
#endif
