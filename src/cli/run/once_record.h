/* once_record.h: what simba once keeps in the note of its mutex: the last run that may count, and the
 * last one that failed since.
 *
 *   once/1 begun                                 --at-most-once: a run has begun
 *   once/1 ended N after M ms                    it has ended with status N, M ms after it began
 *   once/1 not begun                             nothing that could count
 * and then, where a later run has failed:
 *   …, A ms ago; failed N after M ms, C in a row, by ID
 *
 * The note's own age tells when the last of these was written; the first was written A ms before. */
#ifndef CLI_RUN_ONCE_RECORD_H
#define CLI_RUN_ONCE_RECORD_H

#include <simba.h>
#include <stdbool.h>

#define RECORD_MAX (160 + SIMBA_ID_MAX)

struct once_record {
    /* RECORD_NONE: there was none, or nothing came of it; RECORD_FOREIGN: it is not such a note */
    enum { RECORD_NONE, RECORD_BEGUN, RECORD_ENDED, RECORD_FOREIGN } kind;
    int status;      /* of CMD */
    int64_t took_ms; /* from its beginning to when this was written … */
    int64_t ago_ms;  /* … so long before the note was */
    int failures;    /* in a row, since a run has succeeded; of the last one: */
    int failed_status;
    int64_t failed_took_ms;
    char failed_by[SIMBA_ID_MAX + 1];
};

struct once_record record_parse(const char *text);
void record_write(const struct once_record *r, char out[static RECORD_MAX]);
#endif
