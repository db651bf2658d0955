/* server.h: servers for a test to kill, a client of its own to look at them, and a
 * connection that can be cut. */
#ifndef CONTRACT_ZOOKEEPER_SERVER_H
#define CONTRACT_ZOOKEEPER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <zookeeper/zookeeper.h>

#define ENSEMBLE_MAX 3
#define CUTTER_CONNECTIONS 16

/* Passes bytes on between a port of its own and another, until told otherwise. */
struct cutter {
    int port, to; /* port: its own */
    int listener;
    atomic_bool frozen; /* nothing passes, connections stay */
    atomic_bool cut;    /* all connections are closed now */
    atomic_int
        lose; /* not 0: a connection is closed after about so many messages from the server */
    atomic_bool
        lose_create; /* the answer to the next member's creation, and its connection; then */
    bool freezes;    /* it also freezes */
    atomic_bool
        keep_node;   /* the next deletion of a member: it is acknowledged, and the node stays */
    atomic_int lost; /* such answers */
    pthread_t thread;
};
void cutter_start(struct cutter *c, int to); /* used until the process ends: a static one */

/* One server, or several. They die with the test. */
struct ensemble {
    int servers;      /* set before the start */
    int sync_ticks;   /* syncLimit; 0: 20 */
    bool isolates;    /* the last server reaches the others through cutters */
    const char *java; /* one more option */
    int port[ENSEMBLE_MAX], quorum[ENSEMBLE_MAX], election[ENSEMBLE_MAX];
    pid_t pid[ENSEMBLE_MAX];
    struct cutter cutter[ENSEMBLE_MAX];
    char url[256];
    zhandle_t *raw;
    unsigned raw_mask; /* which servers our own client may use; 0: all */
};
void ensemble_start(struct ensemble *e); /* in the test's folder, which has to be there */
void ensemble_launch(struct ensemble *e, int n);
void ensemble_await(struct ensemble *e, int n); /* it serves */
void ensemble_kill(struct ensemble *e, int n);
void ensemble_end(struct ensemble *e);
const char *ensemble_url(const struct ensemble *e, unsigned mask, const char *query);
int ensemble_leader(struct ensemble *e);                                /* its index */
long long ensemble_number(struct ensemble *e, int n, const char *name); /* of srvr, also in hex */

/* As somebody else would; through the first server, or the one that serves. Codes of the library. */
int raw_create(struct ensemble *e, const char *path, const char *data);
int raw_create_readable(struct ensemble *e, const char *path); /* by all, and nothing else */
int raw_make_readable(struct ensemble *e, const char *path);   /* likewise, one that is there */
int raw_delete(struct ensemble *e, const char *path);
int raw_get(struct ensemble *e, const char *path, char *data, int size, struct Stat *stat);
int raw_children(struct ensemble *e, const char *path, char names[][128], int max); /* how many */
void raw_close(struct ensemble *e);
#endif
