/* table.c: a table that others have made or changed: JVM Simba's, one without some rights, one
 * whose rows were deleted; and the first use of one. */
#include <stdio.h>
#include <stdlib.h>

#include "help.h"

/* ---- rows of others ------------------------------------------------------------------------ */

/* A JVM owner's row is honoured until its end, and taken then; tokens go on from there. */
static void jvm_row(bool fences)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, fences);
    sql_run(&d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version%s) "
            "VALUES ('m',%s,%s+1000,%s+7000,'0:1@jvm',41%s)",
            fences ? ",fencing_token" : "", sql_now, sql_now, sql_now, fences ? ",7" : "");
    long long end = sql_number(&d, "SELECT transition_at FROM simba_mutex WHERE mutex='m'");
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    struct simba_owner o;
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    /* Its version would be another one with each of its renewals. */
    CHECK(simba_owner_is(&o, "0:1@jvm") && o.token == (fences ? 7 : sql_is_mysql() ? 0 : 41));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(simba_locker_token(l) > 41);
    CHECK(sql_number(&d, "SELECT acquired_at FROM simba_mutex WHERE mutex='m'") >= end);
    CHECK(sql_number(&d,
                     "SELECT CASE WHEN transition_at>%s AND acquired_at>=%s-20000 THEN 1 ELSE 0 "
                     "END FROM simba_mutex WHERE mutex='m'",
                     sql_now, sql_now) == 1);
    /* A JVM peer reads the version as an int of 32 bits. */
    CHECK(sql_number(&d, "SELECT version FROM simba_mutex WHERE mutex='m'") <= 2147483647);
    CHECK_OK(simba_locker_release(l));
    CHECK(sql_number(&d, "SELECT acquired_at+ttl_at+transition_at FROM simba_mutex "
                         "WHERE mutex='m' AND owner_id=''") == 0);
    client_close(s);
    database_drop(&d);
}

static void sql_jvm3_row(void)
{
    jvm_row(false);
}

static void sql_jvm4_row(void)
{
    jvm_row(true);
}

static void await_renewals(struct database *d, int count)
{
    while (count-- > 0) {
        long long before = sql_number(d, "SELECT ttl_at FROM simba_mutex WHERE mutex='m'");
        AWAIT(sql_number(d, "SELECT ttl_at FROM simba_mutex WHERE mutex='m'") > before);
    }
}

/* T2A: while clients hold and wait, the table gets its column; tokens do not fall. */
static void sql_upgrade(void)
{
    struct database d;
    char url[600];
    database_make(&d);
    sql_make_table(&d, false);
    sql_run(&d, "INSERT INTO simba_mutex VALUES ('m',0,0,0,'',500),('n',0,0,0,'',9)");
    struct simba_handle_options often = lease(400, 7600);
    struct peer a = start(d.url, "m", often), b = start(d.url, "m", lease_steady());
    uint64_t token = own(&a);
    CHECK(token > 500);
    await_renewals(&d, 4); /* so many that the server has planned the statement */
    snprintf(url, sizeof url, "%s?create=upgrade", d.url);
    simba_client *s = open_at(url);
    struct simba_owner o;
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o)); /* by whom it is held, all the time */
    CHECK((uint64_t)peer_number(&a, "token") == token);
    CHECK(sql_number(&d, "SELECT fencing_token FROM simba_mutex WHERE mutex='n'") == 9);
    client_close(s);
    contend(&b); /* it sees the new column, the other does not, and waits */
    await_renewals(&d, 4);
    CHECK((uint64_t)peer_number(&a, "token") == token);
    for (int i = 0; i < 4; i++) {
        struct peer *from = i % 2 == 0 ? &a : &b, *to = i % 2 == 0 ? &b : &a;
        CHECK((uint64_t)peer_number(from, "token") == token);
        CHECK(peer_number(from, "stop") == 0);
        uint64_t next = peer_await_owner(to);
        CHECK(next > token);
        token = next;
        AWAIT(peer_number(from, "start") == 0);
    }
    peer_end(&a);
    peer_end(&b);
    database_drop(&d);
}

