/* queue.c: how processes that wait for a mutex on MariaDB learn of its release, and who is first. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "help.h"

#define ROUNDS 10
#define QUEUE_LOCK "CONCAT('simba:',SHA1('%s/m'))" /* of the mutex m, and the database */

static void *take(void *l)
{
    return (void *)(intptr_t)simba_locker_acquire(l, PATIENCE_MS);
}

/* Sessions of the user that wait for a queue lock. */
static long long waiting(struct database *d)
{
    return sql_number(d,
                      "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE user='%s' AND "
                      "state='User lock'",
                      d->name);
}

static long long sessions(struct database *d)
{
    return sql_number(d, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE user='%s'",
                      d->name);
}

static void begin(struct database *d, char url[600])
{
    if (!sql_is_mysql())
        suite_skip("PostgreSQL pushes by itself");
    database_make(d);
    snprintf(url, 600, "%s?poll=0", d->url);
}

/* With poll=0 nobody polls, and the lease is three times as long as we have patience: what wakes
 * the waiter is the queue lock. */
static void sql_queue_wakes(void)
{
    struct database d;
    char url[600];
    pthread_t thread;
    void *code;
    begin(&d, url);
    simba_client *s[2] = {open_at(url), open_at(url)};
    simba_locker *l[2];
    for (int i = 0; i < 2; i++)
        l[i] = locker(s[i], "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l[0], PATIENCE_MS));
    for (int i = 0; i < ROUNDS; i++) {
        simba_locker *owner = l[i % 2], *next = l[(i + 1) % 2];
        CHECK(pthread_create(&thread, NULL, take, next) == 0);
        AWAIT(waiting(&d) == 1);
        uint64_t token = simba_locker_token(owner);
        CHECK_OK(simba_locker_release(owner));
        CHECK(pthread_join(thread, &code) == 0);
        CHECK_OK((int)(intptr_t)code);
        CHECK(simba_locker_token(next) > token);
    }
    CHECK_OK(simba_locker_release(l[ROUNDS % 2]));
    client_close(s[0]);
    client_close(s[1]);
    database_drop(&d);
}

/* Three processes; the first that waits is killed, or stopped with the queue lock. */
static void without_first(bool is_killed)
{
    struct database d;
    char url[600];
    int status;
    begin(&d, url);
    if (!is_killed)
        snprintf(url, sizeof url, "%s", d.url); /* then a poll must help */
    struct peer p[3];
    for (int i = 0; i < 3; i++)
        p[i] = start(url, "m", lease_long());
    uint64_t token = own(&p[0]);
    for (int i = 1; i < 3; i++) {
        contend(&p[i]);
        AWAIT(waiting(&d) == i);
    }
    if (is_killed) {
        peer_kill(&p[1]);
    } else {
        CHECK(kill(p[1].pid, SIGSTOP) == 0);
        CHECK(waitpid(p[1].pid, &status, WUNTRACED) == p[1].pid && WIFSTOPPED(status));
    }
    CHECK(peer_number(&p[0], "stop") == 0);
    uint64_t next = peer_await_owner(&p[2]);
    CHECK(next > token);
    if (!is_killed) { /* and it goes on when it runs again */
        CHECK(kill(p[1].pid, SIGCONT) == 0);
        CHECK(peer_number(&p[2], "stop") == 0);
        CHECK(peer_await_owner(&p[1]) > next);
        peer_end(&p[1]);
    }
    peer_end(&p[0]);
    peer_end(&p[2]);
    database_drop(&d);
}

static void sql_queue_killed(void)
{
    without_first(true);
}

static void sql_queue_stopped(void)
{
    without_first(false);
}

/* Two peers; an administrator does something to the session in which the second one waits. */
static uint64_t strike(struct database *d, struct peer p[2], const char *how)
{
    for (int i = 0; i < 2; i++)
        p[i] = start(d->url, "m", lease_long());
    uint64_t token = own(&p[0]);
    contend(&p[1]);
    AWAIT(waiting(d) == 1);
    sql_run(d, "%s %lld", how,
            sql_number(d,
                       "SELECT MAX(id) FROM information_schema.PROCESSLIST WHERE user='%s' AND "
                       "state='User lock'",
                       d->name));
    if (strcmp(how, "KILL") == 0)
        AWAIT(waiting(d) == 0);
    CHECK(peer_number(&p[0], "stop") == 0);
    uint64_t next = peer_await_owner(&p[1]);
    CHECK(next > token);
    return next;
}

/* First the one that waits is ended, then all of them: polls go on. */
static void sql_queue_sessions_end(void)
{
    struct database d;
    char url[600];
    struct peer p[2];
    begin(&d, url);
    uint64_t token = strike(&d, p, "KILL");
    contend(&p[0]);
    sql_kill_sessions(&d);
    CHECK(peer_number(&p[1], "stop") == 0);
    CHECK(peer_await_owner(&p[0]) > token);
    peer_end(&p[0]);
    peer_end(&p[1]);
    database_drop(&d);
}

/* What it waits in is ended, and not the session. */
static void sql_queue_query_ends(void)
{
    struct database d;
    char url[600];
    struct peer p[2];
    begin(&d, url);
    strike(&d, p, "KILL QUERY");
    peer_end(&p[0]);
    peer_end(&p[1]);
    database_drop(&d);
}

/* Connections that only wait take none from a user that may have few. */
static void sql_queue_no_room(void)
{
    struct database d;
    char url[600];
    begin(&d, url);
    sql_run(&d, "ALTER USER '%s'@'%%' WITH MAX_USER_CONNECTIONS 3", d.name);
    struct peer p[3];
    for (int i = 0; i < 3; i++)
        p[i] = start(d.url, "m", lease_long());
    uint64_t token = own(&p[0]);
    contend(&p[1]);
    nap(300); /* polls, and the question for room */
    CHECK(sessions(&d) == 2);
    contend(&p[2]); /* there is a connection left for it */
    AWAIT(sessions(&d) == 3);
    CHECK(peer_number(&p[0], "stop") == 0);
    AWAIT((uint64_t)peer_number(&p[1], "token") > token ||
          (uint64_t)peer_number(&p[2], "token") > token);
    for (int i = 0; i < 3; i++)
        peer_end(&p[i]);
    database_drop(&d);
}

/* They go when the server may have few from now on. */
static void sql_queue_room_ends(void)
{
    enum { PEERS = 4 };
    struct database d;
    struct peer p[PEERS];
    if (!sql_is_mysql())
        suite_skip("PostgreSQL pushes by itself");
    folder_make();
    server_make(&d);
    for (int i = 0; i < PEERS; i++)
        p[i] = start(d.url, "m", lease_long());
    uint64_t token = own(&p[0]);
    for (int i = 1; i < PEERS; i++)
        contend(&p[i]);
    AWAIT(waiting(&d) == PEERS - 1);
    sql_run(&d, "SET GLOBAL max_connections=10"); /* the least there is */
    AWAIT(sessions(&d) == PEERS);
    CHECK((uint64_t)peer_number(&p[0], "token") == token);
    for (int i = 0; i < PEERS; i++)
        peer_end(&p[i]);
    server_stop(&d);
    folder_remove();
}

/* The owner's session ends, with its queue lock, and it goes on owning the mutex; when it has
 * renewed it has the queue lock again, so that its release wakes who waits, and no poll does. */
static void sql_queue_taken_again(void)
{
    struct database d;
    char url[600];
    begin(&d, url);
    struct peer p[2];
    struct simba_handle_options o = lease_long();
    o.ttl_ms = 1000; /* renewals are frequent */
    for (int i = 0; i < 2; i++)
        p[i] = start(url, "m", o);
    uint64_t token = own(&p[0]);
    AWAIT(sql_number(&d, "SELECT IS_USED_LOCK(" QUEUE_LOCK ") IS NOT NULL", d.name) == 1);
    sql_kill_sessions(&d);
    AWAIT(sql_number(&d, "SELECT IS_USED_LOCK(" QUEUE_LOCK ") IS NOT NULL", d.name) == 0);
    AWAIT(sql_number(&d, "SELECT IS_USED_LOCK(" QUEUE_LOCK ") IS NOT NULL", d.name) == 1);
    contend(&p[1]);
    AWAIT(waiting(&d) == 1);
    CHECK((uint64_t)peer_number(&p[0], "token") == token);
    CHECK(peer_number(&p[0], "stop") == 0);
    CHECK(peer_await_owner(&p[1]) > token);
    peer_end(&p[0]);
    peer_end(&p[1]);
    database_drop(&d);
}

/* However many mutexes a client waits for, it has few sessions, and gets them all. */
static void sql_queue_many(void)
{
    enum { MANY = 20 };
    struct database d;
    char url[600], mutex[16];
    begin(&d, url);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    simba_locker *l[MANY], *next[MANY];
    pthread_t thread[MANY];
    void *code;
    for (int i = 0; i < MANY; i++) {
        snprintf(mutex, sizeof mutex, "m%d", i);
        l[i] = locker(s, mutex, NULL, lease_long());
        next[i] = locker(other, mutex, NULL, lease_long());
        CHECK_OK(simba_locker_acquire(l[i], PATIENCE_MS));
        CHECK(pthread_create(&thread[i], NULL, take, next[i]) == 0);
    }
    AWAIT(waiting(&d) == 4);
    nap(100); /* for more to come */
    CHECK(waiting(&d) == 4);
    CHECK(sessions(&d) <= 2 * (1 + 4));
    for (int i = MANY; i-- > 0;) {
        CHECK_OK(simba_locker_release(l[i]));
        CHECK(pthread_join(thread[i], &code) == 0);
        CHECK_OK((int)(intptr_t)code);
    }
    client_close(s);
    client_close(other);
    AWAIT(sessions(&d) == 0);
    database_drop(&d);
}

/* One comes back at once, another has waited: who is first? */
static void sql_queue_not_overtaken(void)
{
    struct database d;
    char url[600];
    int overtaken = 0;
    begin(&d, url);
    struct peer p[2];
    for (int i = 0; i < 2; i++)
        p[i] = start(d.url, "m", lease_long());
    struct peer *owner = &p[0], *waiter = &p[1];
    uint64_t token = own(owner);
    contend(waiter);
    for (int i = 0; i < ROUNDS; i++) {
        AWAIT(waiting(&d) == 1);
        peer_send(owner, "stop");
        peer_send(owner, "start");
        CHECK(peer_reply(owner, PATIENCE_MS)[0] == '0');
        CHECK(peer_reply(owner, PATIENCE_MS)[0] == '0');
        uint64_t now[2] = {0, 0};
        AWAIT((now[0] = (uint64_t)peer_number(owner, "token")) > token ||
              (now[1] = (uint64_t)peer_number(waiter, "token")) > token);
        token = now[0] > token ? now[0] : now[1];
        if (token == now[0]) {
            overtaken++;
        } else {
            struct peer *was = owner;
            owner = waiter;
            waiter = was;
        }
    }
    CHECK(overtaken <= ROUNDS / 2);
    peer_end(&p[0]);
    peer_end(&p[1]);
    database_drop(&d);
}

const struct test sql_queue_tests[] = {
    {"sql_queue_wakes", sql_queue_wakes, SQL_ONLY, 0},
    {"sql_queue_killed", sql_queue_killed, SQL_ONLY, 0},
    {"sql_queue_stopped", sql_queue_stopped, SQL_ONLY, 0},
    {"sql_queue_sessions_end", sql_queue_sessions_end, SQL_ONLY, 0},
    {"sql_queue_query_ends", sql_queue_query_ends, SQL_ONLY, 0},
    {"sql_queue_no_room", sql_queue_no_room, SQL_ONLY, 0},
    {"sql_queue_room_ends", sql_queue_room_ends, SQL_ONLY, 0},
    {"sql_queue_taken_again", sql_queue_taken_again, SQL_ONLY, 0},
    {"sql_queue_many", sql_queue_many, SQL_ONLY, 0},
    {"sql_queue_not_overtaken", sql_queue_not_overtaken, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
