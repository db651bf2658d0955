/* inspect.h: what an operator should know about the server: what it has said of itself, and whether
 * the user may do all that this store does, which is tried. Only when somebody asks, as what is
 * missing may not be needed for weeks. */
#ifndef BACKEND_REDIS_INSPECT_H
#define BACKEND_REDIS_INSPECT_H

#include <simba/backend.h>

struct redis_inspection {
    struct simba_request *asking; /* they wait for what is found */
    bool is_trying;               /* whether the subscriber may do its part */
    unsigned open;                /* tries that are not answered yet */
    char denied[256];             /* " +zadd +scan" */
};

struct redis;

void inspect_examine(void *store, struct simba_request *q);
void inspect_ready(struct redis *s); /* the connection is */
void inspect_down(struct redis *s);
void inspect_close(struct redis *s);
#endif