/* Somebody's transaction keeps the table from being changed: that is said, and not that rights
 * are missing. */
static void sql_upgrade_locked(void)
{
    struct database d;
    char url[600];
    struct simba_owner o;
    database_make(&d);
    sql_make_table(&d, false);
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT COUNT(*) FROM simba_mutex");
    snprintf(url, sizeof url, "%s?create=upgrade", d.url);
    simba_client *s = open_at(url);
    CHECK_REFUSED(simba_read(s, "m", PATIENCE_MS, &o), SIMBA_ESTORE, NULL);
    CHECK(strstr(simba_error_text(), "rights") == NULL);
    sql_run(&d, "ROLLBACK");
    AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0);
    client_close(s);
    database_drop(&d);
}

/* T20: on the JVM's table, where 'node-a' equals 'Node-A' and 'JOB' equals 'job'. */
static void sql_collation(void)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, true);
    simba_client *s = open_at(d.url);
    simba_locker *owner = locker(s, "job", "Node-A", lease_steady());
    CHECK_OK(simba_locker_acquire(owner, PATIENCE_MS));
    uint64_t token = simba_locker_token(owner);
    static const char *const others[] = {"node-a", "Node-A ", "Node-\xc3\x81"};
    for (size_t i = 0; i < 3; i++)
        CHECK_CODE(simba_locker_acquire(locker(s, "job", others[i], lease_long()), 0), SIMBA_EHELD);
    simba_locker *same = locker(s, "JOB", "x", lease_long());
    if (sql_is_mysql())
        CHECK_REFUSED(simba_locker_acquire(same, 0), SIMBA_ESCHEMA, "collation");
    else
        CHECK_OK(simba_locker_acquire(same, 0));
    CHECK(simba_locker_is_held(owner) && simba_locker_token(owner) == token);
    CHECK_OK(simba_locker_release(owner));
    if (sql_is_mysql()) { /* nor is a free row taken under another name, in one statement or in two */
        char url[600];
        CHECK_REFUSED(simba_locker_acquire(same, 0), SIMBA_ESCHEMA, "collation");
        snprintf(url, sizeof url, "%s?returning=off", d.url);
        simba_client *other = open_at(url);
        CHECK(simba_locker_acquire(locker(other, "JOB", "x", lease_long()), 0) != 0);
        client_close(other);
        CHECK(sql_number(&d, "SELECT COUNT(*) FROM simba_mutex WHERE owner_id<>''") == 0);
    }
    client_close(s);
    database_drop(&d);
}

/* T24, T27: a version at its limit, and an id that is too long for a narrow column. */
static void sql_narrow_table(void)
{
    struct database d;
    const char *most = sql_is_mysql() ? "4294967295" : "2147483647";
    database_make(&d);
    sql_make_table(&d, true);
    sql_run(&d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version) "
            "VALUES ('m',0,0,0,'',%s)",
            most);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    for (int i = 0; i < 3; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK(simba_locker_token(l) > strtoull(most, NULL, 10));
        CHECK_OK(simba_locker_release(l));
    }
    client_close(s);
    sql_run(&d, sql_is_mysql() ? "ALTER TABLE simba_mutex DROP COLUMN fencing_token, "
                                 "MODIFY owner_id CHAR(32) NOT NULL"
                               : "ALTER TABLE simba_mutex DROP COLUMN fencing_token, "
                                 "ALTER owner_id TYPE varchar(32)");
    s = open_at(d.url);
    CHECK_REFUSED(simba_locker_acquire(
                      locker(s, "n", "0123456789012345678901234567890123456789", lease_long()), 0),
                  SIMBA_ESCHEMA, "narrow");
    simba_locker *generated = locker(s, "g", NULL, lease_long());
    CHECK(!sql_is_mysql() || strchr(simba_locker_id(generated), '/') == NULL);
    if (sql_is_mysql() && strlen(simba_locker_id(generated)) <= 32) /* by pid and address */
        CHECK_OK(simba_locker_acquire(generated, 0));
    client_close(s);
    database_drop(&d);
}

