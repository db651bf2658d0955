/* server.c: see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"

#ifdef CONTRACT_MYSQL
#include <mysql.h>
#endif
#ifdef CONTRACT_POSTGRES
#include <libpq-fe.h>
#endif

bool sql_is_mysql(void)
{
    return strncmp(suite_url(), "mysql:", 6) == 0 || strncmp(suite_url(), "mariadb:", 8) == 0;
}

const char *sql_now;

/* ---- the administrator --------------------------------------------------------------------- */

static bool is_up(struct database *d, const char *database)
{
#ifdef CONTRACT_MYSQL
    if (sql_is_mysql()) {
        MYSQL *m = mysql_init(NULL);
        if (mysql_real_connect(m, NULL, "root", NULL, database, 0, d->socket,
                               CLIENT_MULTI_STATEMENTS) == NULL) {
            mysql_close(m);
            return false;
        }
        d->raw = m;
        return true;
    }
#endif
#ifdef CONTRACT_POSTGRES
    char line[512];
    snprintf(line, sizeof line, "host=%s port=%d user=postgres dbname=%s", d->socket, d->port,
             database != NULL ? database : "postgres");
    PGconn *c = PQconnectdb(line);
    if (PQstatus(c) == CONNECTION_OK) {
        d->raw = c;
        return true;
    }
    PQfinish(c);
#endif
    return false;
}

static void hang_up(struct database *d)
{
    if (d->raw == NULL)
        return;
#ifdef CONTRACT_MYSQL
    if (sql_is_mysql())
        mysql_close(d->raw);
#endif
#ifdef CONTRACT_POSTGRES
    if (!sql_is_mysql())
        PQfinish(d->raw);
#endif
    d->raw = NULL;
}

static void connect_to(struct database *d, const char *database)
{
    hang_up(d);
    AWAIT_FOR(SERVER_MS, is_up(d, database));
}

/* The first value of the last result; -1: none. */
static long long run_line(struct database *d, const char *line)
{
    long long number = -1;
#ifdef CONTRACT_MYSQL
    if (sql_is_mysql()) {
        MYSQL *m = d->raw;
        if (mysql_query(m, line) != 0)
            suite_fail(__FILE__, __LINE__, mysql_error(m));
        do {
            MYSQL_RES *r = mysql_store_result(m);
            MYSQL_ROW row = r != NULL ? mysql_fetch_row(r) : NULL;
            if (row != NULL && row[0] != NULL)
                number = strtoll(row[0], NULL, 10);
            mysql_free_result(r);
        } while (mysql_next_result(m) == 0);
        if (mysql_errno(m) != 0)
            suite_fail(__FILE__, __LINE__, mysql_error(m));
    }
#endif
#ifdef CONTRACT_POSTGRES
    if (!sql_is_mysql()) {
        PGresult *r = PQexec(d->raw, line);
        ExecStatusType status = PQresultStatus(r);
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
            suite_fail(__FILE__, __LINE__, PQerrorMessage(d->raw));
        if (PQntuples(r) > 0)
            number = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
        PQclear(r);
    }
#endif
    return number;
}

void sql_run(struct database *d, const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    run_line(d, line);
}

long long sql_number(struct database *d, const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return run_line(d, line);
}

void sql_make_table(struct database *d, bool fences)
{
    const char *big = sql_is_mysql() ? "bigint unsigned" : "bigint";
    sql_run(d,
            "CREATE TABLE simba_mutex (mutex varchar(66) not null primary key, "
            "acquired_at %s not null, ttl_at %s not null, transition_at %s not null, "
            "owner_id varchar(128) not null, version int%s not null%s%s%s)",
            big, big, big, sql_is_mysql() ? " unsigned" : "", fences ? ", fencing_token " : "",
            fences ? big : "", fences ? " not null default 0" : "");
    if (!sql_is_mysql())
        sql_run(d, "ALTER TABLE simba_mutex OWNER TO %s", d->name);
}

void sql_kill_sessions(struct database *d)
{
    if (!sql_is_mysql()) {
        sql_run(d, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='%s'",
                d->name);
        return;
    }
    sql_run(d, "KILL CONNECTION USER '%s'", d->name);
}

/* ---- databases ----------------------------------------------------------------------------- */

static void choose_now(void)
{
    sql_now = sql_is_mysql() ? "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(3))DIV 1000"
                             : "floor(extract(epoch from clock_timestamp())*1000)::bigint";
}

