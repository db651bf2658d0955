/* prober.c: asks several servers for /leader a thousand times a second each, and writes down what they
 * say, for tests/haproxy/rig.
 *
 *     leader_prober PORT...      all on 127.0.0.1; it ends when stdin does
 *
 * Every answer has the clock before the request was sent and after the answer was read. For each
 * server and token it keeps how many 200s there were, when the first of them was read and when the
 * last of them was asked for: see rig for why that is enough. On stdout there is a line for each
 * change of what a server says, and at the end one for each server and token. Times are
 * nanoseconds on CLOCK_MONOTONIC:
 *
 *     change INDEX STATUS TOKEN SENT READ        STATUS 0: no connection
 *     tenure INDEX TOKEN COUNT FIRST_SENT FIRST_READ LAST_SENT LAST_READ
 *     asked INDEX COUNT ANSWERS TIME             ANSWERS that came in the TIME in which it answered: each within
 *                                                20 ms of the one before */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SERVERS_MAX 8
#define TENURES_MAX 65536
#define PERIOD_NS INT64_C(1000000)
#define AGAIN_NS INT64_C(20000000) /* after a connection that failed */
#define STEADY_NS INT64_C(20000000)
#define PATIENCE_NS INT64_C(30000000000)
#define ANSWER_MAX 8192

struct server {
    int64_t next, sent;
    int64_t last_read, steady; /* see `asked` */
    uint64_t steady_count;
    size_t length;
    uint64_t asked, token;
    int status; /* the last that was told, and token */
    int port, fd;
    bool is_connected, is_waiting;
    char answer[ANSWER_MAX];
};

static struct tenure {
    int server;
    uint64_t token, count;
    int64_t first_sent, first_read, last_sent, last_read;
} tenures[TENURES_MAX];
static size_t tenure_count;

static const char request[] = "GET /leader HTTP/1.1\r\nHost: localhost\r\n\r\n";

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void tell(struct server *s, int index, int status, uint64_t token, int64_t read)
{
    if (status == s->status && token == s->token)
        return;
    s->status = status;
    s->token = token;
    printf("change %d %d %llu %lld %lld\n", index, status, (unsigned long long)token,
           (long long)s->sent, (long long)read);
    fflush(stdout);
}

static void count_leader(int index, uint64_t token, int64_t sent, int64_t read)
{
    struct tenure *t = NULL;
    for (size_t i = tenure_count; i > 0 && t == NULL && i + 16 > tenure_count; i--) {
        if (tenures[i - 1].server == index && tenures[i - 1].token == token)
            t = &tenures[i - 1];
    }
    if (t == NULL) { /* also where it was among the last 16 no more: then it has two entries */
        if (tenure_count == TENURES_MAX) {
            fprintf(stderr, "leader_prober: too many tenures\n");
            exit(1);
        }
        t = &tenures[tenure_count++];
        *t = (struct tenure){
            .server = index, .token = token, .first_sent = sent, .first_read = read};
    }
    t->count++;
    t->last_sent = sent;
    t->last_read = read;
}

static void hang_up(struct server *s, int index, int64_t now)
{
    close(s->fd);
    s->fd = -1;
    s->is_connected = s->is_waiting = false;
    s->next = now + AGAIN_NS;
    tell(s, index, 0, 0, now);
}

static void dial(struct server *s, int index, int64_t now)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    s->length = 0;
    if (connect(s->fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)
        hang_up(s, index, now);
}

