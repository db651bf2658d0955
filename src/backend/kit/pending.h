/* pending.h: requests that wait, for a connection or for the store to go on, in the order in which
 * they came. */
#ifndef BACKEND_KIT_PENDING_H
#define BACKEND_KIT_PENDING_H

#include <simba/backend.h>

struct pending {
    struct simba_request *first, **last;
};

void pending_init(struct pending *p);
void pending_add(struct pending *p, struct simba_request *list);      /* all of the list */
struct simba_request *pending_take(struct pending *p);                /* all, as a list */
void pending_put_back(struct pending *p, struct simba_request *list); /* before all others */

/* Answers with a failure: what waits; a list; one request. */
void pending_fail(struct pending *p, struct simba_host *host, int code, const char *why);
void pending_refuse_list(struct simba_host *host, struct simba_request *list, int code,
                         const char *why);
void pending_refuse(struct simba_host *host, struct simba_request *q, int code, const char *why);
#endif
