/* request.h: a request on its way to the store, with room for its answer. */
#ifndef RUNTIME_REQUEST_H
#define RUNTIME_REQUEST_H

#include <simba/backend.h>

#include "core/lease.h"

struct simba_client;
struct actor;
struct inquiry;

struct request {
    struct simba_request to_store; /* first: the store hands this back */
    struct simba_client *client;
    struct actor *actor;     /* NULL: an inquiry */
    struct inquiry *inquiry; /* NULL: an actor's */
    struct lease_request sent;
    bool answered, granted, own; /* own: the owner is the contender itself */
    bool evicted;                /* as the answer says */
    int code;
    int trouble; /* the store's own code of a failure: code, or more exactly why it is ESTORE */
    uint64_t token;
    int64_t left_ms, age_ms, wall_ms;
    char *owner, *text;  /* allocated; NULL: none */
    struct note *note;   /* likewise */
    struct found *found; /* LIST: allocated */
};

/* A mutex that a LIST found. */
struct found {
    struct found *next;
    struct simba_owner owner;
    int64_t waiters;
    struct note *note; /* allocated; NULL: none */
    char mutex[SIMBA_MUTEX_MAX + 1];
};

/* Of one client; whoever has the baton. */
struct requests {
    struct simba_request *batch, **batch_last; /* of this round, for the store */
    struct request *spare;                     /* for the next use */
    size_t spares, in_flight;
};

void requests_init(struct requests *all);
void requests_free(struct requests *all); /* when none is in flight */

struct request *request_new(struct simba_client *s); /* NULL: over the limit */
void request_send(struct request *r);
void request_free(struct request *r);
bool request_has_failed(const struct request *r); /* that a tenure is over is an answer */
void request_free_found(struct found *list);

/* A tenure as the store tells it, on our clock. */
struct simba_owner request_owner(const struct request *r, const struct simba_found *found);
#endif
