/* connection.c: a new connection, made on a thread where it may block, and what went wrong with
 * one. */
#include <errmsg.h>
#include <fcntl.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/kit/probe.h"
#include "backend/mysql/mysql.h"
#include "base/errno_text.h"

static unsigned seconds(int64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

/* ---- failures ------------------------------------------------------------------------------ */

#define NO_LOGIN "; check user, password and the grants for this host"
#define NO_GRANT "; grant SELECT, INSERT and UPDATE on simba_mutex"
#define TOO_NARROW "; the table is too narrow, upgrade it (docs/guides/mysql.md)"
#define READ_ONLY "; this server cannot be written to, use the primary"
#define TOO_MANY "; raise the server's limit of connections, or use fewer"

/* Those with a number are not in the headers of the client library. What is not here fails. */
static const struct {
    unsigned error;
    enum sql_end end;
    int code;
    const char *help;
} failures[] = {
    {ER_LOCK_WAIT_TIMEOUT, SQL_LOCKED, SIMBA_ESTORE, ""},
    {ER_LOCK_DEADLOCK, SQL_RETRY, SIMBA_ESTORE, ""},
    {ER_CHECKREAD, SQL_RETRY, SIMBA_ESTORE, ""},
    {ER_SUBQUERY_NO_1_ROW, SQL_BROKEN, SIMBA_ESTORE, /* still_without_tokens in statements.sql */
     ": the table has a new column for tokens, trying again with it"},
    {ER_NO_SUCH_TABLE, SQL_BROKEN, SIMBA_ESCHEMA, ""}, /* the next connection looks at it anew */
    {ER_BAD_FIELD_ERROR, SQL_BROKEN, SIMBA_ESCHEMA, ""},
    {ER_BAD_DB_ERROR, SQL_BROKEN, SIMBA_ESCHEMA, ""},
    {ER_DATA_TOO_LONG, SQL_FAILED, SIMBA_ESCHEMA, TOO_NARROW},
    {ER_WARN_DATA_OUT_OF_RANGE, SQL_FAILED, SIMBA_ESCHEMA, TOO_NARROW},
    {ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, SQL_FAILED, SIMBA_ESCHEMA, TOO_NARROW},
    {ER_ACCESS_DENIED_ERROR, SQL_FAILED, SIMBA_EDENIED, NO_LOGIN},
    {ER_DBACCESS_DENIED_ERROR, SQL_FAILED, SIMBA_EDENIED, NO_LOGIN},
    {1698 /* ER_ACCESS_DENIED_NO_PASSWORD_ERROR */, SQL_FAILED, SIMBA_EDENIED, NO_LOGIN},
    {1820 /* ER_MUST_CHANGE_PASSWORD */, SQL_FAILED, SIMBA_EDENIED, NO_LOGIN},
    {ER_TABLEACCESS_DENIED_ERROR, SQL_FAILED, SIMBA_EDENIED, NO_GRANT},
    {ER_COLUMNACCESS_DENIED_ERROR, SQL_FAILED, SIMBA_EDENIED, NO_GRANT},
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, SQL_FAILED, SIMBA_EDENIED, NO_GRANT},
    /* perhaps another server has its address by now: */
    {1290 /* ER_OPTION_PREVENTS_STATEMENT */, SQL_BROKEN, SIMBA_ESTORE, READ_ONLY},
    {1836 /* ER_READ_ONLY_MODE */, SQL_BROKEN, SIMBA_ESTORE, READ_ONLY},
    {1792 /* ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION */, SQL_BROKEN, SIMBA_ESTORE, READ_ONLY},
    {ER_CON_COUNT_ERROR, SQL_FAILED, SIMBA_ESTATE, TOO_MANY},
    {ER_USER_LIMIT_REACHED, SQL_FAILED, SIMBA_ESTATE, TOO_MANY},
    {ER_TOO_MANY_USER_CONNECTIONS, SQL_FAILED, SIMBA_ESTATE, TOO_MANY},
    {ER_SERVER_SHUTDOWN, SQL_BROKEN, SIMBA_ESTORE, ""},
    {1927 /* ER_CONNECTION_KILLED */, SQL_BROKEN, SIMBA_ESTORE, ""},
};

enum sql_end mysql_connection_explain(MYSQL *mysql, int *code, char *why)
{
    unsigned error = mysql_errno(mysql);
    enum sql_end end = error >= CR_MIN_ERROR && error <= CR_MAX_ERROR ? SQL_BROKEN : SQL_FAILED;
    const char *help = "";
    *code = SIMBA_ESTORE;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].error == error) {
            end = failures[i].end;
            *code = failures[i].code;
            help = failures[i].help;
        }
    }
    snprintf(why, SQL_WHY_MAX, "%.380s (%u)%s", mysql_error(mysql), error, help);
    return end;
}

/* ---- a session ----------------------------------------------------------------------------- */

static bool run(struct mysql_connection *my, const char *statement)
{
    return mysql_query(&my->mysql, statement) == 0;
}

