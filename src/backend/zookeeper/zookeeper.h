/* zookeeper.h: the store in a ZooKeeper ensemble. See docs/guides/zookeeper.md for what is in the
 * tree there.
 *
 *   zookeeper.c   open, submit, close: which request goes where
 *   config.c      what the URL says
 *   session.c     a session with the ensemble; one per length of lease that contenders ask for
 *   connection.c  its connection: names, the socket, the client library on the loop
 *   requests.c    what members ask of the server, as calls of the client library
 *   replies.c     what comes back
 *   query.c       who leads: READ, LIST, EVICT
 *   inspect.c     what an operator should know; four_letter.c asks the servers for it
 * and pure, so that the simulator runs them:
 *   latch*.c             queues of nodes: see latch_client.h
 *   session_deadline.c   until when a session surely stands
 *   path.c               names
 *
 * All on the loop's thread, with the C client that has no threads (libzookeeper_st). */
#ifndef BACKEND_ZOOKEEPER_H
#define BACKEND_ZOOKEEPER_H

#include <simba/backend.h>
#include <zookeeper/zookeeper.h>

#include "backend/kit/handles.h"
#include "backend/kit/resolve.h"
#include "backend/zookeeper/config.h"
#include "backend/zookeeper/latch_client.h"

#define SESSIONS_MAX 8

struct zookeeper {
    struct latch_client latch; /* first: one is the other */
    struct simba_host *host;
    struct zookeeper_config config;
    char base[PATH_BASE_MAX]; /* chroot + "/simba" */
    struct handles handles;
    struct offload *resolver;
    struct pending waiting; /* READ, LIST, EVICT until there is a connection */
    struct zookeeper_inspection *inspections;
    bool closing;
    bool no_containers;         /* an old server */
    int64_t clock_ms, clock_at; /* the server's clock, and when we heard it; 0: never */
    const struct ACL_vector *acl;
    struct ACL creator_read[2];
    struct ACL_vector creator_read_vector;
};

extern const struct simba_backend zookeeper_backend;
#endif
