/* sql_traps.c: what happens to others' locks in SQL databases, and must not happen here. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "sql_server.h"
#include "suite.h"

static simba *open_at(const char *url)
{
    simba *s = NULL;
    CHECK_OK(simba_open(url, NULL, &s));
    return s;
}

static simba_locker *locker(simba *s, const char *mutex, const char *id,
                            struct simba_handle_options o)
{
    simba_locker *l = NULL;
    o.id = id;
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    return l;
}

static struct peer start(const char *url, const char *mutex, struct simba_handle_options like)
{
    struct peer p = {.url = url, .mutex = mutex, .like = like};
    peer_start(&p);
    return p;
}

static void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
}

static uint64_t own(struct peer *p)
{
    contend(p);
    return peer_await_owner(p);
}

/* ---- rows of others ------------------------------------------------------------------------ */

/* A JVM owner's row is honoured until its end, and taken then; tokens go on from there. */
static void jvm_row(bool fences)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, fences);
    sql_run(&d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version%s) "
            "VALUES ('m',%s,%s+1000,%s+2500,'0:1@jvm',41%s)",
            fences ? ",fencing_token" : "", sql_now, sql_now, sql_now, fences ? ",7" : "");
    simba *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    struct simba_owner o;
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &o));
    CHECK(simba_owner_is(&o, "0:1@jvm") && o.token == (fences ? 7 : 41));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(simba_locker_token(l) == 42);
    CHECK(sql_number(&d,
                     "SELECT CASE WHEN transition_at>%s AND acquired_at>=%s-20000 THEN 1 ELSE 0 "
                     "END FROM simba_mutex WHERE mutex='m'",
                     sql_now, sql_now) == 1);
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

/* T2A: while clients hold and wait, the table gets its column; tokens do not fall. */
static void sql_upgrade(void)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, false);
    sql_run(&d, "INSERT INTO simba_mutex VALUES ('m',0,0,0,'',500)");
    struct peer a = start(d.url, "m", lease_steady()), b = start(d.url, "m", lease_steady());
    uint64_t token = own(&a);
    CHECK(token == 501);
    sql_run(&d, sql_is_mysql() ? "ALTER TABLE simba_mutex ADD COLUMN fencing_token BIGINT UNSIGNED "
                                 "NOT NULL DEFAULT 0, MODIFY version BIGINT UNSIGNED NOT NULL; "
                                 "UPDATE simba_mutex SET fencing_token=version "
                                 "WHERE fencing_token<version"
                               : "ALTER TABLE simba_mutex ADD COLUMN fencing_token bigint NOT NULL "
                                 "DEFAULT 0, ALTER version TYPE bigint; "
                                 "UPDATE simba_mutex SET fencing_token=version");
    contend(&b); /* it sees the new column, the other does not */
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

/* T20: on the JVM's table, where 'node-a' equals 'Node-A' and 'JOB' equals 'job'. */
static void sql_collation(void)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, true);
    simba *s = open_at(d.url);
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
    simba *s = open_at(d.url);
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
    CHECK_REFUSED(simba_locker_acquire(locker(s, "m", NULL, lease_long()), 0), SIMBA_ESCHEMA,
                  "narrow");
    CHECK_REFUSED(simba_locker_acquire(
                      locker(s, "n", "0123456789012345678901234567890123456789", lease_long()), 0),
                  SIMBA_ESCHEMA, "narrow");
    client_close(s);
    database_drop(&d);
}

/* ---- locks and sessions -------------------------------------------------------------------- */

/* T21: somebody's transaction holds one row. The other mutexes of the client are renewed all the same. */
static void sql_row_locked(void)
{
    enum { MANY = 12 };
    struct database d;
    database_make(&d);
    simba *s = open_at(d.url);
    simba_locker *l[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        l[i] = locker(s, name, NULL, lease(3000, 3000));
        CHECK_OK(simba_locker_acquire(l[i], PATIENCE_MS));
    }
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m5' FOR UPDATE");
    for (int64_t end = simba_now() + 9000; simba_now() < end; nap(50)) {
        for (int i = 0; i < MANY; i++)
            CHECK(i == 5 || simba_locker_is_held(l[i]));
    }
    CHECK(!simba_locker_is_held(l[5]));
    sql_run(&d, "ROLLBACK");
    for (int i = 0; i < MANY; i++)
        CHECK_CODE(simba_locker_release(l[i]), i == 5 ? SIMBA_ELOST : 0);
    CHECK_OK(simba_locker_acquire(l[5], PATIENCE_MS));
    client_close(s);
    database_drop(&d);
}

