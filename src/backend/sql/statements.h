/* statements.h: a statement as text. What comes from users is written in hexadecimal, so that no
 * quote, backslash, character set or mode of the server can make anything else of it. */
#ifndef BACKEND_SQL_STATEMENTS_H
#define BACKEND_SQL_STATEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statement {
    char *bytes; /* with a NUL at the end */
    size_t length, size;
    bool failed; /* out of memory: what was added since is missing */
};

void sql_statement_reset(struct statement *t);
void sql_statement_free(struct statement *t);
void sql_statement_put(struct statement *t, const char *part);
void sql_statement_end(struct statement *t); /* a NUL that counts: another text follows */
void sql_statement_number(struct statement *t, uint64_t number);
void sql_statement_hex(struct statement *t, const char *value); /* its bytes, two digits each */

/* What is put into a statement when it is sent: see statements.sql of the stores. */
enum sql_value {
    SQL_VALUE_NONE,
    SQL_VALUE_MUTEX,
    SQL_VALUE_MUTEX_BYTES,
    SQL_VALUE_MUTEX_LENGTH,
    SQL_VALUE_MUTEXES,
    SQL_VALUE_SHORT_MUTEX,
    SQL_VALUE_ID,
    SQL_VALUE_ID_BYTES,
    SQL_VALUE_EVICTED_ID, /* as the row of an evicted owner has it */
    SQL_VALUE_EVICTED_ID_BYTES,
    SQL_VALUE_CUT_ID, /* what is shown of one that is too long */
    SQL_VALUE_CUT_ID_BYTES,
    SQL_VALUE_CUT_ID_LENGTH,
    SQL_VALUE_TOKEN,
    SQL_VALUE_BEFORE_ID, /* of the owner before, in a pass */
    SQL_VALUE_BEFORE_ID_BYTES,
    SQL_VALUE_BEFORE_TOKEN,
    SQL_VALUE_TTL,
    SQL_VALUE_LEASE,
    SQL_VALUE_SERIAL, /* of a note */
    SQL_VALUE_NOTE,
    SQL_VALUE_OBSERVED_MS,
    SQL_VALUE_QUEUE_WAIT_S,
    SQL_VALUE_NOTES_TABLE,
    SQL_VALUE_NOTES_COLUMNS,
    SQL_VALUE_EACH, /* from here to SQL_VALUE_END once for each mutex, with commas between them */
    SQL_VALUE_END
};

/* A part of a statement and the value behind it; SQL_VALUE_NONE: it is the last one. */
struct sql_piece {
    const char *text;
    enum sql_value value;
};

#define SQL_PARAMETERS_MAX 7

/* A statement as the build has made it of statements.sql. */
struct sql_text {
    const char *name; /* when it is prepared; NULL: there is none for this kind of table */
    bool many;        /* each parameter is an array */
    enum sql_value parameters[SQL_PARAMETERS_MAX]; /* SQL_VALUE_NONE behind the last */
    const struct sql_piece *pieces;
};
#endif
