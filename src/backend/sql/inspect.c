/* inspect.c: see inspect.h. */
#include "backend/sql/inspect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CLOCKS_DIFFER_MS 1000

static const char *const columns[] = {"mutex",    "acquired_at", "ttl_at",       "transition_at",
                                      "owner_id", "version",     "fencing_token"};

int sql_inspect_column(const char *name)
{
    for (int i = 0; i < 7; i++) {
        if (strcmp(name, columns[i]) == 0)
            return 1 << i;
    }
    return 0;
}

const char *sql_inspect_missing_column(int found)
{
    for (int i = 0; 1 << i < COLUMN_FENCING_TOKEN; i++) {
        if (!(found & 1 << i))
            return columns[i];
    }
    return NULL;
}

int64_t sql_inspect_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void sql_inspect_note(struct sql_inspection *h, enum simba_level level, const char *format, ...)
{
    va_list args;
    if (h->notes == INSPECTION_NOTES)
        return;
    h->note[h->notes].kind = SIMBA_FINDING_OTHER;
    h->note[h->notes].level = level;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(h->note[h->notes].text, sizeof h->note[0].text, format, args);
    va_end(args);
    h->notes++;
}

const char *sql_inspect_read_only(const struct sql_inspection *h)
{
    return h->read_only
               ? "the server is read-only, perhaps a replica: mutexes can be looked at, but "
                 "not taken, renewed or freed. Use the primary"
               : NULL;
}

void sql_inspect_note_loss(struct sql_inspection *h, enum simba_level level, const char *because)
{
    int at = h->notes;
    sql_inspect_note(
        h, level,
        "%s: a crash of the %s forgets grants, and then two may own a mutex for up to a lease "
        "(tokens still rise)",
        because, level == SIMBA_LOG_ERROR ? "server" : "machine");
    if (at < h->notes)
        h->note[at].kind = SIMBA_FINDING_TWO_OWNERS;
}

bool sql_inspect_is_current(const struct sql_inspection *h)
{
    return h->fences && h->wide && h->bytewise && h->long_ids;
}

static void say_table(const struct sql_inspection *h, const struct findings *f)
{
    struct simba_finding table = {.kind = SIMBA_FINDING_TABLE, .level = SIMBA_LOG_INFO};
    if (sql_inspect_is_current(h)) {
        findings_add(f, table, "table simba_mutex: as simba init makes it");
        return;
    }
    table.level = SIMBA_LOG_WARN;
    findings_add(f, table,
                 "table simba_mutex: as JVM Simba %s makes it. It works; 'simba init' "
                 "improves it, also while it is used",
                 h->fences     ? "4"
                 : h->long_ids ? "3"
                               : "2.9");
    if (!h->fences)
        findings_say(
            f, SIMBA_LOG_WARN,
            "  no column fencing_token: the version is the token, and falls if a row is deleted "
            "that had more than one tenure per second");
    if (!h->wide)
        findings_say(f, SIMBA_LOG_WARN, "  version has 32 bits: one day it is used up");
    if (!h->bytewise)
        findings_say(f, SIMBA_LOG_WARN,
                     "  its collation takes 'JOB' for 'job': whoever comes second gets an error");
    if (!h->long_ids)
        findings_say(f, SIMBA_LOG_WARN, "  owner_id is short: longer ids get an error");
}

/* Without notes mutexes are as good as with. */
static void say_notes(const struct sql_inspection *h, const struct findings *f)
{
    if (!h->keeps_notes)
        findings_say(
            f, SIMBA_LOG_WARN,
            "no table simba_note, or no right to it: without it there are no notes, and so "
            "no 'simba once', nor 'simba schedule' with --cron or --every. 'simba init' makes "
            "it; or the first who needs it, with the right to make tables");
    else if (h->notes_missing[0] != '\0')
        findings_say(f, SIMBA_LOG_WARN,
                     "rights to simba_note are missing: %s. This is enough for all: %s",
                     h->notes_missing, h->grants);
    else
        findings_say(f, SIMBA_LOG_INFO, "table simba_note: notes can be read and written");
    if (h->other_notes[0] != '\0')
        findings_say(
            f, SIMBA_LOG_WARN,
            "there is another table simba_note, in the schema %s, which is not used: notes "
            "are kept in the schema of simba_mutex",
            h->other_notes);
}

void sql_inspect_say(const struct sql_inspection *h, const struct findings *f)
{
    if (h->read_only)
        findings_say(f, SIMBA_LOG_ERROR, "%s: %s", h->server, sql_inspect_read_only(h));
    else
        findings_say(
            f, SIMBA_LOG_INFO,
            "%s, takes writes; one operation at a time: single statements, each a transaction",
            h->server);
    if (h->cipher[0] != '\0')
        findings_say(f, SIMBA_LOG_INFO, "encrypted: %s", h->cipher);
    else
        findings_say(f, h->is_local ? SIMBA_LOG_INFO : SIMBA_LOG_WARN, "not encrypted%s",
                     h->is_local ? ", on this machine"
                                 : ": others on the way can read and change it");
    say_table(h, f);
    if (h->missing[0] != '\0')
        findings_say(f, SIMBA_LOG_ERROR, "rights are missing: %s. This is enough: %s", h->missing,
                     h->grants);
    else
        findings_say(f, SIMBA_LOG_INFO, "rights: all that are needed. This is enough: %s",
                     h->grants);
    say_notes(h, f);
    findings_say(
        f,
        h->ahead_ms > CLOCKS_DIFFER_MS || h->ahead_ms < -CLOCKS_DIFFER_MS ? SIMBA_LOG_WARN
                                                                          : SIMBA_LOG_INFO,
        "clock: leases are in UTC, whatever its time zone (%s); it is %lld ms %s this machine's, "
        "which decides nothing",
        h->zone, (long long)(h->ahead_ms < 0 ? -h->ahead_ms : h->ahead_ms),
        h->ahead_ms < 0 ? "behind" : "before");
    if (h->connections > 0)
        findings_say(f, SIMBA_LOG_INFO, "connections: at most %lld; a client of Simba takes one",
                     (long long)h->connections);
    for (int i = 0; i < h->notes; i++)
        findings_add(f, (struct simba_finding){.kind = h->note[i].kind, .level = h->note[i].level},
                     "%s", h->note[i].text);
}
