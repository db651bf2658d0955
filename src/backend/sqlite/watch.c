/* watch.c: see watch.h. What the client waits for or observes, the host knows. The order that loses no ring: read the bell, let the contender try, sleep on
 * the value that was read. A mutex is watched before its first try is submitted. Hints are given
 * without the lock: the thread that gives one may be asked to contend at once. */
#include "backend/sqlite/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

enum { SEEN_OWNED, SEEN_CLIENT }; /* by another; its client, 0: it has no liveness */

void watch_init(struct watch *w, struct simba_host *host)
{
    *w = (struct watch){.host = host};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
}

void watch_free(struct watch *w)
{
    bell_close(&w->bell);
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

static void hint_due(struct watch *w, struct due *list)
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

struct hearing {
    struct watch *watch;
    struct due *due;
};

static void hear(void *data, struct simba_watched *x)
{
    struct hearing *h = data;
    unsigned slot = bell_slot(x->mutex);
    set_bit(h->watch->watched, slot);
    if (h->watch->read[slot] != h->watch->rings[slot])
        add_due(&h->due, x->mutex);
}

/* Whether a slot was rung for since it was last read; watched: one that has a mutex of ours, or not. */
static bool is_rung(const struct watch *w, bool watched)
{
    for (unsigned i = 0; i < BELL_SLOTS; i++) {
        if (w->read[i] != w->rings[i] && has_bit(w->watched, i) == watched)
            return true;
    }
    return false;
}

/* What has been rung for since it was last looked at; under the lock. Of what others wait for, nobody
 * here is asked. (A mutex that is new to an observer of all, and shares its slot with a watched one, is
 * found by the next list.) */
static struct due *heard(struct watch *w)
{
    struct hearing h = {.watch = w};
    bell_read_slots(&w->bell, w->read);
    if (is_rung(w, true)) {
        memset(w->watched, 0, sizeof w->watched);
        w->host->watched(w->host, NULL, hear, &h);
    }
    if (w->host->interest(w->host, "") == SIMBA_OBSERVES && is_rung(w, false))
        add_due(&h.due, "");
    memcpy(w->rings, w->read, sizeof w->rings);
    return h.due;
}

static void *listen(void *arg)
{
    struct watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        if (w->host->interest(w->host, NULL) == SIMBA_NO_INTEREST) {
            pthread_cond_wait(&w->change, &w->lock);
            continue;
        }
        uint32_t seen = bell_read(&w->bell);
        struct due *due = heard(w);
        pthread_mutex_unlock(&w->lock);
        hint_due(w, due);
        bell_wait(&w->bell, seen);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int watch_open(struct watch *w, const char *path)
{
    if (w->bell.words != NULL)
        return 0;
    struct bell bell;
    if (bell_open(&bell, path) != 0)
        return -1;
    pthread_mutex_lock(&w->lock);
    w->bell = bell;
    bell_read_slots(&bell, w->rings); /* who was rung for before has not asked yet */
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* Not before it is needed: a program that only looks has no use for the thread. What was rung since
 * the bell was opened is heard then. */
void watch_listen(struct watch *w)
{
    if (w->bell.words != NULL && !w->listening)
        w->listening = thread_start(&w->thread, "simba-bell", listen, w) == 0;
    /* without the thread there is still the slow look */
}

void watch_stop(struct watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
    if (!w->listening)
        return;
    bell_ring(&w->bell, 0);
    pthread_join(w->thread, NULL);
}

void watch_set(struct watch *w, const char *mutex, enum simba_interest interest)
{
    if (interest == SIMBA_NO_INTEREST)
        return;
    pthread_mutex_lock(&w->lock);
    if (mutex != NULL)
        set_bit(w->watched, bell_slot(mutex));
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
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

bool watch_answered(struct watch *w, const char *mutex, bool owned, int64_t client)
{
    struct answer a = {.owned = owned, .client = client};
    w->host->watched(w->host, mutex, keep_answer, &a);
    return a.watched && owned;
}

struct look {
    const struct db *db;
    bool blind, any;
    int64_t last; /* the client that was looked at last: many mutexes may have one owner */
    bool gone;    /* it is */
    struct due *due;
};

static void look(void *data, struct simba_watched *x)
{
    struct look *l = data;
    bool owned = x->seen[SEEN_OWNED] != 0;
    l->any = l->any || owned;
    if (owned && x->seen[SEEN_CLIENT] != l->last) {
        l->last = x->seen[SEEN_CLIENT];
        l->gone = db_client_is_gone(l->db, l->last);
    }
    if ((owned && l->gone) || (l->blind && (owned || x->interest == SIMBA_OBSERVES)))
        add_due(&l->due, x->mutex);
}

bool watch_look(struct watch *w, const struct db *db, bool blind)
{
    struct look l = {.db = db, .blind = blind};
    w->host->watched(w->host, NULL, look, &l);
    if (blind && w->host->interest(w->host, "") == SIMBA_OBSERVES)
        add_due(&l.due, "");
    hint_due(w, l.due);
    return l.any;
}
