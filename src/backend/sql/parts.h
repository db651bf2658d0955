/* parts.h: what the files of the frame know of each other. Everything here runs on the loop's thread. */
#ifndef BACKEND_SQL_PARTS_H
#define BACKEND_SQL_PARTS_H

#include "backend/sql/sql.h"

/* answers.c */
void sql_refuse(struct sql *s, struct simba_request *q, int code, const char *why, bool more);
void sql_refuse_list(struct sql *s, struct simba_request *list, int code, const char *why);
void sql_refuse_job(struct sql *s, struct sql_job *job, int code, const char *why);
void sql_refuse_all(struct sql *s, int code, const char *why); /* that waits, in jobs or not */
void sql_answer(struct sql *s, int op, const struct sql_item *item, bool more);

/* jobs.c: NULL: out of memory */
struct sql_job *sql_job_new(int op, size_t count);
struct sql_job *sql_job_named(int op, size_t count); /* with room for names of its own: */
void sql_job_name(struct sql_job *job, size_t at, const char *mutex);
void sql_job_free(struct sql_job *job); /* NULL: nothing */
void sql_job_append(struct sql *s, struct sql_job *job);
void sql_job_put_first(struct sql *s, struct sql_job *job);
void sql_jobs_make(struct sql *s);                      /* of all requests that wait */
void sql_job_forget(struct sql_job *job);               /* what it was told */
bool sql_job_split(struct sql *s, struct sql_job *job); /* false: it cannot be */
void sql_job_ring(struct sql *s, const struct sql_job *evict);
void sql_job_mark(struct sql *s, const struct sql_job *job); /* what is waited for */
void sql_remember_locked(struct sql *s, const char *mutex);

/* outcome.c: the statement of s->job has ended. True: the connection can be used on. */
bool sql_ended(struct sql *s, enum sql_end end);

/* link.c */
void sql_dial_now(
    struct sql *s); /* unless there is a connection, or an attempt or a rest before one */
void sql_on_dialed(void *data, void *link, int code, const char *why);
void sql_pump(struct sql *s); /* runs jobs until one has to wait for the server, or there is none */
void sql_hang_up(struct sql *s);
void sql_drop_handle(
    struct sql *s); /* one of the loop's is closed; with the last one the store is */

/* look.c */
void sql_look_in(struct sql *s, int64_t ms);
void sql_look_for(struct sql *s, const char *mutex); /* another has it, and we wait for it */

/* sql.c */
int64_t sql_jittered(struct sql *s, int64_t ms);
void sql_start_timer(uv_timer_t *t, uv_timer_cb call, int64_t ms);
#endif
