/* connection.c: a session's connection.
 *
 * The client library without threads is driven by the loop: zk_connection_pump() asks it what it
 * waits for, the socket or a time, and on either it is let go on. Its callbacks (completions,
 * watches, the state of the session) run inside that, on the loop's thread; none of them may
 * close it, so an expired handle is closed behind them (clean_up). */
#include "backend/zookeeper/connection.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/zookeeper/replies.h"
#include "base/errno_text.h"

#define READINGS_MAX 64 /* of the socket in one go */
#define PART_GREETING 8
#define GREETING_MIN_MS 250

/* ---- the socket ---------------------------------------------------------------------------- */

static void on_socket_closed(uv_handle_t *poll)
{
    struct watch_socket *w = (struct watch_socket *)(void *)poll;
    struct session *s = poll->data;
    close(w->fd);
    free(w);
    handles_drop(&s->store->handles);
}

static void forget_socket(struct session *s)
{
    if (s->socket == NULL)
        return;
    uv_poll_stop(&s->socket->poll);
    uv_close((uv_handle_t *)&s->socket->poll, on_socket_closed);
    s->socket = NULL;
    s->socket_inode = 0;
    s->socket_mask = 0;
}

static void on_socket(uv_poll_t *poll, int status, int events);

/* Its own descriptor of the library's socket; a new one whenever that is another. */
static void watch_socket(struct session *s, int fd, int mask)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        forget_socket(s);
        return;
    }
    if (s->socket != NULL && st.st_ino != s->socket_inode)
        forget_socket(s);
    if (s->socket == NULL) {
        struct watch_socket *w = calloc(1, sizeof *w);
        if (w == NULL)
            return; /* the timer tries again */
        w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (w->fd < 0 || uv_poll_init(s->store->host->loop, &w->poll, w->fd) != 0) {
            if (w->fd >= 0)
                close(w->fd);
            free(w);
            return;
        }
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        w->poll.data = s;
        handles_add(&s->store->handles);
        s->socket = w;
        s->socket_inode = st.st_ino;
        s->socket_mask = 0;
    }
    if (mask != s->socket_mask && uv_poll_start(&s->socket->poll, mask, on_socket) == 0)
        s->socket_mask = mask;
}

/* ---- driving the client library ------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void note_failure(struct session *s, int rc)
{
    if (s->latch.connected || rc == ZOK || rc == ZNOTHING)
        return;
    int error = errno;
    struct latch_result r = zk_replies_read(rc);
    const char *why = r.why;
    s->latch.code = r.code;
    s->failures++;
    zk_session_failed_once(s);
    if (rc == ZCONNECTIONLOSS && (s->is_silent || error == EHOSTDOWN || errno_is_late(error)))
        s->latch.code = SIMBA_ETIMEOUT;
    if (rc == ZCONNECTIONLOSS && s->is_silent)
        why = "it accepts connections, but does not greet: is it a ZooKeeper server?";
    else if (rc == ZCONNECTIONLOSS && error == EHOSTDOWN) /* so the library calls that */
        why =
            "it closed the connection at once: no majority of its ensemble (or in read-only mode, "
            "which is the same), too many connections, or no ZooKeeper server";
    else if (rc == ZCONNECTIONLOSS && error != 0 && error != EINPROGRESS && error != EAGAIN)
        why = errno_text(error);
    snprintf(s->why, sizeof s->why, "cannot connect to %.100s: %s", s->addresses, why);
}

/* Closing sends the server a last word; where that could wait for a socket, it is left out, and the
 * server ends the session when its time is over. */
void zk_connection_close(struct session *s)
{
    zhandle_t *handle = s->handle;
    if (handle == NULL)
        return;
    assert(!s->in_client); /* a close inside its own callback crashes it */
    if (s->socket != NULL && (s->socket_mask & UV_WRITABLE) != 0)
        shutdown(s->socket->fd, SHUT_RDWR);
    forget_socket(s);
    s->latch.connected = false;
    s->in_client = true;
    zookeeper_close(handle);
    s->in_client = false;
    s->handle = NULL;
    s->over = false;
}

/* With another handle, and the names resolved anew. */
static void begin_again(struct session *s)
{
    handles_start_timer(&s->timer, on_timer, reconnect_pause(&s->reconnect, simba_now()));
}