/* T26: who has waited for a lock writes a lease that counts from then, or none that he believes in. */
static void sql_late_grant(void)
{
    struct database d;
    database_make(&d);
    simba *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease(600, 0));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m' FOR UPDATE");
    for (int i = 0; i < 8; i++) { /* some wait longer than a lease, some get it when it is over */
        if (simba_locker_acquire(l, 700) == 0) {
            CHECK(simba_locker_remaining(l) <= 600);
            simba_locker_release(l);
        }
        if (i == 5)
            sql_run(&d, "ROLLBACK");
    }
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    bool ends_later =
        sql_number(&d,
                   "SELECT CASE WHEN transition_at>%s THEN 1 ELSE 0 END FROM simba_mutex "
                   "WHERE mutex='m'",
                   sql_now) == 1;
    CHECK(ends_later || !simba_locker_is_held(l));
    client_close(s);
    database_drop(&d);
}

static void kill_sessions(struct database *d)
{
    if (!sql_is_mysql()) {
        sql_run(d, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='%s'",
                d->name);
        return;
    }
    for (long long id; (id = sql_number(d,
                                        "SELECT MAX(ID) FROM information_schema.PROCESSLIST "
                                        "WHERE USER='%s' AND COMMAND<>'Killed'",
                                        d->name)) > 0;)
        sql_run(d, "KILL CONNECTION %lld", id);
}

static void sql_sessions_killed(void)
{
    struct database d;
    database_make(&d);
    struct peer a = start(d.url, "m", lease_steady()), b = start(d.url, "m", lease_long());
    uint64_t token = own(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    for (int i = 0; i < 8; i++) {
        kill_sessions(&d);
        nap(250);
        CHECK((uint64_t)peer_number(&a, "token") == token);
    }
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    database_drop(&d);
}

/* C8: the statement was applied, its answer is lost. */
static void sql_answer_lost(void)
{
    struct database d;
    struct proxy p;
    char url[512];
    database_make(&d);
    proxy_start(&p, d.port);
    snprintf(url, sizeof url, "%.*s:%d/%s", (int)(strrchr(d.url, ':') - d.url), d.url, p.port,
             d.name);
    simba *s = open_at(url), *other = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_steady());
    for (int i = 0; i < 5; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        uint64_t token = simba_locker_token(l);
        proxy_set(&p, PROXY_SWALLOW); /* a renewal, or the release */
        nap(300 * (i % 3));
        CHECK(simba_locker_is_held(l) && simba_locker_token(l) == token);
        if (i % 2 == 0) {
            int rc = simba_locker_release(l);
            CHECK(rc == SIMBA_ESTORE || rc == SIMBA_ELOST);
            proxy_set(&p, PROXY_PASS);
        } else {
            struct simba_owner o;
            proxy_set(&p, PROXY_PASS);
            AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0);
            CHECK_OK(simba_locker_release(l));
        }
    }
    /* An acquisition: won by a generated id it is found again, and nobody else has it meanwhile. */
    simba_locker *rival = locker(other, "m", NULL, lease_long());
    AWAIT(simba_locker_acquire(rival, 1000) == 0);
    proxy_set(&p, PROXY_SWALLOW);
    CHECK(simba_locker_acquire(l, 300) != 0);
    CHECK_OK(simba_locker_release(rival));
    CHECK(simba_locker_acquire(l, 500) != 0);
    CHECK(!simba_locker_is_held(l));
    proxy_set(&p, PROXY_PASS);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_CODE(simba_locker_acquire(rival, 0), SIMBA_EHELD);
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    client_close(other);
    proxy_end(&p);
    database_drop(&d);
}

