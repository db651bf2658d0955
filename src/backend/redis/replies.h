/* replies.h: replies to answers. A reply that does not look as its script makes it ends the
 * connection: nothing in it is believed. */
#ifndef BACKEND_REDIS_REPLIES_H
#define BACKEND_REDIS_REPLIES_H

#include "backend/redis/connection.h"

struct redis;

/* The last answer of a reading is held back until it is known whether one more follows. */
struct held {
    struct simba_request *request; /* NULL: none */
    struct simba_answer answer;
    char id[SIMBA_ID_MAX + 1], text[CONNECTION_TEXT_MAX];
    struct simba_noted noted;
    char note[SIMBA_NOTE_MAX + 1];
};

/* Whom EVICT is for, if that is not how the id is shown: `store` of the request. */
struct exact_id {
    size_t length;
    char bytes[];
};

/* Of a call for a request, or for a list of them. */
void replies_take(void *store, const struct redis_command *sent, const struct reply *r);

void replies_answer(struct redis *s, struct simba_request *q, const struct simba_answer *answer);
void replies_refuse(struct redis *s, struct simba_request *list, int code, const char *why);
void replies_end(void *store); /* gives the answer that was held back */

/* How a reply tells of an owner, in three elements from `at` on. False: it makes no sense. */
struct replied_owner {
    struct simba_answer answer; /* its id is the next one */
    char id[SIMBA_ID_MAX + 1];  /* "": nobody; fit to be shown */
    bool is_foreign;
};
bool replies_owner(const struct reply *r, size_t at, struct replied_owner *out);

/* The note in the three elements from `at` on. False: there is none. */
bool replies_note(const struct reply *r, size_t at, struct simba_noted *out);

/* Why nothing that is free is granted for so long. */
void replies_restart_grace_text(const struct redis *s, int64_t left_ms, char *line, size_t size);
#endif
