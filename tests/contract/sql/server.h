/* server.h: an SQL server as somebody else sees it: its administrator, or who kills it.
 *
 * A test gets a database of its own on the server that tests/servers/ has started, or a server
 * of its own. */
#ifndef CONTRACT_SQL_SERVER_H
#define CONTRACT_SQL_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct database {
    char name[48]; /* also of its user, whose password is geheim */
    char url[512];
    char socket[256]; /* the folder of it, for PostgreSQL */
    int port;
    void *raw; /* a connection of the administrator */
    pid_t pid; /* a server of its own; 0: not */
};

bool sql_is_mysql(void); /* else it is PostgreSQL */

void database_make(struct database *d);  /* with all rights in it, on the server that is there */
void database_drop(struct database *d);  /* at the end */
void server_make(struct database *d);    /* on a server of its own, in the test's folder */
void server_crash(struct database *d);   /* kill -9 */
void server_stop(struct database *d);    /* for good; nothing of it stays in the system */
void server_restart(struct database *d); /* after that; returns when it answers */

/* As the administrator. %n is the time in milliseconds, as an expression. */
void sql_run(struct database *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
long long sql_number(struct database *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern const char *sql_now;                           /* that expression */
void sql_make_table(struct database *d, bool fences); /* as JVM Simba does */

void sql_kill_sessions(struct database *d); /* all of the user's */

/* Something between a client and the server, in a process of its own. */
struct proxy {
    int port;
    pid_t pid;
    int control[2];
    _Atomic int *questions; /* parts that came from clients */
    char *bytes;            /* for MUTE_AT, set before */
};
#define PROXY_BYTES_MAX 256
enum proxy_mode {
    PROXY_PASS,
    PROXY_SWALLOW, /* what the server answers gets lost, and then the connection */
    PROXY_HOLD,    /* nothing gets through, in neither direction */
    PROXY_MUTE,    /* what the server answers waits until it is PASS again */
    PROXY_MUTE_AT  /* the same, from the question on that has these bytes in it */
};
void proxy_start(struct proxy *p, int port);
void proxy_set(struct proxy *p, enum proxy_mode mode); /* has happened when it returns */
void proxy_end(struct proxy *p);
#endif
