/* inspect.c: what a server and its table are like, looked at with every new connection, on the
 * thread that makes it. Makes the table if there is none; and, if that is wished, one like ours
 * of one that is JVM Simba's. */
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"
#include "backend/mysql/schema_note_sql.h"
#include "backend/mysql/schema_sql.h"
#include "backend/mysql/upgrade_sql.h"

#define STATEMENT_BYTES 2048

static bool run(struct mysql_connection *my, const char *statement)
{
    return mysql_query(&my->mysql, statement) == 0;
}

/* The statements of a script, each for itself; there is no semicolon in anything else. */
static bool run_script(struct mysql_connection *my, const char *script)
{
    char statement[STATEMENT_BYTES];
    for (const char *end; (end = strchr(script, ';')) != NULL; script = end + 1) {
        snprintf(statement, sizeof statement, "%.*s", (int)(end - script), script);
        if (!run(my, statement) && mysql_errno(&my->mysql) != ER_DUP_FIELDNAME)
            return false;
    }
    return true;
}

/* ---- the server ---------------------------------------------------------------------------- */

enum {
    READ_ONLY,
    LOG_BIN,
    BINLOG_FORMAT,
    VERSION,
    SQL_MODE,
    ZONE,
    CONNECTIONS,
    USER_CONNECTIONS,
    FLUSH,
    SYNC_BINLOG,
    DOUBLEWRITE,
    CLUSTER,
    NOW_MS,
    USER,
    DATABASE,
    FACTS
};

static const char facts[] =
    "SELECT "
    "@@global.read_only,@@global.log_bin,@@session.binlog_format,VERSION(),@@global.sql_mode,"
    "IF(@@global.time_zone='SYSTEM',@@system_time_zone,@@global.time_zone),@@max_connections,"
    "@@max_user_connections,@@innodb_flush_log_at_trx_commit,@@sync_binlog,@@innodb_doublewrite,"
    "COALESCE(/*M! (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES "
    "WHERE VARIABLE_NAME='WSREP_ON'),*/''),"
    "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(3))DIV 1000,CURRENT_USER(),DATABASE()";

/* As an account or a name is written in a statement: user@host with each part in quotes. */
static void put_grant(struct sql_inspection *inspection, const char *table, const char *user,
                      const char *database)
{
    const char *at = strrchr(user, '@');
    int length = at != NULL ? (int)(at - user) : (int)strlen(user);
    size_t n = strlen(inspection->grants);
    snprintf(inspection->grants + n, sizeof inspection->grants - n,
             "%sGRANT SELECT, INSERT, UPDATE ON `%.64s`.%s TO '%.*s'@'%.255s';", n > 0 ? " " : "",
             database, table, length, user, at != NULL ? at + 1 : "%");
}

/* What a crash leaves of the last second. */
static void note_durability(struct sql_inspection *inspection, char *const *row)
{
    bool binlog = strcmp(row[LOG_BIN], "1") == 0;
    if (strcmp(row[FLUSH], "0") == 0)
        sql_inspect_note_loss(inspection, SIMBA_LOG_ERROR, "innodb_flush_log_at_trx_commit is 0");
    else if (strcmp(row[FLUSH], "2") == 0)
        sql_inspect_note_loss(inspection, SIMBA_LOG_WARN, "innodb_flush_log_at_trx_commit is 2");
    else if (binlog && strcmp(row[SYNC_BINLOG], "1") != 0) /* what is not in it is rolled back */
        sql_inspect_note_loss(inspection, SIMBA_LOG_WARN,
                              "there is a binary log, and sync_binlog is not 1");
    else
        sql_inspect_note(
            inspection, SIMBA_LOG_INFO,
            "innodb_flush_log_at_trx_commit is %s: a grant survives a crash of the machine",
            row[FLUSH]);
    if (strcmp(row[DOUBLEWRITE], "0") == 0 || strcmp(row[DOUBLEWRITE], "OFF") == 0)
        sql_inspect_note(inspection, SIMBA_LOG_WARN,
                         "innodb_doublewrite is off: a crash of the machine may damage the table");
    if (strcmp(row[CLUSTER], "ON") == 0)
        sql_inspect_note(
            inspection, SIMBA_LOG_WARN,
            "a Galera cluster: leases are counted by the clock of the node that answers. Let "
            "all clients use one node, and keep the clocks of all together");
}

