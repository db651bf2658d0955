/* resolve.c: see resolve.h. */
#include "backend/kit/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errno_text.h"

struct resolve_question {
    struct offload_call call; /* first */
    resolve_fn *answer;
    void *data;
    struct addrinfo *list;
    int code;
    char port[8];
    char host[];
};

static void run(struct offload_call *c)
{
    struct resolve_question *q = (struct resolve_question *)(void *)c;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    errno = 0;
    int code = getaddrinfo(q->host, q->port, &hints, &list);
    if ((code == EAI_SYSTEM && errno > 0) || (code != 0 && errno_is_limit(errno)))
        code = errno; /* above 0: those of getaddrinfo are below */
    q->list = code == 0 ? list : NULL;
    q->code = code;
}

static void done(struct offload_call *c)
{
    struct resolve_question *q = (struct resolve_question *)(void *)c;
    struct addrinfo *list = q->list;
    q->list = NULL;
    q->answer(q->data, list, q->code);
}

static void free_question(struct offload_call *c)
{
    struct resolve_question *q = (struct resolve_question *)(void *)c;
    if (q->list != NULL)
        freeaddrinfo(q->list);
    free(q);
}

const char *resolve_text(int code)
{
    return code > 0 ? errno_text(code) : gai_strerror(code);
}

struct resolve_question *resolve_ask(struct offload *o, const char *host, int port,
                                     resolve_fn *answer, void *data)
{
    size_t size = strlen(host) + 1;
    struct resolve_question *q = calloc(1, sizeof *q + size);
    if (q == NULL)
        return NULL;
    q->call = (struct offload_call){.run = run, .done = done, .free = free_question};
    q->answer = answer;
    q->data = data;
    memcpy(q->host, host, size);
    snprintf(q->port, sizeof q->port, "%d", port);
    return offload_start(o, &q->call) == 0 ? q : NULL;
}

void resolve_forget(struct resolve_question *q)
{
    offload_forget(&q->call);
}
