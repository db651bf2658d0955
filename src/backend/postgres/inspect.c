/* inspect.c: what a server and its table are like, looked at with every new connection, on the
 * thread that makes it. Makes the table if there is none; and, if that is wished, one like ours
 * of one that is older. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/postgres/postgres.h"
#include "backend/postgres/schema_sql.h"
#include "backend/postgres/upgrade_sql.h"

/* ---- the server ---------------------------------------------------------------------------- */

enum { READ_ONLY, PID, VERSION, ZONE, CONNECTIONS, SYNCS, COMMITS, PAGES, NOW_MS };

static const char facts[] =
    "SELECT pg_is_in_recovery()OR current_setting('transaction_read_only')::bool,pg_backend_pid(),"
    "current_setting('server_version'),current_setting('TimeZone'),"
    "current_setting('max_connections'),current_setting('fsync'),"
    "current_setting('synchronous_commit'),current_setting('full_page_writes'),"
    "floor(date_part('epoch',clock_timestamp())*1000)::bigint";

static void note_push(struct postgres_connection *pg)
{
    if (pg->notifies)
        sql_inspect_note(&pg->inspection, SIMBA_LOG_INFO,
                         "LISTEN is used: a release wakes waiters at once");
    else if (pg->inspection.read_only || pg->inspection.missing[0] != '\0')
        sql_inspect_note(
            &pg->inspection, SIMBA_LOG_INFO,
            "without the right to write there is no LISTEN: observers poll (option poll)");
    else if (pg->pooled)
        sql_inspect_note(
            &pg->inspection, SIMBA_LOG_WARN,
            "a pooler is before the server, where LISTEN does nothing: what is waited for "
            "is looked at (?poll=). If it pools whole sessions, say listen=on");
    else
        sql_inspect_note(&pg->inspection, SIMBA_LOG_WARN,
                         "LISTEN is switched off: waiters poll (option poll)");
}

/* What a crash leaves of the last second. What is the session's to say is said there, see
 * set_session(). */
static void note_durability(struct postgres_connection *pg, const PGresult *r)
{
    struct sql_inspection *inspection = &pg->inspection;
    bool fsync = strcmp(PQgetvalue(r, 0, SYNCS), "off") != 0;
    pg->syncs = strcmp(PQgetvalue(r, 0, COMMITS), "off") != 0;
    if (!pg->syncs && pg->pooled)
        sql_inspect_note_loss(
            inspection, SIMBA_LOG_ERROR,
            "synchronous_commit is off, and behind a pooler nobody else can switch it "
            "on (ALTER ROLE ... SET synchronous_commit=on)");
    else if (!fsync)
        sql_inspect_note_loss(inspection, SIMBA_LOG_WARN, "fsync is off");
    else
        sql_inspect_note(inspection, SIMBA_LOG_INFO,
                         "fsync is on, synchronous_commit %s: a grant survives a crash",
                         pg->syncs ? "too" : "is switched on in our sessions");
    if (strcmp(PQgetvalue(r, 0, PAGES), "off") == 0)
        sql_inspect_note(inspection, SIMBA_LOG_WARN,
                         "full_page_writes is off: a crash of the machine may damage the table");
}

static void note_server(struct postgres_connection *pg, const PGresult *r)
{
    struct sql_inspection *inspection = &pg->inspection;
    const char *cipher = PQsslAttribute(pg->conn, "cipher");
    snprintf(inspection->server, sizeof inspection->server, "PostgreSQL %s",
             PQgetvalue(r, 0, VERSION));
    snprintf(inspection->zone, sizeof inspection->zone, "%s", PQgetvalue(r, 0, ZONE));
    snprintf(inspection->cipher, sizeof inspection->cipher, "%s",
             !PQsslInUse(pg->conn) ? ""
             : cipher != NULL      ? cipher
                                   : "TLS");
    inspection->is_local = sql_config_is_local(PQhost(pg->conn));
    inspection->connections = strtoll(PQgetvalue(r, 0, CONNECTIONS), NULL, 10);
    inspection->ahead_ms = strtoll(PQgetvalue(r, 0, NOW_MS), NULL, 10) - sql_inspect_wall_ms();
    note_durability(pg, r);
    pg->notes = inspection->notes;
}