static void fill_database(struct database *d)
{
    choose_now();
    if (sql_is_mysql()) {
        connect_to(d, NULL);
        sql_run(d,
                "CREATE DATABASE %s; CREATE USER %s IDENTIFIED BY 'geheim'; "
                "CREATE USER %s@localhost IDENTIFIED BY 'geheim'; "
                "GRANT ALL ON %s.* TO %s, %s@localhost",
                d->name, d->name, d->name, d->name, d->name, d->name);
        snprintf(d->url, sizeof d->url, "mysql://%s:geheim@127.0.0.1:%d/%s", d->name, d->port,
                 d->name);
    } else {
        connect_to(d, "postgres");
        sql_run(d, "CREATE ROLE %s LOGIN PASSWORD 'geheim'", d->name);
        sql_run(d, "CREATE DATABASE %s OWNER %s", d->name, d->name);
        snprintf(d->url, sizeof d->url, "postgresql://%s:geheim@127.0.0.1:%d/%s", d->name, d->port,
                 d->name);
    }
    connect_to(d, d->name);
}

void database_make(struct database *d)
{
    const char *folder = getenv("SIMBA_TEST_FOLDER"), *port = getenv("SIMBA_TEST_PORT");
    if (folder == NULL || port == NULL)
        suite_skip("needs a server that tests/servers/ has started");
    *d = (struct database){.port = atoi(port)};
    snprintf(d->name, sizeof d->name, "t%d", (int)getpid());
    snprintf(d->socket, sizeof d->socket, "%s/%s", folder, sql_is_mysql() ? "sock" : "run");
    fill_database(d);
}

void database_drop(struct database *d)
{
    connect_to(d, sql_is_mysql() ? NULL : "postgres");
    if (sql_is_mysql()) {
        sql_run(d, "DROP DATABASE %s; DROP USER %s, %s@localhost", d->name, d->name, d->name);
    } else {
        sql_run(d, "DROP DATABASE %s WITH (FORCE)", d->name);
        sql_run(d, "DROP ROLE %s", d->name);
    }
    hang_up(d);
}

/* ---- a server of its own ------------------------------------------------------------------- */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int status = system(line);
    if (status != 0)
        suite_fail(__FILE__, __LINE__, line);
}

static const char become_postgres[] =
    "as=; if [ $(id -u) = 0 ]; then chmod 755 '%s'; chown postgres '%s'; "
    "as='setpriv --reuid=postgres --regid=postgres --init-groups --pdeathsig KILL'; fi; "
    "bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1); ";

static void launch(struct database *d)
{
    char line[2048], folder[256];
    snprintf(folder, sizeof folder, "%s", folder_path("server"));
    if (sql_is_mysql())
        snprintf(line, sizeof line,
                 "export TZ=Europe/Berlin TMPDIR=%s; exec mariadbd --no-defaults --user=$(id -un) "
                 "--datadir=%s/data --bind-address=127.0.0.1 --port=%d --socket=%s "
                 "--pid-file=%s/pid --innodb-buffer-pool-size=16M --innodb-log-file-size=8M "
                 "--skip-name-resolve >>%s/log 2>&1",
                 folder, folder, d->port, d->socket, folder, folder);
    else {
        int n = snprintf(line, sizeof line, become_postgres, folder, folder);
        snprintf(line + n, sizeof line - (size_t)n,
                 "exec $as $bin/postgres -D %s/data -p %d -c listen_addresses=127.0.0.1 "
                 "-c unix_socket_directories=%s -c fsync=off -c shared_buffers=16MB "
                 "-c dynamic_shared_memory_type=mmap "
                 ">>%s/log 2>&1",
                 folder, d->port, d->socket, folder);
    }
    pid_t test = getpid();
    d->pid = fork();
    CHECK(d->pid >= 0);
    if (d->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != test)
            _exit(1);
        execl("/bin/bash", "bash", "-c", line, (char *)NULL);
        _exit(127);
    }
}

void server_make(struct database *d)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s", folder_path("server"));
    *d = (struct database){.port = port_draw()};
    snprintf(d->name, sizeof d->name, "t%d", (int)getpid());
    CHECK(chmod(folder_path(""), 0711) == 0 && mkdir(folder, 0755) == 0);
    if (sql_is_mysql()) {
        snprintf(d->socket, sizeof d->socket, "%.200s/sock", folder);
        /* Servers that begin remove each other's temporary tables, if these are in one place. */
        shell("TMPDIR=%s mariadb-install-db --no-defaults --user=$(id -un) --datadir=%s/data "
              "--auth-root-authentication-method=normal --skip-test-db >%s/log 2>&1",
              folder, folder, folder);
    } else {
        char line[1024];
        snprintf(d->socket, sizeof d->socket, "%.200s", folder);
        snprintf(line, sizeof line, become_postgres, folder, folder);
        shell("%s $as $bin/initdb -D %s/data --auth-local=trust --auth-host=scram-sha-256 "
              "--encoding=UTF8 --locale=C -U postgres --no-sync >/dev/null 2>&1",
              line, folder);
    }
    launch(d);
    fill_database(d);
}

static void end_server(struct database *d, int signal)
{
    hang_up(d);
    CHECK(kill(d->pid, signal) == 0);
    CHECK(waitpid(d->pid, NULL, 0) == d->pid);
    d->pid = 0;
}

