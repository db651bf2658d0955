/* perform.c: a job as one statement with parameters, in libpq's way not to block. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/postgres/postgres.h"

#define COLUMNS 7 /* that are read; an eighth only does something */
#define COLUMNS_WITH_NOTE 10

/* ---- parameters ---------------------------------------------------------------------------- */

static void put_quoted(struct statement *t, const char *value)
{
    char piece[3] = "";
    sql_statement_put(t, "\"");
    for (; *value != '\0'; value++) {
        bool special = *value == '"' || *value == '\\';
        piece[0] = special ? '\\' : *value;
        piece[1] = special ? *value : '\0';
        sql_statement_put(t, piece);
    }
    sql_statement_put(t, "\"");
}

static void put_value(struct statement *t, const struct sql_item *item, enum sql_value what,
                      bool quoted)
{
    const struct simba_request *q = item->request;
    char id[SIMBA_ID_MAX + 1];
    const char *value = id;
    switch (what) {
    case SQL_VALUE_TOKEN:
        sql_statement_number(t, q->token);
        return;
    case SQL_VALUE_BEFORE_TOKEN:
        sql_statement_number(t, item->release->token);
        return;
    case SQL_VALUE_TTL:
        sql_statement_number(t, (uint64_t)q->ttl_ms);
        return;
    case SQL_VALUE_LEASE:
        sql_statement_number(t, (uint64_t)(q->ttl_ms + q->transition_ms));
        return;
    case SQL_VALUE_SERIAL:
        sql_statement_number(t, q->serial);
        return;
    case SQL_VALUE_NOTE:
        value = q->note;
        break;
    case SQL_VALUE_ID:
        value = q->id;
        break;
    case SQL_VALUE_BEFORE_ID:
        value = item->release->id;
        break;
    case SQL_VALUE_EVICTED_ID:
        sql_evicted_id(q->id, id);
        break;
    case SQL_VALUE_CUT_ID:
        snprintf(id, sizeof id, "%.*s", (int)sql_cut_bytes(q->id), q->id);
        break;
    default:
        assert(what == SQL_VALUE_MUTEX);
        value = item->mutex;
    }
    if (quoted)
        put_quoted(t, value);
    else
        sql_statement_put(t, value);
}

/* One after another, each with its NUL. Returns how many. */
static int put_parameters(struct statement *t, const struct sql_job *job,
                          const struct sql_text *text)
{
    int n = 0;
    for (; text->parameters[n] != SQL_VALUE_NONE; n++) {
        if (text->parameters[n] == SQL_VALUE_OBSERVED_MS)
            sql_statement_number(t, SQL_OBSERVED_MS);
        sql_statement_put(t, text->many ? "{" : "");
        for (size_t i = 0; i < job->count; i++) {
            sql_statement_put(t, i > 0 ? "," : "");
            put_value(t, &job->item[i], text->parameters[n], text->many);
        }
        sql_statement_put(t, text->many ? "}" : "");
        sql_statement_end(t);
    }
    return n;
}

/* ---- sending ------------------------------------------------------------------------------- */

static int broken(struct sql *s, struct postgres_connection *pg, enum sql_end *end)
{
    char why[SQL_WHY_MAX - 8];
    snprintf(why, sizeof why, "%s", PQerrorMessage(pg->conn));
    why[strcspn(why, "\n")] = '\0';
    sql_fail(s, SIMBA_ESTORE, "%s", why[0] != '\0' ? why : "the connection has ended");
    *end = SQL_BROKEN;
    return 0;
}

/* The parameters are in s->statement, one after another. */
static bool say(struct sql *s, struct postgres_connection *pg, enum statement_name w)
{
    const char *name = postgres_statements_text(pg, w)->name, *text = pg->statement[w].bytes;
    const char *value[SQL_PARAMETERS_MAX], *at = s->statement.bytes;
    bool can_be_prepared = name != NULL && w != STATEMENT_LISTEN && w != STATEMENT_MAKE_NOTES;
    int n = pg->parameters;
    for (int i = 0; i < n; at += strlen(at) + 1)
        value[i++] = at;
    pg->preparing = pg->known[w] == STATEMENT_SAID && !pg->pooled && can_be_prepared;
    if (pg->preparing)
        return PQsendPrepare(pg->conn, name, text, 0, NULL) != 0;
    if (pg->known[w] == STATEMENT_PREPARED)
        return PQsendQueryPrepared(pg->conn, name, n, value, NULL, NULL, 0) != 0;
    pg->known[w] = STATEMENT_SAID;
    return PQsendQueryParams(pg->conn, text, n, NULL, value, NULL, NULL, 0) != 0;
}

static int send_off(struct sql *s, struct postgres_connection *pg, const struct sql_job *job,
                    enum sql_end *end)
{
    bool sent;
    pg->changing_lock_wait = pg->short_lock_wait != job->short_lock_wait && !pg->pooled;
    if (pg->changing_lock_wait)
        sent = PQsendQuery(pg->conn, job->short_lock_wait ? POSTGRES_SHORT_LOCK_WAIT
                                                          : POSTGRES_LONG_LOCK_WAIT) != 0;
    else
        sent = say(s, pg, postgres_statements_of_job(job));
    int rest = sent ? PQflush(pg->conn) : -1;
    if (rest < 0)
        return broken(s, pg, end);
    return rest > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE;
}

