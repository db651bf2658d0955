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

void sql_inspect_note(struct sql_inspection *inspection, enum simba_level level, const char *format,
                      ...)
{
    va_list args;
    if (inspection->notes == INSPECTION_NOTES)
        return;
    inspection->note[inspection->notes].kind = SIMBA_FINDING_OTHER;
    inspection->note[inspection->notes].level = level;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(inspection->note[inspection->notes].text, sizeof inspection->note[0].text, format,
              args);
    va_end(args);
    inspection->notes++;
}

const char *sql_inspect_read_only(const struct sql_inspection *inspection)
{
    return inspection->read_only
               ? "the server is read-only, perhaps a replica: mutexes can be looked at, but "
                 "not taken, renewed or freed. Use the primary"
               : NULL;
}

void sql_inspect_note_loss(struct sql_inspection *inspection, enum simba_level level,
                           const char *because)
{
    int at = inspection->notes;
    sql_inspect_note(
        inspection, level,
        "%s: a crash of the %s forgets grants, and then two may own a mutex for up to a lease "
        "(tokens still rise)",
        because, level == SIMBA_LOG_ERROR ? "server" : "machine");
    if (at < inspection->notes)
        inspection->note[at].kind = SIMBA_FINDING_TWO_OWNERS;
}

bool sql_inspect_is_current(const struct sql_inspection *inspection)
{
    return inspection->fences && inspection->wide && inspection->bytewise && inspection->long_ids;
}

static void say_table(const struct sql_inspection *inspection, const struct findings *f)
{
    struct simba_finding table = {.kind = SIMBA_FINDING_TABLE, .level = SIMBA_LOG_INFO};
    if (sql_inspect_is_current(inspection)) {
        findings_add(f, table, "table simba_mutex: as simba init makes it");
        return;
    }
    table.level = SIMBA_LOG_WARN;
    findings_add(f, table,
                 "table simba_mutex: as JVM Simba %s makes it. It works; 'simba init' "
                 "improves it, also while it is used",
                 inspection->fences     ? "4"
                 : inspection->long_ids ? "3"
                                        : "2.9");
    if (!inspection->fences)
        findings_say(
            f, SIMBA_LOG_WARN,
            "  no column fencing_token: the version is the token, and falls if a row is deleted "
            "that had more than one tenure per second");
    if (!inspection->wide)
        findings_say(f, SIMBA_LOG_WARN, "  version has 32 bits: one day it is used up");
    if (!inspection->bytewise)
        findings_say(f, SIMBA_LOG_WARN,
                     "  its collation takes 'JOB' for 'job': whoever comes second gets an error");
    if (!inspection->long_ids)
        findings_say(f, SIMBA_LOG_WARN, "  owner_id is short: longer ids get an error");
}

/* Without notes mutexes are as good as with. */
static void say_notes(const struct sql_inspection *inspection, const struct findings *f)
{
    if (!inspection->keeps_notes)
        findings_say(
            f, SIMBA_LOG_WARN,
            "no table simba_note, or no right to it: without it there are no notes, and so "
            "no 'simba once', nor 'simba schedule' with --cron or --every. 'simba init' makes "
            "it; or the first who needs it, with the right to make tables");
    else if (inspection->notes_missing[0] != '\0')
        findings_say(f, SIMBA_LOG_WARN,
                     "rights to simba_note are missing: %s. This is enough for all: %s",
                     inspection->notes_missing, inspection->grants);
    else
        findings_say(f, SIMBA_LOG_INFO, "table simba_note: notes can be read and written");
    if (inspection->other_notes[0] != '\0')
        findings_say(
            f, SIMBA_LOG_WARN,
            "there is another table simba_note, in the schema %s, which is not used: notes "
            "are kept in the schema of simba_mutex",
            inspection->other_notes);
}

void sql_inspect_say(const struct sql_inspection *inspection, const struct findings *f)
{
    if (inspection->read_only)
        findings_say(f, SIMBA_LOG_ERROR, "%s: %s", inspection->server,
                     sql_inspect_read_only(inspection));
    else
        findings_say(
            f, SIMBA_LOG_INFO,
            "%s, takes writes; one operation at a time: single statements, each a transaction",
            inspection->server);
    if (inspection->cipher[0] != '\0')
        findings_say(f, SIMBA_LOG_INFO, "encrypted: %s", inspection->cipher);
    else
        findings_say(f, inspection->is_local ? SIMBA_LOG_INFO : SIMBA_LOG_WARN, "not encrypted%s",
                     inspection->is_local ? ", on this machine"
                                          : ": others on the way can read and change it");
    say_table(inspection, f);
    if (inspection->missing[0] != '\0')
        findings_say(f, SIMBA_LOG_ERROR, "rights are missing: %s. This is enough: %s",
                     inspection->missing, inspection->grants);
    else
        findings_say(f, SIMBA_LOG_INFO, "rights: all that are needed. This is enough: %s",
                     inspection->grants);
    say_notes(inspection, f);
    findings_say(
        f,
        inspection->ahead_ms > CLOCKS_DIFFER_MS || inspection->ahead_ms < -CLOCKS_DIFFER_MS
            ? SIMBA_LOG_WARN
            : SIMBA_LOG_INFO,
        "clock: leases are in UTC, whatever its time zone (%s); it is %lld ms %s this machine's, "
        "which decides nothing",
        inspection->zone,
        (long long)(inspection->ahead_ms < 0 ? -inspection->ahead_ms : inspection->ahead_ms),
        inspection->ahead_ms < 0 ? "behind" : "before");
    if (inspection->connections > 0)
        findings_say(f, SIMBA_LOG_INFO, "connections: at most %lld; a client of Simba takes one",
                     (long long)inspection->connections);
    for (int i = 0; i < inspection->notes; i++)
        findings_add(f,
                     (struct simba_finding){.kind = inspection->note[i].kind,
                                            .level = inspection->note[i].level},
                     "%s", inspection->note[i].text);
}
