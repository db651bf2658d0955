/* statements.c: a job as the text of a statement, with its values in it; or with ? for each, to be
 * prepared. What is sent is written in statements.sql; docs/statements has each statement as a
 * whole. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"
#include "backend/mysql/schema_note_sql.h"
#include "backend/mysql/statement_names.h"
#include "backend/mysql/statement_texts.h"

#define SHORT_NAME_MAX 32 /* the JVM's first tables have no longer ids */

/* ---- values -------------------------------------------------------------------------------- */

static void put_quoted(struct statement *t, const char *before, const char *value)
{
    sql_statement_put(t, before);
    sql_statement_hex(t, value);
    sql_statement_put(t, "'");
}

static void put_text(struct statement *t, const char *value)
{
    put_quoted(t, "_utf8mb4 x'", value);
}

static void put_bytes(struct statement *t, const char *value)
{
    put_quoted(t, "x'", value);
}

static void put_number(struct statement *t, const struct sql_item *item, enum sql_value what)
{
    const struct simba_request *q = item->request;
    switch (what) {
    case SQL_VALUE_MUTEX_LENGTH:
        sql_statement_number(t, strlen(item->mutex));
        break;
    case SQL_VALUE_CUT_ID_LENGTH:
        sql_statement_number(t, sql_cut_bytes(q->id));
        break;
    case SQL_VALUE_TOKEN:
        sql_statement_number(t, q->token);
        break;
    case SQL_VALUE_BEFORE_TOKEN:
        sql_statement_number(t, item->release->token);
        break;
    case SQL_VALUE_TTL:
        sql_statement_number(t, (uint64_t)q->ttl_ms);
        break;
    case SQL_VALUE_LEASE:
        sql_statement_number(t, (uint64_t)(q->ttl_ms + q->transition_ms));
        break;
    case SQL_VALUE_SERIAL:
        sql_statement_number(t, q->serial);
        break;
    default:
        assert(what == SQL_VALUE_QUEUE_WAIT_S);
        sql_statement_number(t, SQL_QUEUE_WAIT_S);
    }
}

static void put_value(struct statement *t, const struct sql_item *item, enum sql_value what)
{
    const struct simba_request *q = item->request;
    char id[SIMBA_ID_MAX + 1];
    switch (what) {
    case SQL_VALUE_MUTEX:
        put_text(t, item->mutex);
        break;
    case SQL_VALUE_SHORT_MUTEX:
        put_text(t, strlen(item->mutex) <= SHORT_NAME_MAX ? item->mutex : "");
        break;
    case SQL_VALUE_MUTEX_BYTES:
        put_bytes(t, item->mutex);
        break;
    case SQL_VALUE_ID:
        put_text(t, q->id);
        break;
    case SQL_VALUE_ID_BYTES:
        put_bytes(t, q->id);
        break;
    case SQL_VALUE_EVICTED_ID_BYTES:
        sql_evicted_id(q->id, id);
        put_bytes(t, id);
        break;
    case SQL_VALUE_CUT_ID_BYTES:
        snprintf(id, sizeof id, "%.*s", (int)sql_cut_bytes(q->id), q->id);
        put_bytes(t, id);
        break;
    case SQL_VALUE_BEFORE_ID_BYTES:
        put_bytes(t, item->release->id);
        break;
    case SQL_VALUE_NOTE:
        put_text(t, q->note);
        break;
    default:
        put_number(t, item, what);
    }
}

/* ---- statements ---------------------------------------------------------------------------- */

static const struct sql_piece *pieces_of(const struct mysql_table *table, enum statement_name which)
{
    return statements[table->fences ? TABLE_FENCED : TABLE_VERSIONED][which].pieces;
}

static void put(struct statement *t, const struct mysql_table *table, const struct sql_job *job,
                enum statement_name which)
{
    const struct sql_piece *piece = pieces_of(table, which), *each = piece;
    size_t at = 0;
    for (;; piece++) {
        sql_statement_put(t, piece->text);
        switch (piece->value) {
        case SQL_VALUE_NONE:
            return;
        case SQL_VALUE_MUTEXES:
            for (size_t i = 0; i < job->count; i++) {
                sql_statement_put(t, i > 0 ? "," : "");
                put_text(t, job->item[i].mutex);
            }
            break;
        case SQL_VALUE_EACH:
            each = piece;
            break;
        case SQL_VALUE_END:
            if (++at < job->count) {
                sql_statement_put(t, ",");
                piece = each;
            }
            break;
        default:
            put_value(t, &job->item[at], piece->value);
        }
    }
}

static void put_before(struct statement *t, const struct mysql_table *table,
                       const struct sql_job *job, enum statement_name clause)
{
    put(t, table, job, clause);
    sql_statement_put(t, " ");
}

static void put_behind(struct statement *t, const struct mysql_table *table,
                       const struct sql_job *job, enum statement_name clause)
{
    sql_statement_put(t, " ");
    put(t, table, job, clause);
}