bool postgres_inspect_server(struct postgres_connecting *d)
{
    struct postgres_connection *pg = d->connection;
    PGresult *r = postgres_connection_run(d, facts);
    if (r == NULL)
        return false;
    pg->inspection.read_only = PQgetvalue(r, 0, READ_ONLY)[0] == 't';
    /* A pooler makes up a process number of its own. */
    pg->pooled = strtol(PQgetvalue(r, 0, PID), NULL, 10) != PQbackendPID(pg->conn);
    pg->notifies =
        d->config->listen == LISTEN_ON || (d->config->listen == LISTEN_AUTO && !pg->pooled);
    note_server(pg, r);
    PQclear(r);
    return true;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* A table that is not there has no rights either. The statements are made where names can be
 * quoted. */
static const char find[] =
    "SELECT a.attname,a.atttypid='int8'::regtype,CASE WHEN a.atttypid='text'::regtype THEN 1000 "
    "ELSE a.atttypmod-4 END,coalesce(k.collisdeterministic,true),"
    "concat_ws(', ',CASE WHEN NOT has_table_privilege(c.oid,'SELECT')THEN 'SELECT' END,"
    "CASE WHEN NOT has_table_privilege(c.oid,'INSERT')THEN 'INSERT' END,"
    "CASE WHEN NOT has_table_privilege(c.oid,'UPDATE')THEN 'UPDATE' END),"
    "format('GRANT CONNECT ON DATABASE %I TO %I; GRANT USAGE ON SCHEMA %I TO %I; "
    "GRANT SELECT, INSERT, UPDATE ON %s TO %I;',current_database(),current_user,n.nspname,"
    "current_user,concat_ws(', ',format('%I.%I',n.nspname,c.relname),"
    "CASE WHEN o.oid IS NOT NULL THEN format('%I.%I',n.nspname,o.relname)END),current_user),"
    "c.relpersistence='p',"
    "quote_ident(n.nspname),o.oid IS NOT NULL,"
    "concat_ws(', ',CASE WHEN NOT has_table_privilege(o.oid,'SELECT')THEN 'SELECT' END,"
    "CASE WHEN NOT has_table_privilege(o.oid,'INSERT')THEN 'INSERT' END,"
    "CASE WHEN NOT has_table_privilege(o.oid,'UPDATE')THEN 'UPDATE' END),"
    "(SELECT quote_ident(y.nspname)FROM pg_class x JOIN pg_namespace y ON y.oid=x.relnamespace "
    "WHERE x.oid=to_regclass('simba_note')AND x.relnamespace<>c.relnamespace)"
    "FROM pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace "
    "LEFT JOIN pg_class o ON o.relnamespace=c.relnamespace AND o.relname='simba_note' "
    "JOIN pg_attribute a ON a.attrelid=c.oid LEFT JOIN pg_collation k ON k.oid=a.attcollation "
    "WHERE c.oid=to_regclass('simba_mutex')AND a.attnum>0 AND NOT a.attisdropped";

enum {
    NAME,
    IS_WIDE,
    LENGTH,
    IS_BYTEWISE,
    MISSING,
    GRANTS,
    IS_LOGGED,
    SCHEMA,
    HAS_NOTES,
    NOTES_MISSING,
    OTHER_NOTES
};

/* Notes are beside the mutexes, whichever schema comes first for this role: all who share the mutexes
 * share the notes. */
static void note_notes(struct postgres_connection *pg, const PGresult *r)
{
    struct sql_inspection *inspection = &pg->inspection;
    snprintf(pg->table.notes, sizeof pg->table.notes, "%s.simba_note", PQgetvalue(r, 0, SCHEMA));
    inspection->keeps_notes = PQgetvalue(r, 0, HAS_NOTES)[0] == 't';
    snprintf(inspection->notes_missing, sizeof inspection->notes_missing, "%s",
             PQgetvalue(r, 0, NOTES_MISSING));
    snprintf(inspection->other_notes, sizeof inspection->other_notes, "%s",
             PQgetvalue(r, 0, OTHER_NOTES));
}

static int note_column(struct sql_inspection *inspection, const PGresult *r, int row)
{
    int bit = sql_inspect_column(PQgetvalue(r, row, NAME));
    if (bit == COLUMN_VERSION)
        inspection->wide = PQgetvalue(r, row, IS_WIDE)[0] == 't';
    if (bit == COLUMN_OWNER_ID)
        inspection->long_ids = strtol(PQgetvalue(r, row, LENGTH), NULL, 10) >= OWNER_ID_LENGTH;
    inspection->bytewise = inspection->bytewise && PQgetvalue(r, row, IS_BYTEWISE)[0] == 't';
    inspection->fences = inspection->fences || bit == COLUMN_FENCING_TOKEN;
    snprintf(inspection->missing, sizeof inspection->missing, "%s", PQgetvalue(r, row, MISSING));
    snprintf(inspection->grants, sizeof inspection->grants, "%s", PQgetvalue(r, row, GRANTS));
    return bit;
}

/* -1: see code and why. */
static int find_columns(struct postgres_connecting *d)
{
    int found = 0;
    PGresult *r = postgres_connection_run(d, find);
    if (r == NULL)
        return -1;
    struct sql_inspection *inspection = &d->connection->inspection;
    inspection->bytewise = true;
    inspection->notes = d->connection->notes; /* those of the server */
    for (int i = 0; i < PQntuples(r); i++)
        found |= note_column(inspection, r, i);
    if (PQntuples(r) > 0 && PQgetvalue(r, 0, IS_LOGGED)[0] != 't')
        sql_inspect_note_loss(inspection, SIMBA_LOG_ERROR,
                              "the table is UNLOGGED (ALTER TABLE simba_mutex SET LOGGED)");
    if (PQntuples(r) > 0)
        note_notes(d->connection, r);
    PQclear(r);
    return found;
}

/* What went wrong with a script is in d->why. */
static bool cannot(struct postgres_connecting *d, const char *what)
{
    char why[200];
    if (d->end != SQL_FAILED) /* a lock that others hold has nothing to do with rights */
        return false;
    snprintf(why, sizeof why, "%s", d->why);
    *d->code = SIMBA_ESCHEMA;
    snprintf(d->why, SQL_WHY_MAX,
             "%s: %.199s. Let somebody with more rights run what 'simba init --print' prints", what,
             why);
    return false;
}

static bool run_script(struct postgres_connecting *d, const char *script)
{
    PGresult *r = postgres_connection_run(d, script);
    PQclear(r);
    return r != NULL;
}

/* Two at once may meet: then one fails, and finds the other's. */
static bool make_table(struct postgres_connecting *d, int *found)
{
    char why[SQL_WHY_MAX];
    bool made = d->made_table = run_script(d, schema_sql);
    snprintf(why, sizeof why, "%s", d->why);
    *found = find_columns(d);
    if (*found != 0)
        return *found > 0;
    if (!made)
        snprintf(d->why, SQL_WHY_MAX, "%s", why);
    return made || cannot(d, "there is no table simba_mutex in the search path, and it cannot be "
                             "created");
}

bool postgres_inspect_table(struct postgres_connecting *d)
{
    int found = find_columns(d);
    bool create = d->config->create != SQL_CREATE_NEVER && !d->connection->inspection.read_only;
    if (found == 0 && create && !make_table(d, &found))
        return false;
    if (found < 0)
        return false;
    const char *missing = sql_inspect_missing_column(found);
    if (found == 0 && d->connection->inspection.read_only) {
        *d->code = SIMBA_ESCHEMA;
        snprintf(
            d->why, SQL_WHY_MAX,
            "there is no table simba_mutex, and the server is read-only: make it on the primary, "
            "with simba init");
        return false;
    }
    if (missing != NULL) {
        *d->code = SIMBA_ESCHEMA;
        snprintf(
            d->why, SQL_WHY_MAX,
            found == 0
                ? "there is no table simba_mutex in the search path (its column %s)" SQL_MAKE_TABLE
                : "the table simba_mutex has no column %s: it is not Simba's",
            missing);
        return false;
    }
    struct sql_inspection *inspection = &d->connection->inspection;
    if (d->config->create == SQL_CREATE_UPGRADE && !sql_inspect_is_current(inspection)) {
        if (inspection->read_only) {
            *d->code = SIMBA_ESTORE;
            snprintf(d->why, SQL_WHY_MAX, "the table simba_mutex is old, and %s",
                     sql_inspect_read_only(inspection));
            return false;
        }
        if (!run_script(d, upgrade_sql))
            return cannot(d, "the table simba_mutex is there, but cannot be upgraded");
        if (find_columns(d) < 0)
            return false;
    }
    if (inspection->read_only || inspection->missing[0] != '\0')
        d->connection->notifies = false;
    d->connection->table.fences = inspection->fences;
    d->connection->table.marks = inspection->fences && inspection->wide;
    return true;
}

/* By simba init, or with the other table. Else it is made when a note is needed. */
static bool make_notes(struct postgres_connecting *d)
{
    struct postgres_connection *pg = d->connection;
    bool is_init = d->config->create == SQL_CREATE_UPGRADE;
    enum statement_name make = postgres_statements_of_job(&(struct sql_job){.op = SQL_MAKE_NOTES});
    if ((!is_init && !d->made_table) || pg->inspection.keeps_notes || pg->inspection.read_only)
        return true;
    bool made = run_script(d, pg->statement[make].bytes);
    if (!made && is_init)
        return cannot(d, "there is no table simba_note, for notes, and it cannot be created");
    return !made || find_columns(d) >= 0;
}

bool postgres_inspect_notes(struct postgres_connecting *d)
{
    bool ok = make_notes(d);
    note_push(d->connection);
    return ok;
}
