/* http.c: see http.h. The server's thread waits for new connections, for what libmicrohttpd watches,
 * and for other threads. It accepts connections itself, because the library would leave them waiting
 * when all places are taken, and a check of health would wait behind those who say nothing. */
#include "serve/http/http.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <simba.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "serve/http/server.h"

#define SWEEP_MS 250 /* how late a deadline may be noticed */
#define POOL_BYTES ((size_t)HTTP_REQUEST_BYTES * 2)

/* ---- connections --------------------------------------------------------------------------- */

/* The library notices the end in its next turn. */
void connection_drop(struct http_connection *at)
{
    if (!at->is_dropped)
        shutdown(at->fd, SHUT_RDWR);
    at->is_dropped = true;
}

void connection_set_unsent(struct http *h, struct http_connection *at, size_t bytes)
{
    h->unsent = h->unsent - at->unsent + bytes;
    at->unsent = bytes;
}

static unsigned count_of(const struct http *h)
{
    unsigned count = 0;
    for (const struct http_connection *at = h->connections; at != NULL; at = at->next)
        count += !at->is_dropped;
    return count;
}

/* A place for one more: that of whoever has asked nothing for the longest time; of streams only if
 * there is nobody else. */
static void make_room(struct http *h)
{
    struct http_connection *oldest = NULL;
    for (struct http_connection *at = h->connections; at != NULL; at = at->next) {
        if (at->is_dropped)
            continue;
        bool is_older = oldest == NULL || (at->stream == NULL && oldest->stream != NULL) ||
                        ((at->stream == NULL) == (oldest->stream == NULL) &&
                         at->changed_at < oldest->changed_at);
        oldest = is_older ? at : oldest;
    }
    if (oldest != NULL)
        connection_drop(oldest);
}

static void sweep(struct http *h, int64_t now)
{
    for (struct http_connection *at = h->connections; at != NULL; at = at->next) {
        if (now >= at->deadline)
            connection_drop(at);
    }
}

static void on_connection(void *data, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = data;
    struct http_connection *at = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        at = calloc(1, sizeof *at);
        if (at == NULL || info == NULL) { /* it is refused when it asks */
            free(at);
            return;
        }
        at->fd = info->connect_fd;
        at->changed_at = simba_now();
        at->deadline = at->changed_at + HTTP_REQUEST_MS;
        at->next = h->connections;
        h->connections = at;
        *context = at;
        return;
    }
    struct http_connection **link = &h->connections;
    while (at != NULL && *link != at)
        link = &(*link)->next;
    if (at != NULL) {
        *link = at->next;
        connection_set_unsent(h, at, 0);
    }
    free(at);
    *context = NULL;
}

/* A request has its answer: the next may come. */
static void on_completed(void *data, struct MHD_Connection *mhd, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct http *h = data;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *at =
        info != NULL ? (struct http_connection *)info->socket_context : NULL;
    (void)code;
    *state = NULL;
    if (at != NULL) {
        at->deadline = simba_now() + HTTP_IDLE_MS;
        connection_set_unsent(h, at, 0);
    }
}

/* The store comes first: without descriptors it could not be reached again, and a lease would be lost
 * because of clients. The oldest of them goes, so that there is a place the next time. */
static bool leaves_descriptors(struct http *h, int fd)
{
    if (fd < h->descriptor_end)
        return true;
    close(fd);
    make_room(h);
    return false;
}

