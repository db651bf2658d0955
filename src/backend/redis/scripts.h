/* scripts.h: what runs inside the server; each has a file of its own, lua/NAME.lua. In these a line
 *
 *   -- include FILE.lua           stands for that file, unless it was included before
 *   -- include FILE.lua as NAME   for a function of that name, with KEYS and ARGV for arguments
 *
 * The build puts them together (cmake/embed.cmake). */
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
    SCRIPT_PUBLISH,
    SCRIPT_ABSENT,
    SCRIPT_EPOCH,
    SCRIPT_ACQUIRE_MANY, /* the same for many mutexes at once */
    SCRIPT_RELEASE_MANY,
    SCRIPT_RIGHTS,
    SCRIPTS
};

#define SCRIPTS_EPOCH_KEY "simba:epoch" /* where epoch.lua has its note */

/* Begins a call for this many mutexes. The keys of each follow, and then the arguments. Whole:
 * with its text, for a server that does not know it yet. */
void scripts_call(struct buffer *b, enum script script, bool whole, size_t mutexes);
void scripts_keys(struct buffer *b, enum script script, const char *mutex);

const char *scripts_text(enum script script);
#endif
