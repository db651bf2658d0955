/* connection.c: a new connection, made on a thread where it may block, and what went wrong with
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/postgres/postgres.h"

/* ---- failures ------------------------------------------------------------------------------ */

#define TOO_MANY "; raise max_connections, or use fewer"

struct postgres_failure {
    const char *state; /* an SQLSTATE, or its first two letters */
    enum sql_end end;
    int code;
    const char *help;
};

static const struct postgres_failure failures[] = {
    {"55P03", SQL_LOCKED, SIMBA_ESTORE, ""},
    {"40P01", SQL_RETRY, SIMBA_ESTORE, ""},
    {"40001", SQL_RETRY, SIMBA_ESTORE, ""},
    {"25006", SQL_BROKEN, SIMBA_ESTORE, "; this server cannot be written to, use the primary"},
    {"21000", SQL_BROKEN, SIMBA_ESTORE, /* and_still_without_tokens in statements.sql */
     ": the table has a new column for tokens, trying again with it"},
    {"0A000", SQL_BROKEN, SIMBA_ESTORE, /* a cached plan, of a table that was upgraded */
     ": the table has changed, trying again"},
    {"26000", SQL_BROKEN, SIMBA_ESTORE, "; behind a pooler, add listen=off to the URL"},
    {"42P01", SQL_BROKEN, SIMBA_ESCHEMA, ""}, /* the next connection looks at the table anew */
    {"42703", SQL_BROKEN, SIMBA_ESCHEMA, ""},
    {"3D", SQL_FAILED, SIMBA_ESCHEMA, "; create the database"},
    {"3F", SQL_FAILED, SIMBA_ESCHEMA, ""},
    {"42501", SQL_FAILED, SIMBA_EDENIED, "; grant SELECT, INSERT and UPDATE on simba_mutex"},
    {"28", SQL_FAILED, SIMBA_EDENIED, "; check user, password and pg_hba.conf"},
    {"22001", SQL_FAILED, SIMBA_ESCHEMA, "; the table is too narrow (docs/guides/postgres.md)"},
    {"22003", SQL_FAILED, SIMBA_ESCHEMA, "; the table is too narrow (docs/guides/postgres.md)"},
    {"53300", SQL_FAILED, SIMBA_ESTATE, TOO_MANY},
    {"57P03", SQL_BROKEN, SIMBA_ESTATE, ""},
    {"57P", SQL_BROKEN, SIMBA_ESTORE, ""},
    {"08", SQL_BROKEN, SIMBA_ESTORE, ""},
    {"", SQL_FAILED, SIMBA_ESTORE, ""},
};

enum sql_end postgres_connection_explain(const char *state, int *code, const char **help)
{
    const struct postgres_failure *f = failures;
    while (strncmp(f->state, state, strlen(f->state)) != 0)
        f++;
    *code = f->code;
    *help = f->help;
    return f->end;
}

/* A connection that was not made has no SQLSTATE, only words: of all hosts that were tried. One that
 * refuses us is the last, and time does not mend that; so it comes first. */
static void explain_connect(PGconn *conn, int *code, char *why)
{
    static const struct {
        const char *part;
        int code;
        const char *help;
    } known[] = {
        {"authentication failed", SIMBA_EDENIED, "; check user and password"},
        {"no password supplied", SIMBA_EDENIED, "; give one, or password_file"},
        {"no pg_hba.conf entry", SIMBA_EDENIED, ""},
        {"permission denied for database", SIMBA_EDENIED, ""},
        {"is not permitted to log in", SIMBA_EDENIED, ""},
        {"too many connections", SIMBA_ESTATE, TOO_MANY},
        {"too many clients", SIMBA_ESTATE, TOO_MANY},
        {"remaining connection slots", SIMBA_ESTATE, TOO_MANY},
        {"is starting up", SIMBA_ESTATE, ""},
        {"not yet accepting connections", SIMBA_ESTATE, ""},
        {"in recovery mode", SIMBA_ESTATE, ""},
        {"timeout expired", SIMBA_ETIMEOUT,
         ": it does not greet; does it hang, is it no PostgreSQL server, or does a firewall drop "
         "packets?"},
        {"does not support SSL", SIMBA_ESTORE, "; set up TLS there, or write sslmode=disable"},
        {"role \"", SIMBA_EDENIED, ""},
        {"database \"", SIMBA_ESCHEMA, ""}};
    const char *text = PQerrorMessage(conn);
    size_t used = 0;
    for (const char *c = text; *c != '\0' && used + 3 < SQL_WHY_MAX;
         c++) { /* one line of several */
        bool is_break = *c == '\n' && c[1] != '\0';
        if (is_break && used > 0 && why[used - 1] != ':')
            why[used++] = ';';
        if (*c != '\t' && !(*c == ' ' && used > 0 && why[used - 1] == ' '))
            why[used++] = *c == '\n' ? ' ' : *c;
    }
    why[used] = '\0';
    for (size_t n = strlen(why); n > 0 && why[n - 1] == ' '; n--)
        why[n - 1] = '\0';
    *code = SIMBA_ESTORE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strstr(text, known[i].part) != NULL) {
            *code = known[i].code;
            snprintf(why + strlen(why), SQL_WHY_MAX - strlen(why), "%s", known[i].help);
            return;
        }
    }
}

