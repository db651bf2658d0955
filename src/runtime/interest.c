/* interest.c: see interest.h. Changed by whoever has the turn, read on any thread. */
#include "runtime/interest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"

struct record {
    struct hash_node by_mutex; /* first */
    struct simba_watched shown;
    uint32_t handles[SIMBA_OBSERVES + 1]; /* how many have which interest */
    char mutex[];
};

static enum simba_interest most_of(const struct record *r)
{
    return r->handles[SIMBA_OBSERVES] > 0 ? SIMBA_OBSERVES
           : r->handles[SIMBA_WAITS] > 0  ? SIMBA_WAITS
                                          : SIMBA_NO_INTEREST;
}

static struct record *find(const struct interests *i, const char *mutex)
{
    return (struct record *)(void *)hash_table_find(&i->mutexes, mutex);
}

static struct record *add(struct interests *i, const char *mutex)
{
    size_t size = strlen(mutex) + 1;
    struct record *r = calloc(1, sizeof *r + size);
    if (r == NULL)
        return NULL;
    memcpy(r->mutex, mutex, size);
    r->by_mutex.name = r->shown.mutex = r->mutex;
    hash_table_add(&i->mutexes, &r->by_mutex);
    return r;
}

/* ---- what a handle wants ----------------------------------------------------------------------- */

static int change_locked(struct interests *i, const char *mutex, enum simba_interest before,
                         enum simba_interest now, enum simba_interest *most)
{
    struct record *r = find(i, mutex);
    assert(r != NULL || before == SIMBA_NO_INTEREST);
    if (r == NULL && (r = add(i, mutex)) == NULL)
        return SIMBA_ELIMIT;
    r->handles[before] -= before != SIMBA_NO_INTEREST;
    r->handles[now] += now != SIMBA_NO_INTEREST;
    *most = most_of(r);
    int changed = *most != r->shown.interest;
    r->shown.interest = *most;
    if (*most == SIMBA_NO_INTEREST) {
        hash_table_remove(&i->mutexes, &r->by_mutex);
        free(r);
    }
    return changed;
}

int interest_change(struct simba *s, const char *mutex, enum simba_interest before,
                    enum simba_interest now, enum simba_interest *most)
{
    struct interests *i = &s->interests;
    int changed;
    if (mutex[0] == '\0') { /* who observes all */
        uint32_t others = atomic_load(&i->of_all) - (before == SIMBA_OBSERVES);
        *most = others > 0 ? SIMBA_OBSERVES : now;
        changed = others == 0;
        atomic_store(&i->of_all, others + (now == SIMBA_OBSERVES));
    } else {
        pthread_mutex_lock(&i->lock);
        changed = change_locked(i, mutex, before, now, most);
        pthread_mutex_unlock(&i->lock);
    }
    if (changed >= 0 && before == SIMBA_OBSERVES)
        atomic_fetch_sub(&i->observers, 1);
    if (changed >= 0 && now == SIMBA_OBSERVES)
        atomic_fetch_add(&i->observers, 1);
    return changed;
}

/* ---- what the store asks ----------------------------------------------------------------------- */

static enum simba_interest host_interest(struct simba_host *host, const char *mutex)
{
    struct interests *i = &((struct simba *)(void *)host)->interests;
    if (atomic_load(mutex == NULL ? &i->observers : &i->of_all) > 0)
        return SIMBA_OBSERVES;
    pthread_mutex_lock(&i->lock);
    const struct record *r = mutex != NULL ? find(i, mutex) : NULL;
    enum simba_interest interest = r != NULL                               ? r->shown.interest
                                   : mutex == NULL && i->mutexes.count > 0 ? SIMBA_WAITS
                                                                           : SIMBA_NO_INTEREST;
    pthread_mutex_unlock(&i->lock);
    return interest;
}

static void host_watched(struct simba_host *host, const char *mutex, simba_watched_fn *each,
                         void *data)
{
    struct interests *i = &((struct simba *)(void *)host)->interests;
    pthread_mutex_lock(&i->lock);
    struct record *r = mutex != NULL ? find(i, mutex) : NULL;
    if (r != NULL)
        each(data, &r->shown);
    struct hash_node *n = NULL;
    while (mutex == NULL && (n = hash_table_next(&i->mutexes, n)) != NULL)
        each(data, &((struct record *)(void *)n)->shown);
    pthread_mutex_unlock(&i->lock);
}

/* ---- life -------------------------------------------------------------------------------------- */

int interest_init(struct simba *s)
{
    pthread_mutex_init(&s->interests.lock, NULL);
    s->host.interest = host_interest;
    s->host.watched = host_watched;
    return hash_table_init(&s->interests.mutexes);
}

static void free_record(struct hash_node *node)
{
    free(node);
}

void interest_free(struct simba *s)
{
    hash_table_empty(&s->interests.mutexes, free_record);
    hash_table_free(&s->interests.mutexes);
    pthread_mutex_destroy(&s->interests.lock);
}
