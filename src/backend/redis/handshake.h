/* handshake.h: the first commands on a connection: who we are, which database, and who the server
 * is. Whatever keeps a server from being used is found here. */
#ifndef BACKEND_REDIS_HANDSHAKE_H
#define BACKEND_REDIS_HANDSHAKE_H

#include "backend/redis/info.h"

/* A time in which the server has forgotten nothing of our database, as it is noted there
 * (epoch.lua). */
#define EPOCH_ID 40 /* digits of a run id, and of a replication id */
#define EPOCH_NOTE_MAX 160
#define TERM_MAX (INT64_C(1) << 53) /* what a script can count to */
struct epoch {
    char note[EPOCH_NOTE_MAX]; /* "": none */
    int64_t age_ms;            /* for how long nothing had been forgotten at info_at */
};

/* What the server says of itself. */
struct redis_server {
    struct info info;
    int64_t info_at;    /* simba_now() when it came */
    int64_t time_us;    /* of the server's clock, then */
    struct epoch epoch; /* no note: it takes no writes; write_code and write_why say why */
    int write_code;
    char write_why[320];
};

struct redis_connection;
void handshake_begin(
    struct redis_connection *c); /* writes them; it is ready when all are answered */
#endif
