/* server.c: see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"

#define CREATES "-latch-" /* other requests of a member's name come later than this one */
#define JAR "/usr/share/java/zookeeper.jar"

/* ---- ports --------------------------------------------------------------------------------- */

static int listen_any(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 64) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static int connect_to(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

/* ---- a connection that can be cut ---------------------------------------------------------- */

struct connection {
    int client, server, left;
    bool doomed; /* the answer to a creation comes next */
};

static void drop(struct connection *l)
{
    if (l->client >= 0)
        close(l->client);
    if (l->server >= 0)
        close(l->server);
    l->client = l->server = -1;
}

/* A deletion becomes a question whether the node is there, which is answered with "done" as
 * well. Both are a type, the length of the path, and the path; what comes before them may have
 * been read already. */
static void keep_node(struct cutter *c, char *bytes, size_t count)
{
    enum { DELETE = 2, EXISTS = 3, PATH = 8 };
    for (size_t at = 0; at + PATH < count; at++) {
        uint32_t type, length;
        memcpy(&type, bytes + at, sizeof type);
        memcpy(&length, bytes + at + 4, sizeof length);
        if (ntohl(type) != DELETE || bytes[at + PATH] != '/' || ntohl(length) > count - at - PATH ||
            memmem(bytes + at + PATH, ntohl(length), CREATES, strlen(CREATES)) == NULL ||
            !atomic_exchange(&c->keep_node, false))
            continue;
        type = htonl(EXISTS);
        memcpy(bytes + at, &type, sizeof type);
    }
}

static bool pass(struct cutter *c, int from, int to, const char *part, bool *seen)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);
    if (n > 0 && part != NULL && atomic_load(&c->keep_node))
        keep_node(c, bytes, (size_t)n);
    *seen = n > 0 && part != NULL && memmem(bytes, (size_t)n, part, strlen(part)) != NULL;
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void take(struct cutter *c, struct connection *connections)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; i < CUTTER_CONNECTIONS && fd >= 0; i++) {
        if (connections[i].client >= 0)
            continue;
        int lose = atomic_load(&c->lose);
        connections[i] = (struct connection){.client = fd,
                                             .server = connect_to(c->to),
                                             .left = lose > 0 ? 1 + rand() % (2 * lose) : 0};
        if (connections[i].server < 0)
            drop(&connections[i]);
        return;
    }
    if (fd >= 0)
        close(fd);
}

/* What came from the server last may be lost: the request was applied, its answer is not told. */
static void serve(struct cutter *c, struct connection *l, bool from_client, bool from_server)
{
    bool create, ignored;
    if (from_client) {
        if (!pass(c, l->client, l->server, CREATES, &create)) {
            drop(l);
            return;
        }
        l->doomed = l->doomed || (create && atomic_exchange(&c->lose_create, false));
    }
    if (!from_server)
        return;
    if (l->doomed) {
        atomic_store(&c->frozen, c->freezes);
        drop(l);
        atomic_fetch_add(&c->lost, 1);
    } else if ((l->left > 0 && --l->left == 0 && atomic_load(&c->lose) > 0) ||
               !pass(c, l->server, l->client, NULL, &ignored)) {
        drop(l);
    }
}

static void *cut(void *arg)
{
    struct cutter *c = arg;
    struct connection connections[CUTTER_CONNECTIONS];
    for (int i = 0; i < CUTTER_CONNECTIONS; i++)
        connections[i] = (struct connection){.client = -1, .server = -1};
    for (;;) {
        struct pollfd fds[1 + 2 * CUTTER_CONNECTIONS];
        fds[0] = (struct pollfd){c->listener, POLLIN, 0};
        for (int i = 0; i < CUTTER_CONNECTIONS; i++) {
            fds[1 + 2 * i] = (struct pollfd){connections[i].client, POLLIN, 0};
            fds[2 + 2 * i] = (struct pollfd){connections[i].server, POLLIN, 0};
        }
        if (atomic_load(&c->frozen))
            nap(5);
        else if (poll(fds, 1 + 2 * CUTTER_CONNECTIONS, 20) > 0) {
            for (int i = 0; i < CUTTER_CONNECTIONS; i++) {
                if (connections[i].client >= 0)
                    serve(c, &connections[i], fds[1 + 2 * i].revents != 0,
                          fds[2 + 2 * i].revents != 0);
            }
            if (fds[0].revents != 0)
                take(c, connections);
        }
        if (atomic_exchange(&c->cut, false)) {
            for (int i = 0; i < CUTTER_CONNECTIONS; i++)
                drop(&connections[i]);
        }
    }
    return NULL;
}