/* Outside of the library's callbacks. */
static void clean_up(struct session *s)
{
    if (!s->latch.connected && s->failures >= (int)s->store->config.hosts) {
        zk_latch_session_unreachable(&s->latch, simba_now());
        zk_latch_client_fail(&s->store->latch, &s->store->waiting, s->latch.code, s->why);
    }
    zk_session_check_outlived(s);
    if (!s->over)
        return;
    if (s->socket != NULL) /* no last word: it would delete nodes that somebody still acts under */
        shutdown(s->socket->fd, SHUT_RDWR);
    zk_connection_close(s);
    zk_latch_session_expired(&s->latch, simba_now());
    uv_timer_stop(&s->heartbeat);
    if (!s->store->closing)
        begin_again(s);
}

/* How long a server may take to answer a new connection. One that is just starting may never do;
 * the library would wait for two thirds of the session's timeout. */
static int64_t greeting_ms(const struct session *s)
{
    int64_t ms = s->latch.asked_ms / PART_GREETING;
    if (ms > s->store->host->connect_timeout_ms)
        ms = s->store->host->connect_timeout_ms;
    return ms > GREETING_MIN_MS ? ms : GREETING_MIN_MS;
}

/* The library takes the end of the connection for the server's doing, and tries the next one. */
static int64_t hurry(struct session *s, int64_t now, int64_t ms)
{
    if (s->latch.connected || s->socket == NULL)
        return ms;
    int64_t left = s->tried_at + greeting_ms(s) - now;
    if (left <= 0) {
        shutdown(s->socket->fd, SHUT_RDWR);
        s->is_silent = true;
        left = greeting_ms(s); /* it is noticed at once */
    }
    return left < ms ? left : ms;
}

void zk_connection_pump(struct session *s)
{
    int fd = -1, interest = 0;
    struct timeval wait = {.tv_sec = 0};
    if (s->handle == NULL || s->over || s->in_client)
        return;
    int64_t now = simba_now(), rest = zk_session_rest_ms(s, now);
    if (rest > 0) {
        forget_socket(s);
        handles_start_timer(&s->timer, on_timer, rest);
        return;
    }
    ino_t before = s->socket_inode;
    s->in_client = true;
    errno = 0;
    int rc = zookeeper_interest(s->handle, &fd, &interest, &wait);
    s->in_client = false;
    note_failure(s, rc);
    if (is_unrecoverable(s->handle) != ZOK)
        s->over = true;
    int mask = (interest & ZOOKEEPER_READ ? UV_READABLE : 0) |
               (interest & ZOOKEEPER_WRITE ? UV_WRITABLE : 0);
    watch_socket(s, rc == ZOK || fd >= 0 ? fd : -1, mask);
    if (s->socket_inode != before && s->socket_inode != 0) {
        s->is_silent = false;
        s->tried_at = now; /* what is sent on it is sent later than this */
    }
    int64_t ms = hurry(s, now, (int64_t)wait.tv_sec * 1000 + wait.tv_usec / 1000);
    handles_start_timer(&s->timer, on_timer, s->over ? 0 : ms > 0 ? ms : 1);
}

static bool is_readable(const struct session *s)
{
    char byte;
    return s->socket != NULL && !s->over &&
           recv(s->socket->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The library takes one message at a time; what has come with it is taken as well. */
static void process(struct session *s, int events)
{
    int rc;
    if (s->handle == NULL)
        return;
    for (int i = 0; i < READINGS_MAX; i++) {
        s->in_client = true;
        errno = 0;
        rc = zookeeper_process(s->handle, events);
        s->in_client = false;
        note_failure(s, rc);
        if (rc != ZOK || s->over || (events & ZOOKEEPER_READ) == 0 || !is_readable(s))
            break;
        events = ZOOKEEPER_READ;
    }
    zk_connection_pump(s);
    clean_up(s);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct session *s = poll->data;
    int ready =
        (events & UV_READABLE ? ZOOKEEPER_READ : 0) | (events & UV_WRITABLE ? ZOOKEEPER_WRITE : 0);
    if (&s->socket->poll != poll)
        return;
    process(s, status < 0 ? ZOOKEEPER_READ | ZOOKEEPER_WRITE : ready);
}

static void on_timer(uv_timer_t *timer)
{
    struct session *s = timer->data;
    if (s->store->closing)
        return;
    if (s->handle == NULL) {
        zk_connection_begin(s);
        return;
    }
    zk_connection_pump(s);
    clean_up(s);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void on_state(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct session *s = context;
    (void)handle;
    (void)path;
    if (type != ZOO_SESSION_EVENT || s->store->closing || s->over)
        return;
    if (state == ZOO_CONNECTED_STATE)
        zk_session_connected(s);
    else
        zk_session_lost(s, state);
}

static void be_silent(const char *message)
{
    (void)message;
}

/* Held while the library begins a session: it then asks the C library about addresses, whose locks a
 * fork would leave locked in the child, for good. The addresses are numbers, so a fork waits for
 * microseconds. */
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&beginning);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&beginning);
}

