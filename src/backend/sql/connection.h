/* connection.h: one connection, kept up: connecting, statements one after another, their timeouts, its
 * loss. */
#ifndef BACKEND_SQL_CONNECTION_H
#define BACKEND_SQL_CONNECTION_H

#include "backend/sql/sql.h"

/* Unless there is a connection, or an attempt or a pause before one. */
void sql_connection_begin(struct sql *s);
/* Runs jobs until one has to wait for the server, or there is none. */
void sql_connection_pump(struct sql *s);
void sql_connection_close(struct sql *s); /* if there is one */
enum simba_lend sql_work(void *store, bool here);
#endif
