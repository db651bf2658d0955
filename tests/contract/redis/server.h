/* server.h: servers for a test to kill. */
#ifndef CONTRACT_REDIS_SERVER_H
#define CONTRACT_REDIS_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

#define SERVER_OPTIONS_MAX 24

/* A redis-server on a port of its own and on a socket in the test's folder, which has to be
 * there. It dies with the test. */
struct server {
    const char *name; /* of its files */
    const char
        *options[SERVER_OPTIONS_MAX]; /* of its command line, on top of ours; a sentinel's are
                                                lines of its file */
    const char *query;                /* of its URL; NULL: restart_guard=off */
    const struct server *watches;     /* not NULL: this one is a sentinel, of that master */
    const char *clock;                /* a file with a step of its clock, in us; NULL: none */
    int port;                         /* chosen at the first start */
    pid_t pid;
    char url[256], socket[128];
    redisContext *raw; /* for run() */
};

void server_start(struct server *s);  /* returns when it answers; again after server_kill */
void server_launch(struct server *s); /* does not wait for its answer */
void server_kill(struct server *s);   /* -9 */
void server_end(struct server *s);    /* at the end of the test */

/* Runs a command as somebody else would. The reply is valid until the next one. */
const redisReply *run(struct server *s, const char *format, ...); /* hiredis' formats */
long long run_number(struct server *s, const char *format, ...);

/* A counter of INFO commandstats: how often it was called. */
long long server_calls(struct server *s, const char *command);

/* Not a server at all: answers whatever it is told with these bytes. Its port goes to `ready`. */
_Noreturn void redis_lie(const char *bytes, int ready);
#endif