/* ---- a session ----------------------------------------------------------------------------- */

PGresult *postgres_connection_run(struct postgres_connecting *d, const char *statement)
{
    PGresult *r = PQexec(d->connection->conn, statement);
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return r;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *help = "";
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    d->end = postgres_connection_explain(state != NULL ? state : "", d->code, &help);
    if (PQstatus(d->connection->conn) != CONNECTION_OK)
        d->end = SQL_BROKEN;
    snprintf(d->why, SQL_WHY_MAX, "%.380s%s",
             text != NULL ? text : PQerrorMessage(d->connection->conn), help);
    PQclear(r);
    return NULL;
}

/* Behind a pooler a setting would stay with whoever comes next. */
static bool set_session(struct postgres_connecting *d)
{
    char line[320];
    if (d->connection->pooled)
        return true;
    snprintf(line, sizeof line,
             POSTGRES_LONG_LOCK_WAIT ";SET statement_timeout=%lld;SET client_min_messages=error;"
                                     "SET plan_cache_mode=force_generic_plan;"
                                     "SET default_transaction_isolation='read committed'%s",
             (long long)d->config->command_timeout_ms + 1000,
             d->connection->syncs ? "" : ";SET synchronous_commit=on");
    PGresult *r = postgres_connection_run(d, line);
    PQclear(r);
    return r != NULL;
}

static void be_silent(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

static bool out_of_memory(struct postgres_connecting *d)
{
    *d->code = SIMBA_ELIMIT;
    snprintf(d->why, SQL_WHY_MAX, "out of memory");
    return false;
}

static bool prepare(struct postgres_connecting *d)
{
    PGconn *conn = d->connection->conn;
    if (PQstatus(conn) != CONNECTION_OK) {
        explain_connect(conn, d->code, d->why);
        return false;
    }
    PQsetNoticeReceiver(conn, be_silent, NULL);
    return postgres_inspect_server(d) && set_session(d) && postgres_inspect_table(d) &&
           (postgres_statements_make(d->connection) || out_of_memory(d)) &&
           postgres_inspect_notes(d) && PQsetnonblocking(conn, 1) == 0;
}

bool postgres_connection_open(const void *config, struct sql_session *out, int *code, char *why)
{
    struct postgres_connecting d = {.config = config, .code = code, .why = why};
    struct postgres_connection *pg = d.connection = calloc(1, sizeof *pg);
    if (pg == NULL)
        return out_of_memory(&d);
    pg->conn = PQconnectdbParams((const char *const *)d.config->keyword,
                                 (const char *const *)d.config->value, 0);
    if (!prepare(&d)) {
        postgres_connection_close(pg);
        return false;
    }
    *out = (struct sql_session){.handle = pg,
                                .fd = PQsocket(pg->conn),
                                .notifies = pg->notifies,
                                .passes = pg->notifies && pg->table.marks,
                                .makes_tables = d.config->create != SQL_CREATE_NEVER,
                                .inspection = &pg->inspection};
    if (pg->pooled && !pg->notifies)
        out->warning =
            "there is a pooler before the server, where LISTEN does nothing: mutexes that "
            "are waited for are looked at every now and then (?poll=). If it pools "
            "sessions only, add listen=on to the URL";
    return true;
}

void postgres_connection_close(void *handle)
{
    struct postgres_connection *pg = handle;
    PQfinish(pg->conn);
    for (int w = 0; w < STATEMENTS; w++)
        sql_statement_free(&pg->statement[w]);
    free(pg);
}
