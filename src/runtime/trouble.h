/* trouble.h: what keeps a handle from owning its mutex, or from renewing, apart from another owner:
 * facts for programs, and beside them the words (actor.h: failure). */
#ifndef RUNTIME_TROUBLE_H
#define RUNTIME_TROUBLE_H

#include <stdint.h>

struct actor;
struct request;

/* Under the client's lock. */
struct trouble {
    int64_t since; /* ns */
    int64_t until; /* ns; NOTYET: nobody is granted the mutex before */
    int code;      /* 0: none; SIMBA_ENOTYET; any other: exchanges fail with it */
};

/* Whoever has the baton. */
void trouble_begin(struct actor *a); /* from here on: what was before counts no more */
void trouble_answered(struct actor *a, struct request *r);
void trouble_unanswered(struct actor *a); /* the request took too long */
#endif
