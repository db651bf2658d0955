/* probe.c: see probe.h. */
#include "backend/kit/probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errno_text.h"

/* 0, or why it cannot be connected to (errno). */
static int try_connect(const struct sockaddr *to, socklen_t size, int timeout_ms)
{
    int error = 0;
    socklen_t length = sizeof error;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, to, size) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        struct pollfd ready = {fd, POLLOUT, 0};
        if (poll(&ready, 1, timeout_ms) <= 0)
            error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
            error = errno;
    }
    close(fd);
    return error;
}

static int explain_socket(const char *path, int timeout_ms, char *why, size_t why_size)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path) {
        snprintf(why, why_size, "the path of a unix socket has at most %zu bytes",
                 sizeof to.sun_path - 1);
        return ENAMETOOLONG;
    }
    memcpy(to.sun_path, path, strlen(path));
    int error = try_connect((const struct sockaddr *)&to, sizeof to, timeout_ms);
    if (error != 0)
        snprintf(why, why_size, "cannot connect to the socket %s: %s", path, errno_text(error));
    return error;
}

int probe_explain(const char *host, int port, const char *path, int timeout_ms, char *why,
                  size_t why_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char service[16];
    int error = 0;
    if (path != NULL)
        return explain_socket(path, timeout_ms, why, why_size);
    snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0) {
        snprintf(why, why_size, "cannot find host %s: %s", host, gai_strerror(rc));
        return EHOSTUNREACH;
    }
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        error = try_connect(a->ai_addr, a->ai_addrlen, timeout_ms);
        if (error == 0)
            break;
    }
    freeaddrinfo(list);
    if (error != 0)
        snprintf(why, why_size, "cannot connect to %s:%d: %s", host, port, errno_text(error));
    return error;
}