static void find_mode(void *data, enum simba_level level, const char *line)
{
    if (level == SIMBA_LOG_WARN && strstr(line, "sql_mode is not strict") != NULL)
        *(bool *)data = true;
}

/* T27: a server that cuts what is too long, unless it is told not to. */
static void sql_not_strict(void)
{
    struct database d;
    bool said = false;
    if (!sql_is_mysql())
        suite_skip("needs a server that has such a mode");
    folder_make();
    server_make(&d);
    sql_run(&d, "SET GLOBAL sql_mode=''");
    sql_make_table(&d, true);
    sql_run(&d, "ALTER TABLE simba_mutex MODIFY owner_id VARCHAR(32) NOT NULL, "
                "MODIFY mutex VARCHAR(8) NOT NULL");
    simba_client *s = open_at(d.url);
    CHECK_REFUSED(simba_locker_acquire(
                      locker(s, "m", "0123456789012345678901234567890123456789", lease_long()), 0),
                  SIMBA_ESCHEMA, "narrow");
    CHECK_OK(simba_locker_acquire(locker(s, "12345678", "a", lease_long()), 0));
    CHECK_REFUSED(simba_locker_acquire(locker(s, "123456789", "b", lease_long()), 0), SIMBA_ESCHEMA,
                  "narrow");
    CHECK(sql_number(&d, "SELECT COUNT(*) FROM simba_mutex") == 1);
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, find_mode, &said));
    CHECK(said);
    client_close(s);
    server_stop(&d);
    folder_remove();
}

/* ---- tokens -------------------------------------------------------------------------------- */

static uint64_t take_once(simba_locker *l)
{
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    CHECK_OK(simba_locker_release(l));
    return token;
}

/* A row is the memory of its token. Without it the clock is: it is above all that was given out. */
static void deleted(struct database *d, const char *url)
{
    simba_client *s = open_at(url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    uint64_t token = 0, next;
    for (int i = 0; i < 20; i++) {
        next = take_once(l);
        CHECK(next > token);
        token = next;
    }
    sql_run(d, "DELETE FROM simba_mutex WHERE mutex='m'");
    CHECK((next = take_once(l)) > token);
    token = next;
    sql_run(d, "DELETE FROM simba_mutex WHERE mutex='m'"); /* and a JVM peer makes it anew */
    sql_run(d, "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version) "
               "VALUES ('m',0,0,0,'',0)");
    CHECK((next = take_once(l)) > token);
    token = next;
    sql_run(d, "TRUNCATE TABLE simba_mutex"); /* under an owner: it hears of it, and is told LOST */
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK((next = simba_locker_token(l)) > token);
    sql_run(d, "DELETE FROM simba_mutex");
    AWAIT(!simba_locker_is_held(l));
    simba_locker_release(l);
    CHECK(take_once(l) > next);
    client_close(s);
}

static void sql_deleted_row(void)
{
    struct database d;
    char url[600];
    database_make(&d);
    deleted(&d, d.url);
    sql_run(&d, "DROP TABLE simba_mutex");
    sql_make_table(&d, true);
    snprintf(url, sizeof url, "%s?returning=off", d.url);
    deleted(&d, sql_is_mysql() ? url : d.url);
    database_drop(&d);
}

/* Without a column for tokens it is the seconds of the clock: a number that JVM peers can read. */
static void sql_deleted_jvm3_row(void)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, false);
    sql_run(&d, "INSERT INTO simba_mutex VALUES ('m',0,0,0,'',41000000)");
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    sql_run(&d, "DELETE FROM simba_mutex");
    uint64_t token = take_once(l);
    CHECK(token > 41000000 && token < 2147483647);
    nap(1100); /* more than one a second is more than it can remember */
    sql_run(&d, "DELETE FROM simba_mutex");
    CHECK(take_once(l) > token);
    client_close(s);
    database_drop(&d);
}

/* ---- first use ----------------------------------------------------------------------------- */

static _Atomic int complaints;

/* Whoever makes the table may be late by more than the second for which the others wait for it. */
static void on_log(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level > SIMBA_LOG_WARN || strstr(line, "lock timeout") != NULL ||
        strstr(line, "Lock wait timeout") != NULL)
        return;
    atomic_fetch_add(&complaints, 1);
    fprintf(stderr, "%s\n", line);
}

