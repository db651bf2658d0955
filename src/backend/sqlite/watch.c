/* watch.c: see watch.h. The order that loses no ring: read the bell, let the contender try, sleep on
 * the value that was read. A mutex is watched before its first try is submitted. Hints are given
 * without the lock: the thread that gives one may be asked to contend at once. */
#include "backend/sqlite/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

struct watched {
    struct watched *next; /* in its slot */
    bool owned;           /* by another */
    bool observed;        /* any change is of interest */
    int64_t client;       /* the owner's; 0: it has no liveness */
    char mutex[];
};

void watch_init(struct watch *w, struct simba_host *host)
{
    *w = (struct watch){.host = host};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
}

void watch_free(struct watch *w)
{
    for (size_t i = 0; i < BELL_SLOTS; i++) {
        for (struct watched *x = w->slot[i], *next; x != NULL; x = next) {
            next = x->next;
            free(x);
        }
    }
    bell_close(&w->bell);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
}

/* Where it is linked in, or where its slot ends. */
static struct watched **find(struct watch *w, const char *mutex)
{
    struct watched **at = &w->slot[bell_slot(mutex)];
    while (*at != NULL && strcmp((*at)->mutex, mutex) != 0)
        at = &(*at)->next;
    return at;
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

/* Has one been rung for that is not among the watched? (One that shares its slot with a watched one
 * is found by the next list.) */
static bool is_new_rung(struct watch *w)
{
    bool any = false;
    for (size_t i = 0; i < BELL_SLOTS; i++) {
        uint32_t rings = w->read[i];
        any = any || (w->slot[i] == NULL && rings != w->rings[i]);
        if (w->slot[i] == NULL)
            w->rings[i] = rings;
    }
    return any;
}

/* What has been rung for since it was last looked at; under the lock. */
static struct due *heard(struct watch *w)
{
    struct due *due = NULL;
    bell_read_slots(&w->bell, w->read);
    for (size_t word = 0; word < sizeof w->used / sizeof *w->used; word++) {
        for (uint64_t bits = w->used[word]; bits != 0; bits &= bits - 1) {
            size_t i = word * 64 + (size_t)__builtin_ctzll(bits);
            uint32_t rings = w->read[i];
            for (struct watched *x = w->slot[i]; x != NULL && rings != w->rings[i]; x = x->next)
                add_due(&due, x->mutex);
            w->rings[i] = rings;
        }
    }
    if (w->observes_all && is_new_rung(w))
        add_due(&due, "");
    return due;
}

static void *listen(void *arg)
{
    struct watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        if (w->count == 0) {
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

static struct watched *add(struct watch *w, const char *mutex, struct watched **at)
{
    size_t size = strlen(mutex) + 1;
    struct watched *x = calloc(1, sizeof *x + size);
    unsigned slot = bell_slot(mutex);
    if (x == NULL)
        return NULL;
    memcpy(x->mutex, mutex, size);
    *at = x;
    w->used[slot / 64] |= UINT64_C(1) << slot % 64;
    if (++w->count == 1)
        pthread_cond_signal(&w->change);
    return x;
}

static void take_out(struct watch *w, struct watched *x, struct watched **at)
{
    unsigned slot = bell_slot(x->mutex);
    *at = x->next;
    if (w->slot[slot] == NULL)
        w->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    w->waiting -= x->owned;
    w->observed -= x->observed;
    w->count--;
    free(x);
}

static void set(struct watch *w, const char *mutex, enum simba_interest interest)
{
    struct watched **at = find(w, mutex), *x = *at;
    bool observe = interest == SIMBA_OBSERVES;
    if (interest == SIMBA_NO_INTEREST && x != NULL) {
        take_out(w, x, at);
        return;
    }
    if (interest != SIMBA_NO_INTEREST && x == NULL)
        x = add(w, mutex, at);
    if (x != NULL) {
        w->observed += (size_t)observe - (size_t)x->observed;
        x->observed = observe;
    }
}

static void set_all(struct watch *w, bool observe)
{
    if (observe == w->observes_all)
        return;
    w->observes_all = observe;
    w->count += observe ? 1 : (size_t)-1;
    pthread_cond_signal(&w->change);
}

void watch_set(struct watch *w, const char *mutex, enum simba_interest interest)
{
    pthread_mutex_lock(&w->lock);
    if (mutex != NULL)
        set(w, mutex, interest);
    else
        set_all(w, interest != SIMBA_NO_INTEREST);
    pthread_mutex_unlock(&w->lock);
}

bool watch_observes(struct watch *w)
{
    pthread_mutex_lock(&w->lock);
    bool observes = w->observed > 0 || w->observes_all;
    pthread_mutex_unlock(&w->lock);
    return observes;
}

bool watch_answered(struct watch *w, const char *mutex, bool owned, int64_t client)
{
    pthread_mutex_lock(&w->lock);
    struct watched *x = *find(w, mutex);
    if (x != NULL) {
        w->waiting += (size_t)owned - (size_t)x->owned;
        x->owned = owned;
        x->client = client;
    }
    bool any = w->waiting > 0;
    pthread_mutex_unlock(&w->lock);
    return any;
}

void watch_look(struct watch *w, const struct db *db, bool blind)
{
    int64_t last = 0; /* the client that was looked at last: many mutexes may have one owner */
    bool gone = false;
    struct due *due = NULL;
    pthread_mutex_lock(&w->lock);
    bool any = w->waiting > 0 || (blind && w->observed > 0);
    for (size_t i = 0; any && i < BELL_SLOTS; i++) {
        for (struct watched *x = w->slot[i]; x != NULL; x = x->next) {
            if (x->owned && x->client != last) {
                last = x->client;
                gone = db_client_is_gone(db, last);
            }
            if ((x->owned && gone) || (blind && (x->owned || x->observed)))
                add_due(&due, x->mutex);
        }
    }
    if (blind && w->observes_all)
        add_due(&due, "");
    pthread_mutex_unlock(&w->lock);
    hint_due(w, due);
}