void cutter_start(struct cutter *c, int to)
{
    c->to = to;
    c->listener = listen_any(&c->port);
    c->thread = spawn(cut, c);
}

/* ---- servers ------------------------------------------------------------------------------- */

static void write_config(struct ensemble *e, int n)
{
    char name[32], data[32];
    snprintf(name, sizeof name, "zoo%d.cfg", n);
    snprintf(data, sizeof data, "data%d", n);
    FILE *f = fopen(folder_path(name), "we");
    CHECK(f != NULL);
    fprintf(f,
            "tickTime=100\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
            "maxClientCnxns=0\nminSessionTimeout=200\nmaxSessionTimeout=60000\n",
            folder_path(data), e->port[n]);
    if (e->servers > 1) {
        fprintf(f, "initLimit=50\nsyncLimit=%d\n", e->sync_ticks > 0 ? e->sync_ticks : 20);
        for (int i = 0; i < e->servers; i++) {
            bool through = e->isolates && n == e->servers - 1 && i != n;
            fprintf(f, "server.%d=127.0.0.1:%d:%d\n", i + 1,
                    through ? e->cutter[i].port : e->quorum[i], e->election[i]);
        }
    }
    CHECK(fclose(f) == 0);
    CHECK(mkdir(folder_path(data), 0700) == 0);
    snprintf(data, sizeof data, "data%d/myid", n);
    f = fopen(folder_path(data), "we");
    CHECK(f != NULL && fprintf(f, "%d\n", n + 1) > 0 && fclose(f) == 0);
}

