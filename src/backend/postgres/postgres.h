/* postgres.h: the store in a PostgreSQL server. See docs/guides/postgres.md.
 *
 *   postgres.c     the way into the frame of backend/sql
 *   config.c       what the URL says
 *   connection.c   a new connection, on a thread: the session; and its failures
 *   inspect.c      what its server and table are like; makes the table, or a better one of it
 *   perform.c      a job as a statement, without blocking; what is told unasked
 *   statements.c   the statements */
#ifndef BACKEND_POSTGRES_H
#define BACKEND_POSTGRES_H

#include <libpq-fe.h>

#include "backend/sql/sql.h"

#define POSTGRES_PARAMETERS 40
#define POSTGRES_CHANNEL "simba"
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

#define STATEMENTS 21
#define POSTGRES_FREE 200 /* beyond enum sql_op: evict by force */

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

/* statements.c. The parameters of a statement are said by letters, in their order: m the mutex,
 * i the id, e that of an evicted one, c what is shown of one that is too long, k the token, l
 * ttl, a lease, s the serial and x the text of a note, o SQL_OBSERVED_MS; of a pass, f the id and t the token of the owner before. */
#define POSTGRES_FIELDS_MAX 6
struct postgres_form {
    const char *name; /* when it is prepared; NULL: it never is */
    const char *fields;
    const char *form; /* see statements.c */
    int op;
    bool many; /* each is an array, with a value for each mutex */
};
extern const struct postgres_form postgres_statements[STATEMENTS];
bool postgres_statements_make(struct postgres_connection *l); /* false: out of memory */
int postgres_statements_of_job(const struct sql_job *job);    /* which of them */
#endif