/* T23: neither table nor row is there, and six come at once. Each gets an answer at once, one
 * gets the mutex. */
static void first_use(const char *url)
{
    enum { CLIENTS = 6, ROUNDS = 10 };
    struct simba_options so = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease_long();
    simba_client *s[CLIENTS];
    simba_contender *c[CLIENTS];
    char name[24];
    so.log = on_log;
    so.command_timeout_ms =
        PATIENCE_MS / 2; /* else it may complain of a machine that stands still */
    for (int i = 0; i < CLIENTS; i++)
        CHECK_OK(simba_open(url, &so, &s[i]));
    for (int r = 0; r < ROUNDS; r++) {
        int owners = 0;
        snprintf(name, sizeof name, "first%d", r);
        for (int i = 0; i < CLIENTS; i++)
            CHECK_OK(simba_contender_create(s[i], name, &o, &c[i]));
        for (int i = 0; i < CLIENTS; i++)
            CHECK_OK(simba_contender_start(c[i]));
        for (int i = 0; i < CLIENTS; i++)
            CHECK_OK(simba_contender_wait(c[i], SIMBA_RUNNING, PATIENCE_MS));
        for (int i = 0; i < CLIENTS; i++)
            owners += simba_contender_is_owner(c[i]);
        CHECK(owners == 1);
    }
    for (int i = 0; i < CLIENTS; i++)
        client_close(s[i]);
    CHECK(complaints == 0);
}

static void sql_first_use(void)
{
    struct database d;
    char url[600];
    database_make(&d);
    first_use(d.url);
    sql_run(&d, "DROP TABLE simba_mutex");
    snprintf(url, sizeof url, "%s?returning=off", d.url);
    if (sql_is_mysql())
        first_use(url);
    database_drop(&d);
}

/* ---- rights -------------------------------------------------------------------------------- */

static void keep_grants(void *data, enum simba_level level, const char *line)
{
    const char *grants = strstr(line, "GRANT ");
    (void)level;
    if (grants != NULL)
        snprintf(data, 1024, "%s", grants);
}

static void ignore_change(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

static void count_entry(void *data, const struct simba_entry *e)
{
    (void)e;
    ++*(int *)data;
}

static void revoke_all(struct database *d)
{
    if (sql_is_mysql()) {
        sql_run(d, "DROP USER %s@localhost; REVOKE ALL ON %s.* FROM %s", d->name, d->name, d->name);
        return;
    }
    sql_run(d, "ALTER TABLE simba_mutex OWNER TO postgres");
    sql_run(d, "ALTER DATABASE %s OWNER TO postgres", d->name);
    sql_run(d, "REVOKE ALL ON simba_mutex FROM PUBLIC, %s", d->name);
    sql_run(d, "REVOKE ALL ON SCHEMA public FROM PUBLIC");
    sql_run(d, "REVOKE ALL ON DATABASE %s FROM PUBLIC, %s", d->name, d->name);
}

/* The statements that doctor prints: with these rights and no other everything works. */
static void sql_least_rights(void)
{
    struct database d;
    char grants[1024] = "";
    struct simba_owner o;
    int count = 0;
    database_make(&d);
    simba_client *s = open_at(d.url);
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    client_close(s);
    revoke_all(&d);
    refused(d.url, SIMBA_EDENIED, NULL);
    sql_run(&d, sql_is_mysql() ? "CREATE USER %s@localhost IDENTIFIED BY 'geheim'" : "SELECT '%s'",
            d.name);
    if (sql_is_mysql())
        sql_run(&d, "GRANT ALL ON %s.* TO %s", d.name, d.name);
    else
        sql_run(&d, "ALTER ROLE %s SUPERUSER", d.name);
    s = open_at(d.url); /* somebody with more rights asks what is enough */
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, keep_grants, grants));
    client_close(s);
    if (sql_is_mysql())
        sql_run(&d, "REVOKE ALL ON %s.* FROM %s", d.name, d.name);
    else
        sql_run(&d, "ALTER ROLE %s NOSUPERUSER", d.name);
    CHECK(grants[0] != '\0');
    sql_run(&d, "%s", grants);
    s = open_at(d.url);
    simba_client *other = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    simba_observer *w = NULL;
    struct simba_handle_options like = lease_long();
    struct simba_state state;
    like.on_changed = ignore_change;
    CHECK_OK(simba_observer_create(other, "m", &like, &w));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT((simba_observer_state(w, &state), state.after.token == simba_locker_token(l)));
    CHECK_OK(simba_list(other, NULL, PATIENCE_MS, count_entry, &count));
    CHECK(count == 1);
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_evict(other, "m", NULL, false, PATIENCE_MS));
    AWAIT(!simba_locker_is_held(l));
    simba_locker_release(l);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_evict(other, "m", NULL, true, PATIENCE_MS));
    client_close(s);
    client_close(other);
    database_drop(&d);
}

