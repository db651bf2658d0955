/* pair.c: see pair.h. Events only read, and note what has come; what is passed on, and when a pair
 * ends, is decided in pair_advance, which runs after every batch of events. So no event can meet a
 * pair that another one has freed. */
#include "lab/torture/pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNK_BYTES 65536
#define STREAM_BYTES_MAX ((size_t)1024 * 1024) /* more is left in the sender's socket */

struct pair_chunk {
    struct pair_chunk *next;
    int64_t due; /* not before */
    size_t length, sent;
    char bytes[];
};

/* ---- streams ------------------------------------------------------------------------------- */

static struct pair_chunk *chunk_of(const char *bytes, size_t length)
{
    struct pair_chunk *c = malloc(sizeof *c + length);
    if (c != NULL) {
        *c = (struct pair_chunk){.length = length};
        memcpy(c->bytes, bytes, length);
    }
    return c;
}

static void stream_append(struct pair_stream *s, struct pair_chunk *c)
{
    *(s->first == NULL ? &s->first : &s->last->next) = c;
    s->last = c;
    s->bytes += c->length;
}

static void stream_take_first(struct pair_stream *s)
{
    struct pair_chunk *c = s->first;
    s->bytes -= c->length;
    s->first = c->next;
    free(c);
}

static void stream_clear(struct pair_stream *s)
{
    while (s->first != NULL)
        stream_take_first(s);
}

/* ---- a pair begins and ends ---------------------------------------------------------------- */

static void connect_next(struct pair *p)
{
    struct pair_source *server = &p->end[SERVER].source;
    while (p->next_address < p->server->count) {
        size_t n = p->next_address++;
        int family = p->server->at[n].ss_family, on = 1;
        server->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (server->fd < 0)
            break;
        if (family != AF_UNIX)
            setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const struct sockaddr *address = (const struct sockaddr *)&p->server->at[n];
        int rc = connect(server->fd, address, p->server->size[n]);
        p->is_connected = rc == 0;
        if (rc == 0 || errno == EINPROGRESS)
            return;
        close(server->fd);
        server->fd = -1;
    }
    p->is_over = p->is_reset = true;
}

struct pair *pair_open(int client, struct condition *now, const struct addresses *server)
{
    struct pair *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->now = now;
    p->server = server;
    p->opened_since = now->since;
    int fds[] = {client, -1}, on = 1;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        p->end[side].source = (struct pair_source){.kind = SOURCE_PAIR, .fd = fds[side]};
        p->end[side].pair = p;
        p->end[side].side = side;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connect_next(p);
    return p;
}

static void close_client(struct pair *p)
{
    struct pair_source *client = &p->end[CLIENT].source;
    struct linger at_once = {.l_onoff = 1};
    if (client->fd < 0)
        return;
    if (p->is_reset)
        setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(client->fd); /* epoll forgets it, too */
    client->fd = -1;
    client->interest = 0;
}

void pair_free(struct pair *p)
{
    close_client(p);
    if (p->end[SERVER].source.fd >= 0)
        close(p->end[SERVER].source.fd);
    stream_clear(&p->from[CLIENT]);
    stream_clear(&p->from[SERVER]);
    free(p->kept);
    free(p);
}

/* ---- what comes ---------------------------------------------------------------------------- */

/* Is this a request that a layer in between could send again? */
static bool is_to_keep(const struct pair *p, size_t length)
{
    return p->now->fault == NET_DUPLICATE && p->replay == REPLAY_NONE &&
           p->opened_since != p->now->since && p->last == SERVER && p->from[CLIENT].bytes == 0 &&
           length < CHUNK_BYTES;
}

/* How much of an answer is passed on. */
static size_t take_answer(struct pair *p, size_t length)
{
    bool is_cut = p->now->fault == NET_CUT && p->answers++ >= (uint64_t)p->now->amount;
    if (p->now->fault == NET_SWALLOW) {
        p->lost_answer = true;
        return 0;
    }
    if (p->replay == REPLAY_AWAITS_ANSWER)
        p->replay = REPLAY_LEAVES_CLIENT;
    else if (p->replay == REPLAY_SENT)
        p->is_over = true;
    if (p->replay > REPLAY_LEAVES_CLIENT)
        return 0;
    p->from[SERVER].has_ended = is_cut;
    return is_cut ? length / 2 : length;
}

static void take(struct pair *p, enum side side, const char *bytes, size_t length)
{
    if (side == CLIENT && is_to_keep(p, length)) {
        p->kept = chunk_of(bytes, length);
        p->replay = p->kept != NULL ? REPLAY_AWAITS_ANSWER : REPLAY_NONE;
    }
    if (side == SERVER)
        length = take_answer(p, length);
    p->last = side;
    if (p->now->fault == NET_RESET)
        p->from[side].has_ended = p->is_reset = true;
    struct pair_chunk *c = length > 0 ? chunk_of(bytes, length) : NULL;
    if (c == NULL) {
        p->is_over = p->is_over || length > 0;
        return;
    }
    if (p->now->fault == NET_DELAY)
        c->due = clock_now() + p->now->amount * NS_PER_MS;
    stream_append(&p->from[side], c);
}

