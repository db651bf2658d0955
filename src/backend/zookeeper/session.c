/* session.c: a session with the ensemble.
 *
 * The client library without threads is driven by the loop: pump() asks it what it waits for, the
 * socket or a time, and on either it is let go on. Its callbacks (completions, watches, the state of
 * the session) run inside that, on the loop's thread; none of them may close it, so an expired handle
 * is closed behind them (clean_up).
 *
 * What keeps the session is a write: every sixth of its timeout a transaction that only checks that
 * our root is there. It goes through the leader and its quorum as any write does, changes nothing and
 * wakes no watch. A read would be answered by a follower that is cut off. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/zookeeper/health.h"
#include "backend/zookeeper/zookeeper.h"

#define DEFAULT_MS (SIMBA_TTL_MS + SIMBA_TRANSITION_MS)
#define AGAIN_MS 500    /* after names could not be resolved, or a session expired */
#define GUARD_MS 20     /* a tenure shorter than this needs no watch on its node */
#define READINGS_MAX 64 /* of the socket in one go */
#define BEAT_MIN_MS 5
#define PART_GREETING 8
#define GREETING_MIN_MS 250
#define PART_FIRST 6 /* joining is a write by itself: the next is due S/6 later */
#define PART_FRESH 4 /* a write within S/4: no need to wait for the next */

static void begin(struct session *s);

/* ---- what others ask -------------------------------------------------------------------------- */

int64_t session_timeout_ms(const struct session *s)
{
    return s->established ? s->standing.timeout : s->asked_ms;
}

int64_t session_left(const struct session *s, int64_t now)
{
    int64_t left = standing_until(&s->standing) - now - 1; /* now was rounded down */
    return left > 0 ? left : 0;
}

bool session_is_fresh(const struct session *s, int64_t now)
{
    return s->connected && now - s->standing.written <= s->standing.timeout / PART_FRESH;
}

bool session_is_hopeful(const struct session *s)
{
    return !s->store->closing && s->failures < (int)s->store->config.hosts;
}

static void later(uv_timer_t *timer, uv_timer_cb run, int64_t ms)
{
    uv_update_time(timer->loop);
    uv_timer_start(timer, run, (uint64_t)(ms > 0 ? ms : 0), 0);
}

/* ---- the socket ------------------------------------------------------------------------------- */

static void on_socket_closed(uv_handle_t *poll)
{
    struct watch_socket *w = (struct watch_socket *)(void *)poll;
    struct session *s = poll->data;
    close(w->fd);
    free(w);
    store_handle_closed(s->store);
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
        s->store->handles++;
        s->socket = w;
        s->socket_inode = st.st_ino;
        s->socket_mask = 0;
    }
    if (mask != s->socket_mask && uv_poll_start(&s->socket->poll, mask, on_socket) == 0)
        s->socket_mask = mask;
}

/* ---- driving the client library --------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void note_failure(struct session *s, int rc)
{
    const char *text;
    if (s->connected || rc == ZOK || rc == ZNOTHING)
        return;
    int error = errno;
    s->code = store_code(rc, &text);
    s->failures++;
    snprintf(s->why, sizeof s->why, "cannot connect to %.100s: %s", s->addresses,
             rc == ZCONNECTIONLOSS && error != 0 && error != EINPROGRESS && error != EAGAIN
                 ? strerror(error)
                 : text);
}

/* Closing sends the server a last word; where that could wait for a socket, it is left out, and the
 * server ends the session when its time is over. */
static void close_handle(struct session *s)
{
    zhandle_t *handle = s->handle;
    if (handle == NULL)
        return;
    if (s->socket != NULL && (s->socket_mask & UV_WRITABLE) != 0)
        shutdown(s->socket->fd, SHUT_RDWR);
    forget_socket(s);
    s->connected = false;
    s->in_client = true;
    zookeeper_close(handle);
    s->in_client = false;
    s->handle = NULL;
    s->established = false;
    s->over = false;
    s->beat_sent = 0;
    s->touch_sent = 0;
}

/* Outside of the library's callbacks. */
static void clean_up(struct session *s)
{
    if (!s->connected && s->failures > 0 && !session_is_hopeful(s)) {
        member_unreachable(s);
        store_fail_waiting(s->store, s->code, s->why);
    }
    if (!s->over)
        return;
    close_handle(s);
    member_expired(s);
    uv_timer_stop(&s->beat);
    if (s->store->closing)
        return;
    if (s->code == SIMBA_EDENIED)
        later(&s->timer, on_timer, AGAIN_MS);
    else
        begin(s);
}

