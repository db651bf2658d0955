/* postgres.h: the store in a PostgreSQL server. See docs/guides/postgres.md.
 *
 *   postgres.c     the way into the frame of backend/sql
 *   config.c       what the URL says
 *   connection.c   a new connection, on a thread: the session; and its failures
 *   inspect.c      what its server and table are like; makes the table, or a better one of it
 *   perform.c      a job as a statement, without blocking; what is told unasked
 *   statements.c   which statement a job is; statements.sql has what is sent */
#ifndef BACKEND_POSTGRES_H
#define BACKEND_POSTGRES_H

#include <libpq-fe.h>

#include "backend/postgres/statement_names.h"
#include "backend/sql/sql.h"

#define POSTGRES_PARAMETERS 40
#define POSTGRES_LONG_LOCK_WAIT "SET lock_timeout=1000"
#define POSTGRES_SHORT_LOCK_WAIT "SET lock_timeout=20"

enum postgres_listen { LISTEN_AUTO, LISTEN_ON, LISTEN_OFF };

struct postgres_config {
    /* As libpq takes them, NULL at the end. */
    char *keyword[POSTGRES_PARAMETERS + 1], *value[POSTGRES_PARAMETERS + 1];
    size_t count;
    enum sql_create create;
    enum postgres_listen listen;
    int64_t command_timeout_ms;
};

/* What the table can do, which changes the statements. */
struct postgres_table {
    bool fences; /* there is a fencing_token; else the version is the token */
    bool marks;  /* the version can be above the token: somebody waits */
    char notes[INSPECTION_NAME_MAX + 16]; /* the table of notes, with its schema: that of mutexes */
};

struct postgres_connection {
    PGconn *conn;
    struct postgres_table table;
    struct sql_inspection inspection;
    bool pooled;   /* others may use the server's process between our statements */
    bool notifies; /* LISTEN can work */
    bool syncs;    /* synchronous_commit is not off, or we switch it on */
    int notes;     /* in inspection, about the server */
    /* What is said again is worth being prepared; not behind a pooler. */
    enum { STATEMENT_NEW, STATEMENT_SAID, STATEMENT_PREPARED } known[STATEMENTS];
    bool preparing;
    int parameters;                           /* of the statement under way */
    bool short_lock_wait, changing_lock_wait; /* lock_timeout is short; is being changed */
    enum sql_end end;
    struct statement statement[STATEMENTS];
};

extern const struct simba_backend postgres_backend;

/* config.c: as in kit/options.h */
extern const char *const postgres_config_options[];
int postgres_config_read(const struct options *o, const struct simba_host *host, void *config);
void postgres_config_free(void *config);

/* connection.c */
bool postgres_connection_open(const void *config, struct sql_session *out, int *code, char *why);
void postgres_connection_close(void *handle);
enum sql_end postgres_connection_explain(const char *state, int *code, const char **help);

struct postgres_connecting {
    struct postgres_connection *connection;
    const struct postgres_config *config;
    int *code;
    char *why;
    enum sql_end end; /* of the last statement that failed */
    bool made_table;
};
PGresult *postgres_connection_run(struct postgres_connecting *d,
                                  const char *statement); /* NULL: see code, why */

/* inspect.c: false: see code, why */
bool postgres_inspect_server(struct postgres_connecting *d);
bool postgres_inspect_table(struct postgres_connecting *d);
bool postgres_inspect_notes(struct postgres_connecting *d); /* after the statements are made */

/* perform.c */
int postgres_perform_begin(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end);
int postgres_perform_go_on(struct sql *s, void *handle, struct sql_job *job, int events,
                           enum sql_end *end);
bool postgres_perform_idle(struct sql *s, void *handle);

/* statements.c */
bool postgres_statements_make(struct postgres_connection *pg); /* false: out of memory */
enum statement_name postgres_statements_of_job(const struct sql_job *job);
const struct sql_text *postgres_statements_text(const struct postgres_connection *pg,
                                                enum statement_name which);
#endif
