/* traps.c: locks, sessions, lost answers: what happens to others' locks in SQL databases, and
 * must not happen here. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "help.h"
#include "server.h"

/* ---- locks and sessions -------------------------------------------------------------------- */

/* T21: somebody's transaction holds one row. The other mutexes of the client are renewed all the
 * same. */
static void sql_row_locked(void)
{
    enum { MANY = 12 };
    struct database d;
    simba_client *s = NULL;
    database_make(&d);
    CHECK_OK(simba_open(d.url, NULL, &s)); /* with the usual timeouts */
    simba_locker *l[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        l[i] = locker(s, name, NULL, lease(4000, 4000));
        CHECK_OK(simba_locker_acquire(l[i], PATIENCE_MS));
    }
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m5' FOR UPDATE");
    for (int64_t end = simba_now() + 12000; simba_now() < end; nap(50)) {
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

struct wait {
    simba_locker *l;
    int code;
};

static void *wait_for_it(void *arg)
{
    struct wait *w = arg;
    w->code = simba_locker_acquire(w->l, PATIENCE_MS);
    return NULL;
}

/* A row that is free, and that somebody's transaction holds for longer than a statement waits for
 * it: that is an answer, and no failure of the store. A caller that waits gets the mutex soon after
 * that; one that does not is told why. */
static void sql_free_row_locked(void)
{
    struct database d;
    database_make(&d);
    simba_client *s = open_at(d.url);
    struct wait w = {.l = locker(s, "m", NULL, lease_steady()), .code = 1};
    simba_locker *other = locker(s, "o", NULL, lease_steady());
    CHECK_OK(simba_locker_acquire(w.l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(w.l));
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m' FOR UPDATE");
    for (int64_t wait_ms = 0; wait_ms <= 3000; wait_ms += 3000) {
        int code = simba_locker_acquire(w.l, wait_ms);
        CHECK(code < 0 && code != SIMBA_ESTORE);
        CHECK(strstr(simba_error_text(), "locked by somebody's transaction") != NULL);
    }
    pthread_t thread = spawn(wait_for_it, &w);
    nap(3000);
    CHECK_OK(simba_locker_acquire(other, PATIENCE_MS));
    sql_run(&d, "ROLLBACK");
    int64_t freed = simba_now();
    join(thread);
    CHECK_OK(w.code);
    CHECK(simba_now() - freed < 2000);
    client_close(s);
    database_drop(&d);
}

/* Somebody's transaction has made the row of a mutex that had none. Whoever waits for that does not hold up
 * the rest of the client: after the first time its row is not waited for. */
static void sql_missing_row_locked(void)
{
    enum { SLOW_MS = 500 };
    struct database d;
    struct simba_owner o;
    int slow = 0;
    database_make(&d);
    simba_client *s = open_at(d.url);
    struct wait w = {.l = locker(s, "m", NULL, lease_steady()), .code = 1};
    CHECK_OK(simba_read(s, "o", PATIENCE_MS, &o)); /* there is a table */
    sql_run(&d, "BEGIN");
    sql_run(&d, "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
                "VALUES('m',0,0,0,'',0)");
    pthread_t thread = spawn(wait_for_it, &w);
    nap(1500);
    for (int64_t end = simba_now() + 4500; simba_now() < end; nap(20)) {
        int64_t began = simba_now();
        CHECK_OK(simba_read(s, "o", PATIENCE_MS, &o));
        slow += simba_now() - began > SLOW_MS;
    }
    fprintf(stderr, "%d slow\n", slow);
    CHECK(slow <= 1);
    sql_run(&d, "ROLLBACK");
    join(thread);
    CHECK_OK(w.code);
    client_close(s);
    database_drop(&d);
}

/* Who finds the mutex owned has not waited for a lock on its row, which would hold up the owner. */
static void check_only_read(const struct database *d)
{
    enum { TRIES = 3, LOCK_WAIT_MS = 1000 };
    int64_t least = LOCK_WAIT_MS;
    for (int i = 0; i < TRIES; i++) {
        struct simba_owner o;
        simba_client *s = open_at(d->url);
        simba_locker *l = locker(s, "m", NULL, lease_steady());
        CHECK_OK(simba_read(s, "o", PATIENCE_MS, &o)); /* there is a connection */
        int64_t began = simba_now();
        CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
        int64_t took = simba_now() - began;
        least = took < least ? took : least;
        client_close(s);
    }
    CHECK(least < LOCK_WAIT_MS);
}

/* Also where the row is locked, who owns the mutex is the answer; also for a client that has had it
 * before, and so does not expect another's. */
static void sql_held_row_locked(void)
{
    struct database d;
    database_make(&d);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_steady());
    simba_locker *owner = locker(other, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_locker_acquire(owner, PATIENCE_MS));
    sql_run(&d, "BEGIN");
    sql_run(&d, "SELECT version FROM simba_mutex WHERE mutex='m' FOR UPDATE");
    check_only_read(&d);
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    sql_run(&d, "ROLLBACK");
    CHECK_OK(simba_locker_release(owner));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    client_close(s);
    client_close(other);
    database_drop(&d);
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
        sql_kill_sessions(&d);
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
    url_of(&d, p.port, url);
    simba_client *s = open_at(url), *other = open_at(d.url);
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
    url_of(&d, p.port, url);
    simba_client *s = open_at(url), *other = open_at(d.url);
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

/* Of several hosts one does not greet in time, and the next refuses the password: time does not mend that. */
static void sql_refused_by_another_host(void)
{
    struct database d;
    struct proxy p;
    char url[512];
    if (sql_is_mysql())
        suite_skip("its URLs have one host");
    database_make(&d);
    proxy_start(&p, d.port);
    proxy_set(&p, PROXY_HOLD);
    snprintf(url, sizeof url, "postgresql://%s:falsch@127.0.0.1:%d,127.0.0.1:%d/%s", d.name, p.port,
             d.port, d.name);
    refused(url, SIMBA_EDENIED, "authentication failed");
    proxy_end(&p);
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
    simba_client *one = open_at(d.url), *two = open_at(d.url);
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
    simba_client *s = NULL;
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

/* Counted where they pass: the statistics of a server tell them later, PostgreSQL's some seconds. */
static void sql_many_wait(void)
{
    enum { MANY = 500, SECONDS = 5 };
    static simba_contender *c[MANY];
    struct database d;
    struct proxy p;
    char name[16], url[512];
    database_make(&d);
    proxy_start(&p, d.port);
    url_of(&d, p.port, url);
    simba_client *owner = open_at(url), *s = open_at(url);
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
    nap(2000); /* polls become rare */
    int64_t began = simba_now();
    int before = *p.questions;
    nap(SECONDS * 1000);
    int64_t said = *p.questions - before, ms = simba_now() - began;
    fprintf(stderr, "%lld statements in %lld ms\n", (long long)said, (long long)ms);
    CHECK(said <= 10 * ms / 1000);
    client_close(owner);
    client_close(s);
    proxy_end(&p);
    database_drop(&d);
}

/* ---- a server that ends -------------------------------------------------------------------- */

static void sql_restart(void)
{
    struct database d;
    folder_make();
    server_make(&d);
    struct peer a = start(d.url, "m", lease(4000, 36000)), b = start(d.url, "m", lease_long());
    uint64_t token = own(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    for (int i = 0; i < 2; i++) {
        server_crash(&d);
        server_restart(&d); /* that may take several seconds */
        AWAIT(peer_ask(&a, "read")[0] == '0');
        nap(500);
        CHECK((uint64_t)peer_number(&a, "token") == token);
        CHECK(peer_number(&b, "token") == 0);
    }
    CHECK(kill(d.pid, SIGSTOP) == 0);
    nap(2000);
    CHECK(kill(d.pid, SIGCONT) == 0);
    CHECK((uint64_t)peer_number(&a, "token") == token);
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    server_stop(&d);
    folder_remove();
}

/* Owners hear of their eviction long before they renew, also if several are evicted in one go,
 * and a moment after they began: where nobody tells them, a count of all evictions does. */
static void sql_evict_several(void)
{
    enum { SEVERAL = 3, ROUNDS = 2 };
    struct database d;
    struct probe p[SEVERAL] = {{0}};
    char name[16];
    struct simba_handle_options o = lease(120000, 60000);
    o.renew_ms = 60000;
    database_make(&d);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    for (int i = 0; i < SEVERAL; i++) {
        snprintf(name, sizeof name, "m%d", i);
        probe_start(&p[i], s, name, &o);
    }
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < SEVERAL; i++)
            AWAIT(atomic_load(&p[i].acquired) == round && probe_leads(&p[i]));
        for (int i = 0; i < SEVERAL; i++) {
            snprintf(name, sizeof name, "m%d", i);
            CHECK_OK(simba_evict(other, name, NULL, false, PATIENCE_MS));
        }
        for (int i = 0; i < SEVERAL; i++)
            AWAIT(atomic_load(&p[i].released) == round);
    }
    client_close(s);
    client_close(other);
    database_drop(&d);
}

const struct test sql_tests[] = {
    {"sql_restart", sql_restart, SQL_ONLY, 0},
    {"sql_row_locked", sql_row_locked, SQL_ONLY, 0},
    {"sql_free_row_locked", sql_free_row_locked, SQL_ONLY, 0},
    {"sql_missing_row_locked", sql_missing_row_locked, SQL_ONLY, 0},
    {"sql_held_row_locked", sql_held_row_locked, SQL_ONLY, 0},
    {"sql_sessions_killed", sql_sessions_killed, SQL_ONLY, 0},
    {"sql_answer_lost", sql_answer_lost, SQL_ONLY, 0},
    {"sql_server_silent", sql_server_silent, SQL_ONLY, 0},
    {"sql_refusals", sql_refusals, SQL_ONLY, 0},
    {"sql_refused_by_another_host", sql_refused_by_another_host, SQL_ONLY, 0},
    {"sql_connection_limit", sql_connection_limit, SQL_ONLY, 0},
    {"sql_urls_refused", sql_urls_refused, SQL_ONLY, 0},
    {"sql_many_wait", sql_many_wait, SQL_ONLY, 0},
    {"sql_evict_several", sql_evict_several, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
