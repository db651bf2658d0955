/* push.c: how those who wait hear of a release: told by PostgreSQL, behind a pooler or from who
 * does not tell by polling. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "help.h"

static void *take(void *l)
{
    return (void *)(intptr_t)simba_locker_acquire(l, PATIENCE_MS);
}

static _Atomic int changes;

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
    atomic_fetch_add(&changes, 1);
}

/* Whether somebody waits, and has said so. */
static long long marks(struct database *d)
{
    return sql_number(d, "SELECT COUNT(*) FROM simba_mutex WHERE mutex='m' AND "
                         "version>fencing_token");
}

/* With poll=0 nobody polls, and the lease is three times as long as we have patience: it was
 * NOTIFY. */
static void sql_pushed(void)
{
    struct database d;
    char url[600];
    pthread_t thread;
    void *code;
    if (sql_is_mysql())
        suite_skip("needs a server that pushes");
    database_make(&d);
    snprintf(url, sizeof url, "%s?poll=0", d.url);
    simba_client *s = open_at(url), *third = open_at(url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    for (int i = 0; i < 20; i++) {
        simba_client *other = open_at(url); /* a new one, which does not listen yet */
        simba_locker *next = locker(other, "m", NULL, lease_long());
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK(pthread_create(&thread, NULL, take, next) == 0);
        AWAIT(marks(&d) == 1);
        CHECK_OK(simba_locker_release(l));
        CHECK(pthread_join(thread, &code) == 0);
        CHECK_OK((int)(intptr_t)code);
        CHECK_OK(simba_locker_release(next));
        client_close(other);
    }
    simba_observer *w = NULL;
    struct simba_handle_options o = lease_long();
    struct simba_state state;
    o.on_changed = on_changed;
    CHECK_OK(simba_observer_create(third, "m", &o, &w));
    AWAIT(sql_number(&d, "SELECT COUNT(*) FROM simba_mutex WHERE mutex='' AND transition_at>0") ==
          1);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT((simba_observer_state(w, &state), state.after.token == simba_locker_token(l)));
    CHECK_OK(simba_locker_release(l));
    AWAIT((simba_observer_state(w, &state), state.after.token == 0));
    client_close(s);
    client_close(third);
    database_drop(&d);
}

#define WHO_WAITS "pg_stat_activity WHERE application_name='waits' AND datname=current_database()"

/* What was told while nobody listened was told to nobody: whoever listens again has to poll
 * once, also with poll=0, and to leave its mark anew if that is gone. Else it waits for the end
 * of a lease that is three times as long as we have patience. */
static void sql_pushed_to_nobody(void)
{
    struct database d;
    struct proxy p;
    char base[512], url[600];
    pthread_t thread;
    void *code;
    if (sql_is_mysql())
        suite_skip("needs a server that pushes");
    database_make(&d);
    proxy_start(&p, d.port);
    url_of(&d, p.port, base);
    snprintf(url, sizeof url, "%s?poll=0&application_name=waits", base);
    simba_client *s = open_at(d.url), *other = open_at(url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    simba_locker *next = locker(other, "m", NULL, lease_long());
    for (int i = 0; i < 4; i++) {
        bool loses_mark = i % 2 == 1;
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK(pthread_create(&thread, NULL, take, next) == 0);
        AWAIT(marks(&d) == 1);
        proxy_set(&p, PROXY_HOLD); /* it does not hear that its session ends, nor gets a new one */
        sql_run(&d, "SELECT pg_terminate_backend(pid) FROM " WHO_WAITS);
        AWAIT(sql_number(&d, "SELECT COUNT(*) FROM " WHO_WAITS) == 0);
        if (loses_mark)
            sql_run(&d, "UPDATE simba_mutex SET version=0 WHERE mutex='m'");
        else
            CHECK_OK(simba_locker_release(l));
        proxy_set(&p, PROXY_PASS);
        if (loses_mark) {
            AWAIT(marks(&d) == 1);
            CHECK_OK(simba_locker_release(l));
        }
        CHECK(pthread_join(thread, &code) == 0);
        CHECK_OK((int)(intptr_t)code);
        CHECK_OK(simba_locker_release(next));
    }
    client_close(s);
    client_close(other);
    proxy_end(&p);
    database_drop(&d);
}

/* A JVM peer frees it, and tells nobody. */
static void sql_freed_silently(void)
{
    struct database d;
    database_make(&d);
    sql_make_table(&d, true);
    sql_run(&d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version) "
            "VALUES ('m',%s,%s+90000,%s+90000,'0:1@jvm',41)",
            sql_now, sql_now, sql_now);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    pthread_t thread;
    void *code;
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    CHECK(pthread_create(&thread, NULL, take, l) == 0);
    nap(300);
    sql_run(&d, "UPDATE simba_mutex SET acquired_at=0,ttl_at=0,transition_at=0,owner_id='',"
                "version=version+1 WHERE mutex='m' AND owner_id='0:1@jvm'");
    CHECK(pthread_join(thread, &code) == 0);
    CHECK_OK((int)(intptr_t)code);
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    database_drop(&d);
}

/* ---- a pooler ------------------------------------------------------------------------------ */

struct pool {
    int port;
    pid_t pid;
};

/* One process of the server for all clients, given to another with each transaction. */
static void pool_start(struct pool *p, const struct database *d)
{
    char file[256], line[1024];
    snprintf(file, sizeof file, "%s", folder_path("pool"));
    CHECK(chmod(folder_path(""), 0711) == 0);
    p->port = port_draw();
    FILE *f = fopen(file, "w");
    CHECK(f != NULL);
    fprintf(f,
            "[databases]\n%s = host=127.0.0.1 port=%d dbname=%s user=%s password=geheim\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\n"
            "pool_mode = transaction\nunix_socket_dir =\ndefault_pool_size = 1\n",
            d->name, d->port, d->name, d->name, p->port);
    CHECK(fclose(f) == 0 && chmod(file, 0644) == 0);
    snprintf(line, sizeof line,
             "as=; if [ $(id -u) = 0 ]; then as='setpriv --reuid=postgres --regid=postgres "
             "--init-groups --pdeathsig KILL'; fi; exec $as pgbouncer -q %s >/dev/null 2>&1",
             file);
    pid_t test = getpid();
    p->pid = fork();
    CHECK(p->pid >= 0);
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != test)
            _exit(1);
        execl("/bin/bash", "bash", "-c", line, (char *)NULL);
        _exit(127);
    }
}

