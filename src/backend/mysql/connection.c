/* connection.c: a new connection, made on a thread where it may block, and what went wrong with one. */
#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/mysql/mysql.h"

/* Not in the headers of the client library: failures of MySQL and MariaDB servers. */
enum {
    READ_ONLY_OPTION = 1290,
    READ_ONLY_MODE = 1836,
    CONNECTION_KILLED = 1927,
    TOO_SLOW = 1969,
    READ_ONLY_TRANSACTION = 1792,
    ACCESS_REFUSED = 1698,
    PASSWORD_EXPIRED = 1820,
};

static unsigned seconds(int64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

/* ---- failures ------------------------------------------------------------------------------ */

enum sql_end mysql_connection_explain(MYSQL *mysql, int *code, char *why)
{
    unsigned error = mysql_errno(mysql);
    enum sql_end end = SQL_FAILED;
    const char *help = "";
    *code = SIMBA_ESTORE;
    switch (error) {
    case ER_LOCK_WAIT_TIMEOUT:
        end = SQL_LOCKED;
        break;
    case ER_LOCK_DEADLOCK:
    case ER_CHECKREAD:
        end = SQL_RETRY;
        break;
    case ER_SUBQUERY_NO_1_ROW: /* STILL_OLD in statements.c */
        end = SQL_BROKEN;
        help = ": the table has got a column for tokens, and is looked at anew";
        break;
    case ER_NO_SUCH_TABLE:
    case ER_BAD_FIELD_ERROR:
    case ER_BAD_DB_ERROR:
        *code = SIMBA_ESCHEMA;
        end = SQL_BROKEN; /* the next connection looks at the table anew */
        break;
    case ER_DATA_TOO_LONG:
    case ER_WARN_DATA_OUT_OF_RANGE:
    case ER_TRUNCATED_WRONG_VALUE_FOR_FIELD:
        *code = SIMBA_ESCHEMA;
        help = "; the table is too narrow, upgrade it (docs/backends/mysql.md)";
        break;
    case ER_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ACCESS_REFUSED:
    case PASSWORD_EXPIRED:
        *code = SIMBA_EDENIED;
        help = "; check user, password and the grants for this host";
        break;
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
        *code = SIMBA_EDENIED;
        help = "; grant SELECT, INSERT and UPDATE on simba_mutex";
        break;
    case READ_ONLY_OPTION:
    case READ_ONLY_MODE:
    case READ_ONLY_TRANSACTION:
        end = SQL_BROKEN; /* perhaps another server has its address by now */
        help = "; this server cannot be written to, use the primary";
        break;
    case ER_CON_COUNT_ERROR:
    case ER_USER_LIMIT_REACHED:
    case ER_TOO_MANY_USER_CONNECTIONS:
        help = "; raise the server's limit of connections, or use fewer";
        break;
    case ER_SERVER_SHUTDOWN:
    case CONNECTION_KILLED:
        end = SQL_BROKEN;
        break;
    case TOO_SLOW:
        break;
    default:
        if (error >= CR_MIN_ERROR && error <= CR_MAX_ERROR)
            end = SQL_BROKEN;
        break;
    }
    snprintf(why, SQL_WHY_MAX, "%.380s (%u)%s", mysql_error(mysql), error, help);
    return end;
}

/* ---- a session ----------------------------------------------------------------------------- */

static bool run(struct mysql_connection *l, const char *statement)
{
    return mysql_query(&l->mysql, statement) == 0;
}

static bool set_session(struct mysql_connection *l, const struct mysql_config *c)
{
    char line[128];
    if (!run(
            l,
            "SET SESSION autocommit=1,time_zone='+00:00',sql_mode='STRICT_ALL_TABLES',"
            "innodb_lock_wait_timeout=1,lock_wait_timeout=1,@g=0")) /* @g: see statements.c; it must be there */
        return false;
    /* Without gaps that others wait for, unless the binary log forbids it. */
    if (!run(l, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        return false;
    if (!mariadb_connection(&l->mysql))
        return true;
    snprintf(line, sizeof line, "SET SESSION max_statement_time=%u",
             seconds(c->command_timeout_ms) + 1);
    return run(l, line);
}

static bool prepare(struct mysql_connection *l)
{
    struct statement t = {.bytes = NULL};
    bool ok = true;
    for (int i = 0; i < OFTEN && ok; i++) {
        struct mysql_prepared *p = &l->often[i];
        sql_statement_reset(&t);
        if (!mysql_statements_often(&t, &l->dialect, (enum mysql_often)i, p->marks))
            continue;
        p->statement = mysql_stmt_init(&l->mysql);
        ok = p->statement != NULL &&
             mysql_stmt_prepare(p->statement, t.bytes, (unsigned long)t.length) == 0;
    }
    sql_statement_free(&t);
    return ok;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void set_options(MYSQL *m, const struct mysql_config *c)
{
    unsigned connect = seconds(c->connect_timeout_ms), command = seconds(c->command_timeout_ms);
    unsigned protocol = c->socket != NULL ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    unsigned off = 0;
    my_bool yes = 1, verify = c->tls_verify;
    mysql_options(m, MYSQL_OPT_NONBLOCK, 0);
    mysql_options(m, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(m, MYSQL_OPT_READ_TIMEOUT, &command);
    mysql_options(m, MYSQL_OPT_WRITE_TIMEOUT, &command);
    mysql_options(m, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(m, MYSQL_OPT_LOCAL_INFILE, &off);
    mysql_options(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!c->tls)
        return;
    mysql_options(m, MYSQL_OPT_SSL_ENFORCE, &yes);
    mysql_options(m, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    if (c->tls_ca != NULL)
        mysql_options(m, MYSQL_OPT_SSL_CA, c->tls_ca);
    if (c->tls_cert != NULL)
        mysql_options(m, MYSQL_OPT_SSL_CERT, c->tls_cert);
    if (c->tls_key != NULL)
        mysql_options(m, MYSQL_OPT_SSL_KEY, c->tls_key);
}

void *mysql_connection_open(const void *config, int *code, char *why)
{
    const struct mysql_config *c = config;
    struct mysql_connection *l = calloc(1, sizeof *l);
    if (l == NULL || mysql_init(&l->mysql) == NULL) {
        free(l);
        *code = SIMBA_ELIMIT;
        snprintf(why, SQL_WHY_MAX, "out of memory");
        return NULL;
    }
    set_options(&l->mysql, c);
    int rc = -1; /* as the client library says */
    if (mysql_real_connect(&l->mysql, c->host, c->user, c->password, c->database, (unsigned)c->port,
                           c->socket, CLIENT_FOUND_ROWS) != NULL &&
        set_session(l, c))
        rc = mysql_inspect_server(l, c);
    if (rc == 0)
        rc = mysql_inspect_table(l, c, why);
    if (rc == 0) {
        l->dialect.returning = c->returning && mariadb_connection(&l->mysql) &&
                               mysql_get_server_version(&l->mysql) >= 100500;
        bool may_write = l->inspection.missing[0] == '\0' && !l->inspection.read_only;
        if (!may_write || prepare(l))
            return l;
        rc = -1;
    }
    if (rc == -1)
        mysql_connection_explain(&l->mysql, code, why);
    else
        *code = rc;
    mysql_connection_close(l);
    return NULL;
}

/* A call that waits is ended first: on a socket that is shut it does not wait any longer. */
void mysql_connection_close(void *connection)
{
    struct mysql_connection *l = connection;
    int error;
    if (l->waiting != 0)
        shutdown(mysql_get_socket(&l->mysql), SHUT_RDWR);
    while (l->waiting != 0)
        l->waiting = mysql_perform_resume(l, l->waiting, &error);
    if (l->result != NULL)
        mysql_free_result(l->result);
    mysql_close(&l->mysql);
    for (int i = 0; i < OFTEN; i++) { /* after that they have nobody to say good-bye to */
        if (l->often[i].statement != NULL)
            mysql_stmt_close(l->often[i].statement);
    }
    free(l);
}
