/* inspect.h: what an operator should know about an ensemble, as it is right now. */
#ifndef BACKEND_ZOOKEEPER_INSPECT_H
#define BACKEND_ZOOKEEPER_INSPECT_H

#include "backend/zookeeper/zookeeper.h"

void zk_inspect_store(void *store, struct simba_request *q); /* simba_backend.examine */
void zk_inspect_close(struct zookeeper *z);                  /* after the sessions */
#endif
