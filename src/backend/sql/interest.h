/* interest.h: which mutexes somebody waits for or observes, and what a look at their rows means.
 *
 * One look serves all of a client, so that the server's load depends on the number of clients and not on
 * that of contenders. What the client owns itself needs no look: it hears of a release because it
 * releases, and of an eviction by the bell, a row without a name that whoever evicts changes. */
#ifndef BACKEND_SQL_INTEREST_H
#define BACKEND_SQL_INTEREST_H

#include <simba/backend.h>

#include "base/table.h"

struct interest {
    struct table_node by_mutex;
    enum simba_interest kind;
    int64_t ours_until; /* simba_now(): until then it is this client's */
    bool known;
    uint64_t token; /* as last seen, and who: */
    uint32_t owner;
    char mutex[SIMBA_MUTEX_MAX + 1];
};

struct interests {
    struct table all;
    bool observes_all, digest_known;
    uint64_t digest, bell;
};

/* What to look at, and whom to tell. */
struct interest_look {
    const char *mutex, *owner; /* "" the owner: nobody */
    uint64_t token;
};

int sql_interest_init(struct interests *w);
void sql_interest_free(struct interests *w);
int sql_interest_set(struct interests *w, const char *mutex, enum simba_interest kind); /* ELIMIT */

/* A grant or renewal until that time; 0: it is not ours any more. */
void sql_interest_ours(struct interests *w, const char *mutex, int64_t until);

/* Calls each() for what needs a look, or for what is ours, to which the bell matters; returns how many. each
 * NULL: only counts. */
size_t sql_interest_each(const struct interests *w, int64_t now,
                         void (*each)(void *data, const char *mutex), void *data);
size_t sql_interest_each_ours(const struct interests *w, int64_t now,
                              void (*each)(void *data, const char *mutex), void *data);
bool sql_interest_waits(const struct interests *w, const char *mutex);
bool sql_interest_any(const struct interests *w); /* anything at all */
bool sql_interest_observes(const struct interests *w);

/* Is what was seen a reason for a hint? */
bool sql_interest_saw(struct interests *w, const struct interest_look *look);

/* The bell's count: 0: no news, 1: of one mutex, 2: of several. */
int sql_interest_bell(struct interests *w, uint64_t count);
bool sql_interest_digest(struct interests *w, uint64_t digest); /* has it changed? */
#endif
