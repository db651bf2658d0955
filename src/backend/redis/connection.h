/* connection.h: one connection to a server, kept up: address, socket, handshake, pipeline, and
 * again after a failure, with growing pauses.
 *
 *   DOWN --> FINDING --> RESOLVING --> CONNECTING --> TLS --> HANDSHAKE --> READY
 *    ^          |            |              |          |          |           |
 *    +----------+------------+--------------+----------+----------+-----------+
 *
 * Commands are answered in their order. So a queue of what was sent is all there is to remember,
 * and each entry says who takes the reply. All on the loop's thread. */
#ifndef BACKEND_REDIS_CONNECTION_H
#define BACKEND_REDIS_CONNECTION_H

#include "backend/kit/reconnect.h"
#include "backend/redis/handshake.h"
#include "backend/redis/stream.h"

#define CONNECTION_TEXT_MAX 320

enum connection_state {
    CONNECTION_DOWN,
    CONNECTION_FINDING,
    CONNECTION_RESOLVING,
    CONNECTION_CONNECTING,
    CONNECTION_TLS,
    CONNECTION_HANDSHAKE,
    CONNECTION_READY
};

/* Who takes the reply. data: the connection's. r NULL: there is none, as the connection failed;
 * code and why say how. */
struct redis_command;
typedef void command_fn(void *data, const struct redis_command *sent, const struct reply *r);

/* A command that was sent. */
struct redis_command {
    command_fn *take;
    void *about;        /* for take() */
    int which;          /* likewise */
    uint64_t round;     /* of questions to the sentinels, to which it belongs; 0: none */
    int64_t vouched_ms; /* for how long these must have named the master */
    int64_t sent_at;
};

/* Who uses it; all functions get its data. */
struct connection_use {
    bool is_sentinel;          /* a password of its own */
    void (*greet)(void *data); /* writes the last commands of the handshake; NULL: there are none */
    void (*find)(void *data);  /* leads to connection_go() or connection_fail() */
    void (*ready)(void *data);
    void (*push)(void *data, const struct reply *r); /* NULL: each reply is one to a command */
    bool (*waits)(void *data,
                  const struct redis_command *sent); /* its reply is not to be taken yet; NULL */
    void (*taken)(void *data);                       /* all replies of one reading were; NULL */
    void (*resume)(void *data); /* after that, and outside of the reading; NULL */
    void (*down)(void *data);   /* after each failure; code and why say which */
};

struct redis_connection {
    struct redis_network *net;
    struct redis_connection *next; /* of the network */
    const struct connection_use *use;
    void *data;
    enum connection_state state;
    bool wanted;    /* to be kept up */
    bool was_ready; /* since it was opened */
    struct reconnect reconnect;
    unsigned turn; /* which of the addresses is tried first */
    int code;      /* of the last failure; 0: none since it was ready */
    char why[CONNECTION_TEXT_MAX];
    uv_timer_t timer; /* of the attempt, of the pause, or of the oldest command */
    struct redis_address address;
    struct resolve_question *question;
    struct addrinfo *list, *next_address;
    struct redis_stream *stream;
    struct decoder decoder;
    struct buffer out;
    struct redis_command *queue; /* not answered yet, the oldest at `first` */
    size_t queue_size, first, unanswered;
    struct redis_server *server; /* what the handshake finds out; NULL: it does not ask */
};

void connection_init(struct redis_connection *c, struct redis_network *net,
                     const struct connection_use *use, void *data);
void connection_close(
    struct redis_connection *c); /* for good: the commands fail with SIMBA_ECANCELED */

void connection_open(struct redis_connection *c); /* keeps it up from now on */
/* Opens it. False: it has failed, and waits before the next try. */
bool connection_is_hopeful(struct redis_connection *c);
void connection_hurry(
    struct redis_connection *c); /* opens it, without waiting for the end of a pause */
/* Until it is opened again; the commands are forgotten. */
void connection_shut(struct redis_connection *c);

/* find()'s answers. */
void connection_go(struct redis_connection *c, const struct redis_address *address);
void connection_fail(struct redis_connection *c, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* It waits for nothing but replies, or for the end of a pause. */
bool connection_is_steady(const struct redis_connection *c);

/* Where the arguments of this command are to be written. NULL: it is not, or no longer,
 * connected; code and why say how. */
struct buffer *connection_command(struct redis_connection *c, struct redis_command command);

/* The oldest command, if it belongs to a round; else NULL. */
const struct redis_command *connection_in_round(const struct redis_connection *c);
void connection_continue(struct redis_connection *c); /* waits() may say otherwise by now */

/* The reply to the oldest command has come as a push. */
void connection_answered(struct redis_connection *c, const struct reply *r);

/* Sends what was written to any connection; within a reading, after it. */
void connection_flush(struct redis_network *net);
#endif
