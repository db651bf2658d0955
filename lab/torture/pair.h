/* pair.h: one connection through the proxy: the client's, the server's, and what is between. */
#ifndef LAB_TORTURE_PAIR_H
#define LAB_TORTURE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lab/torture/proxy.h"

#define ADDRESSES_MAX 8

/* A server's addresses; they are tried in this order. */
struct addresses {
    struct sockaddr_storage at[ADDRESSES_MAX];
    socklen_t size[ADDRESSES_MAX];
    size_t count;
};

/* What a route does now. */
struct condition {
    enum net_fault fault;
    int64_t amount;
    uint64_t since; /* rises with each change */
};

enum side { CLIENT, SERVER };

/* Whom an event of epoll is about. */
struct pair_source {
    enum { SOURCE_CONTROL, SOURCE_LISTENER, SOURCE_PAIR } kind;
    uint32_t interest; /* what epoll is to say; 0: it does not know the descriptor */
    int fd;
};

struct pair_chunk;

/* What one side has sent and the other has not got yet. */
struct pair_stream {
    struct pair_chunk *first, *last;
    size_t bytes;
    int64_t next_byte; /* NET_TRICKLE: not before */
    bool has_ended;    /* nothing more is taken. When all is passed on, the pair ends */
    bool is_blocked;   /* the receiver's socket takes no more */
};

enum replay {
    REPLAY_NONE,
    REPLAY_AWAITS_ANSWER, /* a request is kept, and was passed on */
    REPLAY_LEAVES_CLIENT, /* the answer goes to the client, whose connection then ends */
    REPLAY_DUE,           /* the request goes to the server again, at replay_at */
    REPLAY_SENT           /* it went there; the pair ends with the answer */
};

/* One of the two connections of a pair. */
struct pair_end {
    struct pair_source source; /* first: events lead to it */
    struct pair *pair;
    enum side side;
};

struct pair {
    struct pair *next;
    struct condition *now; /* of its route */
    const struct addresses *server;
    struct pair_end end[2];
    struct pair_stream from[2];
    uint64_t opened_since; /* now->since of then */
    uint64_t answers;      /* chunks of the server under this condition */
    size_t next_address;
    enum replay replay;
    struct pair_chunk *kept;
    int64_t replay_at;
    enum side last; /* whose bytes came last */
    bool is_connected, is_over;
    bool lost_answer; /* NET_SWALLOW dropped one */
    bool is_reset;    /* the client gets a reset, not an end */
};

/* Takes the client's descriptor, and begins to connect to the server. NULL: no memory. */
struct pair *pair_open(int client, struct condition *now, const struct addresses *server);
void pair_free(struct pair *p);

/* One of its descriptors is ready. */
void pair_ready(struct pair *p, enum side side, uint32_t events);

/* The condition of its route has changed from that one. */
void pair_condition_changed(struct pair *p, enum net_fault before);

/* Passes on what is due, and finds out whether the pair is over. */
void pair_advance(struct pair *p, int64_t now);

/* When pair_advance has something to do without an event; INT64_MAX: never. */
int64_t pair_due(const struct pair *p);

/* What to ask epoll for, about this side. */
uint32_t pair_interest(const struct pair *p, enum side side);

#endif