/* How long a server may take to answer a new connection. One that is just starting may never do; the
 * library would wait for two thirds of the session's timeout. */
static int64_t greeting_ms(const struct session *s)
{
    int64_t ms = s->asked_ms / PART_GREETING;
    if (ms > s->store->host->connect_timeout_ms)
        ms = s->store->host->connect_timeout_ms;
    return ms > GREETING_MIN_MS ? ms : GREETING_MIN_MS;
}

/* The library takes the end of the connection for the server's doing, and tries the next one. */
static int64_t hurry(struct session *s, int64_t now, int64_t ms)
{
    if (s->connected || s->socket == NULL)
        return ms;
    int64_t left = s->tried_at + greeting_ms(s) - now;
    if (left <= 0) {
        shutdown(s->socket->fd, SHUT_RDWR);
        left = greeting_ms(s); /* it is noticed at once */
    }
    return left < ms ? left : ms;
}

static void pump(struct session *s)
{
    int fd = -1, interest = 0;
    struct timeval wait = {.tv_sec = 0};
    if (s->handle == NULL || s->over || s->in_client)
        return;
    int64_t now = simba_now();
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
    if (s->socket_inode != before && s->socket_inode != 0)
        s->tried_at = now; /* what is sent on it is sent later than this */
    int64_t ms = hurry(s, now, (int64_t)wait.tv_sec * 1000 + wait.tv_usec / 1000);
    later(&s->timer, on_timer, s->over ? 0 : ms > 0 ? ms : 1);
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
    pump(s);
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
        begin(s);
        return;
    }
    pump(s);
    clean_up(s);
}

void session_pump(struct session *s)
{
    pump(s);
}

/* ---- connecting ------------------------------------------------------------------------------- */

static void comment(struct session *s)
{
    char line[SESSION_TEXT_MAX];
    bool serious;
    struct zookeeper_facts facts = {
        .asked_ms = s->asked_ms, .granted_ms = s->standing.timeout, .containers = true};
    for (size_t n = 0; zookeeper_health_says(&facts, n, line, sizeof line, &serious); n++)
        s->store->host->log(s->store->host, serious ? SIMBA_LOG_WARN : SIMBA_LOG_INFO, line);
}

static void connected(struct session *s)
{
    const clientid_t *id = zoo_client_id(s->handle);
    s->connected = true;
    s->failures = 0;
    if (!s->established) {
        s->established = true;
        s->id = id->client_id;
        standing_begin(&s->standing, zoo_recv_timeout(s->handle), s->tried_at);
        comment(s);
    } else {
        standing_moved(&s->standing, zoo_recv_timeout(s->handle), s->tried_at);
        if (s->store->host->reconnected != NULL)
            s->store->host->reconnected(s->store->host);
    }
    member_connected(s);
    store_connected(s);
    session_keep(s);
}

static void on_state(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct session *s = context;
    (void)handle;
    (void)path;
    if (type != ZOO_SESSION_EVENT || s->store->closing || s->over)
        return;
    if (state == ZOO_CONNECTED_STATE) {
        connected(s);
        return;
    }
    bool was = s->connected;
    s->connected = false;
    s->code = SIMBA_ESTORE;
    if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
        bool denied = state == ZOO_AUTH_FAILED_STATE;
        s->over = true;
        s->code = denied ? SIMBA_EDENIED : SIMBA_ESTORE;
        snprintf(s->why, sizeof s->why, "%s",
                 denied ? "the server refuses the user or the password"
                        : "the session has expired on the server");
        if (denied)
            s->failures = (int)s->store->config.hosts;
        s->store->host->log(s->store->host, SIMBA_LOG_WARN, s->why);
    } else {
        snprintf(s->why, sizeof s->why, "the connection to the server is lost");
    }
    if (was)
        member_disconnected(s);
}

static void be_silent(const char *message)
{
    (void)message;
}

/* The library formats what it logs in memory that all threads share, and writes it to stderr. */
static void silence(void)
{
    zoo_set_debug_level((ZooLogLevel)0);
}

