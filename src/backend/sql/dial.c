/* dial.c: connects on a thread, one attempt at a time. Under the lock: what came of it, and whether the
 * loop still listens. The last of loop and thread frees; a thread that hangs in the lookup of a name
 * holds up nobody. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"

#define STACK_BYTES (1u << 20)

struct sql_dial {
    const struct sql_driver *driver;
    void *config;
    void (*told)(void *data, void *link, int code, const char *why);
    void (*closed)(void *data);
    void *data;
    uv_async_t wake;

    pthread_mutex_t lock;
    int users; /* the loop, and the thread */
    bool is_closed, is_done;
    void *link;
    int code;
    char why[SQL_WHY_MAX];
};

static void leave(struct sql_dial *d) /* with the lock */
{
    bool last = --d->users == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&d->lock);
    d->driver->free_config(d->config);
    free(d);
}

static void *run(void *arg)
{
    struct sql_dial *d = arg;
    char why[SQL_WHY_MAX] = "";
    int code = SIMBA_ESTORE;
    void *link = d->driver->connect(d->config, &code, why);
    pthread_mutex_lock(&d->lock);
    if (d->is_closed) {
        if (link != NULL)
            d->driver->disconnect(link);
    } else {
        d->link = link;
        d->code = link != NULL ? 0 : code;
        memcpy(d->why, why, sizeof why);
        d->is_done = true;
        uv_async_send(&d->wake);
    }
    leave(d);
    return NULL;
}

static void on_wake(uv_async_t *wake)
{
    struct sql_dial *d = wake->data;
    pthread_mutex_lock(&d->lock);
    bool done = d->is_done;
    void *link = d->link;
    d->is_done = false;
    d->link = NULL;
    pthread_mutex_unlock(&d->lock);
    if (done)
        d->told(d->data, link, d->code, d->why);
}

struct sql_dial *sql_dial_open(uv_loop_t *loop, const struct sql_driver *driver, void *config,
                               void (*told)(void *data, void *link, int code, const char *why),
                               void *data)
{
    struct sql_dial *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    *d = (struct sql_dial){
        .driver = driver, .config = config, .told = told, .data = data, .users = 1};
    if (uv_async_init(loop, &d->wake, on_wake) != 0) {
        free(d);
        return NULL;
    }
    d->wake.data = d;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

int sql_dial_begin(struct sql_dial *d)
{
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    pthread_mutex_lock(&d->lock);
    d->users++;
    pthread_mutex_unlock(&d->lock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, STACK_BYTES); /* whatever the program has as its default */
    int rc = pthread_create(&thread, &detached, run, d);
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    pthread_mutex_lock(&d->lock);
    leave(d);
    return SIMBA_ELIMIT;
}

static void on_closed(uv_handle_t *handle)
{
    struct sql_dial *d = handle->data;
    void (*closed)(void *) = d->closed;
    void *data = d->data;
    pthread_mutex_lock(&d->lock);
    leave(d);
    closed(data);
}

void sql_dial_close(struct sql_dial *d, void (*closed)(void *data))
{
    d->closed = closed;
    pthread_mutex_lock(&d->lock);
    d->is_closed = true;
    void *link = d->link;
    d->link = NULL;
    pthread_mutex_unlock(&d->lock);
    if (link != NULL)
        d->driver->disconnect(link);
    uv_close((uv_handle_t *)&d->wake, on_closed);
}
