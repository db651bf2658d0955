/* connection.h: a session's connection. */
#ifndef BACKEND_ZOOKEEPER_CONNECTION_H
#define BACKEND_ZOOKEEPER_CONNECTION_H

#include "backend/zookeeper/session.h"

void zk_connection_begin(struct session *s); /* connects; names are resolved anew */
void zk_connection_close(struct session *s); /* outside of the library's callbacks */
void zk_connection_pump(struct session *s);  /* after something was sent */
#endif