static void note_server(struct mysql_connection *my, const struct mysql_config *c, char *const *row)
{
    struct sql_inspection *inspection = &my->inspection;
    const char *cipher = mysql_get_ssl_cipher(&my->mysql);
    int64_t all = strtoll(row[CONNECTIONS], NULL, 10);
    int64_t each = strtoll(row[USER_CONNECTIONS], NULL, 10);
    snprintf(inspection->server, sizeof inspection->server, "%s %.40s",
             mariadb_connection(&my->mysql) ? "MariaDB" : "MySQL", row[VERSION]);
    snprintf(inspection->cipher, sizeof inspection->cipher, "%s", cipher != NULL ? cipher : "");
    snprintf(inspection->zone, sizeof inspection->zone, "%s", row[ZONE]);
    inspection->is_local = sql_config_is_local(c->host);
    inspection->ahead_ms = strtoll(row[NOW_MS], NULL, 10) - sql_inspect_wall_ms();
    inspection->connections = each > 0 && each < all ? each : all;
    put_grant(inspection, "simba_mutex", row[USER], row[DATABASE]);
    my->grants_length = strlen(inspection->grants);
    put_grant(inspection, "simba_note", row[USER], row[DATABASE]);
    bool strict = strstr(row[SQL_MODE], "STRICT_") != NULL;
    sql_inspect_note(inspection, strict ? SIMBA_LOG_INFO : SIMBA_LOG_WARN,
                     strict
                         ? "sql_mode: strict"
                         : "sql_mode is not strict by default: names that are too long are refused "
                           "here, but JVM peers' are cut");
    note_durability(inspection, row);
}

