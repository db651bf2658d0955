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

/* Puts the form, with each sign and letter in it replaced by what `put` writes for the letter. */
void sql_statement_fill(struct statement *t, char sign, const char *form,
                        void (*put)(struct statement *t, char what, void *data), void *data);
#endif
