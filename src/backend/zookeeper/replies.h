/* replies.h: what the client library brings back. */
#ifndef BACKEND_ZOOKEEPER_REPLIES_H
#define BACKEND_ZOOKEEPER_REPLIES_H

#include "backend/zookeeper/session.h"

/* What a code of the client library means. */
struct latch_result zk_replies_read(int rc);

/* Completions; data: the flight. */
void zk_replies_on_path(int rc, const char *name, const void *data);
void zk_replies_on_created(int rc, const char *path, const struct Stat *stat, const void *data);
void zk_replies_on_names(int rc, const struct String_vector *names, const void *data);
void zk_replies_on_stat(int rc, const struct Stat *stat, const void *data);
void zk_replies_on_data(int rc, const char *value, int length, const struct Stat *stat,
                        const void *data);
void zk_replies_on_deleted(int rc, const void *data);
void zk_replies_on_nothing(int rc, const char *value, const void *data); /* nobody waits for it */

/* data: the session. */
void zk_replies_on_written(int rc, const void *data);
void zk_replies_on_touched(int rc, const struct Stat *stat, const void *data);

/* A watch; which node is in its path, so that it outlives whoever asked for it. */
void zk_replies_on_node(zhandle_t *handle, int type, int state, const char *path, void *session);
#endif
