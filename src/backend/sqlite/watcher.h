/* watcher.h: how this client learns that a mutex that somebody waits for is free: by the wakeup
 * file at once, and by a slow poll for what nobody signals (a killed owner, a lost wakeup). */
#ifndef BACKEND_SQLITE_WATCHER_H
#define BACKEND_SQLITE_WATCHER_H

#include <pthread.h>
#include <simba/backend.h>

#include "backend/sqlite/database.h"
#include "backend/sqlite/wakeup.h"

struct sqlite_watcher {
    struct simba_host *host;
    struct wakeup wakeup;
    bool listening; /* the thread below runs */
    pthread_t thread;

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t change;
    uint32_t last_seen[WAKEUP_SLOTS];        /* of each slot that is watched, as last seen */
    uint32_t read[WAKEUP_SLOTS];             /* as just read */
    uint64_t watched[WAKEUP_SLOTS / 64 + 1]; /* a bit for each slot in which a mutex is, or was */
    int sleeps_on;                           /* the slot that the thread sleeps on, or WAKEUP_ANY */
    bool stopping;
};

/* w is zeroed, by calloc: its arrays are not touched before they are needed. */
void watcher_init(struct sqlite_watcher *w, struct simba_host *host);
void watcher_free(struct sqlite_watcher *w);
int watcher_open(struct sqlite_watcher *w,
                 const char *path);            /* the wakeup file; 0, or -1 and errno */
void watcher_listen(struct sqlite_watcher *w); /* from now on, if it is open */
void watcher_stop(struct sqlite_watcher *w);   /* the thread has ended when it returns */

void watcher_set(struct sqlite_watcher *w, const char *mutex, enum simba_interest interest);

/* The store answered: another owns it (client: whose death would free it), or not. True if
 * another does and somebody waits for it. */
bool watcher_answered(struct sqlite_watcher *w, const char *mutex, bool owned, int64_t client);

/* Did the store say last that another owns it, so that we may have slept? */
bool watcher_waited(struct sqlite_watcher *w, const char *mutex);

/* The slow poll for owners that have died, and for wakeups that were lost; on the thread that owns the database. missed_wakeups:
 * others signal a file that is not ours, so everybody asks again. True if somebody waits for
 * anything. */
bool watcher_poll(struct sqlite_watcher *w, const struct database *db, bool missed_wakeups);
#endif
