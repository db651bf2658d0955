/* rival.h: who competes: the library, or a program that does the same by hand. And the place they
 * compete at, made anew for every run. */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include <simba.h>

#include "bench.h"

#define LOCATION_MAX 256

struct rival {
    /* Whoever waits for the mutex of this name sleeps on the futex, if there is one. The library
     * has its own. */
    void *(*open)(const char *location, const char *mutex, _Atomic uint32_t *futex);
    void (*acquire)(void *one);
    void (*release)(void *one);
    void (*close)(void *one);
};

struct contest {
    struct rival raw;
    void (*begin)(char location[LOCATION_MAX]); /* a place as new, and where it is, as a URL */
    void (*end)(const char *location);
};

/* ---- the library --------------------------------------------------------------------------- */

struct library {
    simba_client *client;
    simba_locker *locker;
};

static inline void *library_open(const char *location, const char *mutex, _Atomic uint32_t *futex)
{
    (void)futex;
    struct library *l = calloc(1, sizeof *l);
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    if (l == NULL || simba_open(location, NULL, &l->client) != 0 ||
        simba_locker_create(l->client, mutex, &o, &l->locker) != 0)
        bench_die("%s", simba_error_text());
    return l;
}

static inline void library_acquire(void *one)
{
    if (simba_locker_acquire(((struct library *)one)->locker, 60000) != 0)
        bench_die("%s", simba_error_text());
}

static inline void library_release(void *one)
{
    if (simba_locker_release(((struct library *)one)->locker) != 0)
        bench_die("%s", simba_error_text());
}

static inline void library_close(void *one)
{
    if (simba_close(((struct library *)one)->client, 10000) != 0)
        bench_die("%s", simba_error_text());
    free(one);
}

static const struct rival library = {library_open, library_acquire, library_release, library_close};
#endif
