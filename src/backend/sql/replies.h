/* replies.h: what the end of a statement means: answers, another statement, a look. */
#ifndef BACKEND_SQL_REPLIES_H
#define BACKEND_SQL_REPLIES_H

#include "backend/sql/sql.h"

/* The statement of s->job has ended. True: the connection can be used on. */
bool sql_replies_ended(struct sql *s, enum sql_end end);
void sql_replies_refuse_all(struct sql *s, int code,
                            const char *why); /* that waits, in jobs or not */
void sql_replies_refuse(struct sql *s, struct simba_request *q, int code, const char *why,
                        bool more);
#endif
