/* clock.c: the server's clock, which the test sets: at the very end of a lease, back, and forth.
 * And answers that come late.
 *
 * MariaDB's sessions can be given a time that stands still; each new one gets the present one.
 * PostgreSQL's clock_timestamp() is another function for a role that finds one of that name
 * first. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "help.h"

#define NOON 2000000000LL /* s: a day in 2033 */

static void clock_set(struct database *d, long long s)
{
    if (sql_is_mysql()) {
        sql_run(d, "SET GLOBAL init_connect='SET timestamp=%lld'", s);
        sql_kill_sessions(d);
    } else {
        sql_run(d, "UPDATE fake.clock SET s=%lld", s);
    }
}

/* A database whose time is ours; its table is there. */
static void clock_make(struct database *d)
{
    if (sql_is_mysql()) {
        folder_make();
        server_make(d);
    } else {
        database_make(d);
        sql_run(d, "CREATE SCHEMA fake");
        sql_run(d, "CREATE TABLE fake.clock AS SELECT %lld::bigint AS s", NOON);
        sql_run(d, "CREATE FUNCTION fake.clock_timestamp()RETURNS timestamptz LANGUAGE sql AS "
                   "'SELECT to_timestamp(s)FROM fake.clock'");
        sql_run(d, "GRANT USAGE ON SCHEMA fake TO %s", d->name);
        sql_run(d, "GRANT SELECT ON fake.clock TO %s", d->name);
        sql_run(d, "ALTER ROLE %s SET search_path=fake,pg_catalog,public", d->name);
    }
    sql_make_table(d, true);
    clock_set(d, NOON);
}

static void clock_end(struct database *d)
{
    if (sql_is_mysql()) {
        server_stop(d);
        folder_remove();
    } else {
        database_drop(d);
    }
}

static void put_row(struct database *d, const char *mutex, long long end)
{
    sql_run(d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version) "
            "VALUES ('%s',1,2,%lld,'0:1@jvm',3)",
            mutex, end);
}

static long long end_of(struct database *d, const char *mutex)
{
    return sql_number(d, "SELECT transition_at FROM simba_mutex WHERE mutex='%s'", mutex);
}

/* T25: at the instant at which a lease ends, another can take it, and its owner cannot renew it. */
static void sql_end_of_lease(void)
{
    struct database d;
    clock_make(&d);
    put_row(&d, "over", NOON * 1000);
    put_row(&d, "still", NOON * 1000 + 1);
    simba_client *s = open_at(d.url);
    CHECK_OK(simba_locker_acquire(locker(s, "over", NULL, lease_long()), 0));
    CHECK_CODE(simba_locker_acquire(locker(s, "still", NULL, lease_long()), 0), SIMBA_EHELD);
    simba_locker *l = locker(s, "ours", NULL, lease_steady());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    sql_run(&d, "UPDATE simba_mutex SET transition_at=%lld WHERE mutex='ours'", NOON * 1000 + 1);
    AWAIT(end_of(&d, "ours") > NOON * 1000 + 1);
    sql_run(&d, "UPDATE simba_mutex SET transition_at=%lld WHERE mutex='ours'", NOON * 1000);
    AWAIT(!simba_locker_is_held(l));
    CHECK(end_of(&d, "ours") == NOON * 1000);
    client_close(s);
    clock_end(&d);
}

/* T29: the clock goes back, or a server answers whose clock is behind: no lease becomes shorter,
 * no token smaller. It goes forth: leases end, and nobody renews what has ended. */
static void sql_clock_steps(void)
{
    struct database d;
    clock_make(&d);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_steady());
    simba_locker *rival = locker(other, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    long long end = end_of(&d, "m");
    CHECK(end == NOON * 1000 + 8000);
    clock_set(&d, NOON - 3600);
    AWAIT(sql_number(&d, "SELECT ttl_at FROM simba_mutex WHERE mutex='m'") <
          NOON * 1000); /* renewed */
    CHECK(end_of(&d, "m") == end);
    CHECK(simba_locker_is_held(l) && simba_locker_token(l) == token);
    CHECK_CODE(simba_locker_acquire(rival, 0), SIMBA_EHELD);
    CHECK_OK(simba_locker_release(l));
    AWAIT(simba_locker_acquire(l, PATIENCE_MS) == 0);
    CHECK(simba_locker_token(l) > token);
    token = simba_locker_token(l);
    clock_set(&d, NOON + 3600);
    AWAIT(simba_locker_acquire(rival, PATIENCE_MS) == 0);
    CHECK(simba_locker_token(rival) > token);
    AWAIT(!simba_locker_is_held(l));
    client_close(s);
    client_close(other);
    clock_end(&d);
}