/* Nothing gets through: the owner ends in time, and closing does not wait for it. */
static void sql_server_silent(void)
{
    struct database d;
    struct proxy p;
    char url[512];
    database_make(&d);
    proxy_start(&p, d.port);
    snprintf(url, sizeof url, "%.*s:%d/%s", (int)(strrchr(d.url, ':') - d.url), d.url, p.port,
             d.name);
    simba *s = open_at(url), *other = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease(1000, 1000));
    simba_locker *rival = locker(other, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    proxy_set(&p, PROXY_HOLD);
    CHECK_OK(simba_locker_acquire(rival, PATIENCE_MS));
    CHECK(!simba_locker_is_held(l));
    client_close(s);
    client_close(other);
    proxy_end(&p);
    database_drop(&d);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void refused(const char *url, int code, const char *part)
{
    simba *s = open_at(url);
    struct simba_owner o;
    CHECK_REFUSED(simba_read(s, "m", PATIENCE_MS, &o), code, part);
    CHECK(strstr(simba_error_text(), "geheim") == NULL &&
          strstr(simba_error_text(), "falsch") == NULL);
    client_close(s);
}

static void sql_refusals(void)
{
    struct database d;
    char url[1024];
    database_make(&d);
    const char *scheme = sql_is_mysql() ? "mysql" : "postgresql";
    snprintf(url, sizeof url, "%s://%s:falsch@127.0.0.1:%d/%s", scheme, d.name, d.port, d.name);
    refused(url, SIMBA_EDENIED, sql_is_mysql() ? "password" : "authentication failed");
    snprintf(url, sizeof url, "%s://%s:geheim@127.0.0.1:1/%s", scheme, d.name, d.name);
    refused(url, SIMBA_ESTORE, NULL);
    snprintf(url, sizeof url, "%s?create=off", d.url);
    refused(url, SIMBA_ESCHEMA, "no table simba_mutex");
    sql_run(&d, "CREATE TABLE simba_mutex (mutex varchar(66) primary key, owner_id int)");
    if (!sql_is_mysql())
        sql_run(&d, "ALTER TABLE simba_mutex OWNER TO %s", d.name);
    refused(d.url, SIMBA_ESCHEMA, "has no column acquired_at");
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
    simba *s = open_at(d.url); /* these three are enough for everything */
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_evict(s, "m", 0, true, PATIENCE_MS));
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

static void sql_connection_limit(void)
{
    struct database d;
    struct simba_owner o;
    database_make(&d);
    if (sql_is_mysql())
        sql_run(&d, "ALTER USER %s WITH MAX_USER_CONNECTIONS 1", d.name);
    else
        sql_run(&d, "ALTER ROLE %s CONNECTION LIMIT 1", d.name);
    simba *one = open_at(d.url), *two = open_at(d.url);
    CHECK_OK(simba_read(one, "m", PATIENCE_MS, &o));
    CHECK_REFUSED(simba_read(two, "m", PATIENCE_MS, &o), SIMBA_ESTORE, "connections");
    client_close(one);
    AWAIT(simba_read(two, "m", PATIENCE_MS, &o) == 0);
    client_close(two);
    database_drop(&d);
}

/* What the URL says that makes no sense is said before anything connects. */
static void sql_urls_refused(void)
{
    simba *s = NULL;
    if (sql_is_mysql()) {
        CHECK_REFUSED(simba_open("mysql://u@h", NULL, &s), SIMBA_EINVAL, "database");
        CHECK_REFUSED(simba_open("mysql://u@h/a/b", NULL, &s), SIMBA_EINVAL, "database");
        CHECK_REFUSED(simba_open("mysql://u@h/d?socket=/s", NULL, &s), SIMBA_EINVAL, "socket");
        CHECK_REFUSED(simba_open("mysql://u@/d?socket=s", NULL, &s), SIMBA_EINVAL, "socket");
        CHECK_REFUSED(simba_open("mysql://u@a,b/d", NULL, &s), SIMBA_EINVAL, "one host");
        CHECK_REFUSED(simba_open("mysql://u@h/d?tls=maybe", NULL, &s), SIMBA_EINVAL, "tls");
        CHECK_REFUSED(simba_open("mysql://u@h/d?tls_cert=x", NULL, &s), SIMBA_EINVAL, "belong");
        CHECK_REFUSED(simba_open("mariadb://u@h/d?pol=1s", NULL, &s), SIMBA_EINVAL, "poll");
        CHECK_REFUSED(simba_open("mysql://u:p@h/d?password_file=/x", NULL, &s), SIMBA_EINVAL,
                      "twice");
        CHECK_REFUSED(simba_open("mysql://u@h/d?poll=1ms", NULL, &s), SIMBA_EINVAL, "poll");
    } else {
        CHECK_REFUSED(simba_open("postgresql://h/d?listen=no", NULL, &s), SIMBA_EINVAL, "listen");
        CHECK_REFUSED(simba_open("postgresql://h/d?sslmod=x", NULL, &s), SIMBA_EINVAL, "sslmode");
        CHECK_REFUSED(simba_open("postgres://h/d?create=1", NULL, &s), SIMBA_EINVAL, "create");
    }
}

/* ---- what it costs to wait ----------------------------------------------------------------- */

static long long statements(struct database *d)
{
    return sql_is_mysql() ? sql_number(d,
                                       "SELECT SUM(SELECT_COMMANDS+UPDATE_COMMANDS+OTHER_COMMANDS) "
                                       "FROM information_schema.USER_STATISTICS WHERE USER='%s'",
                                       d->name)
                          : sql_number(d,
                                       "SELECT xact_commit FROM pg_stat_database "
                                       "WHERE datname='%s'",
                                       d->name);
}

static void sql_many_wait(void)
{
    enum { MANY = 500, SECONDS = 5 };
    static simba_contender *c[MANY];
    struct database d;
    char name[16];
    database_make(&d);
    if (sql_is_mysql())
        sql_run(&d, "SET GLOBAL userstat=1");
    simba *owner = open_at(d.url), *s = open_at(d.url);
    struct simba_handle_options o = lease_long();
    o.renew_ms = SIMBA_DEFAULT;
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "m%d", i);
        CHECK_OK(simba_locker_acquire(locker(owner, name, NULL, o), PATIENCE_MS));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i % 50);
        CHECK_OK(simba_contender_create(s, name, &o, &c[i]));
        CHECK_OK(simba_contender_start(c[i]));
    }
    for (int i = 0; i < MANY; i++)
        CHECK_OK(simba_contender_wait(c[i], SIMBA_RUNNING, PATIENCE_MS));
    nap(2000); /* looks become rare, and statistics are written */
    long long before = statements(&d);
    nap(SECONDS * 1000);
    long long after = statements(&d);
    fprintf(stderr, "%lld statements in %d s\n", after - before, SECONDS);
    CHECK(after - before <= 10 * SECONDS + 5); /* and our own questions */
    client_close(owner);
    client_close(s);
    database_drop(&d);
}

