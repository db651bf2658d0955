/* proxy.c: see proxy.h. One thread, one epoll. The parent sends what is to change over a socket and
 * waits for the answer. Bytes and connections are the matter of pair.c; here are the ports and the
 * loop. */
#include "lab/torture/proxy.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/torture/pair.h"

#define BACKLOG 128
#define EVENTS_MAX 64

struct route {
    struct pair_source
        listener; /* first: events lead to it. fd is -1 while connections are refused */
    int holder;   /* bound to the port, never listens: nobody else gets it meanwhile */
    uint16_t port;
    struct condition now;
    struct pair *pairs;
};

struct proxy {
    pid_t pid;
    struct pair_source control;
    int epoll;
    struct addresses server;
    size_t routes;
    struct route route[];
};

struct proxy_message {
    size_t route;
    enum net_fault fault;
    int64_t amount;
};

/* ---- ports --------------------------------------------------------------------------------- */

/* A socket on 127.0.0.1 and this port; 0: any. The port can be bound again beside it. */
static int bind_port(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static int listen_on(uint16_t port)
{
    int fd = bind_port(port);
    if (fd >= 0 && listen(fd, BACKLOG) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int open_route(struct route *r)
{
    struct sockaddr_in at = {.sin_port = 0};
    socklen_t size = sizeof at;
    r->listener = (struct pair_source){.kind = SOURCE_LISTENER, .fd = -1};
    r->holder = bind_port(0);
    if (r->holder < 0 || getsockname(r->holder, (struct sockaddr *)&at, &size) != 0)
        return -1;
    r->port = ntohs(at.sin_port);
    r->listener.fd = listen_on(r->port);
    return r->listener.fd < 0 ? -1 : 0;
}

static void close_ports(struct proxy *p)
{
    for (size_t i = 0; i < p->routes; i++) {
        if (p->route[i].listener.fd >= 0)
            close(p->route[i].listener.fd);
        if (p->route[i].holder >= 0)
            close(p->route[i].holder);
        p->route[i].listener.fd = p->route[i].holder = -1;
    }
}

static int find_addresses(const struct endpoint *server, struct addresses *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    char port[8];
    if (server->host[0] == '\0') {
        struct sockaddr_un *at = (struct sockaddr_un *)&out->at[0];
        at->sun_family = AF_UNIX;
        snprintf(at->sun_path, sizeof at->sun_path, "%s", server->path);
        out->size[0] = sizeof *at;
        out->count = 1;
        return 0;
    }
    snprintf(port, sizeof port, "%u", (unsigned)server->port);
    if (getaddrinfo(server->host, port, &hints, &found) != 0) {
        errno = ENOENT;
        return -1;
    }
    for (struct addrinfo *a = found; a != NULL && out->count < ADDRESSES_MAX; a = a->ai_next) {
        memcpy(&out->at[out->count], a->ai_addr, a->ai_addrlen);
        out->size[out->count++] = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

/* ---- the process --------------------------------------------------------------------------- */

/* Tells epoll what is wanted of a descriptor now. */
static void set_interest(struct proxy *p, struct pair_source *s, uint32_t wanted)
{
    if (wanted == s->interest)
        return;
    struct epoll_event event = {.events = wanted, .data.ptr = s};
    int what = wanted == 0 ? EPOLL_CTL_DEL : s->interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int rc = epoll_ctl(p->epoll, what, s->fd, &event);
    assert(rc == 0 || errno == ENOMEM || errno == ENOSPC);
    s->interest = wanted;
}

static void set_listening(struct proxy *p, struct route *r, bool wanted)
{
    if (!wanted && r->listener.fd >= 0) {
        close(r->listener.fd);
        r->listener.fd = -1;
        r->listener.interest = 0;
    } else if (wanted && r->listener.fd < 0) {
        r->listener.fd = listen_on(r->port);
        assert(r->listener.fd >= 0);
    }
    if (wanted)
        set_interest(p, &r->listener, EPOLLIN);
}

static void accept_client(struct route *r, const struct addresses *server)
{
    int client = accept4(r->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct pair *pair = client >= 0 ? pair_open(client, &r->now, server) : NULL;
    if (pair != NULL) {
        pair->next = r->pairs;
        r->pairs = pair;
    } else if (client >= 0) {
        close(client);
    }
}

/* Moves all its connections, and frees those that are over. Returns when that is due again. */
static int64_t advance(struct proxy *p, struct route *r, int64_t now)
{
    int64_t due = INT64_MAX;
    struct pair *pair;
    for (struct pair **at = &r->pairs; (pair = *at) != NULL;) {
        pair_advance(pair, now);
        if (pair->is_over) {
            *at = pair->next;
            pair_free(pair);
            continue;
        }
        for (enum side side = CLIENT; side <= SERVER; side++)
            set_interest(p, &pair->end[side].source, pair_interest(pair, side));
        int64_t pairs_due = pair_due(pair);
        due = pairs_due < due ? pairs_due : due;
        at = &pair->next;
    }
    return due;
}

/* The parent is gone: so are we. */
static void take_message(struct proxy *p)
{
    struct proxy_message m;
    ssize_t n = recv(p->control.fd, &m, sizeof m, 0);
    if (n < 0 && errno == EINTR)
        return;
    if (n != sizeof m)
        _exit(0);
    struct route *r = &p->route[m.route];
    enum net_fault before = r->now.fault;
    r->now = (struct condition){m.fault, m.amount, r->now.since + 1};
    set_listening(p, r, m.fault != NET_REFUSE);
    for (struct pair *pair = r->pairs; pair != NULL; pair = pair->next)
        pair_condition_changed(pair, before);
    advance(p, r, clock_now());
    if (send(p->control.fd, &m, 1, MSG_NOSIGNAL) != 1)
        _exit(0);
}

static void handle(struct proxy *p, const struct epoll_event *event)
{
    struct pair_source *s = event->data.ptr;
    if (s->kind == SOURCE_LISTENER)
        accept_client((struct route *)s, &p->server);
    else if (s->kind == SOURCE_PAIR) {
        struct pair_end *end = (struct pair_end *)s;
        pair_ready(end->pair, end->side, event->events);
    }
}

static int milliseconds_until(int64_t due, int64_t now)
{
    if (due == INT64_MAX)
        return -1;
    int64_t ms = due <= now ? 0 : (due - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

static _Noreturn void serve(struct proxy *p)
{
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int64_t due = INT64_MAX, now = clock_now();
        for (size_t i = 0; i < p->routes; i++) {
            int64_t routes_due = advance(p, &p->route[i], now);
            due = routes_due < due ? routes_due : due;
        }
        int n = epoll_wait(p->epoll, events, EVENTS_MAX, milliseconds_until(due, now));
        bool has_message = false;
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &p->control)
                has_message = true;
            else
                handle(p, &events[i]);
        }
        if (has_message) /* last: it frees pairs that other events may name */
            take_message(p);
    }
}

static bool is_ours(const struct proxy *p, int fd)
{
    bool yes = fd <= STDERR_FILENO || fd == p->control.fd;
    for (size_t i = 0; i < p->routes && !yes; i++)
        yes = fd == p->route[i].listener.fd || fd == p->route[i].holder;
    return yes;
}

/* What the parent had open is not kept open by us. */
static void close_others(const struct proxy *p)
{
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd != dirfd(folder) && !is_ours(p, fd))
            close(fd);
    }
    closedir(folder);
}

/* Signals of a terminal are for the parent; it ends us when it is through. */
static _Noreturn void become_proxy(struct proxy *p, pid_t parent)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
    struct rlimit files;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    prctl(PR_SET_NAME, "simba-proxy");
    close_others(p);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0)
        _exit(1);
    set_interest(p, &p->control, EPOLLIN);
    for (size_t i = 0; i < p->routes; i++)
        set_listening(p, &p->route[i], true);
    serve(p);
}

/* ---- for the parent ------------------------------------------------------------------------ */

static int fork_proxy(struct proxy *p)
{
    int control[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
        return -1;
    p->pid = fork();
    if (p->pid == 0) {
        close(control[0]);
        p->control = (struct pair_source){.kind = SOURCE_CONTROL, .fd = control[1]};
        become_proxy(p, parent);
    }
    close(control[1]);
    p->control.fd = control[0];
    if (p->pid > 0)
        return 0;
    close(control[0]);
    return -1;
}

struct proxy *proxy_start(const struct endpoint *server, size_t routes)
{
    struct proxy *p = calloc(1, sizeof *p + routes * sizeof *p->route);
    if (p == NULL)
        return NULL;
    int rc = find_addresses(server, &p->server);
    while (rc == 0 && p->routes < routes)
        rc = open_route(&p->route[p->routes++]);
    if (rc == 0)
        rc = fork_proxy(p);
    int error = errno;
    close_ports(p); /* they are the child's */
    if (rc == 0)
        return p;
    free(p);
    errno = error;
    return NULL;
}

uint16_t proxy_port(const struct proxy *p, size_t route)
{
    assert(route < p->routes);
    return p->route[route].port;
}

int proxy_set(struct proxy *p, size_t route, enum net_fault fault, int64_t amount)
{
    struct proxy_message m = {route, fault, amount};
    char answer;
    assert(route < p->routes);
    assert(amount >= 0);
    if (send(p->control.fd, &m, sizeof m, MSG_NOSIGNAL) != (ssize_t)sizeof m)
        return -1;
    ssize_t n;
    do {
        n = recv(p->control.fd, &answer, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -1;
}

void proxy_stop(struct proxy *p)
{
    close(p->control.fd);
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    free(p);
}
