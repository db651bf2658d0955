/* redis.h: the store in a Redis server. See docs/backends/redis.md for what is in the server, and the
 * .lua files for what happens there.
 *
 * All on the loop's thread:
 *   redis.c     opening, closing, what is done when the connection comes and goes
 *   calls.c     requests to commands
 *   answers.c   replies to answers
 *   listing.c   LIST, which takes several exchanges
 *   ear.c       the connection that listens
 *   sentinel.c  who is the master
 *   link.c      a connection: address, socket, TLS, pipeline, and again
 *   greet.c     its first words: password, database, what the server says about itself
 *   resp.c      bytes
 *   examine.c   what an operator should know; what the user may do
 *   health.c    what the server says about itself */
#ifndef BACKEND_REDIS_H
#define BACKEND_REDIS_H

#include "backend/redis/ear.h"
#include "backend/redis/scripts.h"

#define GROUP_MAX 128 /* mutexes in one call */

struct listing;

/* A command that is not answered yet. */
struct flight {
    enum flight_kind {
        FLIGHT_REQUEST, /* one request */
        FLIGHT_RENEWAL, /* a list of them */
        FLIGHT_MANY,    /* a list of acquisitions, or of releases */
        FLIGHT_SCAN,
        FLIGHT_DETAILS, /* of what a scan found */
        FLIGHT_LOOK,    /* the ear's */
        FLIGHT_RIGHT    /* whether something is allowed */
    } kind;
    enum script script;
    struct simba_request *request;
    struct listing *listing;
    const char *right;
    int64_t sent_at;
};

struct redis {
    struct simba_host *host;
    struct config config;
    struct net net;
    struct link link; /* for commands */
    struct ear ear;
    struct link sentinel;
    size_t sentinel_at, sentinels_asked;
    bool sentinel_told_term;

    struct simba_request *waiting, **waiting_last; /* until the connection is there */
    struct flight *ring;                           /* in flight, oldest at `first` */
    size_t ring_size, first, flights;
    bool whole[SCRIPTS]; /* the server does not know it: send its text next time */

    /* The last answer of a reading is held back until it is known whether one more follows. */
    struct simba_request *held;
    struct simba_answer held_answer;
    char held_id[SIMBA_ID_MAX + 1], held_text[LINK_TEXT_MAX];

    struct {
        struct simba_request *asking; /* they wait for what is found */
        unsigned open;                /* tries that are not answered yet */
        char denied[256];             /* " +zadd +scan" */
    } exam;
    bool guard_said, closing;
    bool to_greet;      /* anew, as soon as nothing is in flight: it may take writes by now */
    char warned_of[48]; /* the run id of the server that was commented on */
};

extern const struct simba_backend redis_backend;

/* answers.c */
void calls_reply(struct redis *s, const struct reply *r);

/* calls.c */
void calls_send(struct redis *s, struct simba_request *batch);
void calls_write(struct redis *s, struct simba_request *q, bool whole); /* and remembers it */
void calls_evict(struct redis *s, struct simba_request *q, const struct reply *owner);
void calls_greet_again(struct redis *s); /* if there is a reason to */
void calls_end_reading(struct redis *s); /* gives the answer that was held back */
void calls_fail(struct redis *s, int code, const char *why); /* all that is in flight or waits */
void calls_answer(struct redis *s, struct simba_request *q, const struct simba_answer *answer);
void calls_refuse(struct redis *s, struct simba_request *q, int code, const char *why);
struct flight *calls_push(struct redis *s, enum flight_kind kind); /* NULL: the link has failed */
struct flight calls_pop(struct redis *s);                          /* the oldest */
void calls_fail_flight(struct redis *s, const struct flight *f, int code, const char *why);
enum script calls_script(enum simba_op op);
int64_t calls_lease(const struct simba_request *q);                   /* in ms */
void calls_key(struct redis *s, const char *mutex, const char *part); /* part "": the mutex */
void calls_look(struct ear *e);

/* How a reply tells of an owner (answers.c). False: it makes no sense. evicted: its renewals are refused. */
struct told {
    char id[SIMBA_ID_MAX + 1]; /* "": nobody; fit to be shown */
    int64_t left_ms;
    uint64_t token; /* 0: unknown */
    bool evicted, is_foreign;
};
bool calls_told(const struct reply *owner, const struct reply *left, const struct reply *token,
                struct told *out);

/* listing.c */
void listing_begin(struct redis *s, struct simba_request *q);
void listing_scanned(struct redis *s, struct listing *l, const struct reply *r);
void listing_details(struct redis *s, struct listing *l, const struct reply *r);
void listing_end(struct redis *s, struct listing *l, int code, const char *why);

/* sentinel.c */
void sentinel_init(struct redis *s);
void sentinel_ask(struct redis *s); /* leads to link_go() or link_fail() of s->link */

/* examine.c */
void redis_examine(void *store, struct simba_request *q);
void examine_reply(struct redis *s, const struct flight *f, const struct reply *r);
void examine_denied(struct ear *e, const struct reply *r); /* an error */
void examine_tried(struct ear *e);                         /* ear_try() is over */
void examine_ready(struct redis *s);                       /* the connection is */
void examine_down(struct redis *s);
void redis_examine_close(struct redis *s);

/* redis.c */
void redis_submit(struct redis *s, struct simba_request *batch);
int64_t redis_guard_ms(const struct redis *s, int64_t lease_ms);
void redis_guard_text(int64_t left_ms, char *line, size_t size);
#endif
