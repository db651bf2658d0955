/* proxy.h: what stands between the workers and the server: a process of ours that passes bytes on,
 * and spoils that on request. Each worker has a route of its own, so that one can be cut off while
 * another is not.
 *
 * A chunk is what one read() returned: on the loopback interface, where a client writes a request
 * at once, that is a whole request or answer, unless they are large or several come together. */
#ifndef LAB_TORTURE_PROXY_H
#define LAB_TORTURE_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a route does to its connections, until further notice. `amount` is milliseconds, unless it
 * says otherwise.
 *
 * NET_STALL is also how a request comes late: the client gives up and closes its connection, and
 * what it had sent reaches the server when the fault ends.
 *
 * NET_DUPLICATE is a layer that tries again what was answered. TCP never doubles bytes, but
 * proxies, pools and drivers that reconnect do so with requests. On each connection that was there
 * when the fault began, the next request after an answer is kept. Its answer is passed on, then the
 * client's connection is reset, so that the protocol never sees an answer too many. The kept
 * request is sent again `amount` later, over the connection to the server that is left. This is
 * valid in RESP, in PostgreSQL's and MySQL's protocol (a request begins with sequence number 0),
 * and in ZooKeeper's until the session moves to another connection. With TLS the server refuses the
 * record: the fault is a reset. Connections that are opened during the fault are spared: they begin
 * with a handshake. */
enum net_fault {
    NET_CLEAR,    /* nothing: passes all on */
    NET_DELAY,    /* every chunk, both ways, waits for `amount` */
    NET_STALL,    /* nothing is passed on, nothing is lost: it goes on when the fault ends */
    NET_SWALLOW,  /* answers are dropped; who missed one is reset when the fault ends */
    NET_CUT,      /* each connection ends in the middle of an answer, after `amount` whole ones */
    NET_TRICKLE,  /* one byte at a time, both ways, `amount` apart */
    NET_REFUSE,   /* the port is closed: connections are refused; open ones stay */
    NET_RESET,    /* every connection is reset, each new one after its first bytes went on */
    NET_DUPLICATE /* a request is applied twice, the second time `amount` later */
};

/* A server's address, as in a URL: host and port, or the path of a unix socket. */
struct endpoint {
    char host[256]; /* "": a unix socket */
    char path[108];
    uint16_t port;
};

struct proxy;

/* Forks the process of the proxy (before any thread exists) with `routes` ports on 127.0.0.1 for
 * one server, whose name is looked up now. It ends with its parent. NULL: errno says why; ENOENT:
 * there is no such host. */
struct proxy *proxy_start(const struct endpoint *server, size_t routes);
uint16_t proxy_port(const struct proxy *p, size_t route);

/* Returns when the fault has begun (with NET_CLEAR: when it has ended). What the fault before held
 * back goes on at once. 0, or -1: the process is gone. */
int proxy_set(struct proxy *p, size_t route, enum net_fault fault, int64_t amount);
void proxy_stop(struct proxy *p);

#endif
