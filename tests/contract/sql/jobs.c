/* jobs.c: statements that fail after they have told something, that are for many mutexes one of
 * which somebody has locked, or that come when the row is another's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "help.h"

static void *take_now(void *l)
{
    return (void *)(intptr_t)simba_locker_acquire(l, 0);
}

static void use_once(const char *url, int many)
{
    simba_client *s = open_at(url);
    char name[16];
    for (int i = 0; i < many; i++) {
        snprintf(name, sizeof name, "m%d", i);
        simba_locker *l = locker(s, name, NULL, lease_long());
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    client_close(s);
}

/* ---- a commit that fails ------------------------------------------------------------------- */

/* The first commit fails, after the statement has told that the mutex was granted; the next
 * attempt waits until somebody else has taken it. */
static void fail_first_commit(struct database *d)
{
    sql_run(d, "CREATE SEQUENCE failed");
    sql_run(d, "CREATE SEQUENCE taken");
    sql_run(d, "CREATE FUNCTION fail_once()RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
               "'BEGIN IF nextval(''failed'')=1 THEN RAISE SQLSTATE ''40001''; END IF; "
               "RETURN NULL; END'");
    sql_run(d, "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON simba_mutex "
               "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_once()");
    sql_run(d, "CREATE FUNCTION wait_then()RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
               "'BEGIN WHILE(SELECT is_called FROM failed)AND NOT(SELECT is_called FROM taken)"
               "LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END'");
    sql_run(d, "CREATE TRIGGER at_first BEFORE INSERT ON simba_mutex FOR EACH STATEMENT "
               "EXECUTE FUNCTION wait_then()");
}

/* What a statement told has not happened if its commit fails: who believes it owns what another
 * has. */
static void sql_commit_fails(void)
{
    struct database d;
    struct simba_options so = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    pthread_t thread;
    void *code;
    if (sql_is_mysql())
        suite_skip("needs triggers at the commit");
    database_make(&d);
    use_once(d.url, 1);
    fail_first_commit(&d);
    so.command_timeout_ms = PATIENCE_MS;
    CHECK_OK(simba_open(d.url, &so, &s));
    simba_locker *l = locker(s, "m0", NULL, lease_long());
    CHECK(pthread_create(&thread, NULL, take_now, l) == 0);
    AWAIT(sql_number(&d, "SELECT is_called::int FROM failed") == 1);
    sql_run(&d,
            "UPDATE simba_mutex SET owner_id='rival',acquired_at=%s,ttl_at=%s+60000,"
            "transition_at=%s+60000,fencing_token=fencing_token+1 WHERE mutex='m0'",
            sql_now, sql_now, sql_now);
    sql_run(&d, "SELECT nextval('taken')");
    CHECK(pthread_join(thread, &code) == 0);
    CHECK_CODE((int)(intptr_t)code, SIMBA_EHELD);
    CHECK(!simba_locker_is_held(l));
    client_close(s);
    database_drop(&d);
}

/* A session's isolation is ours, whatever the default of role or database is: in a stricter one
 * a row that changes while it is waited for fails the statement. */
static void sql_isolation(void)
{
    struct database d;
    if (sql_is_mysql())
        suite_skip("needs triggers that raise");
    database_make(&d);
    use_once(d.url, 1);
    sql_run(&d, "ALTER ROLE %s SET default_transaction_isolation='serializable'", d.name);
    sql_run(&d, "CREATE FUNCTION be_lax()RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN IF current_setting(''transaction_isolation'')<>''read committed'' THEN "
                "RAISE ''it is strict''; END IF; RETURN NULL; END'");
    sql_run(&d, "CREATE TRIGGER lax BEFORE INSERT OR UPDATE ON simba_mutex FOR EACH STATEMENT "
                "EXECUTE FUNCTION be_lax()");
    use_once(d.url, 1);
    database_drop(&d);
}

/* ---- many mutexes in one statement --------------------------------------------------------- */

static uint64_t attempts(simba_client *s)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    CHECK_OK(simba_metrics_read(s, &m));
    return m.attempts;
}

/* T21: what is asked for before there is a connection is asked for in one statement. One of its
 * rows is locked: the others are answered all the same, and at their first attempt. */
