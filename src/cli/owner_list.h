/* owner_list.h: owners as aligned columns or as lines of JSON, and what happens to them. */
#ifndef CLI_OWNER_LIST_H
#define CLI_OWNER_LIST_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>

struct cli;

struct owner_row {
    char mutex[SIMBA_MUTEX_MAX + 1];
    struct simba_owner owner; /* all zero: nobody */
    int64_t waiters;          /* -1: unknown */
    struct simba_note *note;  /* allocated; NULL: none */
};

struct owner_list {
    struct owner_row *row;
    size_t count, room;
    bool failed; /* out of memory */
};

/* note: copied; NULL, or of token 0: none. */
void owner_list_add(struct owner_list *t, const char *mutex, const struct simba_owner *owner,
                    int64_t waiters, const struct simba_note *note);
void owner_list_empty(struct owner_list *t); /* to be filled again; t->row is freed by its owner */
void owner_list_print(const struct cli *c, const struct owner_list *t); /* as --json says */

/* A change, as --json says: the event, the tenure that it is about, and why. */
void owner_event_print(const struct cli *c, const char *event, const char *mutex,
                       const struct simba_owner *owner, enum simba_reason reason);

const char *reason_name(enum simba_reason reason); /* "expired" …; NULL: none */
bool reason_is_loss(enum simba_reason reason);     /* expired, evicted, stalled: not by its owner */
#endif
