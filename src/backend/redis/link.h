/* link.h: one connection to a server, kept up: address, socket, TLS, greeting, pipeline, and again
 * after a failure, with growing pauses.
 *
 *   DOWN --> FINDING --> RESOLVING --> CONNECTING --> SHAKING --> GREETING --> READY
 *    ^          |            |              |             |           |          |
 *    +----------+------------+--------------+-------------+-----------+----------+
 *
 * All on the loop's thread. A reply is told apart from its command by order alone: what was asked is
 * the owner's business. */
#ifndef BACKEND_REDIS_LINK_H
#define BACKEND_REDIS_LINK_H

#include "backend/redis/health.h"
#include "backend/redis/tls.h"
#include "backend/resolve.h"

#define LINK_INBOX (64u << 10)
#define LINK_TEXT_MAX 320
#define LINK_GREETINGS_MAX 8

enum link_state {
    LINK_DOWN,
    LINK_FINDING,
    LINK_RESOLVING,
    LINK_CONNECTING,
    LINK_SHAKING,
    LINK_GREETING,
    LINK_READY
};

/* What the links of a store share. */
struct net {
    struct simba_host *host;
    const struct config *config;
    SSL_CTX *tls;
    struct resolver *resolver;
    uint64_t dice;
    int64_t term; /* the sentinels' count of failovers when they named this master; 0: not asked */
    unsigned handles;               /* of libuv, not closed yet */
    void (*empty)(struct net *net); /* after all are */
    char inbox[LINK_INBOX], plain[LINK_INBOX];
};

/* A time in which the server has forgotten nothing, as it is noted there (epoch.lua). */
#define EPOCH_KEY "simba:epoch"
#define EPOCH_ID 40 /* digits of a run id, and of a replication id */
#define EPOCH_NOTE_MAX 160
#define TERM_MAX (INT64_C(1) << 53) /* what a script can count to */
struct epoch {
    char note[EPOCH_NOTE_MAX]; /* "": none */
    int64_t seen_us;           /* when it was first seen, on the server's clock */
    int64_t age_ms;            /* for how long nothing had been forgotten at healthy_at */
};

struct link;
struct link_use {
    bool wants_info; /* the greeting asks who the server is, and chooses the database */
    bool is_sentinel;
    bool keeps_trying;            /* else it is down after a failure until it is opened again */
    void (*find)(struct link *l); /* leads to link_go() or link_fail(); NULL: the URL's server */
    void (*ready)(struct link *l);
    void (*reply)(struct link *l, const struct reply *r);
    void (*pause)(struct link *l); /* all replies of one reading were given; NULL */
    void (*down)(struct link *l);  /* after each failure; code and why say which */
};

struct conn;
struct link {
    struct net *net;
    const struct link_use *use;
    void *data;
    enum link_state state;
    bool wanted;      /* to be kept up */
    bool was_ready;   /* since it was opened */
    int64_t ready_at; /* the last time */
    unsigned failures, turn;
    int code; /* of the last failure; 0: none since it was ready */
    char why[LINK_TEXT_MAX];
    uv_timer_t timer; /* of the attempt, of the pause, or of the watch over unanswered commands */
    struct address address;
    struct question *question;
    struct addrinfo *list, *next_address;
    struct conn *conn;
    struct tls tls;
    struct decoder decoder;
    struct buffer out;
    struct {
        int kind;
    } greeting[LINK_GREETINGS_MAX];
    unsigned greetings, greeted;
    bool in_replies; /* the reading goes on: what is written is sent after it */

    struct health health; /* as of the greeting */
    int64_t healthy_at;   /* simba_now() when it came */
    int64_t time_us;      /* of the server's clock, then */
    struct epoch epoch; /* no note: the server takes no writes, write_code and write_why say why */
    int write_code;
    char write_why[LINK_TEXT_MAX];
    int64_t (*oldest)(struct link *l); /* when the oldest unanswered command was sent; 0: none */
};

void link_init(struct link *l, struct net *net, const struct link_use *use, void *data);
void link_close(struct link *l); /* for good: no call comes any more but net->empty */

void link_open(struct link *l);  /* keeps it up from now on */
bool link_hopes(struct link *l); /* opens it; false: it has failed, and waits before the next try */
void link_hurry(struct link *l); /* and does not wait for the end of a pause */
void link_shut(struct link *l);  /* until it is opened again */

/* find()'s answers. */
void link_go(struct link *l, const struct address *address);
void link_fail(struct link *l, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* It waits for nothing but replies, or for the end of a pause. */
bool link_is_steady(const struct link *l);

/* Sends what was written to l->out. */
void link_flush(struct link *l);
void link_wipe(struct buffer *b); /* all that it ever held; leaves `used` alone */
void link_watch(struct link *l);  /* after a command was written: sees to it that it is answered */

/* greet.c: begins when bytes can be sent; each reply until it is ready, or has failed. */
void greet_begin(struct link *l);
void greet_take(struct link *l, const struct reply *r);

/* An error reply in our words, and its code. */
int link_refusal(const struct reply *r, char *why, size_t size);
#endif