static void sql_batch_locked(void)
{
    enum { MANY = 12, LOCKED = 5 };
    struct database d;
    struct proxy p;
    char url[512], name[16];
    struct simba_options so = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    simba_locker *l[MANY];
    pthread_t thread[MANY];
    void *code;
    database_make(&d);
    use_once(d.url, MANY);
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m%d' FOR UPDATE", LOCKED);
    proxy_start(&p, d.port);
    proxy_set(&p, PROXY_HOLD);
    url_of(&d, p.port, url);
    so.connect_timeout_ms = so.command_timeout_ms = PATIENCE_MS;
    CHECK_OK(simba_open(url, &so, &s));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        l[i] = locker(s, name, NULL, lease_long());
        CHECK(pthread_create(&thread[i], NULL, take_now, l[i]) == 0);
    }
    AWAIT(attempts(s) == MANY);
    proxy_set(&p, PROXY_PASS);
    for (int i = 0; i < MANY; i++) {
        CHECK(pthread_join(thread[i], &code) == 0);
        CHECK(i == LOCKED ? (intptr_t)code < 0 && (intptr_t)code != SIMBA_ESTORE : code == NULL);
        CHECK(simba_locker_is_held(l[i]) == (i != LOCKED));
    }
    sql_run(&d, "ROLLBACK");
    CHECK_OK(simba_locker_acquire(l[LOCKED], PATIENCE_MS));
    for (int i = 0; i < MANY; i++)
        CHECK_OK(simba_locker_release(l[i]));
    client_close(s);
    proxy_end(&p);
    database_drop(&d);
}

/* ---- what is another's --------------------------------------------------------------------- */

enum { MOST = 6 };

/* A client that does nothing until it is driven, so that what is due by then is done in one go. */
static simba_client *open_still(const char *url)
{
    struct simba_options so = suite_options();
    simba_client *s = NULL;
    so.flags = SIMBA_NO_THREAD;
    CHECK_OK(simba_open(url, &so, &s));
    return s;
}

static void take_all(simba_client *s, simba_locker **l, int many, struct simba_handle_options o)
{
    char name[16];
    for (int i = 0; i < many; i++) {
        snprintf(name, sizeof name, "m%d", i);
        l[i] = locker(s, name, "same", o);
        CHECK_OK(simba_locker_acquire(l[i], PATIENCE_MS));
    }
}

/* Half of them get another owner, half another token, as if the same id had acquired them anew. */
static void give_away(struct database *d, bool odd)
{
    int id = odd ? 1 : 0;
    sql_run(d, "UPDATE simba_mutex SET owner_id='other' WHERE mutex IN('m%d','m%d','m%d')", id,
            id + 2, id + 4);
    id = 1 - id;
    sql_run(d,
            "UPDATE simba_mutex SET fencing_token=fencing_token+1 "
            "WHERE mutex IN('m%d','m%d','m%d')",
            id, id + 2, id + 4);
}

/* Of all rows: their owners, tokens and ends. */
static long long sum_of(struct database *d)
{
    return sql_number(d, "SELECT SUM(transition_at%%1000000007+fencing_token%%1000000007+"
                         "LENGTH(owner_id)) FROM simba_mutex WHERE mutex<>''");
}

static void drive(simba_client *s, int64_t ms)
{
    struct simba_owner o;
    (void)simba_read(s, "none", ms, &o);
}

static bool holds_any(simba_locker **l, int many)
{
    for (int i = 0; i < many; i++) {
        if (simba_locker_is_held(l[i]))
            return true;
    }
    return false;
}

/* T13: a renewal is of one tenure: neither the id nor the token alone makes it ours. One alone,
 * or all in one statement. */
static void renew_given_away(struct database *d, int many, bool odd)
{
    simba_client *s = open_still(d->url);
    simba_locker *l[MOST];
    take_all(s, l, many, lease(4000, 40000));
    give_away(d, odd);
    long long sum = sum_of(d);
    nap(300); /* now all are due, if they were not before */
    for (int64_t end = simba_now() + PATIENCE_MS; holds_any(l, many) && simba_now() < end;)
        drive(s, PATIENCE_MS);
    CHECK(!holds_any(l, many));
    CHECK(sum_of(d) == sum);
    CHECK_OK(simba_close(s, PATIENCE_MS)); /* and there is nothing to give back */
    CHECK(sum_of(d) == sum);
    sql_run(d, "DELETE FROM simba_mutex");
}

static void sql_renew_given_away(void)
{
    struct database d;
    database_make(&d);
    for (int odd = 0; odd < 2; odd++) {
        renew_given_away(&d, 1, odd != 0);
        renew_given_away(&d, MOST, odd != 0);
    }
    database_drop(&d);
}

/* T13: nor is it given back. */
static void release_given_away(struct database *d, int many, bool odd)
{
    simba_client *s = open_still(d->url);
    simba_locker *l[MOST];
    struct simba_handle_options o = lease_long();
    o.renew_ms = SIMBA_DEFAULT; /* none before the end of the test */
    take_all(s, l, many, o);
    give_away(d, odd);
    long long sum = sum_of(d);
    if (many == 1)
        CHECK_CODE(simba_locker_release(l[0]), SIMBA_ELOST);
    CHECK_OK(simba_close(s, PATIENCE_MS)); /* gives back all in one go */
    CHECK(sum_of(d) == sum);
    sql_run(d, "DELETE FROM simba_mutex");
}

static void sql_release_given_away(void)
{
    struct database d;
    database_make(&d);
    for (int odd = 0; odd < 2; odd++) {
        release_given_away(&d, 1, odd != 0);
        release_given_away(&d, MOST, odd != 0);
    }
    database_drop(&d);
}

