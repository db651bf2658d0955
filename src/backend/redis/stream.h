/* stream.h: one socket to a server, with TLS inside if the URL asks for it: bytes out, bytes in.
 *
 * libuv lets go of a socket some time after its owner has, so a stream is a thing of its own: after
 * stream_close() nothing comes from it any more. All on the loop's thread. */
#ifndef BACKEND_REDIS_STREAM_H
#define BACKEND_REDIS_STREAM_H

#include "backend/kit/handles.h"
#include "backend/kit/resolve.h"
#include "backend/redis/resp.h"
#include "backend/redis/tls.h"

#define STREAM_INBOX (64u << 10)

/* What the connections of a store share. */
struct redis_network {
    struct simba_host *host;
    const struct config *config;
    struct ssl_ctx_st *tls; /* NULL: without */
    struct offload *calls;
    struct handles handles;
    struct redis_connection *connections; /* a list */
    bool is_reading;                      /* what is written is sent after it */
    int64_t term; /* the sentinels' count of failovers when they named this master; 0: not asked */
    char inbox[STREAM_INBOX], plain[STREAM_INBOX];
};

/* What its owner is told. After broken() the owner closes it. */
struct stream_use {
    void (*connected)(void *data, int status); /* 0, or an error of libuv; TLS comes after it */
    void (*open)(void *data);                  /* bytes can be sent */
    void (*read)(void *data, const char *bytes, size_t count);
    void (*broken)(void *data, int code, const char *why);
};

struct redis_stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    const struct stream_use *use;
    void *data; /* NULL: closed */
    struct redis_network *net;
    uv_connect_t connect;
    uv_write_t write;
    bool is_writing, is_open;
    struct buffer written, rest; /* what the write under way sends; what comes after it */
    struct tls tls;
};

/* Connects to that address; NULL: to the unix socket at `path`. 0, or an error of libuv. */
int stream_connect(struct redis_network *net, const struct stream_use *use, void *data,
                   const struct addrinfo *to, const char *path, struct redis_stream **out);

/* After connected(): begins to read, with TLS if the name of a host is given; leads to open(). */
void stream_start(struct redis_stream *s, const char *host);

void stream_send(struct redis_stream *s, const char *bytes, size_t count);
void stream_close(struct redis_stream *s);
#endif
