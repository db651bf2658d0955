/* query.h: who leads a mutex, for those who ask without being in its queue. */
#ifndef BACKEND_ZOOKEEPER_QUERY_H
#define BACKEND_ZOOKEEPER_QUERY_H

#include "backend/zookeeper/session.h"

void zk_query_submit(struct session *s, struct simba_request *q); /* READ, LEAVE, LIST, EVICT */

/* A watch has fired: on this mutex or one of its nodes; on our root. */
void zk_query_event(struct session *s, const char *mutex);
void zk_query_root_event(struct session *s);
#endif