static void evict(struct statement *t, const struct mysql_table *table, const struct sql_job *job)
{
    const struct simba_request *q = job->item[0].request;
    put(t, table, job, q->forced ? STATEMENT_FREE : STATEMENT_EVICT);
    if (q->token != 0)
        put_behind(t, table, job, STATEMENT_AND_TOKEN);
    if (q->id[0] != '\0')
        put_behind(t, table, job,
                   sql_cut_bytes(q->id) > 0 ? STATEMENT_AND_CUT_OWNER : STATEMENT_AND_OWNER);
}

static void list(struct statement *t, const struct mysql_table *table, const struct sql_job *job)
{
    put(t, table, job, job->op == SIMBA_LIST ? STATEMENT_LIST : STATEMENT_LIST_NOTE);
    if (job->item[0].mutex[0] != '\0')
        put_behind(t, table, job, STATEMENT_AND_PREFIX);
}

static void put_at_once(struct statement *t, const struct mysql_table *table,
                        const struct sql_job *job)
{
    if (job->short_lock_wait && table->returning)
        put_before(t, table, job, STATEMENT_AT_ONCE);
}

void mysql_statements_read(struct statement *t, const struct mysql_table *table,
                           const struct sql_job *job)
{
    put(t, table, job, STATEMENT_READ);
}

void mysql_statements_make(struct statement *t, const struct mysql_table *table,
                           const struct sql_job *job)
{
    put_at_once(t, table, job);
    put(t, table, job, STATEMENT_MAKE);
}

/* Of those that are one statement of the file: which. */
static enum statement_name of_job(const struct mysql_table *table, const struct sql_job *job)
{
    bool many = job->count > 1;
    switch (job->op) {
    case SIMBA_CONTEND:
        return many ? STATEMENT_CONTEND : STATEMENT_CONTEND_ONE;
    case SIMBA_RENEW:
        return many ? STATEMENT_RENEW : STATEMENT_RENEW_ONE;
    case SIMBA_RELEASE:
        return many ? STATEMENT_RELEASE : STATEMENT_RELEASE_ONE;
    case SIMBA_PUBLISH:
        return STATEMENT_PUBLISH;
    case SQL_PASS:
        return STATEMENT_PASS;
    case SQL_READ_NOTE:
        return STATEMENT_READ_NOTE;
    case SQL_POLL:
        return STATEMENT_POLL;
    case SQL_DIGEST:
        return STATEMENT_DIGEST;
    case SQL_COUNT_EVICTION:
        return STATEMENT_COUNT_EVICTION;
    case SQL_QUEUE_TRY:
        return STATEMENT_QUEUE_TRY;
    case SQL_QUEUE_ROOM:
        return table->timed ? STATEMENT_QUEUE_ROOM_OF_MARIADB : STATEMENT_QUEUE_ROOM_OF_MYSQL;
    case SQL_QUEUE_WAIT:
        return STATEMENT_QUEUE_WAIT;
    case SQL_QUEUE_END:
        return STATEMENT_QUEUE_END;
    default:
        return STATEMENT_READ;
    }
}

void mysql_statements_for(struct statement *t, const struct mysql_table *table,
                          const struct sql_job *job)
{
    put_at_once(t, table, job);
    switch (job->op) {
    case SIMBA_EVICT:
        evict(t, table, job);
        break;
    case SIMBA_LIST:
    case SQL_LIST_NOTE:
        list(t, table, job);
        break;
    case SQL_MAKE_NOTES:
        sql_statement_put(t, schema_note_sql);
        break;
    case SQL_QUEUE_WAIT:
        if (table->timed)
            put_before(t, table, job, STATEMENT_WITHOUT_TIME_LIMIT);
        put(t, table, job, STATEMENT_QUEUE_WAIT);
        break;
    default:
        put(t, table, job, of_job(table, job));
    }
}

static bool is_bytes(enum sql_value what)
{
    return what == SQL_VALUE_MUTEX_BYTES || what == SQL_VALUE_ID_BYTES ||
           what == SQL_VALUE_EVICTED_ID_BYTES || what == SQL_VALUE_BEFORE_ID_BYTES;
}

bool mysql_statements_often(struct statement *t, const struct mysql_table *table,
                            enum mysql_often which, struct mysql_prepared *p)
{
    static const enum statement_name name[OFTEN] = {
        [OFTEN_TAKE] = STATEMENT_CONTEND_ONE, [OFTEN_READ] = STATEMENT_READ,
        [OFTEN_RENEW] = STATEMENT_RENEW_ONE,  [OFTEN_RELEASE] = STATEMENT_RELEASE_ONE,
        [OFTEN_PASS] = STATEMENT_PASS,
    };
    size_t n = 0;
    for (const struct sql_piece *piece = pieces_of(table, name[which]);; piece++) {
        sql_statement_put(t, piece->text);
        p->parameters[n] = piece->value;
        if (piece->value == SQL_VALUE_NONE)
            return !t->failed;
        n++;
        assert(n < MYSQL_PARAMETERS_MAX);
        sql_statement_put(t, is_bytes(piece->value) ? "BINARY ?" : "?");
    }
}
