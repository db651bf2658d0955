/* database_note.c: notes of mutexes, in a table of their own.
 *
 * A database that an older Simba has made gets the table with its first note; the version of the
 * schema stays, because an older Simba does not mind another table. Ages are on the boot clock. For a
 * note from before a reboot only the wall clock can tell, as far as it was right both times. */
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/sqlite/database.h"
#include "backend/sqlite/schema_note.h"
#include "base/time.h"

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

/* Before the first note the table may not be there: then the statement cannot be prepared. */
static bool has_table(struct database *d, enum database_statement which)
{
    return database_statement(d, which) != NULL ||
           (sqlite3_errcode(d->handle) & 0xff) != SQLITE_ERROR;
}

static int64_t age_ms(const struct database *d, sqlite3_stmt *s)
{
    const char *boot = (const char *)sqlite3_column_text(s, 4);
    bool same_boot = boot != NULL && strcmp(boot, d->boot.id) == 0;
    int64_t now = same_boot ? boot_clock_now(&d->boot) : wall_ns();
    return (now - client_lock_bound(sqlite3_column_int64(s, same_boot ? 2 : 3), now)) / NS_PER_MS;
}

int database_read_note(struct database *d, const char *mutex, struct simba_noted *out, char **text)
{
    *text = NULL;
    if (!has_table(d, DATABASE_READ_NOTE))
        return 0;
    sqlite3_stmt *s = database_statement(d, DATABASE_READ_NOTE);
    sqlite3_bind_text(s, 1, mutex, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s), code = 0;
    if (rc == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(s, 0); /* NULL: out of memory */
        *text = found != NULL ? strndup(found, SIMBA_NOTE_MAX) : NULL;
        *out = (struct simba_noted){*text, (uint64_t)sqlite3_column_int64(s, 1), age_ms(d, s)};
        if (*text == NULL)
            code = database_fail_text(d, SIMBA_ELIMIT, "out of memory");
    }
    sqlite3_reset(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? code : database_fail(d, "cannot read the note");
}

/* In the transaction in which the tenure was found to be this one. A note that was overtaken by a
 * later one of the same tenure is left alone. */
int database_publish(struct database *d, const struct simba_request *q)
{
    if (!has_table(d, DATABASE_PUBLISH) &&
        sqlite3_exec(d->handle, schema_note_sql, NULL, NULL, NULL) != SQLITE_OK)
        return database_fail(d, "cannot make the table of notes");
    sqlite3_stmt *s = database_statement(d, DATABASE_PUBLISH);
    sqlite3_bind_text(s, 1, q->mutex, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, q->note, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)q->token);
    sqlite3_bind_int64(s, 4, (int64_t)q->serial);
    sqlite3_bind_int64(s, 5, boot_clock_now(&d->boot));
    sqlite3_bind_int64(s, 6, wall_ns());
    sqlite3_bind_text(s, 7, d->boot.id, -1, SQLITE_STATIC);
    return database_run(d, DATABASE_PUBLISH) ? 0 : database_fail(d, "cannot publish");
}
