/* watcher.c: see watcher.h. What the client waits for or observes, the host knows. The order
 * that loses no wakeup: read the file, let the contender try, sleep on the value that was read.
 * A mutex is watched before its first try is submitted. Hints are given without the lock: the
 * thread that gives one may be asked to contend at once. */
#include "backend/sqlite/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

enum { SEEN_OWNED, SEEN_CLIENT }; /* by another; its client, 0: it has no liveness */

void watcher_init(struct sqlite_watcher *w, struct simba_host *host)
{
    w->host = host;
    w->sleeps_on = WAKEUP_ANY;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
}

void watcher_free(struct sqlite_watcher *w)
{
    wakeup_close(&w->wakeup);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
}

/* A mutex to hint when the lock is free. */
struct due {
    struct due *next;
    char mutex[SIMBA_MUTEX_MAX + 1];
};

static void add_due(struct due **list, const char *mutex)
{
    struct due *d = malloc(sizeof *d);
    if (d == NULL)
        return; /* asks again by itself at the end of the lease */
    snprintf(d->mutex, sizeof d->mutex, "%s", mutex);
    d->next = *list;
    *list = d;
}

static void hint_due(struct sqlite_watcher *w, struct due *list)
{
    for (struct due *next; list != NULL; list = next) {
        next = list->next;
        w->host->hint(w->host, list->mutex);
        free(list);
    }
}

