/* test_torture_proxy.c: each fault of the proxy, as a client and a server see it over real sockets.
 * The test is both. That nothing comes is shown after the proxy has answered a message behind it;
 * nothing waits for time to pass. */
#include "lab/torture/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/torture/pair.h"

#define PATIENCE_S 20
#define HOUR_MS 3600000

static struct world {
    int listener;
    struct proxy *proxy;
    int client, server; /* a connection through route 0 */
} w;

/* ---- sockets ------------------------------------------------------------------------------- */

static int with_timeout(int fd)
{
    struct timeval limit = {.tv_sec = PATIENCE_S};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int dial(uint16_t port)
{
    struct sockaddr_in at = loopback(port);
    int fd = with_timeout(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static int accepted(void)
{
    return with_timeout(accept(w.listener, NULL, NULL));
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hears(int fd, const char *text)
{
    char bytes[64] = "";
    assert_int_equal(recv(fd, bytes, strlen(text), MSG_WAITALL), strlen(text));
    assert_string_equal(bytes, text);
}

static void hears_end(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static void is_reset(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

/* Whatever was sent before has been read by the proxy when it answers for the second time. */
static void hears_nothing(int fd)
{
    char byte;
    assert_int_equal(proxy_set(w.proxy, 1, NET_CLEAR, 0), 0);
    assert_int_equal(proxy_set(w.proxy, 1, NET_CLEAR, 0), 0);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static void set(enum net_fault fault, int64_t amount)
{
    assert_int_equal(proxy_set(w.proxy, 0, fault, amount), 0);
}

static void connect_pair(size_t route, int *client, int *server)
{
    *client = dial(proxy_port(w.proxy, route));
    *server = accepted();
}

static int begin(void **state)
{
    (void)state;
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    w.listener = with_timeout(socket(AF_INET, SOCK_STREAM, 0));
    assert_int_equal(bind(w.listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(w.listener, 16), 0);
    assert_int_equal(getsockname(w.listener, (struct sockaddr *)&at, &size), 0);
    struct endpoint server = {.host = "localhost", .port = ntohs(at.sin_port)};
    w.proxy = proxy_start(&server, 2);
    assert_non_null(w.proxy);
    connect_pair(0, &w.client, &w.server);
    say(w.client, "hello");
    hears(w.server, "hello");
    say(w.server, "welcome");
    hears(w.client, "welcome");
    return 0;
}

static int end(void **state)
{
    (void)state;
    proxy_stop(w.proxy);
    close(w.client);
    close(w.server);
    close(w.listener);
    return 0;
}

/* ---- faults -------------------------------------------------------------------------------- */

static void clear_passes_all_on(void **state)
{
    (void)state;
    size_t size = 3000000, done = 0;
    char *many = malloc(size), *got = malloc(size);
    assert_non_null(many);
    assert_non_null(got);
    memset(many, 'x', size);
    if (fork() == 0) /* else both would wait for each other */
        _exit(send(w.client, many, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : 1);
    for (ssize_t n; done < size; done += (size_t)n) {
        n = recv(w.server, got + done, size - done, 0);
        assert_true(n > 0);
    }
    assert_memory_equal(many, got, size);
    int status;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    free(many);
    free(got);
    close(w.client);
    w.client = -1;
    hears_end(w.server);
}

static void servers_end_is_passed_on(void **state)
{
    (void)state;
    say(w.server, "bye");
    close(w.server);
    w.server = -1;
    hears(w.client, "bye");
    hears_end(w.client);
}

static void delay_holds_back(void **state)
{
    (void)state;
    set(NET_DELAY, HOUR_MS);
    say(w.client, "one");
    hears_nothing(w.server);
    say(w.server, "two");
    hears_nothing(w.client);
    set(NET_CLEAR, 0);
    hears(w.server, "one");
    hears(w.client, "two");
    set(NET_DELAY, 1);
    say(w.client, "three");
    hears(w.server, "three");
}

static void stall_holds_back(void **state)
{
    (void)state;
    set(NET_STALL, 0);
    say(w.client, "one");
    hears_nothing(w.server);
    say(w.server, "two");
    hears_nothing(w.client);
    int client, server; /* another route */
    connect_pair(1, &client, &server);
    say(client, "three");
    hears(server, "three");
    close(client);
    close(server);
    set(NET_CLEAR, 0);
    hears(w.server, "one");
    hears(w.client, "two");
}

/* How a request comes late: the client has given up. */
static void stall_outlives_the_client(void **state)
{
    (void)state;
    set(NET_STALL, 0);
    say(w.server, "not read by the client: its end is a reset");
    say(w.client, "late");
    hears_nothing(w.client);
    close(w.client);
    w.client = -1;
    hears_nothing(w.server);
    set(NET_CLEAR, 0);
    hears(w.server, "late");
    hears_end(w.server);
}

static void swallow_drops_answers(void **state)
{
    (void)state;
    int client, server; /* nothing of this one is lost */
    connect_pair(0, &client, &server);
    set(NET_SWALLOW, 0);
    say(w.client, "ask");
    hears(w.server, "ask");
    say(w.server, "answer");
    hears_nothing(w.client);
    set(NET_CLEAR, 0);
    is_reset(w.client);
    hears_end(w.server);
    say(server, "still here");
    hears(client, "still here");
    close(client);
    close(server);
}

static void cut_passes_half(void **state)
{
    (void)state;
    set(NET_CUT, 1);
    say(w.server, "first");
    hears(w.client, "first");
    say(w.server, "0123456789");
    hears(w.client, "01234");
    hears_end(w.client);
    hears_end(w.server);
    int client, server; /* again */
    connect_pair(0, &client, &server);
    set(NET_CUT, 0);
    say(server, "ab");
    hears(client, "a");
    hears_end(client);
    close(client);
    close(server);
}

static void trickle_passes_bytes(void **state)
{
    (void)state;
    set(NET_TRICKLE, HOUR_MS);
    say(w.client, "abc");
    hears(w.server, "a");
    hears_nothing(w.server);
    set(NET_TRICKLE, 1);
    hears(w.server, "bc");
    say(w.server, "defghi");
    hears(w.client, "defghi");
}

/* What a client sent is not lost with it, though an answer finds it gone. */
static void trickle_outlives_the_client(void **state)
{
    (void)state;
    set(NET_TRICKLE, HOUR_MS);
    say(w.client, "late");
    hears(w.server, "l");
    struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(w.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(w.client);
    w.client = -1;
    hears_nothing(w.server);
    say(w.server, "answer");
    hears_nothing(w.server);
    set(NET_CLEAR, 0);
    hears(w.server, "ate");
    hears_end(w.server);
}

static void refuse_closes_the_port(void **state)
{
    (void)state;
    set(NET_REFUSE, 0);
    assert_int_equal(dial(proxy_port(w.proxy, 0)), -ECONNREFUSED);
    say(w.client, "open ones stay");
    hears(w.server, "open ones stay");
    int client, server; /* another route */
    connect_pair(1, &client, &server);
    close(client);
    close(server);
    set(NET_CLEAR, 0);
    connect_pair(0, &client, &server);
    close(client);
    close(server);
}

static void reset_ends_all(void **state)
{
    (void)state;
    set(NET_RESET, 0);
    is_reset(w.client);
    hears_end(w.server);
    int client, server;
    connect_pair(0, &client, &server);
    say(client, "request");
    hears(server, "request");
    is_reset(client);
    hears_end(server);
    close(client);
    close(server);
}

static void duplicate_sends_again(void **state)
{
    (void)state;
    set(NET_DUPLICATE, HOUR_MS);
    say(w.client, "request");
    hears(w.server, "request");
    hears_nothing(w.client);
    say(w.server, "answer");
    hears(w.client, "answer");
    is_reset(w.client);
    hears_nothing(w.server);
    int client, server; /* spared */
    connect_pair(0, &client, &server);
    for (int i = 0; i < 2; i++) {
        say(client, "more");
        hears(server, "more");
        say(server, "answer");
        hears(client, "answer");
    }
    set(NET_CLEAR, 0);
    hears(w.server, "request");
    say(w.server, "answer");
    hears_end(w.server);

    set(NET_DUPLICATE, 1); /* and without an end of the fault */
    say(client, "again");
    hears(server, "again");
    say(server, "answer");
    hears(server, "again");
    close(client);
    close(server);
}

/* ---- the process --------------------------------------------------------------------------- */

static void without_a_server_clients_are_reset(void **state)
{
    (void)state;
    close(w.listener);
    w.listener = -1;
    int client = dial(proxy_port(w.proxy, 0));
    assert_true(client >= 0);
    is_reset(client);
    close(client);
}

/* A name has several addresses, and the server may listen on one of them alone. */
static void the_next_address_is_tried(void **state)
{
    (void)state;
    struct condition now = {NET_CLEAR, 0, 0};
    struct addresses server = {.count = 2,
                               .size = {sizeof(struct sockaddr_in), sizeof(struct sockaddr_in)}};
    set(NET_REFUSE, 0);
    struct sockaddr_in closed = loopback(proxy_port(w.proxy, 0));
    memcpy(&server.at[0], &closed, sizeof closed);
    assert_int_equal(getsockname(w.listener, (struct sockaddr *)&server.at[1], &server.size[1]), 0);
    int client[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
    struct pair *p = pair_open(client[0], &now, &server);
    assert_non_null(p);
    while (!p->is_connected && !p->is_over) {
        struct pollfd one = {.fd = p->end[SERVER].source.fd, .events = POLLOUT};
        assert_int_equal(poll(&one, 1, PATIENCE_S * 1000), 1);
        pair_ready(p, SERVER, EPOLLOUT);
    }
    assert_true(p->is_connected);
    close(accepted());
    pair_free(p);
    close(client[1]);
}

static void unknown_hosts_are_named(void **state)
{
    (void)state;
    struct endpoint nowhere = {.host = "no such host", .port = 1};
    assert_null(proxy_start(&nowhere, 1));
    assert_int_equal(errno, ENOENT);
}

static void a_unix_socket_is_a_server(void **state)
{
    (void)state;
    char folder[] = "/tmp/simba-proxy.XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct endpoint server = {.host = ""};
    snprintf(server.path, sizeof server.path, "%s/s", folder);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, server.path, sizeof at.sun_path);
    int listener = with_timeout(socket(AF_UNIX, SOCK_STREAM, 0));
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    struct proxy *p = proxy_start(&server, 1);
    assert_non_null(p);
    int client = dial(proxy_port(p, 0)), fd = with_timeout(accept(listener, NULL, NULL));
    say(client, "by path");
    hears(fd, "by path");
    proxy_stop(p);
    hears_end(client);
    close(client);
    close(fd);
    close(listener);
    unlink(server.path);
    rmdir(folder);
}

/* … although workers, which are other children of it, have its descriptors. */
static void the_proxy_ends_with_its_parent(void **state)
{
    (void)state;
    int ports[2], go[2], hold[2], status;
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    assert_int_equal(pipe(ports), 0);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(getsockname(w.listener, (struct sockaddr *)&at, &size), 0);
    struct endpoint server = {.host = "127.0.0.1", .port = ntohs(at.sin_port)};
    if (fork() == 0) {
        struct proxy *p = proxy_start(&server, 1);
        uint16_t port = p != NULL ? proxy_port(p, 0) : 0;
        char byte;
        if (fork() == 0) {
            close(hold[1]);
            _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        }
        close(hold[1]);
        _exit(write(ports[1], &port, sizeof port) > 0 && read(go[0], &byte, 1) == 1 ? 0 : 1);
    }
    uint16_t port;
    assert_int_equal(read(ports[0], &port, sizeof port), sizeof port);
    int client = dial(port), fd = accepted();
    say(client, "there");
    hears(fd, "there");
    assert_int_equal(write(go[1], "g", 1), 1);
    hears_end(client);
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    close(client);
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(ports[i]);
        close(go[i]);
        close(hold[i]);
    }
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(clear_passes_all_on),
        CASE(servers_end_is_passed_on),
        CASE(delay_holds_back),
        CASE(stall_holds_back),
        CASE(stall_outlives_the_client),
        CASE(swallow_drops_answers),
        CASE(cut_passes_half),
        CASE(trickle_passes_bytes),
        CASE(trickle_outlives_the_client),
        CASE(refuse_closes_the_port),
        CASE(reset_ends_all),
        CASE(duplicate_sends_again),
        CASE(without_a_server_clients_are_reset),
        CASE(the_next_address_is_tried),
        CASE(unknown_hosts_are_named),
        CASE(a_unix_socket_is_a_server),
        CASE(the_proxy_ends_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
