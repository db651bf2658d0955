/* four_letter.h: what a server says of itself (srvr, conf), outside of any session: each
 * question has a connection of its own, which the server closes behind its answer. On a thread,
 * since all of it blocks; for the operator's eyes only. */
#ifndef BACKEND_ZOOKEEPER_FOUR_LETTER_H
#define BACKEND_ZOOKEEPER_FOUR_LETTER_H

#include "backend/kit/offload.h"

#define FOUR_LETTER_TEXT_MAX 4096

struct four_letter_answer {
    const char *why; /* srvr has no answer; "": it has */
    char srvr[FOUR_LETTER_TEXT_MAX], conf[FOUR_LETTER_TEXT_MAX];
};

/* On the loop. Borrowed for the call. */
typedef void four_letter_fn(void *data, const struct four_letter_answer *answer);

/* host: copied. Each step takes at most this long. NULL: no thread could be started. */
struct four_letter *zk_four_letter_ask(struct offload *o, const char *host, int port,
                                       int64_t patience_ms, four_letter_fn *done, void *data);
void zk_four_letter_forget(struct four_letter *q); /* it will not be answered */
#endif