static void open_handle(struct session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct zookeeper_config *c = &s->store->config;
    pthread_once(&once, silence);
    s->tried_at = simba_now();
    s->handle = zookeeper_init2(s->addresses, on_state, (int)s->asked_ms, NULL, s, 0, be_silent);
    if (s->handle == NULL) {
        s->code = SIMBA_ESTORE;
        s->failures = (int)c->hosts;
        snprintf(s->why, sizeof s->why, "no client can be made: %s", strerror(errno));
        later(&s->timer, on_timer, AGAIN_MS);
        clean_up(s);
        return;
    }
    /* They are numbers; else it would resolve them in every call of zookeeper_interest. */
    zoo_set_servers_resolution_delay(s->handle, -1);
    if (c->auth[0] != '\0')
        zoo_add_auth(s->handle, "digest", c->auth, (int)strlen(c->auth), NULL, NULL);
    pump(s);
    clean_up(s);
}

static void resolved_all(struct session *s)
{
    if (s->addresses_length > 0) {
        open_handle(s);
        return;
    }
    s->code = SIMBA_ESTORE;
    s->failures = (int)s->store->config.hosts;
    later(&s->timer, on_timer, AGAIN_MS);
    clean_up(s);
}

/* The library cuts at the last colon, so numbers of version six need no brackets, and may have none. */
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
static bool add_number(struct session *s, size_t n)
{
    const struct zookeeper_config *c = &s->store->config;
    unsigned char number[16];
    if (inet_pton(AF_INET, c->host[n].name, number) != 1 &&
        inet_pton(AF_INET6, c->host[n].name, number) != 1)
        return false;
    add_address(s, c->host[n].name, c->host[n].port);
    return true;
}

static void on_resolved(void *data, struct addrinfo *list, int code)
{
    const struct asked *asked = data;
    struct session *s = asked->session;
    const struct zookeeper_config *c = &s->store->config;
    s->question[asked->n] = NULL;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        char host[64];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0)
            add_address(s, host, c->host[asked->n].port);
    }
    if (list == NULL)
        snprintf(s->why, sizeof s->why, "cannot find host %.150s: %s", c->host[asked->n].name,
                 gai_strerror(code));
    else
        freeaddrinfo(list);
    if (--s->questions == 0)
        resolved_all(s);
}

static void begin(struct session *s)
{
    const struct zookeeper_config *c = &s->store->config;
    s->addresses_length = 0;
    s->addresses[0] = '\0';
    s->questions = 1; /* until all are asked */
    for (size_t i = 0; i < c->hosts; i++) {
        if (add_number(s, i))
            continue;
        s->asked[i] = (struct asked){s, i};
        s->question[i] = resolver_ask(s->store->resolver, c->host[i].name, c->host[i].port,
                                      on_resolved, &s->asked[i]);
        s->questions += s->question[i] != NULL;
    }
    if (s->questions == 1 && s->addresses_length == 0)
        snprintf(s->why, sizeof s->why, "no thread to resolve names with");
    if (--s->questions == 0)
        resolved_all(s);
}

/* ---- the write that keeps the session --------------------------------------------------------- */

static void on_beat(uv_timer_t *timer);

static void wait_for_beat(struct session *s)
{
    int64_t ms = standing_write_at(&s->standing) - simba_now();
    later(&s->beat, on_beat, ms > BEAT_MIN_MS ? ms : BEAT_MIN_MS);
}

static void on_written(int rc, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    int64_t sent = s->beat_sent;
    s->beat_sent = 0;
    if (s->store->closing)
        return;
    if (rc == ZOK || rc == ZNONODE) /* a refused transaction has gone through the quorum as well */
        session_wrote(s, sent);
    member_written(s, rc == ZNONODE ? ZOK : rc);
    if (s->connected)
        wait_for_beat(s);
}

void session_write_now(struct session *s)
{
    if (!s->connected || s->beat_sent != 0)
        return;
    zoo_check_op_init(&s->beat_op, s->store->base, -1);
    s->beat_sent = simba_now();
    if (zoo_amulti(s->handle, 1, &s->beat_op, &s->beat_result, on_written, s) != ZOK)
        s->beat_sent = 0;
}

static void on_touched(int rc, const struct Stat *stat, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    (void)stat;
    if (rc == ZOK || rc == ZNONODE)
        standing_heard(&s->standing, s->touch_sent, simba_now());
    s->touch_sent = 0;
}

/* Without members there is nothing to keep; but a read now and then, in place of the library's ping,
 * makes the next write worth its full length. */
static void idle(struct session *s, int64_t now)
{
    if (s->touch_sent == 0) {
        s->touch_sent = now;
        if (zoo_aexists(s->handle, s->store->base, 0, on_touched, s) != ZOK)
            s->touch_sent = 0;
    }
    later(&s->beat, on_beat, standing_idle_ms(&s->standing));
}

