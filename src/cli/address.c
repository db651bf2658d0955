/* address.c: see address.h. */
#include "cli/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/http_rules.h"
#include "cli/messages.h"

#define BACKLOG 128
#define LOOPBACK "127.0.0.1"
#define PORT_MAX 65535
#define RESERVED_PORTS 1024
#define LOCK_TRIES 200 /* it is held for the time of a few system calls */
#define LOCK_PAUSE_MS 5
#define RESERVED_DESCRIPTORS ((rlim_t)32) /* for the store and the files of this process */
#define SEND_BUFFER (64 * 1024)           /* in the kernel, for each connection */

static char why[HTTP_ADDRESS_MAX + 256];

/* ---- what is written ----------------------------------------------------------------------- */

static const char *parse_path(struct listen_address *a, const char *path)
{
    if (path[0] == '\0')
        return "there is no path behind unix:";
    if (strlen(path) >= sizeof a->path) {
        snprintf(why, sizeof why, "the path of a socket has %zu bytes at most", sizeof a->path - 1);
        return why;
    }
    snprintf(a->path, sizeof a->path, "%s", path);
    snprintf(a->text, sizeof a->text, "unix:%s", path);
    return NULL;
}

static const char *parse_port(struct listen_address *a, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > PORT_MAX)
        return "the port is no number from 0 to 65535; write [HOST]:PORT, such as :8080";
    snprintf(a->port, sizeof a->port, "%lu", number);
    return NULL;
}

static const char *parse(struct listen_address *a, const char *text)
{
    const char *colon = strrchr(text, ':'), *host = text;
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    memset(a, 0, sizeof *a);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_path(a, text + 5);
    if (colon == NULL)
        return "there is no colon: write [HOST]:PORT, such as :8080, or unix:PATH";
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length) != NULL) {
        return "an address of IPv6 stands in brackets, as in [::1]:8080";
    }
    if (length > HTTP_ADDRESS_MAX - 32)
        return "HOST is too long";
    snprintf(a->host, sizeof a->host, "%.*s", (int)length, host);
    snprintf(a->text, sizeof a->text, "%.*s", HTTP_ADDRESS_MAX - 1, text);
    return parse_port(a, colon + 1);
}

const char *address_check(const char *text)
{
    struct listen_address a;
    return parse(&a, text);
}

/* ---- binding ------------------------------------------------------------------------------- */

/* What to do about it. */
static const char *advice(const struct listen_address *a, int error)
{
    static char text[128];
    if (a->path[0] != '\0')
        return error == EADDRINUSE ? "another process listens there: choose another path"
               : error == ENOENT   ? "make its folder first, or choose another path"
               : error == ENOTSOCK
                   ? "there is a file that is no socket: choose another path, or remove it"
                   : "choose a path in a folder where you may write";
    if (error == EADDRINUSE) {
        snprintf(text, sizeof text,
                 "another process listens there: choose another port, or see who it is with ss "
                 "-ltnp 'sport = :%s'",
                 a->port);
        return text;
    }
    if (error == EACCES && strtoul(a->port, NULL, 10) < RESERVED_PORTS)
        return "ports below 1024 are root's: choose another";
    if (error == EADDRNOTAVAIL)
        return "this machine has no such address (ip addr shows those it has; *:PORT is all)";
    return "choose another address";
}

static const char *explain(const struct listen_address *a, int error)
{
    snprintf(why, sizeof why, "%s; %s",
             error == ENOTSOCK ? "File exists" : strerror(error), /* as bind() says it */
             advice(a, error));
    return why;
}

