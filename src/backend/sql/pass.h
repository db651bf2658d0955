/* pass.h: how a mutex changes hands within a client: by one statement, a pass, which ends one
 * tenure and begins the next, with a token of its own. A release that finds others of this client
 * waiting invites the first of them, and goes out together with what that asks for.
 *
 * Other processes wait, too: a client passes a mutex on for a while only, and then releases it.
 * Where those have left a mark, the client knows of them, and lets them ask first. While one of
 * its own handles owns the mutex, the others are refused without a question to the server.
 *
 * All on the loop's thread. It decides nothing: the row does. */
#ifndef BACKEND_SQL_PASS_H
#define BACKEND_SQL_PASS_H

#include <simba/backend.h>
#include <uv.h>

#include "backend/kit/pending.h"

#define SQL_PASS_MUTEXES 16 /* that are remembered; others are released and acquired as ever */

/* A mutex that this client has, or had. */
struct sql_pass {
    char mutex[SIMBA_MUTEX_MAX + 1]; /* "": none */
    char owner[SIMBA_ID_MAX + 1];    /* of this client */
    uint64_t token;
    int64_t began_at;     /* simba_now(): the owner's tenure */
    int64_t until;        /* simba_now(): its lease; 0: it may have ended */
    int64_t since;        /* simba_now(): the client has had it, and */
    unsigned count;       /* so many passes */
    bool is_contested;    /* others have left a mark */
    int64_t others_until; /* simba_now(): so long they come first */
};

struct sql_passes {
    struct sql_pass mutex[SQL_PASS_MUTEXES];
    size_t next;          /* to be forgotten for another */
    struct pending later; /* after the others */
    uv_timer_t timer;     /* of those */
    bool invites;         /* what waits goes out when the one that was invited has asked, or not */
};

struct sql;
struct sql_item;

bool sql_pass_holds_back(struct sql *s, struct simba_request *q); /* it is answered, or waits */
void sql_pass_invite(struct sql *s, const struct simba_request *batch); /* see invites */
bool sql_pass_may(struct sql *s, const char *mutex);

/* What became of a request. */
void sql_pass_granted(struct sql *s, const struct sql_item *item, bool passed);
void sql_pass_ended(struct sql *s, const struct sql_item *item);

void sql_pass_others_first(struct sql *s, const char *mutex, bool yes); /* for a moment */
bool sql_pass_is_ours(struct sql *s, const struct sql_item *item); /* the tenure that it tells of */
void sql_pass_doubt(struct sql *s, const char *mutex); /* something has happened to it */
void sql_pass_reset(struct sql *s);                    /* the connection is gone */
#endif
