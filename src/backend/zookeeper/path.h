/* path.h: names of mutexes as names of nodes. Pure.
 *
 * A name that ZooKeeper takes is its own node's name, as the JVM's is. What ZooKeeper refuses
 * ('/', control characters, those beyond the basic plane, "." and "..") is written as %XX, byte
 * by byte; so is a '%' that two hexadecimal digits follow. No two names share a node. */
#ifndef BACKEND_ZOOKEEPER_PATH_H
#define BACKEND_ZOOKEEPER_PATH_H

#include <simba.h>
#include <stdbool.h>

#define PATH_NODE_SIZE (3 * SIMBA_MUTEX_MAX + 1)
#define PATH_BASE_MAX 256
#define PATH_SIZE (PATH_BASE_MAX + PATH_NODE_SIZE + 160) /* of any path here */

void zk_path_encode(char out[PATH_NODE_SIZE], const char *mutex); /* valid UTF-8, as all mutexes */
bool zk_path_decode(char out[SIMBA_MUTEX_MAX + 1], const char *node); /* false: none of ours */

/* The id of whoever made a node, from its data: what is no UTF-8 becomes '?', what is too long
 * is cut and ends with an ellipsis, and nothing at all is shown as '?'. */
void zk_path_show_id(char out[SIMBA_ID_MAX + 1], const char *data, int length);
#endif