/* 0, or an error. The socket of the first decides about the port, if it is the system's choice. */
static int bind_socket(struct listen_address *a, const struct sockaddr *to, socklen_t size,
                       int only_ipv6)
{
    int one = 1, fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (to->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (to->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
    if (bind(fd, to, size) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    a->sockets[a->count++] = fd;
    return 0;
}

/* Those who find a stale file take turns to replace it: else the second would remove the live one of the
 * first. The lock is that of the folder, so that no file is left behind. -1: there is none, in a folder
 * that one may write to but not read; or somebody has it for his own purposes. */
static int lock_folder(const char *path)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (tries == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR)) {
            close(fd);
            return -1;
        }
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return fd;
}

/* A process that was killed leaves its socket file behind: then nobody accepts there. */
static int remove_stale(const char *path, const struct sockaddr_un *to)
{
    struct stat s;
    if (lstat(path, &s) != 0)
        return 0;
    if (!S_ISSOCK(s.st_mode))
        return ENOTSOCK;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    bool is_stale =
        connect(fd, (const struct sockaddr *)to, sizeof *to) != 0 && errno == ECONNREFUSED;
    close(fd);
    return !is_stale ? EADDRINUSE : unlink(path) != 0 ? errno : 0;
}

static const char *listen_unix(struct listen_address *a)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct stat s;
    memcpy(to.sun_path, a->path, sizeof to.sun_path);
    int lock = lock_folder(a->path), error = remove_stale(a->path, &to);
    if (error == 0)
        error = bind_socket(a, (struct sockaddr *)&to, sizeof to, 0);
    a->is_bound = error == 0 && lstat(a->path, &s) == 0;
    if (a->is_bound) {
        a->device = s.st_dev;
        a->inode = s.st_ino;
    }
    if (lock >= 0)
        close(lock);
    return error == 0 ? NULL : explain(a, error);
}

/* All of the machine: one socket for both families, or for the one that there is. */
static int listen_everywhere(struct listen_address *a, in_port_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
    int error = bind_socket(a, (struct sockaddr *)&six, sizeof six, 0);
    if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)
        error = bind_socket(a, (struct sockaddr *)&four, sizeof four, 0);
    return error;
}

static in_port_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at = {.any = {0}};
    socklen_t size = sizeof at;
    if (getsockname(fd, &at.any, &size) != 0)
        return 0;
    return at.any.sa_family == AF_INET6 ? at.six.sin6_port : at.four.sin_port;
}

static const char *listen_host(struct listen_address *a)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *all;
    int rc = getaddrinfo(a->host[0] != '\0' ? a->host : LOOPBACK, a->port, &hints, &all), error = 0;
    if (rc != 0) {
        snprintf(why, sizeof why, "%s; write an address of this machine instead of the name",
                 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        return why;
    }
    for (const struct addrinfo *at = all; at != NULL && a->count < SOCKETS_MAX; at = at->ai_next) {
        if (a->count > 0 && at->ai_family == AF_INET6)
            ((struct sockaddr_in6 *)(void *)at->ai_addr)->sin6_port = port_of(a->sockets[0]);
        else if (a->count > 0)
            ((struct sockaddr_in *)(void *)at->ai_addr)->sin_port = port_of(a->sockets[0]);
        int failed = bind_socket(a, at->ai_addr, at->ai_addrlen, 1);
        /* A name such as localhost has an address of a family that is switched off here. */
        if (failed != 0 && failed != EADDRNOTAVAIL && failed != EAFNOSUPPORT)
            error = failed;
        else if (failed != 0 && at->ai_next == NULL && a->count == 0)
            error = failed;
    }
    freeaddrinfo(all);
    return error == 0 ? NULL : explain(a, error);
}

static const char *begin_listening(struct listen_address *a)
{
    const char *failed;
    if (a->path[0] != '\0')
        return listen_unix(a);
    bool is_any_ipv4 = strcmp(a->host, "0.0.0.0") == 0;
    a->is_everywhere = is_any_ipv4 || strcmp(a->host, "*") == 0 || strcmp(a->host, "::") == 0;
    if (a->is_everywhere && !is_any_ipv4) {
        int error = listen_everywhere(a, htons((in_port_t)strtoul(a->port, NULL, 10)));
        failed = error == 0 ? NULL : explain(a, error);
    } else {
        failed = listen_host(a);
    }
    if (failed != NULL) {
        address_close(a);
        return failed;
    }
    const char *host = a->host[0] != '\0' && !a->is_everywhere ? a->host : LOOPBACK;
    bool is_ipv6 = strchr(host, ':') != NULL;
    snprintf(a->port, sizeof a->port, "%u", (unsigned)ntohs(port_of(a->sockets[0])));
    snprintf(a->text, sizeof a->text, "http://%s%.200s%s:%s", is_ipv6 ? "[" : "", host,
             is_ipv6 ? "]" : "", a->port);
    return NULL;
}

