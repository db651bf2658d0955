/* safety.c: what an operator does to a server and its table: makes it read-only, lets a crash
 * forget things, deletes rows, puts back an old copy. Reading goes on; nobody is told less than
 * what is true; tokens rise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "help.h"

/* ---- read-only ----------------------------------------------------------------------------- */

static void count_entry(void *data, const struct simba_entry *e)
{
    *(int *)data += simba_owner_is(&e->owner, "holder");
}

static _Atomic int complaints;

static void count_complaint(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level > SIMBA_LOG_WARN)
        return;
    atomic_fetch_add(&complaints, 1);
    fprintf(stderr, "%s\n", line);
}

static void ignore_change(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

/* What only reads works there, also an observer of one mutex and of all; what writes is told why
 * not. */
static void read_only_use(struct database *d, int code, const char *part)
{
    struct simba_options so = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    struct simba_state state;
    simba_client *s = NULL;
    simba_observer *w = NULL, *all = NULL;
    int count = 0;
    so.log = count_complaint;
    so.command_timeout_ms =
        PATIENCE_MS / 2; /* else it may complain of a machine that stands still */
    complaints = 0;
    CHECK_OK(simba_open(d->url, &so, &s));
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner));
    CHECK(simba_owner_is(&owner, "holder"));
    CHECK_OK(simba_list(s, NULL, PATIENCE_MS, count_entry, &count));
    CHECK(count == 1);
    o.on_changed = ignore_change;
    CHECK_OK(simba_observer_create(s, "m", &o, &w));
    CHECK_OK(simba_observer_create(s, NULL, &o, &all));
    AWAIT((simba_observer_state(w, &state), simba_owner_is(&state.after, "holder")));
    sql_run(d, sql_is_mysql() ? "UPDATE simba_mutex SET owner_id='later',version=version+1,"
                                "fencing_token=fencing_token+1 WHERE mutex='m'"
                              : "SET default_transaction_read_only=off; UPDATE simba_mutex SET "
                                "owner_id='later',version=version+1,fencing_token=fencing_token+1 "
                                "WHERE mutex='m'");
    AWAIT((simba_observer_state(w, &state), simba_owner_is(&state.after, "later")));
    CHECK(complaints == 0);
    simba_locker *l = locker(s, "n", NULL, lease_long());
    CHECK_REFUSED(simba_locker_acquire(l, 0), code, part);
    CHECK_REFUSED(simba_evict(s, "m", NULL, true, PATIENCE_MS), code, part);
    AWAIT(simba_read(s, "m", PATIENCE_MS, &owner) == 0); /* after that, too */
    CHECK(simba_owner_is(&owner, "later"));
    client_close(s);
}

static void hold(struct database *d)
{
    simba_client *s = open_at(d->url);
    struct simba_owner o;
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o)); /* makes the table */
    client_close(s);
    sql_run(d, "DELETE FROM simba_mutex");
    sql_run(d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version,"
            "fencing_token)VALUES('m',%s,%s+90000,%s+90000,'holder',1,1)",
            sql_now, sql_now, sql_now);
}

static void sql_read_only(void)
{
    struct database d;
    folder_make();
    server_make(&d);
    hold(&d);
    struct peer a = start(d.url, "p", lease_long());
    if (sql_is_mysql())
        sql_run(&d, "SET GLOBAL read_only=1");
    else
        sql_run(&d, "ALTER DATABASE %s SET default_transaction_read_only=on", d.name);
    read_only_use(&d, SIMBA_ESTORE, "read-only");
    contend(&a);
    nap(500);
    CHECK(peer_number(&a, "token") == 0);
    if (sql_is_mysql())
        sql_run(&d, "SET GLOBAL read_only=0");
    else
        sql_run(&d, "SET default_transaction_read_only=off; ALTER DATABASE %s RESET ALL", d.name);
    peer_await_owner(&a); /* as soon as it may */
    peer_end(&a);
    server_stop(&d);
    folder_remove();
}

/* Who may only read. */
static void sql_read_rights(void)
{
    struct database d;
    database_make(&d);
    hold(&d);
    if (sql_is_mysql()) {
        sql_run(&d,
                "REVOKE ALL ON %s.* FROM %s, %s@localhost; GRANT SELECT ON %s.* TO %s, "
                "%s@localhost",
                d.name, d.name, d.name, d.name, d.name, d.name);
    } else {
        sql_run(&d, "ALTER TABLE simba_mutex OWNER TO postgres");
        sql_run(&d, "GRANT SELECT ON simba_mutex TO %s", d.name);
    }
    read_only_use(&d, SIMBA_EDENIED, "grant");
    database_drop(&d);
}

/* ---- a crash ------------------------------------------------------------------------------- */

struct findings {
    const char *part;
    enum simba_level level;
    bool found;
};

static void find_line(void *data, enum simba_level level, const char *line)
{
    struct findings *f = data;
    f->found = f->found || (level == f->level && strstr(line, f->part) != NULL);
}

static void says(struct database *d, enum simba_level level, const char *part)
{
    struct findings f = {part, level, false};
    struct simba_owner o;
    simba_client *s = open_at(d->url);
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, find_line, &f));
    if (!f.found)
        suite_fail(__FILE__, __LINE__, part);
    client_close(s);
}

