/* bad_server.c: a server that speaks the protocol and says what no server can mean. It costs an
 * error in words, never the process (T103): asserts are for our own bugs. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract/suite.h"

enum { CREATE = 1, EXISTS = 3, GET = 4, SYNC = 9, PING = 11, CHILDREN = 12, MULTI = 14 };
enum { CREATE2 = 15, CONTAINER = 19, GET_CHILDREN = 8, CHECK_VERSION = 13 };

#define STAT_SIZE 68

/* What it says of itself and of the node that a client makes. */
struct absurd {
    int32_t timeout;
    int64_t session, czxid;
    const char *name; /* NULL: the one that was asked for, with a number */
    int listener, port;
    char node[256]; /* the member that was made */
};

struct bytes {
    char at[4096];
    size_t length;
};

static void put(struct bytes *b, const void *from, size_t n)
{
    CHECK(b->length + n <= sizeof b->at);
    memcpy(b->at + b->length, from, n);
    b->length += n;
}

static void put_int(struct bytes *b, int32_t value)
{
    uint32_t big_endian = htobe32((uint32_t)value);
    put(b, &big_endian, sizeof big_endian);
}

static void put_long(struct bytes *b, int64_t value)
{
    uint64_t big_endian = htobe64((uint64_t)value);
    put(b, &big_endian, sizeof big_endian);
}

static void put_text(struct bytes *b, const char *text)
{
    put_int(b, (int32_t)strlen(text));
    put(b, text, strlen(text));
}

static void put_stat(struct bytes *b, const struct absurd *a)
{
    static const char zeros[STAT_SIZE - 8 - 8 - 16];
    put_long(b, a->czxid);
    put(b, zeros, 36); /* up to the owner */
    put_long(b, a->session);
    put_int(b, 0);
    put_int(b, 0);
    put_long(b, 1);
}

static void send_bytes(int fd, const struct bytes *b)
{
    uint32_t length = htobe32((uint32_t)b->length);
    if (send(fd, &length, sizeof length, MSG_NOSIGNAL) != sizeof length ||
        send(fd, b->at, b->length, MSG_NOSIGNAL) != (ssize_t)b->length)
        return; /* the client has had enough */
}

static bool receive(int fd, void *to, size_t n)
{
    return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static bool receive_message(int fd, struct bytes *b)
{
    uint32_t length;
    if (!receive(fd, &length, sizeof length))
        return false;
    b->length = be32toh(length);
    return b->length <= sizeof b->at && receive(fd, b->at, b->length);
}

static int32_t int_at(const struct bytes *b, size_t at)
{
    uint32_t big_endian = 0;
    CHECK(at + sizeof big_endian <= b->length);
    memcpy(&big_endian, b->at + at, sizeof big_endian);
    return (int32_t)be32toh(big_endian);
}

static void text_at(const struct bytes *b, size_t at, char *out, size_t size)
{
    int32_t n = int_at(b, at);
    CHECK(n >= 0 && at + 4 + (size_t)n <= b->length && (size_t)n < size);
    memcpy(out, b->at + at + 4, (size_t)n);
    out[n] = '\0';
}

static void reply(struct absurd *a, const struct bytes *q, struct bytes *r)
{
    char path[512] = "";
    int32_t type = int_at(q, 4);
    switch (type) {
    case CREATE2:
        text_at(q, 8, path, sizeof path);
        snprintf(a->node, sizeof a->node, "%.200s0000000000", strrchr(path, '/') + 1);
        if (a->name != NULL)
            put_text(r, a->name);
        else
            put_text(r, strcat(path, "0000000000"));
        put_stat(r, a);
        break;
    case CREATE:
    case CONTAINER:
    case SYNC:
        put_text(r, "/");
        break;
    case EXISTS:
        put_stat(r, a);
        break;
    case GET:
        put_text(r, "somebody");
        put_stat(r, a);
        break;
    case GET_CHILDREN:
    case CHILDREN:
        put_int(r, a->node[0] != '\0');
        if (a->node[0] != '\0')
            put_text(r, a->node);
        if (type == CHILDREN)
            put_stat(r, a);
        break;
    case MULTI:
        put_int(r, CHECK_VERSION);
        put(r, "\0", 1);
        put_int(r, 0);
        put_int(r, -1);
        put(r, "\1", 1);
        put_int(r, -1);
        break;
    default:
        break;
    }
}

static void *serve_one(struct absurd *a, int fd)
{
    struct bytes q, r = {.length = 0};
    static const char password[16 + 1];
    if (!receive_message(fd, &q))
        return NULL;
    put_int(&r, 0);
    put_int(&r, a->timeout);
    put_long(&r, a->session);
    put_int(&r, 16);
    put(&r, password, sizeof password); /* and: not read-only */
    send_bytes(fd, &r);
    while (receive_message(fd, &q)) {
        r.length = 0;
        put_int(&r, int_at(&q, 0));
        put_long(&r, 1);
        put_int(&r, 0);
        reply(a, &q, &r);
        send_bytes(fd, &r);
    }
    return NULL;
}

static void *serve(void *arg)
{
    struct absurd *a = arg;
    for (;;) {
        int fd = accept(a->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        serve_one(a, fd);
        close(fd);
    }
}

static void listen_on(struct absurd *a)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    a->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(a->listener, (struct sockaddr *)&address, size) == 0);
    CHECK(listen(a->listener, 8) == 0);
    CHECK(getsockname(a->listener, (struct sockaddr *)&address, &size) == 0);
    a->port = ntohs(address.sin_port);
    spawn(serve, a);
}

/* Whoever tries to lock on such a server is told so; `part`: of the words. */
static void expect_refusal(struct absurd *a, const char *part)
{
    char url[64];
    simba_client *s = NULL;
    simba_locker *l = NULL;
    struct simba_handle_options like = lease_long();
    listen_on(a);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d", a->port);
    CHECK_OK(simba_open(url, NULL, &s));
    CHECK_OK(simba_locker_create(s, "m", &like, &l));
    CHECK_REFUSED(acquire_until_refused(l, 1500), SIMBA_ESTORE, part);
    simba_locker_destroy(l);
    client_close(s);
}

static void zookeeper_absurd_sessions(void)
{
    static struct absurd zero = {.timeout = 0, .session = 5}, below = {.timeout = -1, .session = 5},
                         unnamed = {.timeout = 10000, .session = 0};
    expect_refusal(&zero, "session of 0 ms");
    expect_refusal(&below, "session of -1 ms");
    expect_refusal(&unnamed, "cannot be");
}

static void zookeeper_absurd_nodes(void)
{
    static struct absurd zero = {.timeout = 10000, .session = 5, .czxid = 0},
                         below = {.timeout = 10000, .session = 5, .czxid = -7},
                         other = {.timeout = 10000,
                                  .session = 5,
                                  .czxid = 0,
                                  .name = "/simba/m/latch-0000000000"},
                         nowhere = {.timeout = 10000, .session = 5, .czxid = 0, .name = ""};
    expect_refusal(&zero, "makes no sense");
    expect_refusal(&below, "makes no sense");
    expect_refusal(&other, "makes no sense");
    expect_refusal(&nowhere, "makes no sense");
}

const struct test zookeeper_absurd_tests[] = {
    {"zookeeper_absurd_sessions", zookeeper_absurd_sessions, ZOOKEEPER_ONLY, 0},
    {"zookeeper_absurd_nodes", zookeeper_absurd_nodes, ZOOKEEPER_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
