/* inspect.h: what was found out about a server and its table while connecting, for those who
 * ask. It costs no exchange of its own. Everything is text for people but the flags, and those
 * decide the statements elsewhere. */
#ifndef BACKEND_SQL_INSPECT_H
#define BACKEND_SQL_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/kit/findings.h"

#define INSPECTION_TEXT_MAX 256
#define INSPECTION_GRANTS_MAX 1280
#define INSPECTION_NAME_MAX 160 /* of a schema, in quotes */
#define INSPECTION_NOTES 8

struct sql_inspection {
    char server[64]; /* its name and version */
    char cipher[64]; /* "": not encrypted */
    bool is_local;   /* on this machine */
    bool read_only;  /* the server, or the database: whoever asks */
    char zone[64];
    int64_t ahead_ms;                      /* the server's clock before this machine's */
    int64_t connections;                   /* that it takes; 0: unknown */
    bool fences;                           /* there is a fencing_token */
    bool wide;                             /* the version has 64 bits */
    bool bytewise;                         /* names that differ are different ones */
    bool long_ids;                         /* 128 characters fit */
    char missing[64];                      /* rights; "": none */
    char grants[INSPECTION_GRANTS_MAX];    /* statements that give all rights that are needed */
    bool keeps_notes;                      /* there is a table of notes */
    char notes_missing[64];                /* rights to that */
    char other_notes[INSPECTION_NAME_MAX]; /* the schema of another, which is not used; "": none */
    struct {
        enum simba_finding_kind kind;
        enum simba_level level;
        char text[INSPECTION_TEXT_MAX];
    } note[INSPECTION_NOTES]; /* what only this kind of server has */
    int notes;
};

/* The columns of the table; a set of them has a bit for each. Only the last one may be missing. */
enum {
    COLUMN_MUTEX = 1,
    COLUMN_OWNER_ID = 1 << 4,
    COLUMN_VERSION = 1 << 5,
    COLUMN_FENCING_TOKEN = 1 << 6
};
#define OWNER_ID_LENGTH 128
int sql_inspect_column(const char *name);            /* its bit; 0: none of ours */
const char *sql_inspect_missing_column(int columns); /* NULL: all are there that must be */

int64_t sql_inspect_wall_ms(void); /* of this machine */

__attribute__((format(printf, 3, 4))) void sql_inspect_note(struct sql_inspection *inspection,
                                                            enum simba_level level,
                                                            const char *format, ...);

/* Is it as simba init makes it? */
bool sql_inspect_is_current(const struct sql_inspection *inspection);
/* Why nothing can be written there; NULL: it can, as far as that is known. */
const char *sql_inspect_read_only(const struct sql_inspection *inspection);
/* What a crash forgets: of the server (ERROR), or only of the machine (WARN). */
void sql_inspect_note_loss(struct sql_inspection *inspection, enum simba_level level,
                           const char *because);
void sql_inspect_say(const struct sql_inspection *inspection, const struct findings *f);
#endif