/* The library formats what it logs in memory that all threads share, and writes it to stderr. */
static void prepare_library(void)
{
    zoo_set_debug_level((ZooLogLevel)0);
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Not even an attempt can be made: s->why says why. */
static void cannot_begin(struct session *s)
{
    s->latch.code = SIMBA_ESTORE;
    s->failures = (int)s->store->config.hosts;
    begin_again(s);
    clean_up(s);
}

static void open_handle(struct session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct zookeeper_config *c = &s->store->config;
    pthread_once(&once, prepare_library);
    s->tried_at = simba_now();
    pthread_mutex_lock(&beginning);
    s->handle =
        zookeeper_init2(s->addresses, on_state, (int)s->latch.asked_ms, NULL, s, 0, be_silent);
    pthread_mutex_unlock(&beginning);
    if (s->handle == NULL) {
        snprintf(s->why, sizeof s->why, "cannot begin a session: %s", errno_text(errno));
        cannot_begin(s);
        return;
    }
    /* They are numbers; else it would resolve them in every call of zookeeper_interest. */
    zoo_set_servers_resolution_delay(s->handle, -1);
    if (c->auth[0] != '\0')
        zoo_add_auth(s->handle, "digest", c->auth, (int)strlen(c->auth), NULL, NULL);
    zk_connection_pump(s);
    clean_up(s);
}

static void resolved_all(struct session *s)
{
    if (s->addresses_length > 0)
        open_handle(s);
    else
        cannot_begin(s);
}

/* The library cuts at the last colon, so numbers of version six need no brackets, and may have
 * none. */
static void add_address(struct session *s, const char *host, int port)
{
    size_t left = sizeof s->addresses - s->addresses_length;
    int n = snprintf(s->addresses + s->addresses_length, left, "%s%s:%d",
                     s->addresses_length > 0 ? "," : "", host, port);
    if (n > 0 && (size_t)n < left)
        s->addresses_length += (size_t)n;
    else
        s->addresses[s->addresses_length] = '\0';
}

/* What is an address already needs no thread to find out. */
static bool is_address(const char *host)
{
    unsigned char number[16];
    return inet_pton(AF_INET, host, number) == 1 || inet_pton(AF_INET6, host, number) == 1;
}

static void on_resolved(void *data, struct addrinfo *list, int code)
{
    struct asked_name *asked = data;
    struct session *s = asked->session;
    const char *name = s->store->config.host[asked - s->asked].name;
    int port = s->store->config.host[asked - s->asked].port;
    asked->question = NULL;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        char host[64];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0)
            add_address(s, host, port);
    }
    if (list == NULL)
        snprintf(s->why, sizeof s->why, "cannot find host %.150s: %s", name, resolve_text(code));
    else
        freeaddrinfo(list);
    if (--s->questions == 0)
        resolved_all(s);
}

void zk_connection_begin(struct session *s)
{
    const struct zookeeper_config *c = &s->store->config;
    s->addresses_length = 0;
    s->addresses[0] = '\0';
    s->questions = 1; /* until all are asked */
    for (size_t i = 0; i < c->hosts; i++) {
        if (is_address(c->host[i].name)) {
            add_address(s, c->host[i].name, c->host[i].port);
            continue;
        }
        s->asked[i].session = s;
        s->asked[i].question = resolve_ask(s->store->resolver, c->host[i].name, c->host[i].port,
                                           on_resolved, &s->asked[i]);
        s->questions += s->asked[i].question != NULL;
    }
    if (s->questions == 1 && s->addresses_length == 0)
        snprintf(s->why, sizeof s->why, "cannot look up the hosts: out of threads");
    if (--s->questions == 0)
        resolved_all(s);
}