int mysql_inspect_server(struct mysql_connection *my, const struct mysql_config *c)
{
    static char nothing[] = "";
    if (!run(my, facts))
        return -1;
    MYSQL_RES *r = mysql_store_result(&my->mysql);
    MYSQL_ROW row = r != NULL ? mysql_fetch_row(r) : NULL;
    for (int i = 0; row != NULL && i < FACTS; i++)
        row[i] = row[i] != NULL ? row[i] : nothing;
    bool by_statement = row != NULL && strcmp(row[LOG_BIN], "1") == 0 &&
                        strcmp(row[BINLOG_FORMAT], "STATEMENT") == 0;
    if (row != NULL)
        note_server(my, c, row);
    /* SUPER may write to a replica, too, where it must not. */
    my->inspection.read_only = row != NULL && strcmp(row[READ_ONLY], "0") != 0;
    mysql_free_result(r);
    my->notes = my->inspection.notes;
    if (row == NULL)
        return -1;
    if (by_statement && !run(my, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        return -1;
    return 0;
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool is_bytewise(const char *collation)
{
    return collation == NULL || strstr(collation, "nopad_bin") != NULL ||
           strstr(collation, "0900_bin") != NULL;
}

static void note_rights(char missing[64], const char *rights)
{
    static const char *const needed[] = {"select", "insert", "update"};
    missing[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(missing);
        if (strstr(rights, needed[i]) == NULL)
            snprintf(missing + n, 64 - n, "%s%s", n > 0 ? ", " : "", needed[i]);
    }
}

/* Engines that keep nothing, or what was half written, through a crash of the server. */
static void note_engine(struct sql_inspection *inspection, const char *engine)
{
    static const char *const forget[] = {"MEMORY", "MyISAM", "Aria", "CSV", "BLACKHOLE"};
    char line[128];
    if (strcmp(engine, "InnoDB") == 0)
        return;
    snprintf(line, sizeof line,
             "the table's engine is %.40s, not InnoDB (ALTER TABLE simba_mutex "
             "ENGINE=InnoDB)",
             engine);
    for (size_t i = 0; i < sizeof forget / sizeof *forget; i++) {
        if (strcmp(engine, forget[i]) == 0) {
            sql_inspect_note_loss(inspection, SIMBA_LOG_ERROR, line);
            return;
        }
    }
    sql_inspect_note(inspection, SIMBA_LOG_WARN, "%s: what a crash leaves of it was never tried",
                     line);
}

/* name, type, length, collation, rights, engine; and 1 for the table of notes */
static int note_column(struct sql_inspection *inspection, char *const *row)
{
    int bit = row[0] != NULL ? sql_inspect_column(row[0]) : 0;
    if (row[6] != NULL && row[6][0] == '1') {
        inspection->keeps_notes = true;
        if (bit == COLUMN_MUTEX)
            note_rights(inspection->notes_missing, row[4] != NULL ? row[4] : "");
        return 0;
    }
    if (bit == COLUMN_VERSION)
        inspection->wide = row[1] != NULL && strcmp(row[1], "bigint") == 0;
    if (bit == COLUMN_OWNER_ID)
        inspection->long_ids = row[2] != NULL && strtol(row[2], NULL, 10) >= OWNER_ID_LENGTH;
    if (bit == COLUMN_MUTEX || bit == COLUMN_OWNER_ID)
        inspection->bytewise = inspection->bytewise && is_bytewise(row[3]);
    if (bit == COLUMN_MUTEX)
        note_rights(inspection->missing, row[4] != NULL ? row[4] : "");
    if (bit == COLUMN_MUTEX && row[5] != NULL)
        note_engine(inspection, row[5]);
    inspection->fences = inspection->fences || bit == COLUMN_FENCING_TOKEN;
    return bit;
}

static int find_columns(struct mysql_connection *my)
{
    MYSQL_ROW row;
    int found = 0;
    if (!run(my, "SELECT COLUMN_NAME,DATA_TYPE,CHARACTER_MAXIMUM_LENGTH,COLLATION_NAME,PRIVILEGES,"
                 "(SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE()AND "
                 "TABLE_NAME='simba_mutex'),TABLE_NAME='simba_note' FROM "
                 "information_schema.COLUMNS WHERE TABLE_SCHEMA=DATABASE()AND "
                 "TABLE_NAME IN('simba_mutex','simba_note')"))
        return -1;
    MYSQL_RES *r = mysql_store_result(&my->mysql);
    if (r == NULL)
        return -1;
    my->inspection.bytewise = true;
    my->inspection.notes = my->notes; /* those of the server */
    while ((row = mysql_fetch_row(r)) != NULL)
        found |= note_column(&my->inspection, row);
    mysql_free_result(r);
    return found;
}

/* A connection that is lost, or a lock that others hold, has nothing to do with rights: -1, it is
 * tried again. */
static int cannot(struct mysql_connection *my, const char *what, char *why)
{
    int code;
    if (mysql_connection_explain(&my->mysql, &code, why) != SQL_FAILED)
        return -1;
    snprintf(why, SQL_WHY_MAX,
             "%s: %.200s (%u). Let somebody with more rights run what 'simba init --print' prints",
             what, mysql_error(&my->mysql), mysql_errno(&my->mysql));
    return SIMBA_ESCHEMA;
}

/* By simba init. Else it is made when a note is needed. */
static int make_notes(struct mysql_connection *my, char *why)
{
    if (my->inspection.keeps_notes || my->inspection.read_only)
        return 0;
    if (!run_script(my, schema_note_sql))
        return cannot(my, "there is no table simba_note, for notes, and it cannot be created", why);
    return find_columns(my) < 0 ? -1 : 0;
}

int mysql_inspect_table(struct mysql_connection *my, const struct mysql_config *c, char *why)
{
    int found = find_columns(my);
    if (found == 0 && c->create != SQL_CREATE_NEVER && !my->inspection.read_only) {
        if (!run_script(my, schema_sql) || !run_script(my, schema_note_sql))
            return cannot(my,
                          "there is no table simba_mutex in this database, or no right to read it, "
                          "and it cannot be created",
                          why);
        found = find_columns(my);
    }
    if (found < 0)
        return -1;
    const char *missing = sql_inspect_missing_column(found);
    if (found == 0 && my->inspection.read_only) {
        snprintf(
            why, SQL_WHY_MAX,
            "there is no table simba_mutex, and the server is read-only: make it on the primary, "
            "with simba init");
        return SIMBA_ESCHEMA;
    }
    if (missing != NULL) {
        snprintf(why, SQL_WHY_MAX,
                 found == 0 ? "there is no table simba_mutex in this database, or no right to "
                              "read its column %s" SQL_MAKE_TABLE
                            : "the table simba_mutex has no column %s: it is not Simba's",
                 missing);
        return SIMBA_ESCHEMA;
    }
    if (c->create == SQL_CREATE_UPGRADE && !sql_inspect_is_current(&my->inspection)) {
        if (my->inspection.read_only) {
            snprintf(why, SQL_WHY_MAX, "the table simba_mutex is old, and %s",
                     sql_inspect_read_only(&my->inspection));
            return SIMBA_ESTORE;
        }
        if (!run_script(my, upgrade_sql))
            return cannot(my, "the table simba_mutex is there, but cannot be upgraded", why);
        if (find_columns(my) < 0)
            return -1;
    }
    int rc = c->create == SQL_CREATE_UPGRADE ? make_notes(my, why) : 0;
    my->table.fences = my->inspection.fences;
    if (!my->inspection.keeps_notes)
        my->inspection.grants[my->grants_length] = '\0'; /* there is nothing to grant yet */
    return rc;
}