static _Noreturn void become_server(const struct ensemble *e, int n, pid_t test)
{
    char config[32];
    snprintf(config, sizeof config, "zoo%d.cfg", n);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(folder_path("server.log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (getppid() != test || log < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(1);
    execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
           "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024",
           "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true",
           "-Dzookeeper.4lw.commands.whitelist=*", e->java != NULL ? e->java : "-Dsimba=1", "-cp",
           JAR, "org.apache.zookeeper.server.quorum.QuorumPeerMain", folder_path(config),
           (char *)NULL);
    _exit(127);
}

void ensemble_launch(struct ensemble *e, int n)
{
    pid_t test = getpid();
    e->pid[n] = fork();
    CHECK(e->pid[n] >= 0);
    if (e->pid[n] == 0)
        become_server(e, n, test);
}

static bool srvr(int port, char *out, size_t size)
{
    int fd = connect_to(port);
    size_t used = 0;
    if (fd < 0)
        return false;
    struct timeval wait = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (send(fd, "srvr", 4, MSG_NOSIGNAL) == 4) {
        ssize_t n;
        while (used + 1 < size && (n = read(fd, out + used, size - 1 - used)) > 0)
            used += (size_t)n;
    }
    out[used] = '\0';
    close(fd);
    return strstr(out, "Mode: ") != NULL;
}

static bool serves(struct ensemble *e, int n)
{
    char text[2048];
    int status;
    pid_t gone = waitpid(e->pid[n], &status, WNOHANG);
    if (gone == e->pid[n] && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        suite_skip("java is not installed");
    CHECK(gone == 0); /* its log is in the folder */
    return srvr(e->port[n], text, sizeof text);
}

void ensemble_await(struct ensemble *e, int n)
{
    AWAIT_FOR(SERVER_MS, serves(e, n));
}

const char *ensemble_url(const struct ensemble *e, unsigned mask, const char *query)
{
    static char urls[8][256];
    static int next;
    char *url = urls[next++ % 8];
    int used = snprintf(url, sizeof urls[0], "zookeeper://");
    for (int i = 0; i < e->servers; i++) {
        if ((mask & 1u << i) != 0)
            used += snprintf(url + used, sizeof urls[0] - (size_t)used, "%s127.0.0.1:%d",
                             url[used - 1] == '/' ? "" : ",", e->port[i]);
    }
    snprintf(url + used, sizeof urls[0] - (size_t)used, "%s%s", query != NULL ? "?" : "",
             query != NULL ? query : "");
    return url;
}

static void draw_ports(struct ensemble *e)
{
    for (int i = 0; i < e->servers; i++) {
        e->port[i] = port_draw();
        e->quorum[i] = port_draw();
        e->election[i] = port_draw();
        if (e->isolates)
            cutter_start(&e->cutter[i], e->quorum[i]);
    }
}

void ensemble_start(struct ensemble *e)
{
    if (access(JAR, R_OK) != 0)
        suite_skip("ZooKeeper's server is not installed");
    signal(SIGPIPE, SIG_IGN);
    if (e->servers == 0)
        e->servers = 1;
    draw_ports(e);
    for (int i = 0; i < e->servers; i++)
        write_config(e, i);
    snprintf(e->url, sizeof e->url, "%s", ensemble_url(e, 7, NULL));
    /* The last one joins when the others have a leader, so that it is none. */
    for (int i = 0; i < e->servers; i++) {
        if (e->servers > 1 && i == e->servers - 1) {
            for (int j = 0; j < i; j++)
                ensemble_await(e, j);
        }
        ensemble_launch(e, i);
    }
    for (int i = 0; i < e->servers; i++)
        ensemble_await(e, i);
}

void ensemble_kill(struct ensemble *e, int n)
{
    if (e->pid[n] == 0)
        return;
    CHECK(kill(e->pid[n], SIGKILL) == 0);
    CHECK(waitpid(e->pid[n], NULL, 0) == e->pid[n]);
    e->pid[n] = 0;
}

void ensemble_end(struct ensemble *e)
{
    raw_close(e);
    for (int i = 0; i < e->servers; i++)
        ensemble_kill(e, i);
}

int ensemble_leader(struct ensemble *e)
{
    char text[2048];
    int leader = -1;
    int64_t until = simba_now() + SERVER_MS;
    while (leader < 0) {
        CHECK(simba_now() < until);
        for (int i = 0; i < e->servers; i++) {
            if (e->pid[i] != 0 && srvr(e->port[i], text, sizeof text) &&
                (strstr(text, "Mode: leader") != NULL || strstr(text, "standalone") != NULL))
                leader = i;
        }
    }
    return leader;
}

long long ensemble_number(struct ensemble *e, int n, const char *name)
{
    char text[2048], key[64];
    AWAIT(srvr(e->port[n], text, sizeof text));
    snprintf(key, sizeof key, "%s: ", name);
    const char *at = strstr(text, key);
    CHECK(at != NULL);
    return strtoll(at + strlen(key), NULL, 0);
}

/* ---- a client of our own ------------------------------------------------------------------- */

struct result {
    bool done;
    int rc, count;
    char *data;
    int size;
    struct Stat *stat;
    char (*names)[128];
    int max;
};

static void be_silent(const char *message)
{
    (void)message;
}

static void ignore(zhandle_t *h, int type, int state, const char *path, void *data)
{
    (void)h;
    (void)type;
    (void)state;
    (void)path;
    (void)data;
}

/* The library without threads has no calls that wait. */
static void drive(struct ensemble *e, const bool *done)
{
    int64_t until = simba_now() + PATIENCE_MS;
    while (!*done) {
        int fd = -1, interest = 0;
        struct timeval wait;
        CHECK(simba_now() < until);
        int rc = zookeeper_interest(e->raw, &fd, &interest, &wait);
        struct pollfd p = {.fd = rc == ZOK ? fd : -1,
                           .events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                                             (interest & ZOOKEEPER_WRITE ? POLLOUT : 0))};
        poll(&p, 1, 20);
        zookeeper_process(e->raw, (p.revents & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
                                      (p.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
    }
}

static void on_void(int rc, const void *data)
{
    struct result *r = (struct result *)(uintptr_t)data;
    r->rc = rc;
    r->done = true;
}

static void on_string(int rc, const char *value, const void *data)
{
    (void)value;
    on_void(rc, data);
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct result *r = (struct result *)(uintptr_t)data;
    if (rc == ZOK) {
        snprintf(r->data, (size_t)r->size, "%.*s", length > 0 ? length : 0,
                 value != NULL ? value : "");
        *r->stat = *stat;
    }
    on_void(rc, data);
}

static void on_strings(int rc, const struct String_vector *names, const void *data)
{
    struct result *r = (struct result *)(uintptr_t)data;
    if (rc == ZOK) {
        r->count = names->count;
        for (int i = 0; i < names->count && i < r->max; i++)
            snprintf(r->names[i], sizeof r->names[i], "%s", names->data[i]);
    }
    on_void(rc, data);
}

static zhandle_t *raw(struct ensemble *e)
{
    char hosts[128] = "";
    if (e->raw != NULL && is_unrecoverable(e->raw) != ZOK)
        raw_close(e);
    if (e->raw != NULL)
        return e->raw;
    for (int i = 0; i < e->servers; i++) {
        size_t used = strlen(hosts);
        if (e->raw_mask != 0 && (e->raw_mask & 1u << i) == 0)
            continue;
        snprintf(hosts + used, sizeof hosts - used, "%s127.0.0.1:%d", used > 0 ? "," : "",
                 e->port[i]);
    }
    e->raw = zookeeper_init2(hosts, ignore, 30000, NULL, NULL, 0, be_silent);
    CHECK(e->raw != NULL);
    zoo_set_servers_resolution_delay(e->raw, -1);
    return e->raw;
}

/* Once more if the connection broke: good enough for a read. */
#define TWICE(call)                            \
    do {                                       \
        for (int try_ = 0; try_ < 5; try_++) { \
            r.done = false;                    \
            CHECK((call) == ZOK);              \
            drive(e, &r.done);                 \
            if (r.rc != ZCONNECTIONLOSS)       \
                break;                         \
        }                                      \
    } while (0)

int raw_create(struct ensemble *e, const char *path, const char *data)
{
    struct result r = {.rc = 0};
    TWICE(zoo_acreate(raw(e), path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                      on_string, &r));
    return r.rc;
}

int raw_create_readable(struct ensemble *e, const char *path)
{
    struct result r = {.rc = 0};
    TWICE(zoo_acreate(raw(e), path, "", 0, &ZOO_READ_ACL_UNSAFE, ZOO_PERSISTENT, on_string, &r));
    return r.rc;
}

int raw_make_readable(struct ensemble *e, const char *path)
{
    struct result r = {.rc = 0};
    struct ACL_vector acl = ZOO_READ_ACL_UNSAFE;
    TWICE(zoo_aset_acl(raw(e), path, -1, &acl, on_void, &r));
    return r.rc;
}

int raw_delete(struct ensemble *e, const char *path)
{
    struct result r = {.rc = 0};
    TWICE(zoo_adelete(raw(e), path, -1, on_void, &r));
    return r.rc;
}

int raw_get(struct ensemble *e, const char *path, char *data, int size, struct Stat *stat)
{
    struct result r = {.data = data, .size = size, .stat = stat};
    TWICE(zoo_aget(raw(e), path, 0, on_data, &r));
    return r.rc;
}

int raw_children(struct ensemble *e, const char *path, char names[][128], int max)
{
    struct result r = {.names = names, .max = max};
    if (e->servers > 1 && e->raw_mask == 0) /* the server of ours may lag behind */
        TWICE(zoo_async(raw(e), path, on_string, &r));
    TWICE(zoo_aget_children(raw(e), path, 0, on_strings, &r));
    return r.rc == ZOK ? r.count : r.rc;
}

void raw_close(struct ensemble *e)
{
    if (e->raw != NULL)
        zookeeper_close(e->raw);
    e->raw = NULL;
}
