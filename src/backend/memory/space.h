/* space.h: what a memory: store remembers. One space per NAME of memory:NAME, shared by all clients
 * of the process that open it, gone when the last of them closes. The reference for all stores:
 * what CONTEND, RENEW, RELEASE, READ, EVICT and PUBLISH mean is what space_apply() does. */
#ifndef BACKEND_MEMORY_SPACE_H
#define BACKEND_MEMORY_SPACE_H

#include <pthread.h>
#include <simba/backend.h>
#include <uv.h>

#include "backend/kit/handles.h"
#include "backend/kit/pending.h"
#include "base/hash_table.h"

struct space_record {
    struct hash_node by_mutex; /* first */
    char *id;                  /* the owner, allocated; NULL: nobody */
    uint64_t token;            /* of the last tenure */
    int64_t acquired, until;   /* ns */
    bool evicted;              /* its renewals fail */
    bool contended;            /* somebody was refused: tell when it is free */
    char *note;                /* allocated; NULL: none */
    uint64_t note_token, note_serial;
    int64_t noted; /* ns: when it was written */
    char mutex[];
};

/* One client's view. */
struct memory {
    struct memory *next; /* in the space */
    struct space *space;
    struct simba_host *host;
    uv_async_t wake;
    uv_timer_t timer;
    struct handles handles;
    struct pending held;                        /* not applied while the store hangs */
    struct deferred *deferred, **deferred_last; /* applied, to be answered later */
};

struct space {
    struct space *next;
    size_t clients; /* under the lock of all spaces */
    char name[SIMBA_MUTEX_MAX + 1];

    pthread_mutex_t lock; /* for the rest */
    struct hash_table records;
    struct memory *members;
    struct simba_memory_faults faults;
    uint64_t random;
};

/* NULL: out of memory. */
struct space *space_enter(const char *name, struct memory *member);
void space_leave(struct memory *member);

enum space_news {
    SPACE_NOTHING,
    SPACE_CHANGED, /* another owner, or none */
    SPACE_FREED    /* and somebody waits for it, or its owner must ask */
};

/* The operation, under s->lock; the answer's id and note live as long as the lock is held. */
enum space_news space_apply(struct space *s, const struct simba_request *request,
                            struct simba_answer *answer, struct simba_noted *noted);
void space_list(struct space *s, struct memory *member, struct simba_request *request);

/* Tells the members, all or those who observe; under s->lock. */
void space_tell(struct space *s, const char *mutex, enum space_news news);
bool space_chance(struct space *s, unsigned percent);
#endif