int postgres_perform_begin(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end)
{
    struct postgres_connection *pg = handle;
    sql_statement_reset(&s->statement);
    pg->parameters = put_parameters(&s->statement, job,
                                    postgres_statements_text(pg, postgres_statements_of_job(job)));
    if (s->statement.failed) {
        sql_fail(s, SIMBA_ELIMIT, "out of memory");
        *end = SQL_FAILED;
        return 0;
    }
    pg->end = SQL_DONE;
    return send_off(s, pg, job, end);
}

/* ---- receiving ----------------------------------------------------------------------------- */

/* Our own are no news: whoever waits in this process was told when we did it. */
static void take_notices(struct sql *s, struct postgres_connection *pg)
{
    for (PGnotify *n; (n = PQnotifies(pg->conn)) != NULL; PQfreemem(n)) {
        if (n->be_pid != PQbackendPID(pg->conn) && n->extra[0] != '\0')
            sql_notified(s, n->extra);
    }
}

static void take_rows(struct sql *s, const struct postgres_connection *pg, struct sql_job *job,
                      const PGresult *r)
{
    for (int i = 0; i < PQntuples(r) && PQnfields(r) >= COLUMNS; i++) {
        char result = PQgetvalue(r, i, 6)[0]; /* see statements.sql */
        struct sql_row row = {.mutex = PQgetvalue(r, i, 0),
                              .owner = PQgetvalue(r, i, 1),
                              .token = strtoull(PQgetvalue(r, i, 2), NULL, 10),
                              .left_ms = strtoll(PQgetvalue(r, i, 3), NULL, 10),
                              .age_ms = strtoll(PQgetvalue(r, i, 4), NULL, 10),
                              .evicted = PQgetisnull(r, i, 5) == 0,
                              .first = (uint32_t)strtoul(PQgetvalue(r, i, 5), NULL, 10),
                              .changed = result == '1' || result == '3',
                              .unmarked = result == '2' && pg->notifies,
                              .marked = result == '3'};
        if (PQnfields(r) == COLUMNS_WITH_NOTE && PQgetisnull(r, i, 7) == 0) {
            row.note = PQgetvalue(r, i, 7);
            row.note_token = strtoull(PQgetvalue(r, i, 8), NULL, 10);
            row.note_age_ms = strtoll(PQgetvalue(r, i, 9), NULL, 10);
        }
        sql_found(s, job, &row);
    }
}

static void take_result(struct sql *s, struct postgres_connection *pg, struct sql_job *job,
                        const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_TUPLES_OK) {
        take_rows(s, pg, job, r);
        return;
    }
    if (status == PGRES_COMMAND_OK)
        return;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *help = "";
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    int code;
    pg->end = postgres_connection_explain(state != NULL ? state : "", &code, &help);
    if ((code == SIMBA_ESCHEMA || code == SIMBA_EDENIED) && text != NULL &&
        (strstr(text, "simba_note") != NULL || job->op == SQL_MAKE_NOTES)) {
        pg->end = SQL_FAILED;
        sql_fail_notes(s, code == SIMBA_ESCHEMA, text);
        return;
    }
    sql_fail(s, code, "%.380s (%s)%s", text != NULL ? text : "no reason given",
             state != NULL ? state : "?", help);
}

/* What was said was only to prepare the statement that is still to come. */
static bool go_further(struct postgres_connection *pg, const struct sql_job *job)
{
    if (PQstatus(pg->conn) != CONNECTION_OK || (!pg->changing_lock_wait && !pg->preparing))
        return false;
    if (pg->changing_lock_wait)
        pg->short_lock_wait = job->short_lock_wait;
    else
        pg->known[postgres_statements_of_job(job)] = STATEMENT_PREPARED;
    return true;
}

int postgres_perform_go_on(struct sql *s, void *handle, struct sql_job *job, int events,
                           enum sql_end *end)
{
    struct postgres_connection *pg = handle;
    *end = SQL_BROKEN;
    if (events & UV_READABLE && PQconsumeInput(pg->conn) == 0)
        return pg->end == SQL_DONE ? broken(s, pg, end) : 0; /* the reason is known */
    int rest = PQflush(pg->conn);
    if (rest < 0)
        return broken(s, pg, end);
    while (PQisBusy(pg->conn) == 0) {
        PGresult *r = PQgetResult(pg->conn);
        if (r == NULL) {
            take_notices(s, pg);
            if (pg->end == SQL_DONE && go_further(pg, job))
                return send_off(s, pg, job, end);
            *end = PQstatus(pg->conn) == CONNECTION_OK ? pg->end : SQL_BROKEN;
            return 0;
        }
        take_result(s, pg, job, r);
        PQclear(r);
    }
    return rest > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE;
}

bool postgres_perform_idle(struct sql *s, void *handle)
{
    struct postgres_connection *pg = handle;
    if (PQconsumeInput(pg->conn) == 0)
        return false;
    take_notices(s, pg);
    return PQstatus(pg->conn) == CONNECTION_OK;
}
