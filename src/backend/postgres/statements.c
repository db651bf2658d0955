/* statements.c: which statement a job is, and its text for the table that we have. What is sent is
 * written in statements.sql; docs/statements has each statement as a whole. */
#include <assert.h>
#include <string.h>

#include "backend/postgres/postgres.h"
#include "backend/postgres/schema_note_sql.h"
#include "backend/postgres/statement_texts.h"

/* Of one mutex, of many. */
static const struct {
    int op;
    enum statement_name one, many;
} of_op[] = {
    {SIMBA_CONTEND, STATEMENT_CONTEND_ONE, STATEMENT_CONTEND},
    {SIMBA_RENEW, STATEMENT_RENEW_ONE, STATEMENT_RENEW},
    {SIMBA_RELEASE, STATEMENT_RELEASE_ONE, STATEMENT_RELEASE},
    {SIMBA_READ, STATEMENT_READ, STATEMENT_READ},
    {SIMBA_LIST, STATEMENT_LIST, STATEMENTS},
    {SIMBA_PUBLISH, STATEMENT_PUBLISH, STATEMENTS},
    {SQL_PASS, STATEMENT_PASS, STATEMENTS},
    {SQL_POLL, STATEMENT_POLL, STATEMENT_POLL},
    {SQL_READ_NOTE, STATEMENT_READ_NOTE, STATEMENT_READ_NOTE},
    {SQL_LIST_NOTE, STATEMENT_LIST_NOTE, STATEMENTS},
    {SQL_MAKE_NOTES, STATEMENT_MAKE_NOTES, STATEMENTS},
    {SQL_DIGEST, STATEMENT_DIGEST, STATEMENTS},
    {SQL_COUNT_EVICTION, STATEMENT_COUNT_EVICTION, STATEMENTS},
    {SQL_OBSERVE, STATEMENT_OBSERVE, STATEMENTS},
    {SQL_MARK, STATEMENT_MARK, STATEMENT_MARK},
    {SQL_LISTEN, STATEMENT_LISTEN, STATEMENTS},
};

enum statement_name postgres_statements_of_job(const struct sql_job *job)
{
    if (job->op == SIMBA_EVICT)
        return job->item[0].request->forced ? STATEMENT_FREE : STATEMENT_EVICT;
    size_t i = 0;
    while (of_op[i].op != job->op) {
        i++;
        assert(i < sizeof of_op / sizeof *of_op);
    }
    enum statement_name which = job->count > 1 ? of_op[i].many : of_op[i].one;
    assert(which != STATEMENTS);
    return which;
}

const struct sql_text *postgres_statements_text(const struct postgres_connection *pg,
                                                enum statement_name which)
{
    enum statement_table kind = !pg->table.fences ? TABLE_VERSIONED
                                : pg->table.marks ? TABLE_MARKED
                                                  : TABLE_FENCED;
    return &statements[kind][which];
}

bool postgres_statements_make(struct postgres_connection *pg)
{
    bool made = true;
    for (int w = 0; w < STATEMENTS; w++) {
        struct statement *t = &pg->statement[w];
        const struct sql_piece *piece =
            postgres_statements_text(pg, (enum statement_name)w)->pieces;
        sql_statement_reset(t);
        for (; piece != NULL; piece = piece->value != SQL_VALUE_NONE ? piece + 1 : NULL) {
            sql_statement_put(t, piece->text);
            if (piece->value == SQL_VALUE_NOTES_TABLE)
                sql_statement_put(t, pg->table.notes);
            else if (piece->value == SQL_VALUE_NOTES_COLUMNS)
                sql_statement_put(t, strchr(schema_note_sql, '('));
        }
        made = made && !t->failed;
    }
    return made;
}