/* T22: the server's time zone is one with summer time; at the end of that an hour comes twice. */
static void sql_summer_time(void)
{
    struct database d;
    clock_make(&d); /* a MariaDB server of its own has TZ=Europe/Berlin */
    if (!sql_is_mysql())
        sql_run(&d, "ALTER ROLE %s SET timezone='Europe/Berlin'", d.name);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    struct simba_owner o;
    for (long long at = 1761436800 - 3600; at <= 1761436800 + 7200; at += 1800) {
        clock_set(&d, at);
        AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0); /* connected anew */
        AWAIT(simba_locker_acquire(l, PATIENCE_MS) == 0);
        CHECK(sql_number(&d, "SELECT acquired_at FROM simba_mutex WHERE mutex='m'") == at * 1000);
        CHECK(end_of(&d, "m") == at * 1000 + 60000);
        AWAIT(simba_locker_release(l) == 0);
    }
    client_close(s);
    clock_end(&d);
}

/* T26: a grant whose answer comes when the lease has ended here is nobody's: it is given back,
 * or has ended there, too. Who takes it would own what others can have. */
static void *take(void *l)
{
    return (void *)(intptr_t)simba_locker_acquire(l, PATIENCE_MS);
}

static void sql_late_grant(void)
{
    enum { LEASE = 1500 };
    struct database d;
    struct proxy p;
    char url[512];
    struct simba_options so = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    database_make(&d);
    proxy_start(&p, d.port);
    url_of(&d, p.port, url);
    so.command_timeout_ms = PATIENCE_MS;
    CHECK_OK(simba_open(url, &so, &s));
    simba_locker *before = locker(s, "m", NULL, lease_long());
    simba_locker *l = locker(s, "m", NULL, lease(LEASE, 0));
    CHECK_OK(simba_locker_acquire(before, PATIENCE_MS));
    uint64_t first = simba_locker_token(before);
    CHECK_OK(simba_locker_release(before));
    pthread_t thread;
    void *code;
    /* Its own question, and no other that the client may still have, of a queue lock for example. */
    snprintf(p.bytes, PROXY_BYTES_MAX, "%s", simba_locker_id(l));
    proxy_set(&p, PROXY_MUTE_AT);
    CHECK(pthread_create(&thread, NULL, take, l) == 0);
    AWAIT((uint64_t)sql_number(&d, "SELECT fencing_token FROM simba_mutex WHERE mutex='m'") >
          first);
    AWAIT(sql_number(&d, "SELECT COUNT(*) FROM simba_mutex WHERE transition_at>%s", sql_now) == 0);
    uint64_t late = (uint64_t)sql_number(&d, "SELECT fencing_token FROM simba_mutex WHERE "
                                             "mutex='m'");
    CHECK(late > first);
    proxy_set(&p, PROXY_PASS);
    CHECK(pthread_join(thread, &code) == 0);
    CHECK_OK((int)(intptr_t)code);
    CHECK(simba_locker_token(l) > late);
    simba_locker_release(l);
    client_close(s);
    proxy_end(&p);
    database_drop(&d);
}

/* While the server is slow, renewals are tried again and again. When it is back, each tenure is
 * renewed once, and not once for each attempt: else a server that is a little too slow becomes
 * slower and slower. */
static void sql_slow_server(void)
{
    struct database d;
    struct proxy p;
    char url[512];
    struct simba_options so = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease(800, 39200);
    simba_client *s = NULL;
    database_make(&d);
    proxy_start(&p, d.port);
    url_of(&d, p.port, url);
    so.command_timeout_ms = PATIENCE_MS;
    CHECK_OK(simba_open(url, &so, &s));
    simba_locker *l = locker(s, "m", NULL, o);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    int before = *p.questions;
    AWAIT(*p.questions >= before + 3); /* renewals, and the statement is prepared */
    proxy_set(&p, PROXY_MUTE);
    nap(4000); /* some thirty attempts */
    before = *p.questions;
    int64_t since = simba_now();
    proxy_set(&p, PROXY_PASS);
    long long end = end_of(&d, "m");
    AWAIT(end_of(&d, "m") > end);
    nap(200);
    int64_t usual = (simba_now() - since) / 200; /* twice as many as renewals are due */
    CHECK(*p.questions - before <= 8 + usual);   /* one for all of them, and a few after it */
    CHECK(simba_locker_is_held(l) && simba_locker_token(l) == token);
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    proxy_end(&p);
    database_drop(&d);
}

const struct test sql_clock_tests[] = {
    {"sql_end_of_lease", sql_end_of_lease, SQL_ONLY, 0},
    {"sql_clock_steps", sql_clock_steps, SQL_ONLY, 0},
    {"sql_summer_time", sql_summer_time, SQL_ONLY, 0},
    {"sql_slow_server", sql_slow_server, SQL_ONLY, 0},
    {"sql_late_grant", sql_late_grant, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
