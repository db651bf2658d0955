/* proxy.h: what stands between the workers and the server: a process of ours that passes bytes on, and spoils that on
 * request. Each worker has routes of its own, so that one can be cut off while another is not. */
#ifndef CLI_TORTURE_PROXY_H
#define CLI_TORTURE_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a route does to its connections, until further notice. */
enum net_fault {
    NET_CLEAR,    /* nothing: passes all on */
    NET_DELAY,    /* every chunk, both ways, waits amount_ms */
    NET_STALL,    /* nothing is passed on, nothing is lost: it goes on when the fault ends */
    NET_SWALLOW,  /* answers of the server are dropped; connections are reset when the fault ends */
    NET_CUT,      /* the next answer is cut in its middle, and the connection with it; again for each */
    NET_TRICKLE,  /* one byte at a time, amount_ms apart */
    NET_REFUSE,   /* the port is closed: connections are refused; open ones stay */
    NET_RESET,    /* every connection is reset, also each new one after its first bytes */
    NET_DUPLICATE /* a request of the client is sent to the server twice (its second answer is dropped where the
                     protocol lets us tell, else the connection is reset after the first answer) */
};

/* A server's address, as in a URL: host and port, or the path of a unix socket. */
struct endpoint {
    char host[256]; /* "": a unix socket */
    char path[108];
    uint16_t port;
};

struct proxy;

/* Forks the process of the proxy (before any thread exists) with `routes` ports on 127.0.0.1 for one server. It ends
 * with its parent. NULL: errno says why. */
struct proxy *proxy_start(const struct endpoint *server, size_t routes);
uint16_t proxy_port(const struct proxy *p, size_t route);
void proxy_set(struct proxy *p, size_t route, enum net_fault fault, int64_t amount_ms);
void proxy_stop(struct proxy *p);

#endif