static void find_pooler(void *data, enum simba_level level, const char *line)
{
    if (level == SIMBA_LOG_WARN && strstr(line, "a pooler is before the server") != NULL)
        *(bool *)data = true;
}

/* T28: LISTEN, prepared statements and settings of a session do nothing there, or harm others.
 * It is found out and said; leases and tokens hold; a release is found by polling. */
static void sql_pooler(void)
{
    struct database d;
    struct pool p;
    char url[512];
    struct simba_owner o;
    bool said = false;
    if (sql_is_mysql())
        suite_skip("needs PostgreSQL");
    if (system("command -v pgbouncer >/dev/null") != 0)
        suite_skip("needs pgbouncer");
    folder_make();
    database_make(&d);
    pool_start(&p, &d);
    url_of(&d, p.port, url);
    simba_client *s = open_at(url);
    AWAIT(simba_read(s, "m", PATIENCE_MS, &o) == 0);
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, find_pooler, &said));
    CHECK(said);
    struct peer a = start(url, "m", lease_steady()), b = start(url, "m", lease_steady());
    struct peer direct = start(d.url, "m", lease_steady());
    uint64_t token = own(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    for (int i = 0; i < 5; i++) { /* each statement is said often enough to be prepared elsewhere */
        struct peer *from = i % 2 == 0 ? &a : &b, *to = i % 2 == 0 ? &b : &a;
        nap(500);
        CHECK((uint64_t)peer_number(from, "token") == token);
        CHECK(peer_number(from, "stop") == 0);
        uint64_t next = peer_await_owner(to);
        CHECK(next > token);
        token = next;
        AWAIT(peer_number(from, "start") == 0);
        CHECK(peer_number(from, "wait") == 0);
    }
    CHECK(peer_number(&a, "stop") == 0 && peer_number(&b, "stop") == 0);
    CHECK(own(&direct) > token); /* from the pool to one who listens */
    CHECK(sql_number(&d,
                     "SELECT COUNT(*) FROM pg_stat_activity WHERE usename='%s' AND "
                     "query LIKE 'LISTEN%%' AND client_port IS NULL",
                     d.name) == 0);
    CHECK(strstr(peer_ask(&a, "log"), "pooler") != NULL);
    peer_end(&a);
    peer_end(&b);
    peer_end(&direct);
    client_close(s);
    CHECK(kill(p.pid, SIGKILL) == 0 && waitpid(p.pid, NULL, 0) == p.pid);
    database_drop(&d);
    folder_remove();
}

const struct test sql_push_tests[] = {
    {"sql_pushed", sql_pushed, SQL_ONLY, 0},
    {"sql_pushed_to_nobody", sql_pushed_to_nobody, SQL_ONLY, 0},
    {"sql_freed_silently", sql_freed_silently, SQL_ONLY, 0},
    {"sql_pooler", sql_pooler, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
