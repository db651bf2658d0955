/* resolve.c: see resolve.h. Under the lock: the list of answered questions, who is forgotten, and
 * whether the loop still listens. The last of loop and threads frees. */
#include "backend/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/errno_text.h"

struct question {
    struct resolver *resolver;
    struct question *next;
    resolve_fn *answer;
    void *data;
    bool forgotten, answered;
    struct addrinfo *list;
    int code;
    char port[8];
    char host[];
};

struct resolver {
    pthread_mutex_t lock;
    unsigned users; /* the loop, and each thread */
    bool closed;
    struct question *answered;
    uv_async_t wake;
    void (*on_closed)(void *data);
    void *data;
};

static void leave(struct resolver *r) /* with the lock */
{
    bool last = --r->users == 0;
    pthread_mutex_unlock(&r->lock);
    if (last) {
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

static void free_question(struct question *q)
{
    if (q->list != NULL)
        freeaddrinfo(q->list);
    free(q);
}

static void *run(void *arg)
{
    struct question *q = arg;
    struct resolver *r = q->resolver;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    errno = 0;
    int code = getaddrinfo(q->host, q->port, &hints, &list);
    if ((code == EAI_SYSTEM && errno > 0) || (code != 0 && errno_is_limit(errno)))
        code = errno; /* above 0: those of getaddrinfo are below */
    pthread_mutex_lock(&r->lock);
    q->list = code == 0 ? list : NULL;
    q->code = code;
    q->answered = true;
    if (r->closed || q->forgotten) {
        free_question(q);
    } else {
        q->next = r->answered;
        r->answered = q;
        uv_async_send(&r->wake);
    }
    leave(r);
    return NULL;
}

const char *resolve_text(int code)
{
    return code > 0 ? errno_text(code) : gai_strerror(code);
}

static void on_wake(uv_async_t *wake)
{
    struct resolver *r = wake->data;
    for (;;) {
        pthread_mutex_lock(&r->lock);
        struct question *q = r->answered;
        if (q != NULL)
            r->answered = q->next;
        pthread_mutex_unlock(&r->lock);
        if (q == NULL)
            return;
        struct addrinfo *list = q->list;
        q->list = NULL;
        q->answer(q->data, list, q->code);
        free_question(q);
    }
}

struct resolver *resolver_open(uv_loop_t *loop)
{
    struct resolver *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    if (uv_async_init(loop, &r->wake, on_wake) != 0) {
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->wake.data = r;
    r->users = 1;
    return r;
}

static void on_closed(uv_handle_t *handle)
{
    struct resolver *r = handle->data;
    void (*closed)(void *) = r->on_closed;
    void *data = r->data;
    pthread_mutex_lock(&r->lock);
    leave(r);
    closed(data);
}

void resolver_close(struct resolver *r, void (*closed)(void *data), void *data)
{
    r->on_closed = closed;
    r->data = data;
    pthread_mutex_lock(&r->lock);
    r->closed = true;
    struct question *list = r->answered;
    r->answered = NULL;
    pthread_mutex_unlock(&r->lock);
    while (list != NULL) {
        struct question *q = list;
        list = q->next;
        free_question(q);
    }
    uv_close((uv_handle_t *)&r->wake, on_closed);
}

struct question *resolver_ask(struct resolver *r, const char *host, int port, resolve_fn *answer,
                              void *data)
{
    struct question *q = calloc(1, sizeof *q + strlen(host) + 1);
    if (q == NULL)
        return NULL;
    q->resolver = r;
    q->answer = answer;
    q->data = data;
    memcpy(q->host, host, strlen(host) + 1);
    snprintf(q->port, sizeof q->port, "%d", port);
    pthread_mutex_lock(&r->lock);
    r->users++;
    pthread_mutex_unlock(&r->lock);
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &detached, run, q);
    pthread_attr_destroy(&detached);
    if (rc == 0)
        return q;
    pthread_mutex_lock(&r->lock);
    leave(r);
    free(q);
    return NULL;
}

void resolver_forget(struct resolver *r, struct question *q)
{
    pthread_mutex_lock(&r->lock);
    q->forgotten = true;
    bool waits = q->answered; /* in the list, then: what was taken from it is not forgotten */
    for (struct question **at = &r->answered; waits && *at != NULL; at = &(*at)->next) {
        if (*at == q) {
            *at = q->next;
            break;
        }
    }
    pthread_mutex_unlock(&r->lock);
    if (waits)
        free_question(q);
}