static bool set_session(struct mysql_connection *my, const struct mysql_config *c)
{
    char line[128];
    if (!run(
            my,
            "SET SESSION autocommit=1,time_zone='+00:00',sql_mode='STRICT_ALL_TABLES',"
            "innodb_lock_wait_timeout=1,lock_wait_timeout=1,@g=0")) /* @g: see statements.sql; it must be there */
        return false;
    /* Without gaps that others wait for, unless the binary log forbids it. */
    if (!run(my, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        return false;
    if (!mariadb_connection(&my->mysql))
        return true;
    snprintf(line, sizeof line, "SET SESSION max_statement_time=%u",
             seconds(c->command_timeout_ms) + 1);
    return run(my, line);
}

static bool prepare(struct mysql_connection *my)
{
    struct statement t = {.bytes = NULL};
    bool ok = true;
    for (int i = 0; i < OFTEN && ok; i++) {
        struct mysql_prepared *p = &my->often[i];
        sql_statement_reset(&t);
        if (!mysql_statements_often(&t, &my->table, (enum mysql_often)i, p))
            continue;
        p->statement = mysql_stmt_init(&my->mysql);
        ok = p->statement != NULL &&
             mysql_stmt_prepare(p->statement, t.bytes, (unsigned long)t.length) == 0;
    }
    sql_statement_free(&t);
    return ok;
}

/* ---- connecting ---------------------------------------------------------------------------- */

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

/* The client library connects without waiting, and then has the wrong errno. One that has not answered
 * in time is not asked again for that: it may have too much to do. */
static void explain_unreachable(const struct mysql_config *c, int64_t took_ms, int *code, char *why)
{
    char text[SQL_WHY_MAX];
    bool is_late = took_ms >= c->connect_timeout_ms;
    int error = is_late ? 0
                        : probe_explain(c->host, c->port, c->socket, (int)c->connect_timeout_ms,
                                        text, sizeof text);
    if (error == 0 || errno_is_late(error))
        *code = SIMBA_ETIMEOUT;
    if (error != 0)
        snprintf(why, SQL_WHY_MAX, "%s", text);
    else if (is_late)
        snprintf(why, SQL_WHY_MAX,
                 "cannot connect to %s:%d in %lld ms: it has not answered (busy, down, or behind a "
                 "firewall)",
                 c->host != NULL ? c->host : c->socket, c->port, (long long)c->connect_timeout_ms);
}

static void explain_connect(unsigned error, const struct mysql_config *c, int64_t took_ms,
                            int *code, char *why)
{
    if (error == CR_SERVER_LOST || error == CR_SERVER_GONE_ERROR)
        *code = SIMBA_ETIMEOUT;
    if (error == CR_CONNECTION_ERROR || error == CR_CONN_HOST_ERROR || error == CR_UNKNOWN_HOST)
        explain_unreachable(c, took_ms, code, why);
    else if (error == CR_SERVER_LOST && strstr(why, "initial communication packet") != NULL)
        snprintf(why, SQL_WHY_MAX,
                 "%s:%d accepts connections, but has not greeted in %lld ms: is it a MariaDB or "
                 "MySQL server?",
                 c->host != NULL ? c->host : c->socket, c->port, (long long)c->connect_timeout_ms);
    else if (error == CR_SSL_CONNECTION_ERROR && strstr(why, "does not support it") != NULL)
        snprintf(
            why, SQL_WHY_MAX,
            "the server speaks no TLS, which tls=on, or a host that is not this one, asks for: "
            "set it up there, or write tls=off");
}

/* The client library lets children of the process inherit the connection. */
static bool connect_to_server(struct mysql_connection *my, const struct mysql_config *c)
{
    if (mysql_real_connect(&my->mysql, c->host, c->user, c->password, c->database,
                           (unsigned)c->port, c->socket, CLIENT_FOUND_ROWS) == NULL)
        return false;
    fcntl((int)mysql_get_socket(&my->mysql), F_SETFD, FD_CLOEXEC);
    return true;
}

bool mysql_connection_open(const void *config, struct sql_session *out, int *code, char *why)
{
    const struct mysql_config *c = config;
    struct mysql_connection *my = calloc(1, sizeof *my);
    if (my == NULL || mysql_init(&my->mysql) == NULL) {
        free(my);
        *code = SIMBA_ELIMIT;
        snprintf(why, SQL_WHY_MAX, "out of memory");
        return false;
    }
    set_options(&my->mysql, c);
    int64_t began = simba_now();
    int rc = -1; /* as the client library says */
    if (connect_to_server(my, c) && set_session(my, c))
        rc = mysql_inspect_server(my, c);
    if (rc == 0)
        rc = mysql_inspect_table(my, c, why);
    if (rc == 0) {
        my->table.timed = mariadb_connection(&my->mysql);
        my->table.returning =
            c->returning && my->table.timed && mysql_get_server_version(&my->mysql) >= 100500;
        my->reads_first = true;
        bool may_write = my->inspection.missing[0] == '\0' && !my->inspection.read_only;
        rc = !may_write || prepare(my) ? 0 : -1;
    }
    if (rc == 0) {
        *out = (struct sql_session){.handle = my,
                                    .fd = (int)mysql_get_socket(&my->mysql),
                                    .one_by_one = !my->table.returning,
                                    .passes = true,
                                    .makes_tables = c->create != SQL_CREATE_NEVER,
                                    .inspection = &my->inspection};
        return true;
    }
    if (rc == -1) {
        mysql_connection_explain(&my->mysql, code, why);
        explain_connect(mysql_errno(&my->mysql), c, simba_now() - began, code, why);
    } else
        *code = rc;
    mysql_connection_close(my);
    return false;
}

/* A call that waits is ended first: on a socket that is shut it does not wait any longer. */
void mysql_connection_close(void *handle)
{
    struct mysql_connection *my = handle;
    int error;
    if (my->waiting != 0)
        shutdown(mysql_get_socket(&my->mysql), SHUT_RDWR);
    while (my->waiting != 0)
        my->waiting = mysql_perform_resume(my, my->waiting, &error);
    if (my->result != NULL)
        mysql_free_result(my->result);
    mysql_close(&my->mysql);
    for (int i = 0; i < OFTEN; i++) { /* after that they have nobody to say good-bye to */
        if (my->often[i].statement != NULL)
            mysql_stmt_close(my->often[i].statement);
    }
    free(my);
}