/* Settings with which a crash of the server, or of the machine, forgets who owns what. */
static void sql_forgetful_server(void)
{
    struct database d;
    folder_make();
    server_make(&d);
    if (sql_is_mysql()) {
        says(&d, SIMBA_LOG_INFO, "survives a crash of the machine");
        sql_run(&d, "SET GLOBAL innodb_flush_log_at_trx_commit=2");
        says(&d, SIMBA_LOG_WARN, "a crash of the machine forgets");
        sql_run(&d, "SET GLOBAL innodb_flush_log_at_trx_commit=0");
        says(&d, SIMBA_LOG_ERROR, "a crash of the server forgets");
        sql_run(&d, "SET GLOBAL innodb_flush_log_at_trx_commit=1");
        static const char *const engines[] = {"MyISAM", "Aria", "MEMORY"};
        for (int i = 0; i < 3; i++) {
            sql_run(&d, "ALTER TABLE simba_mutex ENGINE=%s", engines[i]);
            says(&d, SIMBA_LOG_ERROR, engines[i]);
        }
    } else {
        says(&d, SIMBA_LOG_WARN, "fsync is off: a crash of the machine forgets");
        sql_run(&d, "ALTER SYSTEM SET full_page_writes=off");
        sql_run(&d, "SELECT pg_reload_conf()");
        AWAIT(sql_number(&d, "SELECT (current_setting('full_page_writes')='off')::int") == 1);
        says(&d, SIMBA_LOG_WARN, "full_page_writes is off");
        sql_run(&d, "ALTER TABLE simba_mutex SET UNLOGGED");
        says(&d, SIMBA_LOG_ERROR, "UNLOGGED");
    }
    server_stop(&d);
    folder_remove();
}

/* A database that commits before it has written: our sessions do not. */
static void sql_crash_forgets_nothing(void)
{
    struct database d;
    folder_make();
    server_make(&d);
    if (!sql_is_mysql()) {
        sql_run(&d, "ALTER SYSTEM SET wal_writer_delay=10000");
        sql_run(&d, "SELECT pg_reload_conf()");
        sql_run(&d, "ALTER DATABASE %s SET synchronous_commit=off", d.name);
    }
    struct peer a = start(d.url, "m", lease_long()); /* a restart may take several seconds */
    simba_client *s = open_at(d.url);
    struct simba_owner o;
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    for (int i = 0; i < 3; i++) {
        uint64_t token = own(&a);
        server_crash(&d);
        server_restart(&d);
        AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0);
        CHECK(o.token == token);
        AWAIT(peer_ask(&a, "read")[0] == '0'); /* else it could not give it back */
        AWAIT(peer_number(&a, "stop") == 0);
        AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0 && !simba_owner_exists(&o, simba_now()));
    }
    client_close(s);
    peer_end(&a);
    server_stop(&d);
    folder_remove();
}

/* ---- rows that are taken away -------------------------------------------------------------- */

static void delete_row(struct database *d)
{
    sql_run(d, "DELETE FROM simba_mutex WHERE mutex='m'");
}

static void truncate_table(struct database *d)
{
    sql_run(d, "TRUNCATE TABLE simba_mutex");
}

static void drop_table(struct database *d)
{
    sql_run(d, "DROP TABLE simba_mutex");
}

/* In one step: whoever waits would make a row in between. */
static void restore_copy(struct database *d)
{
    if (sql_is_mysql())
        sql_run(d, "REPLACE INTO simba_mutex SELECT * FROM old_copy");
    else
        sql_run(d, "BEGIN; DELETE FROM simba_mutex; "
                   "INSERT INTO simba_mutex SELECT * FROM old_copy; COMMIT");
}

/* As an eviction by force: another gets it at once, its owner hears of it when it renews next,
 * at the latest, and whoever compares tokens refuses the one from before. */
static void take_away(struct database *d, void (*act)(struct database *d))
{
    struct simba_handle_options often = lease(2000, 20000);
    often.renew_ms = 500;
    struct peer a = start(d->url, "m", often), b = start(d->url, "m", often);
    uint64_t before = own(&a);
    if (act == restore_copy) { /* taken when an earlier tenure was on, which has ended since */
        sql_run(d, "CREATE TABLE old_copy AS SELECT * FROM simba_mutex");
        sql_run(d, "UPDATE old_copy SET transition_at=acquired_at");
        CHECK(peer_number(&a, "stop") == 0);
        AWAIT(peer_number(&a, "start") == 0);
        uint64_t later = peer_await_owner(&a);
        CHECK(later > before);
        before = later;
    }
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    act(d);
    uint64_t after = 0;
    AWAIT(((uint64_t)peer_number(&a, "token") != before));
    AWAIT((after = (uint64_t)(peer_number(&a, "token") + peer_number(&b, "token"))) > 0);
    CHECK(after > before);
    for (int64_t end = simba_now() + 1500; simba_now() < end; nap(50)) {
        bool first = peer_number(&a, "token") > 0, second = peer_number(&b, "token") > 0;
        CHECK(first + second == 1);
    }
    peer_end(&a);
    peer_end(&b);
}

static void sql_taken_away(void)
{
    struct database d;
    database_make(&d);
    take_away(&d, delete_row);
    sql_run(&d, "DELETE FROM simba_mutex");
    take_away(&d, truncate_table);
    sql_run(&d, "DELETE FROM simba_mutex");
    take_away(&d, restore_copy);
    sql_run(&d, "DELETE FROM simba_mutex");
    take_away(&d, drop_table);
    database_drop(&d);
}

const struct test sql_safety_tests[] = {
    {"sql_taken_away", sql_taken_away, SQL_ONLY, 0},
    {"sql_read_only", sql_read_only, SQL_ONLY, 0},
    {"sql_read_rights", sql_read_rights, SQL_ONLY, 0},
    {"sql_forgetful_server", sql_forgetful_server, SQL_ONLY, 0},
    {"sql_crash_forgets_nothing", sql_crash_forgets_nothing, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
