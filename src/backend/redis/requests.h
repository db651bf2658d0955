/* requests.h: requests to commands. */
#ifndef BACKEND_REDIS_REQUESTS_H
#define BACKEND_REDIS_REQUESTS_H

#include <simba/backend.h>

#define GROUP_MAX 128 /* mutexes in one call */

struct redis;

/* While there is hope requests wait for the connection; else the last failure is the answer. */
void requests_submit(void *store, struct simba_request *batch);

/* The connection is there, or a reading is over: sends what waits for that. */
void requests_resume(void *store);

size_t requests_count(const struct simba_request *list);
int64_t requests_lease_ms(const struct simba_request *q);

/* For how long a free mutex is not granted with this lease: restart_guard in the manual. */
int64_t requests_restart_grace_ms(const struct redis *s, int64_t lease_ms, int64_t now);
bool requests_doubt_sentinels(const struct redis *s); /* they are the reason, not the server */
#endif
