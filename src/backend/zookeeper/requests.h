/* requests.h: what members ask of the server, as calls of the client library. For latch_io. */
#ifndef BACKEND_ZOOKEEPER_REQUESTS_H
#define BACKEND_ZOOKEEPER_REQUESTS_H

#include "backend/zookeeper/session.h"

bool zk_requests_send(struct latch_flight *f, const char *node, bool watch);
bool zk_requests_write(struct latch_session *s);
bool zk_requests_touch(struct latch_session *s);

void zk_requests_mutex_path(const struct zookeeper *z, const char *mutex, char out[PATH_SIZE]);
void zk_requests_node_path(const char *mutex_path, const char *node, char out[PATH_SIZE]);
#endif