static void accept_some(struct http *h, int socket, int64_t now)
{
    for (int i = 0; i < HTTP_ACCEPTS_PER_TURN; i++) {
        int fd = address_accept(socket);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
            h->accept_again_at = now + HTTP_NO_DESCRIPTORS_MS;
        if (fd < 0 || !leaves_descriptors(h, fd))
            return;
        if (count_of(h) >= h->o.connections)
            make_room(h);
        struct sockaddr_storage from = {0}; /* nobody asks who it is */
        /* It closes what it refuses. */
        MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, sizeof from);
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static int pause_ms(const struct http *h, int64_t now)
{
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t most = h->connections != NULL ? SWEEP_MS : INT_MAX;
    if (MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms < (unsigned)most)
        most = (int64_t)ms;
    if (h->accept_again_at != 0 && h->accept_again_at - now < most)
        most = h->accept_again_at > now ? h->accept_again_at - now : 0;
    return most == INT_MAX ? -1 : (int)most;
}

static void *serve(void *arg)
{
    struct http *h = arg;
    uint64_t times;
    prctl(PR_SET_NAME, "simba-http");
    for (int64_t swept_at = 0; !h->is_stopping;) {
        struct pollfd fds[SOCKETS_MAX + 2] = {{h->epoll, POLLIN, 0}, {h->wake, POLLIN, 0}};
        int64_t now = simba_now();
        if (now >= h->accept_again_at)
            h->accept_again_at = 0;
        for (size_t i = 0; i < h->address.count; i++)
            fds[i + 2] =
                (struct pollfd){h->accept_again_at == 0 ? h->address.sockets[i] : -1, POLLIN, 0};
        if (poll(fds, h->address.count + 2, pause_ms(h, now)) < 0)
            continue;
        if (fds[1].revents != 0)
            (void)!read(h->wake, &times, sizeof times);
        now = simba_now();
        for (size_t i = 0; i < h->address.count; i++) {
            if (fds[i + 2].revents != 0)
                accept_some(h, h->address.sockets[i], now);
        }
        if (now - swept_at >= SWEEP_MS) {
            sweep(h, now);
            swept_at = now;
        }
        if (streams_exist(h))
            streams_tick(h, now);
        MHD_run(h->daemon);
    }
    streams_end(h);
    MHD_stop_daemon(h->daemon);
    return NULL;
}

/* ---- the server ---------------------------------------------------------------------------- */

static void ignore_log(void *data, const char *format, va_list args)
{
    (void)data;
    (void)format;
    (void)args;
}

struct step http_listen(const struct cli *c, const char *option, bool by_flag, const char *address,
                        struct http **out)
{
    struct http *h = calloc(1, sizeof *h);
    *out = NULL;
    if (h == NULL)
        return print_error(c, "cannot listen on '%.200s': out of memory", address);
    h->c = c;
    struct step step = address_open(&h->address, c, option, by_flag, address);
    if (step.ends) {
        free(h);
        return step;
    }
    h->epoll = h->wake = -1;
    pthread_mutex_init(&h->lock, NULL);
    *out = h;
    return GO_ON;
}

const struct listen_address *http_address(const struct http *h)
{
    return &h->address;
}

static bool start_daemon(struct http *h)
{
    /* The places of those that were dropped and are not gone yet come on top. */
    unsigned limit = h->o.connections + 2 * HTTP_ACCEPTS_PER_TURN * SOCKETS_MAX;
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, request_take, h, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        h, MHD_OPTION_END);
    if (h->daemon == NULL)
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    h->epoll = info != NULL ? info->epoll_fd : -1;
    return h->epoll >= 0;
}

struct step http_start(struct http *h, const struct http_options *o)
{
    h->o = *o;
    if (h->o.connections == 0)
        h->o.connections = HTTP_CONNECTIONS;
    if (h->o.connections > HTTP_CONNECTIONS_MAX)
        h->o.connections = HTTP_CONNECTIONS_MAX;
    if (h->o.stream_bytes == 0)
        h->o.stream_bytes = HTTP_STREAM_BYTES;
    errno = 0;
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wake >= 0)
        h->descriptor_end = descriptors_fit(h->wake, &h->o.connections);
    h->is_running =
        h->wake >= 0 && start_daemon(h) && thread_start(&h->thread, NULL, serve, h) == 0;
    if (h->is_running)
        return GO_ON;
    int error = errno;
    if (h->daemon != NULL)
        MHD_stop_daemon(h->daemon);
    return print_error(h->c, "cannot answer on %s: %s", h->address.text,
                       error != 0 ? strerror(error) : "libmicrohttpd does not start");
}

void http_stop(struct http *h)
{
    if (h == NULL)
        return;
    h->is_stopping = true;
    if (h->is_running) {
        (void)!write(h->wake, &(uint64_t){1}, sizeof(uint64_t));
        pthread_join(h->thread, NULL);
    }
    address_close(&h->address);
    if (h->wake >= 0)
        close(h->wake);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