/* ---- a table that gets its column ---------------------------------------------------------- */

static void upgrade(const struct database *d)
{
    char url[600];
    struct simba_owner o;
    snprintf(url, sizeof url, "%s?create=upgrade", d->url);
    simba_client *s = open_at(url);
    AWAIT(simba_read(s, "m0", PATIENCE_MS, &o) == 0); /* it may take longer than a connection may */
    client_close(s);
}

static long long count_of(struct database *d, const char *which)
{
    return sql_number(d, "SELECT COUNT(*) FROM simba_mutex WHERE mutex<>'' AND %s", which);
}

/* T2A: who has looked at the table before it got its column, and has not said a statement so
 * often that the server has planned it and now refuses it, finds out all the same. Else a mark
 * that somebody waits, a version above the token, is taken for another's tenure: it is not
 * renewed, or not given back. */
static void upgrade_unseen(bool releases, int many)
{
    struct database d;
    simba_locker *l[MOST];
    uint64_t token[MOST];
    database_make(&d);
    sql_make_table(&d, false);
    simba_client *s = open_still(d.url);
    struct simba_handle_options o = releases ? lease_long() : lease(4000, 40000);
    if (releases)
        o.renew_ms = SIMBA_DEFAULT; /* none before that */
    take_all(s, l, many, o);
    for (int i = 0; i < many; i++)
        token[i] = simba_locker_token(l[i]);
    upgrade(&d);
    if (!sql_is_mysql()) /* as who waits does, where there are marks */
        sql_run(&d, "UPDATE simba_mutex SET version=fencing_token+1");
    long long before = sql_number(&d, "SELECT MAX(ttl_at) FROM simba_mutex");
    char renewed[64];
    snprintf(renewed, sizeof renewed, "ttl_at>%lld", before);
    if (!releases) {
        nap(300); /* all are due */
        for (int64_t end = simba_now() + PATIENCE_MS; simba_now() < end;) {
            drive(s, PATIENCE_MS);
            if (count_of(&d, renewed) == many)
                break;
        }
        CHECK(count_of(&d, renewed) == many);
        for (int i = 0; i < many; i++)
            CHECK(simba_locker_is_held(l[i]) && simba_locker_token(l[i]) == token[i]);
    }
    CHECK_OK(simba_close(s, PATIENCE_MS));
    CHECK(count_of(&d, "owner_id<>''") == 0);
    database_drop(&d);
}

static void sql_upgrade_renewal(void)
{
    upgrade_unseen(false, 1);
    upgrade_unseen(false, MOST);
}

static void sql_upgrade_release(void)
{
    upgrade_unseen(true, 1);
    upgrade_unseen(true, MOST);
}

/* Nor does anybody give out a token by the old count that is below one by the new. One mutex at
 * a time, and all in one statement. */
static void sql_upgrade_token(void)
{
    struct database d;
    simba_locker *l[MOST];
    simba_contender *c[MOST];
    struct simba_owner o;
    struct simba_handle_options like = lease_long();
    database_make(&d);
    sql_make_table(&d, false);
    simba_client *s = open_still(d.url), *one = open_at(d.url), *all = open_still(d.url);
    CHECK_OK(simba_read(one, "m0", PATIENCE_MS, &o)); /* these have looked at it */
    CHECK_OK(simba_read(all, "m0", PATIENCE_MS, &o));
    upgrade(&d);
    take_all(s, l, MOST, lease_long());
    uint64_t token = simba_locker_token(l[MOST - 1]);
    CHECK_OK(simba_close(s, PATIENCE_MS));
    simba_locker *first = locker(one, "m0", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(first, PATIENCE_MS));
    CHECK(simba_locker_token(first) > token);
    CHECK_OK(simba_locker_release(first));
    for (int i = 0; i < MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        CHECK_OK(simba_contender_create(all, name, &like, &c[i]));
        CHECK_OK(simba_contender_start(c[i]));
    }
    for (int i = 0; i < MOST; i++) {
        AWAIT((drive(all, PATIENCE_MS), simba_contender_is_owner(c[i])));
        CHECK(simba_contender_token(c[i]) > token);
    }
    client_close(one);
    CHECK_OK(simba_close(all, PATIENCE_MS));
    database_drop(&d);
}

const struct test sql_job_tests[] = {
    {"sql_commit_fails", sql_commit_fails, SQL_ONLY, 0},
    {"sql_isolation", sql_isolation, SQL_ONLY, 0},
    {"sql_batch_locked", sql_batch_locked, SQL_ONLY, 0},
    {"sql_renew_given_away", sql_renew_given_away, SQL_ONLY, 0},
    {"sql_release_given_away", sql_release_given_away, SQL_ONLY, 0},
    {"sql_upgrade_renewal", sql_upgrade_renewal, SQL_ONLY, 0},
    {"sql_upgrade_release", sql_upgrade_release, SQL_ONLY, 0},
    {"sql_upgrade_token", sql_upgrade_token, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
