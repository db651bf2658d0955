/* watch.h: how this client hears that a mutex that somebody waits for is free: by the bell at once, and by a slow look for what nobody rings for (a killed owner, a lost ring). */
#ifndef BACKEND_SQLITE_WATCH_H
#define BACKEND_SQLITE_WATCH_H

#include <pthread.h>
#include <simba/backend.h>

#include "backend/sqlite/bell.h"
#include "backend/sqlite/db.h"

struct watch {
    struct simba_host *host;
    struct bell bell;
    bool listening; /* the thread below runs */
    pthread_t thread;

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t change;
    uint32_t rings[BELL_SLOTS];            /* of each slot, as last seen */
    uint32_t read[BELL_SLOTS];             /* as just read */
    uint64_t watched[BELL_SLOTS / 64 + 1]; /* a bit for each slot in which a mutex is, or was */
    bool stopping;
};

void watch_init(struct watch *w, struct simba_host *host);
void watch_free(struct watch *w);
int watch_open(struct watch *w, const char *path); /* the bell; 0, or -1 and errno */
void watch_listen(struct watch *w);                /* from now on, if it is open */
void watch_stop(struct watch *w);                  /* the thread has ended when it returns */

void watch_set(struct watch *w, const char *mutex, enum simba_interest interest);

/* The store answered: another owns it (client: whose death would free it), or not. True if another does
 * and somebody waits for it. */
bool watch_answered(struct watch *w, const char *mutex, bool owned, int64_t client);

/* The slow look for owners that have died; on the thread that owns the database. blind: others ring a
 * bell that is not ours, so everybody asks again. True if somebody waits for anything. */
bool watch_look(struct watch *w, const struct db *db, bool blind);
#endif