static void on_beat(uv_timer_t *timer)
{
    struct session *s = timer->data;
    int64_t now = simba_now();
    if (!s->connected)
        return;
    if (s->members_count == 0) {
        idle(s, now);
        session_pump(s);
        return;
    }
    member_scan(s, now);
    if (now + BEAT_MIN_MS > standing_write_at(&s->standing))
        session_write_now(s);
    else
        wait_for_beat(s);
    session_pump(s);
}

void session_keep(struct session *s)
{
    if (!s->connected)
        return;
    if (s->members_count > 1 && uv_is_active((uv_handle_t *)&s->beat))
        return; /* it is kept already */
    later(&s->beat, on_beat, s->standing.timeout / PART_FIRST);
}

void session_wrote(struct session *s, int64_t sent)
{
    standing_wrote(&s->standing, sent, simba_now());
}

/* ---- watches ---------------------------------------------------------------------------------- */

/* Of whatever node: which one is in its path, so that a watch outlives whoever asked for it. */
void session_on_node(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct session *s = context;
    size_t base = strlen(s->store->base);
    char node[PATH_NODE_SIZE], mutex[SIMBA_MUTEX_MAX + 1];
    (void)handle;
    (void)state;
    if (type == ZOO_SESSION_EVENT || s->store->closing || s->over ||
        strncmp(path, s->store->base, base) != 0)
        return;
    if (path[base] == '\0') {
        look_root_event(s);
        return;
    }
    const char *name = path + base + 1, *slash = strchr(name, '/');
    size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);
    if (path[base] != '/' || n >= sizeof node)
        return;
    memcpy(node, name, n);
    node[n] = '\0';
    if (!path_decode(mutex, node))
        return;
    member_event(s, type, path, mutex, slash != NULL ? slash + 1 : "");
    look_event(s, type, mutex);
}

static void on_guard(uv_timer_t *timer)
{
    struct session *s = timer->data;
    if (s->connected)
        member_guard(s);
    session_pump(s);
}

void session_guard_soon(struct session *s)
{
    if (!uv_is_active((uv_handle_t *)&s->guard))
        later(&s->guard, on_guard, GUARD_MS);
}

/* ---- making and ending ------------------------------------------------------------------------ */

static struct session *make(struct zookeeper *z, int64_t asked_ms)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->store = z;
    s->asked_ms = asked_ms;
    s->stalled_last = &s->stalled;
    uv_timer_t *const timers[] = {&s->timer, &s->beat, &s->guard};
    for (size_t i = 0; i < 3; i++) {
        uv_timer_init(z->host->loop, timers[i]);
        timers[i]->data = s;
    }
    z->handles += 3;
    s->next = z->sessions;
    z->sessions = s;
    z->sessions_count++;
    begin(s);
    return s;
}

struct session *session_for(struct zookeeper *z, int64_t lease_ms)
{
    int64_t asked = z->config.session_timeout_ms > 0 ? z->config.session_timeout_ms : lease_ms;
    struct session *best = NULL;
    for (struct session *s = z->sessions; s != NULL; s = s->next) {
        if (s->asked_ms == asked)
            return s;
        /* If it must be another: the longest that is shorter. */
        bool fits = s->asked_ms < asked;
        if (best == NULL || (fits && (best->asked_ms > asked || best->asked_ms < s->asked_ms)) ||
            (!fits && best->asked_ms > s->asked_ms))
            best = s;
    }
    return z->sessions_count < SESSIONS_MAX ? make(z, asked) : best;
}

struct session *session_any(struct zookeeper *z)
{
    for (struct session *s = z->sessions; s != NULL; s = s->next) {
        if (s->connected)
            return s;
    }
    return z->sessions != NULL ? z->sessions : session_for(z, DEFAULT_MS);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct session *s = handle->data;
    store_handle_closed(s->store);
}

/* Freed with the store, when the loop has let go of everything. */
void session_close(struct session *s)
{
    for (size_t i = 0; i < s->store->config.hosts; i++) {
        if (s->question[i] != NULL)
            resolver_forget(s->store->resolver, s->question[i]);
        s->question[i] = NULL;
    }
    close_handle(s);
    member_close(s);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
    uv_close((uv_handle_t *)&s->beat, on_timer_closed);
    uv_close((uv_handle_t *)&s->guard, on_timer_closed);
}