void server_crash(struct database *d)
{
    end_server(d, SIGKILL);
}

void server_stop(struct database *d)
{
    end_server(d, sql_is_mysql() ? SIGKILL : SIGQUIT); /* at once, but for its shared memory */
}

/* While processes of the killed one are still about to end, PostgreSQL refuses to start. */
static bool is_up_again(struct database *d)
{
    if (waitpid(d->pid, NULL, WNOHANG) == d->pid)
        launch(d);
    return is_up(d, d->name);
}

void server_restart(struct database *d)
{
    launch(d);
    AWAIT_FOR(SERVER_MS, is_up_again(d));
}

/* ---- a proxy ------------------------------------------------------------------------------- */

#define PAIRS 64

struct relay {
    int client[PAIRS], server[PAIRS];
    enum proxy_mode mode;
    _Atomic int *questions;
    const char *bytes;
};

static void drop(struct relay *r, int i)
{
    close(r->client[i]);
    close(r->server[i]);
    r->client[i] = r->server[i] = -1;
}

static bool copy(int from, int to)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

/* MUTE begins before the server has the question. */
static bool copy_question(struct relay *r, int i)
{
    char bytes[65536];
    ssize_t n = read(r->client[i], bytes, sizeof bytes);
    if (n > 0 && r->mode == PROXY_MUTE_AT &&
        memmem(bytes, (size_t)n, r->bytes, strlen(r->bytes)) != NULL)
        r->mode = PROXY_MUTE;
    return n > 0 && send(r->server[i], bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void relay_one(struct relay *r, int i, bool from_client, bool from_server)
{
    if (from_client)
        atomic_fetch_add(r->questions, 1);
    if (from_server && r->mode == PROXY_SWALLOW)
        drop(r, i);
    else if ((from_client && !copy_question(r, i)) ||
             (from_server && !copy(r->server[i], r->client[i])))
        drop(r, i);
}

static void accept_one(struct relay *r, int listener, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int i = 0, client = accept(listener, NULL, NULL);
    while (i < PAIRS && r->client[i] >= 0)
        i++;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (i == PAIRS || connect(server, (struct sockaddr *)&a, sizeof a) != 0) {
        close(client);
        close(server);
        return;
    }
    r->client[i] = client;
    r->server[i] = server;
}

static _Noreturn void relay(int listener, int port, int control, const struct proxy *proxy)
{
    static struct relay r;
    r.questions = proxy->questions;
    r.bytes = proxy->bytes;
    memset(r.client, -1, sizeof r.client);
    memset(r.server, -1, sizeof r.server);
    for (;;) {
        struct pollfd p[2 + 2 * PAIRS] = {{.fd = listener, .events = POLLIN},
                                          {.fd = control, .events = POLLIN}};
        bool held = r.mode == PROXY_HOLD, mute = r.mode == PROXY_MUTE;
        for (int i = 0; i < PAIRS; i++) {
            p[2 + 2 * i] = (struct pollfd){.fd = held ? -1 : r.client[i], .events = POLLIN};
            p[3 + 2 * i] = (struct pollfd){.fd = held || mute ? -1 : r.server[i], .events = POLLIN};
        }
        poll(p, 2 + 2 * PAIRS, -1);
        char mode;
        if (p[1].revents != 0) {
            if (read(control, &mode, 1) != 1)
                _exit(0);
            r.mode = (enum proxy_mode)mode;
            if (write(control, &mode, 1) != 1)
                _exit(1);
            continue;
        }
        if (p[0].revents != 0)
            accept_one(&r, listener, port);
        for (int i = 0; i < PAIRS; i++) {
            if (r.client[i] >= 0 && (p[2 + 2 * i].revents != 0 || p[3 + 2 * i].revents != 0))
                relay_one(&r, i, p[2 + 2 * i].revents != 0, p[3 + 2 * i].revents != 0);
        }
    }
}

void proxy_start(struct proxy *p, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 64) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, p->control) == 0);
    p->port = ntohs(a.sin_port);
    void *shared = mmap(NULL, sizeof *p->questions + PROXY_BYTES_MAX, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    p->questions = shared;
    p->bytes = (char *)(p->questions + 1);
    p->pid = fork();
    CHECK(p->pid >= 0);
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(p->control[0]);
        relay(fd, port, p->control[1], p);
    }
    close(fd);
    close(p->control[1]);
}

void proxy_set(struct proxy *p, enum proxy_mode mode)
{
    char c = (char)mode;
    CHECK(write(p->control[0], &c, 1) == 1);
    CHECK(read(p->control[0], &c, 1) == 1);
}

void proxy_end(struct proxy *p)
{
    CHECK(kill(p->pid, SIGKILL) == 0 && waitpid(p->pid, NULL, 0) == p->pid);
    close(p->control[0]);
}
