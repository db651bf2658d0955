/* four_letter.c: see four_letter.h. */
#include "backend/zookeeper/four_letter.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "backend/kit/resolve.h"

struct four_letter {
    struct offload_call call; /* first: one is the other */
    char host[256], port[16];
    struct timeval patience;
    four_letter_fn *done;
    void *data;
    struct four_letter_answer answer;
};

/* The socket's limits hold for connecting as well. -1: see errno. */
static int reach(const struct four_letter *q, const struct addrinfo *list)
{
    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &q->patience, sizeof q->patience);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &q->patience, sizeof q->patience);
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            return fd;
        int error = errno;
        close(fd);
        errno = error;
    }
    return -1;
}

/* What was said counts, however the connection ends. NULL, or why there is nothing. */
static const char *ask(const struct four_letter *q, const struct addrinfo *list,
                       const char *command, char out[FOUR_LETTER_TEXT_MAX])
{
    size_t used = 0;
    int fd = reach(q, list);
    ssize_t n = fd < 0 ? -1 : send(fd, command, strlen(command), MSG_NOSIGNAL);
    while (n > 0 && used < FOUR_LETTER_TEXT_MAX - 1) {
        n = recv(fd, out + used, FOUR_LETTER_TEXT_MAX - 1 - used, 0);
        used += n > 0 ? (size_t)n : 0;
    }
    int error = errno == EAGAIN || errno == EINPROGRESS ? ETIMEDOUT : errno;
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
    return n < 0 && used == 0 ? uv_strerror(uv_translate_sys_error(error)) : NULL;
}

static void run(struct offload_call *call)
{
    struct four_letter *q = (struct four_letter *)(void *)call;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    int rc = getaddrinfo(q->host, q->port, &hints, &list);
    const char *why = rc != 0 ? resolve_text(rc) : ask(q, list, "srvr", q->answer.srvr);
    q->answer.why = why != NULL ? why : "";
    if (why == NULL)
        ask(q, list, "conf", q->answer.conf);
    if (list != NULL)
        freeaddrinfo(list);
}

static void done(struct offload_call *call)
{
    struct four_letter *q = (struct four_letter *)(void *)call;
    q->done(q->data, &q->answer);
}

static void free_question(struct offload_call *call)
{
    free(call);
}

struct four_letter *zk_four_letter_ask(struct offload *o, const char *host, int port,
                                       int64_t patience_ms, four_letter_fn *answered, void *data)
{
    struct four_letter *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->call = (struct offload_call){.run = run, .done = done, .free = free_question};
    snprintf(q->host, sizeof q->host, "%s", host);
    snprintf(q->port, sizeof q->port, "%d", port);
    q->patience.tv_sec = patience_ms / 1000;
    q->patience.tv_usec = patience_ms % 1000 * 1000;
    q->done = answered;
    q->data = data;
    return offload_start(o, &q->call) == 0 ? q : NULL;
}

void zk_four_letter_forget(struct four_letter *q)
{
    offload_forget(&q->call);
}
