/* server.c: see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"

/* A sentinel has its settings in a file, which it writes to. It is written anew for each start, so
 * one that is started again has forgotten everything. */
static void write_sentinel(const struct server *s)
{
    FILE *f = fopen(folder_path(s->name), "we");
    CHECK(f != NULL);
    fprintf(f,
            "port %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\n"
            "sentinel monitor main 127.0.0.1 %d 1\n"
            "sentinel down-after-milliseconds main 500\n"
            "sentinel failover-timeout main 3000\n",
            s->port, s->socket, folder_path(""), s->watches->port);
    for (int i = 0; s->options[i] != NULL; i++)
        fprintf(f, "%s\n", s->options[i]);
    CHECK(fclose(f) == 0);
}

static const char *program(void)
{
    const char *name = getenv("SIMBA_REDIS_SERVER"); /* see tests/servers/redis */
    return name != NULL && *name != '\0' ? name : "redis-server";
}

/* What is loaded into a server to set its clock: beside this program in the folder of a build, and nowhere else. NULL: it
 * is not there. */
static const char *clock_step(void)
{
    static char path[PATH_MAX];
    static const char name[] = "clock_step.so";
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return NULL;
    memcpy(slash + 1, name, sizeof name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static _Noreturn void become_server(const struct server *s, pid_t test)
{
    char port[16];
    const char *argv[SERVER_OPTIONS_MAX + 24];
    int n = 0;
    snprintf(port, sizeof port, "%d", s->port);
    const char *const ours[] = {program(),      "--port",    port,
                                "--bind",       "127.0.0.1", "--unixsocket",
                                s->socket,      "--dir",     folder_path(""),
                                "--dbfilename", s->name,     "--enable-debug-command",
                                "yes",          "--save",    "",
                                "--loglevel",   "warning"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        argv[n++] = ours[i];
    for (int i = 0; s->options[i] != NULL; i++)
        argv[n++] = s->options[i];
    argv[n] = NULL;
    if (s->watches != NULL) {
        argv[1] = folder_path(s->name);
        argv[2] = "--sentinel";
        argv[3] = NULL;
    }
    if (s->clock != NULL &&
        (setenv("CLOCK_STEP", s->clock, 1) != 0 || setenv("LD_PRELOAD", clock_step(), 1) != 0))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(folder_path("server.log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (getppid() != test || log < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(1);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

void server_launch(struct server *s)
{
    if (s->port == 0) {
        s->port = port_draw();
        snprintf(s->socket, sizeof s->socket, "%s.sock", folder_path(s->name));
        snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d/0?%s", s->port,
                 s->query != NULL ? s->query : "restart_guard=off");
    }
    if (s->watches != NULL)
        write_sentinel(s);
    if (s->clock != NULL && clock_step() == NULL)
        suite_skip("needs the folder of the build");
    pid_t test = getpid();
    s->pid = fork();
    CHECK(s->pid >= 0);
    if (s->pid == 0)
        become_server(s, test);
}

static bool answers(struct server *s)
{
    int status;
    pid_t gone = waitpid(s->pid, &status, WNOHANG);
    if (gone == s->pid && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        suite_skip("the server of Redis is not installed");
    CHECK(gone == 0); /* its log is in the folder */
    redisContext *c = redisConnectUnix(s->socket);
    bool up = c != NULL && c->err == 0;
    if (up) {
        redisReply *r = redisCommand(c, "PING");
        up = r != NULL && strstr(r->str != NULL ? r->str : "", "LOADING") == NULL;
        freeReplyObject(r);
    }
    if (c != NULL)
        redisFree(c);
    return up;
}

void server_start(struct server *s)
{
    server_launch(s);
    AWAIT_FOR(SERVER_MS, answers(s));
}

void server_kill(struct server *s)
{
    if (s->raw != NULL)
        redisFree(s->raw);
    s->raw = NULL;
    CHECK(kill(s->pid, SIGKILL) == 0);
    CHECK(waitpid(s->pid, NULL, 0) == s->pid);
    s->pid = 0;
    unlink(s->socket);
}

void server_end(struct server *s)
{
    run(s, "PING"); /* so that its last reply is freed */
    server_kill(s);
}

static const redisReply *run_args(struct server *s, const char *format, va_list args)
{
    static redisReply *last;
    if (s->raw == NULL)
        s->raw = redisConnectUnix(s->socket);
    CHECK(s->raw != NULL && s->raw->err == 0);
    if (last != NULL)
        freeReplyObject(last);
    last = NULL;
    va_list again;
    va_copy(again, args);
    redisReply *r = redisvCommand(s->raw, format, args);
    if (r == NULL) { /* a sentinel's reconfiguration ends all connections, ours too */
        redisFree(s->raw);
        s->raw = redisConnectUnix(s->socket);
        CHECK(s->raw != NULL && s->raw->err == 0);
        r = redisvCommand(s->raw, format, again);
    }
    va_end(again);
    if (r == NULL)
        suite_fail(__FILE__, __LINE__, s->raw->errstr);
    if (strcmp(format, "PING") == 0) {
        freeReplyObject(r);
        return NULL;
    }
    last = r;
    return r;
}

const redisReply *run(struct server *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const redisReply *r = run_args(s, format, args);
    va_end(args);
    return r;
}

long long run_number(struct server *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const redisReply *r = run_args(s, format, args);
    va_end(args);
    if (r->type == REDIS_REPLY_NIL)
        return -1;
    if (r->type == REDIS_REPLY_INTEGER)
        return r->integer;
    if (r->type != REDIS_REPLY_STRING)
        suite_fail(__FILE__, __LINE__, r->str != NULL ? r->str : format);
    return strtoll(r->str, NULL, 10);
}

long long server_calls(struct server *s, const char *command)
{
    char name[64];
    snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const redisReply *r = run(s, "INFO commandstats");
    const char *at = strstr(r->str, name);
    return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* In a process of its own: answers every reading with the same bytes. */
_Noreturn void redis_lie(const char *bytes, int ready)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    char in[4096];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        _exit(1);
    int port = ntohs(a.sin_port);
    if (write(ready, &port, sizeof port) != sizeof port)
        _exit(1);
    for (int c; (c = accept(fd, NULL, NULL)) >= 0; close(c)) {
        while (read(c, in, sizeof in) > 0 &&
               send(c, bytes, strlen(bytes), MSG_NOSIGNAL) == (ssize_t)strlen(bytes))
            ;
    }
    _exit(1);
}