static void finish_connect(struct pair *p)
{
    int error = 0;
    socklen_t size = sizeof error;
    struct pair_source *server = &p->end[SERVER].source;
    getsockopt(server->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    p->is_connected = error == 0;
    if (p->is_connected)
        return;
    close(server->fd);
    *server = (struct pair_source){.kind = SOURCE_PAIR, .fd = -1};
    connect_next(p);
}

void pair_ready(struct pair *p, enum side side, uint32_t events)
{
    static char bytes[CHUNK_BYTES];
    p->from[side == CLIENT ? SERVER : CLIENT].is_blocked = false;
    if (side == SERVER && !p->is_connected) {
        finish_connect(p);
        return;
    }
    if (p->from[side].has_ended || (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0)
        return;
    ssize_t n = recv(p->end[side].source.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0)
        take(p, side, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        p->from[side].has_ended = true;
}

/* ---- what goes on -------------------------------------------------------------------------- */

static void release_chunks(struct pair_stream *s)
{
    s->next_byte = 0;
    for (struct pair_chunk *c = s->first; c != NULL; c = c->next)
        c->due = 0;
}

void pair_condition_changed(struct pair *p, enum net_fault before)
{
    release_chunks(&p->from[CLIENT]);
    release_chunks(&p->from[SERVER]);
    p->answers = 0;
    p->replay_at = 0;
    if (p->replay == REPLAY_AWAITS_ANSWER) {
        p->replay = REPLAY_NONE;
        free(p->kept);
        p->kept = NULL;
    }
    if (p->now->fault == NET_RESET || (before == NET_SWALLOW && p->lost_answer))
        p->is_over = p->is_reset = true;
}

/* Sends from the first chunk; how much of it may go is the fault's matter. False: nothing more goes
 * now. */
static bool send_some(struct pair *p, enum side side, int64_t now)
{
    struct pair_stream *s = &p->from[side];
    struct pair_chunk *c = s->first;
    int to = p->end[side == CLIENT ? SERVER : CLIENT].source.fd;
    size_t length = c->length - c->sent;
    bool trickles = p->now->fault == NET_TRICKLE;
    if (c->due > now || (trickles && s->next_byte > now))
        return false;
    ssize_t n = send(to, c->bytes + c->sent, trickles ? 1 : length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
        s->is_blocked = errno == EAGAIN;
        if (!s->is_blocked)
            stream_clear(s); /* who is gone is found by reading; what he sent is passed on */
        return false;
    }
    if (trickles)
        s->next_byte = now + p->now->amount * NS_PER_MS;
    c->sent += (size_t)n;
    if (c->sent == c->length)
        stream_take_first(s);
    return true;
}

static void advance_stream(struct pair *p, enum side side, int64_t now)
{
    struct pair_stream *s = &p->from[side];
    if (p->now->fault == NET_STALL || !p->is_connected)
        return;
    while (s->first != NULL && !s->is_blocked && send_some(p, side, now))
        continue;
    if (s->first == NULL && s->has_ended)
        p->is_over = true;
}

static void advance_replay(struct pair *p, int64_t now)
{
    if (p->replay == REPLAY_LEAVES_CLIENT && p->from[SERVER].first == NULL) {
        p->is_reset = true;
        close_client(p);
        p->replay_at = now + p->now->amount * NS_PER_MS;
        p->replay = REPLAY_DUE;
        stream_clear(&p->from[CLIENT]);
    }
    if (p->replay == REPLAY_DUE && p->replay_at <= now) {
        stream_append(&p->from[CLIENT], p->kept);
        p->kept = NULL;
        p->replay = REPLAY_SENT;
        advance_stream(p, CLIENT, now);
    }
}

void pair_advance(struct pair *p, int64_t now)
{
    if (p->is_over)
        return;
    advance_stream(p, CLIENT, now);
    advance_stream(p, SERVER, now);
    advance_replay(p, now);
}

static int64_t stream_due(const struct pair *p, const struct pair_stream *s)
{
    if (s->first == NULL || s->is_blocked || p->now->fault == NET_STALL || !p->is_connected)
        return INT64_MAX;
    int64_t byte = p->now->fault == NET_TRICKLE ? s->next_byte : 0;
    return s->first->due > byte ? s->first->due : byte;
}

int64_t pair_due(const struct pair *p)
{
    int64_t a = stream_due(p, &p->from[CLIENT]), b = stream_due(p, &p->from[SERVER]);
    int64_t due = a < b ? a : b;
    return p->replay == REPLAY_DUE && p->replay_at < due ? p->replay_at : due;
}

uint32_t pair_interest(const struct pair *p, enum side side)
{
    const struct pair_stream *out = &p->from[side == CLIENT ? SERVER : CLIENT];
    if (p->end[side].source.fd < 0)
        return 0;
    if (side == SERVER && !p->is_connected)
        return EPOLLOUT;
    bool reads = !p->from[side].has_ended && p->from[side].bytes < STREAM_BYTES_MAX;
    return (reads ? EPOLLIN : 0U) | (out->is_blocked ? EPOLLOUT : 0U);
}
