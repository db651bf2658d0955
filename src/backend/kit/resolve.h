/* resolve.h: names of hosts to addresses, without the loop waiting for it. getaddrinfo may take
 * half a minute; libuv's own would keep the loop, and so simba_close(), for as long. */
#ifndef BACKEND_KIT_RESOLVE_H
#define BACKEND_KIT_RESOLVE_H

#include <netdb.h>

#include "backend/kit/offload.h"

struct resolve_question;

/* list: given, to be freed with freeaddrinfo(); NULL: resolve_text(code) says why. On the loop. */
typedef void resolve_fn(void *data, struct addrinfo *list, int code);

const char *resolve_text(int code);

/* host: copied. NULL: no thread could be started. */
struct resolve_question *resolve_ask(struct offload *o, const char *host, int port,
                                     resolve_fn *answer, void *data);
void resolve_forget(struct resolve_question *q); /* it will not be answered */
#endif