static void ask(struct server *s, int index, int64_t now)
{
    s->sent = now_ns();
    s->next = now - s->next < STEADY_NS ? s->next + PERIOD_NS : now; /* makes up for a little */
    s->length = 0;
    if (send(s->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) {
        hang_up(s, index, now);
        return;
    }
    s->is_waiting = true;
    s->asked++;
}

/* How long the whole answer is; 0: not known yet. */
static size_t whole(const struct server *s)
{
    const char *end = strstr(s->answer, "\r\n\r\n"),
               *length = strcasestr(s->answer, "content-length:");
    if (end == NULL)
        return 0;
    return (size_t)(end - s->answer) + 4 +
           (length != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0);
}

static void take(struct server *s, int index)
{
    ssize_t n = recv(s->fd, s->answer + s->length, sizeof s->answer - 1 - s->length, 0);
    int64_t read = now_ns();
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            hang_up(s, index, read);
        return;
    }
    s->length += (size_t)n;
    s->answer[s->length] = '\0';
    size_t size = whole(s);
    if (size == 0 || s->length < size)
        return;
    int status = strncmp(s->answer, "HTTP/1.", 7) == 0 ? (int)strtol(s->answer + 9, NULL, 10) : -1;
    const char *token_at = strstr(s->answer, "\"token\":");
    uint64_t token = status == 200 && token_at != NULL ? strtoull(token_at + 8, NULL, 10) : 0;
    if (status == 200)
        count_leader(index, token, s->sent, read);
    tell(s, index, status, token, read);
    if (read - s->last_read < STEADY_NS) {
        s->steady += read - s->last_read;
        s->steady_count++;
    }
    s->last_read = read;
    s->is_waiting = false;
    if (strcasestr(s->answer, "connection: close") != NULL)
        hang_up(s, index, read - AGAIN_NS);
}

static void turn(struct server *servers, int count)
{
    struct pollfd fds[SERVERS_MAX + 1] = {{STDIN_FILENO, POLLIN, 0}};
    int64_t now = now_ns(), next = now + PERIOD_NS * 10;
    for (int i = 0; i < count; i++) {
        struct server *s = &servers[i];
        if (s->fd < 0 && now >= s->next)
            dial(s, i, now);
        if (s->is_connected && !s->is_waiting && now >= s->next)
            ask(s, i, now);
        if (s->is_waiting && now - s->sent > PATIENCE_NS)
            hang_up(s, i, now);
        short events = s->is_connected ? POLLIN : POLLOUT;
        fds[i + 1] = (struct pollfd){s->fd, events, 0};
        if (!s->is_waiting && (s->fd < 0 || s->is_connected) && s->next < next)
            next = s->next;
    }
    int64_t left = next - now_ns();
    struct timespec pause = {.tv_nsec = left > 0 ? (long)left : 0};
    if (ppoll(fds, (nfds_t)count + 1, &pause, NULL) <= 0)
        return;
    if (fds[0].revents != 0) {
        for (size_t i = 0; i < tenure_count; i++) {
            const struct tenure *t = &tenures[i];
            printf("tenure %d %llu %llu %lld %lld %lld %lld\n", t->server,
                   (unsigned long long)t->token, (unsigned long long)t->count,
                   (long long)t->first_sent, (long long)t->first_read, (long long)t->last_sent,
                   (long long)t->last_read);
        }
        for (int i = 0; i < count; i++)
            printf("asked %d %llu %llu %lld\n", i, (unsigned long long)servers[i].asked,
                   (unsigned long long)servers[i].steady_count, (long long)servers[i].steady);
        exit(0);
    }
    for (int i = 0; i < count; i++) {
        struct server *s = &servers[i];
        int error = 0;
        socklen_t size = sizeof error;
        if (s->fd < 0 || fds[i + 1].revents == 0)
            continue;
        if (s->is_connected) {
            take(s, i);
            continue;
        }
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0)
            hang_up(s, i, now_ns());
        else
            s->is_connected = true;
    }
}

int main(int argc, char **argv)
{
    static struct server servers[SERVERS_MAX];
    if (argc < 2 || argc > SERVERS_MAX + 1) {
        fprintf(stderr, "leader_prober PORT...\n");
        return 64;
    }
    for (int i = 0; i < argc - 1; i++)
        servers[i] = (struct server){.port = (int)strtol(argv[i + 1], NULL, 10), .fd = -1};
    for (;;)
        turn(servers, argc - 1);
}
