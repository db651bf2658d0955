/* list.h: LIST, which takes several exchanges. */
#ifndef BACKEND_REDIS_LIST_H
#define BACKEND_REDIS_LIST_H

#include <simba/backend.h>

struct redis;

void list_begin(struct redis *s, struct simba_request *q);
#endif
