/* scripts.h: what runs inside the server; each has a file of its own, lua/NAME.lua. */
#ifndef BACKEND_REDIS_SCRIPTS_H
#define BACKEND_REDIS_SCRIPTS_H

#include <stdbool.h>

#include "backend/redis/resp.h"

enum script {
    SCRIPT_ACQUIRE,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_READ,
    SCRIPT_EVICT,
    SCRIPT_ABSENT,
    SCRIPT_EPOCH,
    SCRIPT_ACQUIRE_MANY, /* the same for many mutexes at once */
    SCRIPT_RELEASE_MANY,
    SCRIPT_RIGHTS,
    SCRIPTS
};

/* Begins a call with this many keys and arguments, which follow. Whole: with its text, for a server
 * that does not know it yet. */
void scripts_call(struct buffer *b, enum script script, bool whole, size_t keys, size_t arguments);

/* A key of the mutex as a word: simba:{M} and this part. */
void scripts_key(struct buffer *b, const char *mutex, const char *part);
void scripts_read_keys(struct buffer *b, const char *mutex); /* those that SCRIPT_READ takes */

const char *scripts_text(enum script script);
#endif
