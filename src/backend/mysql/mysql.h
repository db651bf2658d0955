/* mysql.h: the store in a MariaDB or MySQL server. See docs/guides/mysql.md.
 *
 *   mysql.c        the way into the frame of backend/sql
 *   config.c       what the URL says
 *   connection.c   a new connection, on a thread: the session; and its failures
 *   inspect.c      what its server and table are like; makes the table, or a better one of it
 *   perform.c      a job as statements, without blocking
 *   statements.c   a job as the text of a statement; statements.sql has what is sent */
#ifndef BACKEND_MYSQL_H
#define BACKEND_MYSQL_H

#include <mysql.h>

#include "backend/sql/sql.h"

#define MYSQL_PORT_DEFAULT 3306

struct mysql_config {
    char *host, *user, *password, *database, *socket; /* NULL: not given */
    char *tls_ca, *tls_cert, *tls_key;
    int port;
    bool tls, tls_verify;
    enum sql_create create;
    bool returning; /* use INSERT ... RETURNING where the server has it */
    int64_t connect_timeout_ms, command_timeout_ms;
};

/* What the server and its table can do, which changes the statements. */
struct mysql_table {
    bool fences;    /* there is a fencing_token; else the version is the token */
    bool returning; /* INSERT ... ON DUPLICATE KEY UPDATE ... RETURNING */
    bool timed;     /* statements have a time limit, which SET STATEMENT lifts */
};

#define MYSQL_PARAMETERS_MAX 16

/* What is done most often, one mutex at a time, is prepared. */
enum mysql_often { OFTEN_TAKE, OFTEN_READ, OFTEN_RENEW, OFTEN_RELEASE, OFTEN_PASS, OFTEN };

struct mysql_prepared {
    MYSQL_STMT *statement;                           /* NULL: there is none */
    enum sql_value parameters[MYSQL_PARAMETERS_MAX]; /* SQL_VALUE_NONE behind the last */
};

enum mysql_step { STEP_QUERY, STEP_RESULT, STEP_EXECUTE, STEP_STORE };

struct mysql_connection {
    MYSQL mysql;
    struct mysql_table table;
    enum mysql_step step;
    int stage;   /* enum mysql_stage of perform.c */
    int waiting; /* what a call that is under way waits for; 0: none is */
    MYSQL_RES *result;
    struct mysql_prepared often[OFTEN];
    MYSQL_STMT *statement; /* under way */
    bool reads_first;      /* the last acquisition has met another's mutex, or there was none */
    bool has_read;         /* the one under way */
    uint64_t token, token_before, ttl_ms, lease_ms;
    char evicted[SIMBA_ID_MAX + 1];
    struct sql_inspection inspection;
    int notes;            /* of these, about the server */
    size_t grants_length; /* of its grants, without that for notes */
};

extern const struct simba_backend mysql_backend;

/* config.c: as in kit/options.h */
int mysql_config_read(const struct options *o, const struct simba_host *host, void *config);
void mysql_config_free(void *config);

/* connection.c */
bool mysql_connection_open(const void *config, struct sql_session *out, int *code, char *why);
void mysql_connection_close(void *handle);
enum sql_end mysql_connection_explain(MYSQL *mysql, int *code, char *why); /* the last failure */

/* inspect.c: 0, a code of ours with why, or -1: as the client library says */
int mysql_inspect_server(struct mysql_connection *my, const struct mysql_config *c);
int mysql_inspect_table(struct mysql_connection *my, const struct mysql_config *c, char *why);

/* perform.c */
int mysql_perform_begin(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end);
int mysql_perform_go_on(struct sql *s, void *handle, struct sql_job *job, int events,
                        enum sql_end *end);
int mysql_perform_resume(struct mysql_connection *my, int events,
                         int *error); /* the call that waits */

/* statements.c */
void mysql_statements_for(struct statement *t, const struct mysql_table *table,
                          const struct sql_job *job);
/* For p to be prepared, and its parameters. False: this one is not prepared. */
bool mysql_statements_often(struct statement *t, const struct mysql_table *table,
                            enum mysql_often which, struct mysql_prepared *p);
/* Of an acquisition: the row; or one that is taken by being made. */
void mysql_statements_read(struct statement *t, const struct mysql_table *table,
                           const struct sql_job *job);
void mysql_statements_make(struct statement *t, const struct mysql_table *table,
                           const struct sql_job *job);
#endif
