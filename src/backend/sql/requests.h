/* requests.h: requests become jobs: one statement for many mutexes, in the order of their names. */
#ifndef BACKEND_SQL_REQUESTS_H
#define BACKEND_SQL_REQUESTS_H

#include "backend/sql/sql.h"

void sql_requests_to_jobs(struct sql *s); /* all that wait */
void sql_requests_remember_locked(struct sql *s, const char *mutex);

struct sql_job *sql_job_new(int op, size_t count);   /* NULL: out of memory */
struct sql_job *sql_job_named(int op, size_t count); /* with room for names of its own: */
void sql_job_name(struct sql_job *job, size_t at, const char *mutex);
void sql_job_free(struct sql_job *job); /* NULL: nothing */
void sql_job_append(struct sql *s, struct sql_job *job);
void sql_job_put_first(struct sql *s, struct sql_job *job);
struct sql_job *sql_job_take(struct sql *s);            /* the first; NULL: there is none */
void sql_job_forget(struct sql_job *job);               /* what it was told */
bool sql_job_split(struct sql *s, struct sql_job *job); /* false: it cannot be */
void sql_job_ring(struct sql *s, const struct sql_job *evict);
void sql_job_mark(struct sql *s, const struct sql_job *job); /* what is waited for */
#endif
