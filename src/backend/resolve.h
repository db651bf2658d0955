/* resolve.h: names of hosts to addresses, without the loop waiting for it.
 *
 * getaddrinfo may take half a minute and cannot be stopped. libuv's own would keep the loop, and so
 * simba_close(), for as long; here each question has a thread that is simply left behind. */
#ifndef BACKEND_RESOLVE_H
#define BACKEND_RESOLVE_H

#include <netdb.h>
#include <uv.h>

struct resolver; /* shared by the loop and by threads that are still busy */
struct question;

/* list: given, to be freed with freeaddrinfo(); NULL: resolve_text(code) says why. On the loop. */
typedef void resolve_fn(void *data, struct addrinfo *list, int code);

const char *resolve_text(int code);

struct resolver *resolver_open(uv_loop_t *loop); /* NULL: out of memory */
void resolver_close(struct resolver *r, void (*closed)(void *data), void *data);

/* NULL: no thread could be started. */
struct question *resolver_ask(struct resolver *r, const char *host, int port, resolve_fn *answer,
                              void *data);
void resolver_forget(struct resolver *r, struct question *q); /* it will not be answered */
#endif