struct step address_open(struct listen_address *a, const struct cli *c, const char *option,
                         bool by_flag, const char *text)
{
    const char *failed = parse(a, text);
    if (failed != NULL && by_flag)
        return usage(c, "%s '%.200s': %s", option, text, failed);
    if (failed != NULL)
        return print_error(c, "%s: '%.200s': %s", option, text, failed);
    failed = begin_listening(a);
    if (failed != NULL)
        return print_error(c, "cannot listen on %.200s (%s): %s", text, option, failed);
    return GO_ON;
}

const char *address_others(const struct listen_address *a)
{
    return a->is_everywhere ? ", and at every other address of this machine" : "";
}

/* The file goes first: as long as we listen, nobody else takes it for stale. */
void address_close(struct listen_address *a)
{
    struct stat s;
    if (a->is_bound && lstat(a->path, &s) == 0 && s.st_dev == a->device && s.st_ino == a->inode)
        unlink(a->path);
    a->is_bound = false;
    for (size_t i = 0; i < a->count; i++)
        close(a->sockets[i]);
    a->count = 0;
}

/* ---- who is let in ------------------------------------------------------------------------- */

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (size_t n; list != NULL && *list != '\0'; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == length && strncasecmp(list, name, n) == 0)
            return true;
    }
    return false;
}

const char address_refusal[] =
    "Ask by the address of this machine, or as localhost: this name is not ours. "
    "--host NAME allows it.\n";

/* "", or a colon and digits. */
static bool is_port(const char *text)
{
    return text[0] == '\0' || (text[0] == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

bool address_allows(const struct listen_address *a, const char *hosts, const char *host)
{
    char name[HTTP_ADDRESS_MAX];
    struct in6_addr any;
    if (host == NULL || a->path[0] != '\0') /* HTTP/1.0; a browser always has one */
        return true;
    bool in_brackets = host[0] == '[';
    size_t length = in_brackets ? strcspn(++host, "]") : strcspn(host, ":");
    const char *behind = host + length;
    if (length == 0 || length >= sizeof name || (in_brackets && *behind++ != ']') ||
        !is_port(behind))
        return false;
    memcpy(name, host, length);
    name[length] = '\0';
    return inet_pton(in_brackets ? AF_INET6 : AF_INET, name, &any) == 1 ||
           strcasecmp(name, "localhost") == 0 || strcasecmp(name, a->host) == 0 ||
           is_listed(hosts, name);
}

int address_accept(int socket)
{
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    int timeout = HTTP_ANSWER_MS, buffer = SEND_BUFFER;
    int fd = accept4(socket, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (from.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    return fd;
}

int descriptors_fit(int highest, unsigned *connections)
{
    struct rlimit limit;
    rlim_t used = (rlim_t)highest, wanted = used + *connections + 2 * RESERVED_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return INT_MAX;
    if (limit.rlim_cur < wanted) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    if (limit.rlim_cur >= wanted)
        return INT_MAX;
    rlim_t reserved = limit.rlim_cur / 4;
    reserved = reserved < RESERVED_DESCRIPTORS ? reserved : RESERVED_DESCRIPTORS;
    int end = (int)(limit.rlim_cur - reserved);
    rlim_t left = (rlim_t)end > used ? (rlim_t)end - used : 1;
    if (left < *connections)
        *connections = (unsigned)left;
    return end;
}
