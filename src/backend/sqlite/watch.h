/* watch.h: the mutexes that somebody in this client waits for, and how it hears that one is free: by
 * the bell at once, and by a slow look for what nobody rings for (a killed owner, a lost ring). */
#ifndef BACKEND_SQLITE_WATCH_H
#define BACKEND_SQLITE_WATCH_H

#include <pthread.h>
#include <simba/backend.h>

#include "backend/sqlite/bell.h"
#include "backend/sqlite/db.h"

struct watched;

struct watch {
    struct simba_host *host;
    struct bell bell;
    bool listening; /* the thread below runs */
    pthread_t thread;

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t change;
    struct watched *slot[BELL_SLOTS];   /* the watched ones, by the slot that is rung for them */
    uint32_t rings[BELL_SLOTS];         /* of that slot, as last seen */
    uint32_t read[BELL_SLOTS];          /* as just read */
    uint64_t used[BELL_SLOTS / 64 + 1]; /* a bit for each slot that has any */
    size_t count;                       /* of all watched */
    size_t waiting;                     /* how many of them another owns, as far as we know */
    size_t observed;                    /* how many of them are observed */
    bool observes_all;
    bool stopping;
};

void watch_init(struct watch *w, struct simba_host *host);
void watch_free(struct watch *w);
int watch_open(struct watch *w, const char *path); /* the bell; 0, or -1 and errno */
void watch_listen(struct watch *w);                /* from now on, if it is open */
void watch_stop(struct watch *w);                  /* the thread has ended when it returns */

void watch_set(struct watch *w, const char *mutex, enum simba_interest interest);
bool watch_observes(struct watch *w); /* somebody does, one mutex or all */

/* The store answered: another owns it (client: whose death would free it), or not. True if somebody
 * waits for anything now. */
bool watch_answered(struct watch *w, const char *mutex, bool owned, int64_t client);

/* The slow look for owners that have died; on the thread that owns the database. blind: others ring a
 * bell that is not ours, so everybody asks again. */
void watch_look(struct watch *w, const struct db *db, bool blind);
#endif
