/* pass.c: a mutex that goes from handle to handle of one client, by one statement. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "help.h"

#define ROUNDS 40

static void *take(void *l)
{
    return (void *)(intptr_t)simba_locker_acquire(l, PATIENCE_MS);
}

/* Of two lockers one owns the mutex, and the other waits in a thread. */
struct pair {
    simba_locker *owner, *next;
    pthread_t thread;
};

/* The lease is three times as long as we have patience. */
static struct pair pair_begin(simba_client *s)
{
    struct pair p = {.owner = locker(s, "m", NULL, lease_long()),
                     .next = locker(s, "m", NULL, lease_long())};
    CHECK_OK(simba_locker_acquire(p.owner, PATIENCE_MS));
    return p;
}

static void pair_wait(struct pair *p)
{
    CHECK(pthread_create(&p->thread, NULL, take, p->next) == 0);
    nap(20); /* or it waits not yet: then the release and it are two statements, which is right, too */
}

static void pair_take(struct pair *p)
{
    void *code;
    CHECK(pthread_join(p->thread, &code) == 0);
    CHECK_OK((int)(intptr_t)code);
    simba_locker *was = p->owner;
    p->owner = p->next;
    p->next = was;
}

/* Each hand-over is one question to a server that pushes, where six would be asked without passes;
 * and each tenure has a token of its own. */
static void sql_passed(void)
{
    struct database d;
    struct proxy proxy;
    char url[512];
    database_make(&d);
    proxy_start(&proxy, d.port);
    url_of(&d, proxy.port, url);
    simba_client *s = open_at(url);
    struct pair p = pair_begin(s);
    int before = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 4) /* all statements are prepared by now */
            before = *proxy.questions;
        uint64_t token = simba_locker_token(p.owner);
        pair_wait(&p);
        CHECK_OK(simba_locker_release(p.owner));
        pair_take(&p);
        CHECK(simba_locker_token(p.owner) > token);
        CHECK(sql_number(&d,
                         "SELECT COUNT(*) FROM simba_mutex WHERE mutex='m' AND "
                         "transition_at>%s+10000 AND ttl_at<=transition_at AND acquired_at<=%s",
                         sql_now, sql_now) == 1);
    }
    if (!sql_is_mysql())
        CHECK(*proxy.questions - before < 3 * ROUNDS);
    CHECK_OK(simba_locker_release(p.owner));
    CHECK(sql_number(&d, "SELECT COUNT(*) FROM simba_mutex WHERE transition_at>0") == 0);
    client_close(s);
    proxy_end(&proxy);
    database_drop(&d);
}

/* Its owner was evicted, or somebody has freed the row and another has taken it: then there is
 * nothing to pass on. */
static void sql_pass_of_nothing(void)
{
    struct database d;
    database_make(&d);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    struct pair p = pair_begin(s);
    simba_locker *third = locker(other, "m", NULL, lease_long());
    for (int i = 0; i < 5; i++) {
        uint64_t token = simba_locker_token(p.owner);
        pair_wait(&p);
        CHECK_OK(simba_evict(other, "m", NULL, false, PATIENCE_MS));
        simba_locker_release(p.owner);
        pair_take(&p);
        uint64_t next = simba_locker_token(p.owner);
        CHECK(next > token);

        sql_run(&d, "UPDATE simba_mutex SET transition_at=0,owner_id='' WHERE mutex='m'");
        CHECK_OK(simba_locker_acquire(third, PATIENCE_MS));
        uint64_t theirs = simba_locker_token(third);
        CHECK(theirs > next);
        pair_wait(&p);
        simba_locker_release(p.owner);
        nap(50);
        CHECK(sql_number(&d,
                         "SELECT COUNT(*) FROM simba_mutex WHERE mutex='m' AND "
                         "fencing_token=%llu AND transition_at>%s",
                         (unsigned long long)theirs, sql_now) == 1);
        CHECK_OK(simba_locker_release(third));
        pair_take(&p);
        CHECK(simba_locker_token(p.owner) > theirs);
    }
    client_close(s);
    client_close(other);
    database_drop(&d);
}

/* ---- others who wait ----------------------------------------------------------------------- */

static struct {
    _Atomic int tenures;
    _Atomic bool stops;
} busy;

static void *come_back(void *l)
{
    while (!busy.stops) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        busy.tenures++;
        CHECK_OK(simba_locker_release(l));
    }
    return NULL;
}

/* Some threads of one process pass it around without an end; another process gets it all the same,
 * after a bounded number of their tenures in the mean. */
static void sql_pass_ends(void)
{
    enum { THREADS = 4, TIMES = 20 };
    struct database d;
    pthread_t thread[THREADS];
    database_make(&d);
    simba_client *s = open_at(d.url), *other = open_at(d.url);
    busy.tenures = 0;
    busy.stops = false;
    for (int i = 0; i < THREADS; i++) {
        simba_locker *l = locker(s, "m", NULL, lease_long());
        CHECK(pthread_create(&thread[i], NULL, come_back, l) == 0);
    }
    simba_locker *l = locker(other, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    int before = busy.tenures;
    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(simba_locker_release(l));
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    }
    CHECK(busy.tenures - before < TIMES * 100);
    busy.stops = true;
    CHECK_OK(simba_locker_release(l));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    client_close(s);
    client_close(other);
    database_drop(&d);
}

const struct test sql_pass_tests[] = {
    {"sql_passed", sql_passed, SQL_ONLY, 0},
    {"sql_pass_of_nothing", sql_pass_of_nothing, SQL_ONLY, 0},
    {"sql_pass_ends", sql_pass_ends, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