/* The table is missing, and who connects may not make it; then may not write to it. */
static void sql_rights(void)
{
    struct database d;
    struct simba_owner o;
    database_make(&d);
    if (sql_is_mysql()) {
        sql_run(&d,
                "REVOKE ALL ON %s.* FROM %s, %s@localhost; GRANT SELECT, INSERT, UPDATE ON %s.* TO "
                "%s, %s@localhost",
                d.name, d.name, d.name, d.name, d.name, d.name);
    } else {
        sql_run(&d, "ALTER DATABASE %s OWNER TO postgres", d.name);
        sql_run(&d, "REVOKE CREATE ON SCHEMA public FROM public");
    }
    refused(d.url, SIMBA_ESCHEMA, "cannot be created");
    if (sql_is_mysql())
        sql_make_table(&d, true);
    else
        sql_run(&d, "CREATE TABLE simba_mutex (mutex varchar(66) primary key, acquired_at bigint, "
                    "ttl_at bigint, transition_at bigint, owner_id varchar(128), version bigint, "
                    "fencing_token bigint not null default 0)");
    if (!sql_is_mysql()) {
        refused(d.url, SIMBA_EDENIED, "grant SELECT, INSERT and UPDATE");
        sql_run(&d, "GRANT SELECT, INSERT, UPDATE ON simba_mutex TO %s", d.name);
    }
    simba_client *s = open_at(d.url); /* these three are enough for everything */
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_evict(s, "m", NULL, true, PATIENCE_MS));
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    client_close(s);
    sql_run(&d,
            sql_is_mysql() ? "REVOKE INSERT, UPDATE ON %s.* FROM %s; REVOKE INSERT, UPDATE ON %s.* "
                             "FROM %s@localhost"
                           : "REVOKE INSERT, UPDATE ON simba_mutex FROM PUBLIC, %s -- %s %s %s",
            d.name, d.name, d.name, d.name);
    s = open_at(d.url);
    l = locker(s, "m", NULL, lease_long());
    CHECK_REFUSED(simba_locker_acquire(l, 0), SIMBA_EDENIED, "grant");
    client_close(s);
    database_drop(&d);
}

const struct test sql_table_tests[] = {
    {"sql_jvm3_row", sql_jvm3_row, SQL_ONLY, 0},
    {"sql_jvm4_row", sql_jvm4_row, SQL_ONLY, 0},
    {"sql_upgrade", sql_upgrade, SQL_ONLY, 0},
    {"sql_upgrade_locked", sql_upgrade_locked, SQL_ONLY, 0},
    {"sql_collation", sql_collation, SQL_ONLY, 0},
    {"sql_narrow_table", sql_narrow_table, SQL_ONLY, 0},
    {"sql_not_strict", sql_not_strict, SQL_ONLY, 0},
    {"sql_deleted_row", sql_deleted_row, SQL_ONLY, 0},
    {"sql_deleted_jvm3_row", sql_deleted_jvm3_row, SQL_ONLY, 0},
    {"sql_first_use", sql_first_use, SQL_ONLY, 0},
    {"sql_rights", sql_rights, SQL_ONLY, 0},
    {"sql_least_rights", sql_least_rights, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