/* ---- a server that ends -------------------------------------------------------------------- */

static void sql_restart(void)
{
    struct database d;
    folder_make();
    server_make(&d);
    struct peer a = start(d.url, "m", lease_steady()), b = start(d.url, "m", lease_long());
    uint64_t token = own(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    for (int i = 0; i < 2; i++) {
        server_crash(&d);
        server_restart(&d);
        nap(500);
        CHECK((uint64_t)peer_number(&a, "token") == token);
        CHECK(peer_number(&b, "token") == 0);
    }
    CHECK(kill(d.pid, SIGSTOP) == 0);
    nap(2000);
    CHECK(kill(d.pid, SIGCONT) == 0);
    CHECK((uint64_t)peer_number(&a, "token") == token);
    if (sql_is_mysql()) {
        /* T22: in the hour that comes twice, the time that we use goes on. The other one does not. */
        long long first = sql_number(&d, "SET timestamp=1761436800; SELECT %s", sql_now);
        long long second = sql_number(&d, "SET timestamp=1761440400; SELECT %s", sql_now);
        CHECK(second - first == 3600000 && first == 1761436800000);
        static const char old[] = "SET timestamp=%lld; SELECT "
                                  "CAST(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(3))*1000 AS UNSIGNED)";
        CHECK(sql_number(&d, old, 1761440400LL) - sql_number(&d, old, 1761436800LL) != 3600000);
        sql_run(&d, "SET timestamp=DEFAULT; SET GLOBAL read_only=1");
    } else {
        sql_run(&d, "ALTER DATABASE %s SET default_transaction_read_only=on", d.name);
    }
    refused(d.url, SIMBA_ESTORE, "read-only");
    if (sql_is_mysql())
        sql_run(&d, "SET GLOBAL read_only=0");
    else
        sql_run(&d, "SET default_transaction_read_only=off; ALTER DATABASE %s RESET ALL", d.name);
    AWAIT(peer_ask(&a, "read")[0] == '0');
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    server_crash(&d);
    folder_remove();
}

const struct test sql_tests[] = {
    {"sql_restart", sql_restart, SQL_ONLY, 0},
    {"sql_jvm3_row", sql_jvm3_row, SQL_ONLY, 0},
    {"sql_jvm4_row", sql_jvm4_row, SQL_ONLY, 0},
    {"sql_upgrade", sql_upgrade, SQL_ONLY, 0},
    {"sql_collation", sql_collation, SQL_ONLY, 0},
    {"sql_narrow_table", sql_narrow_table, SQL_ONLY, 0},
    {"sql_row_locked", sql_row_locked, SQL_ONLY, 0},
    {"sql_late_grant", sql_late_grant, SQL_ONLY, 0},
    {"sql_sessions_killed", sql_sessions_killed, SQL_ONLY, 0},
    {"sql_answer_lost", sql_answer_lost, SQL_ONLY, 0},
    {"sql_server_silent", sql_server_silent, SQL_ONLY, 0},
    {"sql_refusals", sql_refusals, SQL_ONLY, 0},
    {"sql_rights", sql_rights, SQL_ONLY, 0},
    {"sql_connection_limit", sql_connection_limit, SQL_ONLY, 0},
    {"sql_urls_refused", sql_urls_refused, SQL_ONLY, 0},
    {"sql_many_wait", sql_many_wait, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
