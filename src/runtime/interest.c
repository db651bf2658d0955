/* interest.c: see interest.h. Changed by whoever has the turn, read on any thread. */
#include "runtime/interest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client.h"

struct record {
    struct hash_node by_mutex; /* first */
    struct simba_watched shown;
    char mutex[];
};

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

/* ---- what the handles want ----------------------------------------------------------------- */

static int keep_locked(struct interests *i, const char *mutex, enum simba_interest most,
                       bool is_wanted)
{
    struct record *r = find(i, mutex);
    if (!is_wanted) {
        if (r != NULL)
            hash_table_remove(&i->mutexes, &r->by_mutex);
        free(r);
        return 0;
    }
    if (r == NULL && (r = add(i, mutex)) == NULL)
        return SIMBA_ELIMIT;
    r->shown.interest = most;
    return 0;
}

int interest_change(struct simba_client *s, const char *mutex, enum simba_interest was,
                    enum simba_interest most)
{
    struct interests *i = &s->interests;
    bool observes = most == SIMBA_OBSERVES, observed = was == SIMBA_OBSERVES;
    int code = 0;
    if (mutex[0] == '\0') {
        atomic_store(&i->all_observed, observes);
    } else if (s->backend->asks || observes || observed) {
        bool is_wanted = s->backend->asks ? most != SIMBA_NO_INTEREST : observes;
        pthread_mutex_lock(&i->lock);
        code = keep_locked(i, mutex, most, is_wanted);
        pthread_mutex_unlock(&i->lock);
    }
    if (code == 0)
        atomic_fetch_add(&i->observed, (uint32_t)observes - (uint32_t)observed);
    return code;
}

/* ---- what the store asks ------------------------------------------------------------------- */

static enum simba_interest host_interest(struct simba_host *host, const char *mutex)
{
    struct interests *i = &((struct simba_client *)(void *)host)->interests;
    if (atomic_load(&i->all_observed) || (mutex == NULL && atomic_load(&i->observed) > 0))
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
    struct interests *i = &((struct simba_client *)(void *)host)->interests;
    pthread_mutex_lock(&i->lock);
    struct record *r = mutex != NULL ? find(i, mutex) : NULL;
    if (r != NULL)
        each(data, &r->shown);
    struct hash_node *n = NULL;
    while (mutex == NULL && (n = hash_table_next(&i->mutexes, n)) != NULL)
        each(data, &((struct record *)(void *)n)->shown);
    pthread_mutex_unlock(&i->lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

int interest_init(struct simba_client *s)
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

void interest_free(struct simba_client *s)
{
    hash_table_empty(&s->interests.mutexes, free_record);
    hash_table_free(&s->interests.mutexes);
    pthread_mutex_destroy(&s->interests.lock);
}