static void set_bit(uint64_t *bits, unsigned slot)
{
    bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static bool has_bit(const uint64_t *bits, unsigned slot)
{
    return (bits[slot / 64] >> slot % 64 & 1) != 0;
}

struct slot_pass {
    struct sqlite_watcher *watcher;
    int only; /* what was just read: the word of this slot, or of all: WAKEUP_ANY */
    struct due *due;
};

static void hint_if_changed(void *data, struct simba_watched *x)
{
    struct slot_pass *h = data;
    unsigned slot = wakeup_slot(x->mutex);
    set_bit(h->watcher->watched, slot);
    bool was_read = h->only == WAKEUP_ANY || h->only == (int)slot;
    if (was_read && h->watcher->read[slot] != h->watcher->last_seen[slot])
        add_due(&h->due, x->mutex);
}

/* The slot in which the only mutex is that we wait for. An observer misses no change. */
static int only_slot(const struct sqlite_watcher *w)
{
    int only = WAKEUP_ANY;
    if (w->host->interest(w->host, NULL) == SIMBA_OBSERVES)
        return only;
    for (unsigned i = 0; i < sizeof w->watched / sizeof *w->watched; i++) {
        uint64_t bits = w->watched[i];
        if (bits == 0)
            continue;
        if (only != WAKEUP_ANY || (bits & (bits - 1)) != 0)
            return WAKEUP_ANY;
        only = (int)(i * 64) + __builtin_ctzll(bits);
    }
    return only;
}

/* To read all takes as long as a transaction, and most wait for one mutex. */
static void read_slots(const struct sqlite_watcher *w, int only, uint32_t *out)
{
    if (only == WAKEUP_ANY)
        wakeup_read_slots(&w->wakeup, out);
    else
        out[only] = wakeup_read_slot(&w->wakeup, (unsigned)only);
}

/* Whether a slot was signalled since it was last read; watched: one that has a mutex of ours, or
 * not. */
static bool has_wakeup(const struct sqlite_watcher *w, int only, bool watched)
{
    if (only != WAKEUP_ANY)
        return watched && w->read[only] != w->last_seen[only];
    for (unsigned i = 0; i < WAKEUP_SLOTS; i++) {
        if (w->read[i] != w->last_seen[i] && has_bit(w->watched, i) == watched)
            return true;
    }
    return false;
}

/* What was signalled since it was last read; under the lock. Of what others wait for, nobody
 * here is asked. (A mutex that is new to an observer of all, and shares its slot with a watched
 * one, is found by the next list.) */
static struct due *heard(struct sqlite_watcher *w)
{
    struct slot_pass h = {.watcher = w, .only = only_slot(w)};
    read_slots(w, h.only, w->read);
    if (has_wakeup(w, h.only, true)) {
        memset(w->watched, 0, sizeof w->watched);
        w->host->watched(w->host, NULL, hint_if_changed, &h);
    }
    if (w->host->interest(w->host, "") == SIMBA_OBSERVES && has_wakeup(w, h.only, false))
        add_due(&h.due, "");
    if (h.only == WAKEUP_ANY)
        memcpy(w->last_seen, w->read, sizeof w->last_seen);
    else
        w->last_seen[h.only] = w->read[h.only];
    return h.due;
}

static void *listen(void *arg)
{
    struct sqlite_watcher *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        if (w->host->interest(w->host, NULL) == SIMBA_NO_INTEREST) {
            pthread_cond_wait(&w->change, &w->lock);
            continue;
        }
        uint32_t seen = wakeup_read(&w->wakeup);
        struct due *due = heard(w);
        int slot = w->sleeps_on = only_slot(w);
        if (slot != WAKEUP_ANY)
            seen = w->last_seen[slot];
        pthread_mutex_unlock(&w->lock);
        hint_due(w, due);
        wakeup_wait(&w->wakeup, slot, seen);
        pthread_mutex_lock(&w->lock);
        w->sleeps_on = WAKEUP_ANY;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int watcher_open(struct sqlite_watcher *w, const char *path)
{
    if (w->wakeup.page != NULL)
        return 0;
    struct wakeup wakeup;
    if (wakeup_open(&wakeup, path) != 0)
        return -1;
    pthread_mutex_lock(&w->lock);
    w->wakeup = wakeup;
    if (w->host->interest(w->host, NULL) != SIMBA_NO_INTEREST)
        read_slots(w, only_slot(w), w->last_seen); /* who was woken before has not asked yet */
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* Not before it is needed: a program that only reads has no use for the thread. What was signalled
 * since the file was opened is seen then. */
void watcher_listen(struct sqlite_watcher *w)
{
    if (w->wakeup.page != NULL && !w->listening)
        w->listening = thread_start(&w->thread, "simba-wakeup", listen, w) == 0;
    /* without the thread there is still the slow poll */
}

void watcher_stop(struct sqlite_watcher *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->change);
    int slot = w->sleeps_on;
    pthread_mutex_unlock(&w->lock);
    if (!w->listening)
        return;
    wakeup_stir(&w->wakeup, slot);
    pthread_join(w->thread, NULL);
}

/* Its word is read before the store is asked, so a later wakeup is seen. An earlier one is none. */
static void watch_slot(struct sqlite_watcher *w, unsigned slot)
{
    if (!has_bit(w->watched, slot) && w->wakeup.page != NULL)
        w->last_seen[slot] = wakeup_read_slot(&w->wakeup, slot);
    set_bit(w->watched, slot);
}

void watcher_set(struct sqlite_watcher *w, const char *mutex, enum simba_interest interest)
{
    if (interest == SIMBA_NO_INTEREST)
        return;
    pthread_mutex_lock(&w->lock);
    int slot = w->sleeps_on;
    bool is_other = interest == SIMBA_OBSERVES || mutex == NULL || (int)wakeup_slot(mutex) != slot;
    if (mutex != NULL)
        watch_slot(w, wakeup_slot(mutex));
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
    if (slot != WAKEUP_ANY && is_other)
        wakeup_stir(&w->wakeup, slot);
}

struct answer {
    bool owned, watched;
    int64_t client;
};

static void keep_answer(void *data, struct simba_watched *x)
{
    struct answer *a = data;
    a->watched = true;
    x->seen[SEEN_OWNED] = a->owned;
    x->seen[SEEN_CLIENT] = a->client;
}

bool watcher_answered(struct sqlite_watcher *w, const char *mutex, bool owned, int64_t client)
{
    struct answer a = {.owned = owned, .client = client};
    w->host->watched(w->host, mutex, keep_answer, &a);
    return a.watched && owned;
}

static void ask_waited(void *data, struct simba_watched *x)
{
    *(bool *)data = x->seen[SEEN_OWNED] != 0;
}

bool watcher_waited(struct sqlite_watcher *w, const char *mutex)
{
    bool waited = false;
    w->host->watched(w->host, mutex, ask_waited, &waited);
    return waited;
}

struct poll_pass {
    const struct database *db;
    bool missed_wakeups, any;
    int64_t last; /* the client that was checked last: many mutexes may have one owner */
    bool gone;    /* it is */
    struct due *due;
};

static void hint_if_free(void *data, struct simba_watched *x)
{
    struct poll_pass *l = data;
    bool owned = x->seen[SEEN_OWNED] != 0;
    l->any = l->any || owned;
    if (owned && x->seen[SEEN_CLIENT] != l->last) {
        l->last = x->seen[SEEN_CLIENT];
        l->gone = database_client_is_gone(l->db, l->last);
    }
    if ((owned && l->gone) || (l->missed_wakeups && (owned || x->interest == SIMBA_OBSERVES)))
        add_due(&l->due, x->mutex);
}

bool watcher_poll(struct sqlite_watcher *w, const struct database *db, bool missed_wakeups)
{
    struct poll_pass l = {.db = db, .missed_wakeups = missed_wakeups};
    if (w->wakeup.page != NULL) {
        pthread_mutex_lock(&w->lock);
        struct due *lost = heard(w);
        pthread_mutex_unlock(&w->lock);
        hint_due(w, lost);
    }
    w->host->watched(w->host, NULL, hint_if_free, &l);
    if (missed_wakeups && w->host->interest(w->host, "") == SIMBA_OBSERVES)
        add_due(&l.due, "");
    hint_due(w, l.due);
    return l.any;
}
